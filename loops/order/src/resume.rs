//! What is still valid of a stopped run after its tree was rolled back.

use code_commit_engine::Recorded;

/// How many answers a resumed run keeps, counted from the first. The tree is at the baseline again,
/// so an attempt that had not failed yet starts over from its reply, which was paid for; one that
/// had failed was already rolled back, and the run continues after it. A model that did not reply
/// is asked again.
pub fn still_holds(answers: &[Recorded]) -> usize {
    let is_unanswered =
        |entry: &Recorded| entry.answers("unanswered") || entry.answer.get("for_person").is_some();
    if let Some(unanswered) = answers.iter().position(is_unanswered) {
        return unanswered;
    }
    let Some(answered) = answers.iter().rposition(|entry| entry.answers("answered")) else {
        return answers.len();
    };
    let has_failed = answers
        .iter()
        .skip(answered)
        .any(|entry| entry.answers("rolled-back"));
    if has_failed {
        answers.len()
    } else {
        answered + 1
    }
}
