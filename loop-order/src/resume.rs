//! What of a stopped run still holds once its tree was rolled back.

use engine::Recorded;

/// How many answers a run that goes on keeps, counted from the first. The tree is at the baseline
/// again, so an attempt that had not failed yet begins again with its answer, which was paid for;
/// one that had failed was rolled back already and goes on. A model that gave no answer is asked
/// again.
pub fn still_holds(answers: &[Recorded]) -> usize {
    let is_unanswered =
        |entry: &Recorded| entry.answers("unanswered") || entry.answer.get("for_person").is_some();
    if let Some(unanswered) = answers.iter().position(is_unanswered) {
        return unanswered;
    }
    let Some(answered) = answers.iter().rposition(|entry| entry.answers("answered")) else {
        return answers.len();
    };
    let has_failed = answers.iter().skip(answered).any(|entry| entry.answers("rolled-back"));
    if has_failed { answers.len() } else { answered + 1 }
}
