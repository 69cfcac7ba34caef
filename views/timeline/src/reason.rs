//! Why a run ended as it did.

use code_commit_engine::Outcome;

use crate::step::{Call, Change, Command, RunView, Step, Tone, What};

/// The markers with which an agent ends a run that has not reached its goal, and what they say (S4 §Markers).
const MARKERS: [(&str, &str); 2] = [
    ("REQUEST_CHANGES", "the review requests changes"),
    ("SPEC_ISSUE", "the specs need a decision"),
];
/// The code of a reply without a file: words for a person, or a question.
const ONLY_WORDS: &str = "nothing-actionable";
/// What stands around words for a person (S1 §Response).
const USER: &str = "&&&";
/// Words by which a line of a build's output names a failure.
const FAILURES: &str = "assertion error errors exception expected fail failed failing fails failure fatal panicked traceback";

/// Why a run did not reach its goal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reason {
    /// In one line: `the build exited with 1 (FAILED: nobody is the world)`.
    pub text: String,
    /// What was said about it: a contract that fails, a review, the words of a model.
    pub detail: String,
    /// Whether a model asks a person.
    pub is_question: bool,
    /// The place of the step that failed last.
    pub step: Option<usize>,
}

/// Reads a file of the record.
pub type ReadFile<'r> = dyn Fn(&str) -> Option<String> + 'r;

impl RunView {
    /// Why the run did not reach its goal; `None` if it did, or has not ended.
    pub fn reason(&self, read: &ReadFile<'_>) -> Option<Reason> {
        let outcome = self.outcome.as_ref()?;
        if matches!(outcome, Outcome::Done { .. }) {
            return None;
        }
        let Some(cause) = outcome.cause() else {
            return self.last_failure(read, &|_| true);
        };
        // A person has to decide because of what failed, however long ago. Else only the last round explains what was in work.
        let is_stuck = matches!(outcome, Outcome::NeedsPerson { .. });
        let last = self.all.last().filter(|_| !is_stuck);
        let from = last.map_or(0, |step| step.round);
        let objection = self.last_failure(read, &|of| of.round >= from && of.call().is_some());
        let failure = || self.last_failure(read, &|of| of.round >= from);
        let unexplained = || Reason {
            detail: String::new(),
            ..failure().unwrap_or_default()
        };
        Some(Reason {
            text: cause.message.clone(),
            is_question: false,
            ..objection.unwrap_or_else(unexplained)
        })
    }

    fn last_failure(&self, read: &ReadFile<'_>, meant: &dyn Fn(&Step) -> bool) -> Option<Reason> {
        let steps = self.all.iter().enumerate().rev();
        let mut steps = steps.filter(|(_, step)| meant(step));
        steps.find_map(|(at, step)| {
            let reason = match &step.what {
                What::Command(command) => command.failure(read),
                What::Change(change) => change.refusal(|| self.words_before(at, read)),
                What::Call(call) => call.objection(read),
                What::Remark(remark) => {
                    (remark.tone == Tone::Bad).then(|| Reason::new(&*remark.text))
                }
            };
            let step = Some(at);
            Some(Reason { step, ..reason? })
        })
    }

    /// The reply that the step at this place judges.
    fn words_before(&self, at: usize, read: &ReadFile<'_>) -> Option<String> {
        let mut before = self.all.get(..at)?.iter().rev();
        let answer = before.find_map(|step| step.call())?.answer.as_ref()?;
        let text = read(&answer.file)?;
        let lines = text.lines().filter(|line| !line.starts_with(USER));
        Some(lines.collect::<Vec<_>>().join("\n"))
    }
}

impl Reason {
    fn new(text: impl Into<String>) -> Self {
        let text = text.into();
        Self {
            text,
            ..Self::default()
        }
    }
}

impl Command {
    fn failure(&self, read: &ReadFile<'_>) -> Option<Reason> {
        let ended = self.ended.filter(|_| !self.is_good)?;
        let name = if self.is_build {
            "the build".to_owned()
        } else {
            format!("`{}`", self.name)
        };
        let how = ended
            .exit_code()
            .map_or_else(|| ended.to_string(), |code| format!("exited with {code}"));
        let named = self.output.iter().find_map(|file| {
            let text = read(file)?;
            let line = text.lines().find(|line| names_failure(line))?;
            Some(format!(" ({})", line.trim()))
        });
        let named = named.unwrap_or_default();
        Some(Reason::new(format!("{name} {how}{named}")))
    }
}

impl Change {
    fn refusal(&self, words: impl FnOnce() -> Option<String>) -> Option<Reason> {
        let first = self.problems.first().filter(|_| self.is_refused)?;
        if self.problems.iter().any(|one| one.code == ONLY_WORDS) {
            return Some(Reason {
                detail: words().unwrap_or_default(),
                is_question: true,
                ..Reason::new("the model replied with words alone")
            });
        }
        let text = format!("the reply was refused: {}", first.message);
        Some(Reason::new(text))
    }
}

impl Call {
    /// The contracts that fail, as a verifier listed them. A list without an entry names none.
    pub fn contracts(&self, read: &ReadFile<'_>) -> Option<String> {
        let list = read(&self.failed_specs.as_ref()?.file)?;
        list.to_uppercase().contains("SPEC").then_some(list)
    }

    /// What an agent wrote or marked about a failure.
    fn objection(&self, read: &ReadFile<'_>) -> Option<Reason> {
        let marked = || {
            let mut markers = self.markers().iter().rev();
            markers.find_map(|marker| {
                let (_, text) = MARKERS.iter().find(|(name, _)| *name == marker.name)?;
                Some((*text, marker.content.clone()))
            })
        };
        let contracts = self.contracts(read);
        let contracts = contracts.map(|list| ("contracts fail", list));
        let (text, detail) = contracts.or_else(marked)?;
        Some(Reason {
            detail,
            ..Reason::new(text)
        })
    }
}

/// Whether a line of a build's output names a failure. One that counts none (`0 failed`) does not, nor one that is a heading
/// alone.
pub fn names_failure(line: &str) -> bool {
    if line.trim_start().starts_with(['✗', '✖', '✘', '×']) {
        return true;
    }
    let line = line.to_lowercase();
    let words = line.split(|c: char| !c.is_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let is_failure = |word: &str| {
        let is_listed = FAILURES.split(' ').any(|failure| failure == word);
        is_listed || word.ends_with("error") || word.ends_with("exception")
    };
    let word = |at: Option<usize>| at.and_then(|at| words.get(at).copied()).unwrap_or_default();
    let names = |at: usize| {
        let counts_none = |word: &str| matches!(word, "0" | "no" | "without");
        let before = at.checked_sub(1);
        is_failure(word(Some(at))) && !counts_none(word(before)) && word(Some(at + 1)) != "0"
    };
    let is_tap = words.starts_with(&["not", "ok"]);
    words.len() > 1 && (is_tap || (0..words.len()).any(names))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_name_a_failure_are_found_among_those_that_count_none() {
        let output = "\
            Running 31 tests\n\
            ==== FAILURES ====\n\
            test result: ok. 3 passed; 0 failed\n\
            Tests run: 3, Failures: 0, Errors: 0\n\
            no errors were found\n\
            warning: unused variable\n\
            not ok 4 - greets the world\n\
            ✗ greets nobody\n\
            error[E0308]: mismatched types\n\
            --- FAIL: TestGreet (0.00s)\n\
            TypeError: greet is not a function\n\
            thread 'main' panicked at src/main.rs:3\n\
            # fail 29\n";
        let found: Vec<&str> = output.lines().filter(|line| names_failure(line)).collect();
        insta::assert_snapshot!(found.join("\n"), @"
        not ok 4 - greets the world
        ✗ greets nobody
        error[E0308]: mismatched types
        --- FAIL: TestGreet (0.00s)
        TypeError: greet is not a function
        thread 'main' panicked at src/main.rs:3
        # fail 29
        ");
    }

    #[test]
    fn a_failure_of_an_earlier_round_explains_a_decision_but_no_limit() {
        let reason = |outcome: &str| {
            let built = |round: u32, code: u32| {
                format!(
                    r#"{{"what":"built","round":{round},"ended":{{"how":"exited","code":{code}}},"output":{{"file":"b","bytes":1,"sha256":""}},"elapsed_ms":1}}"#
                )
            };
            let ended = format!(
                r#"{{"what":"ended","outcome":"{outcome}","round":2,"cause":{{"code":"c","message":"why","remedy":null}}}}"#
            );
            let json = [built(1, 1), built(2, 0), ended];
            let lines = json.map(|line| serde_json::from_str(&line).unwrap());
            RunView::untimed(&lines).reason(&|_| None).unwrap()
        };
        let (decision, limit) = (reason("needs-person"), reason("model-unavailable"));
        assert_eq!((decision.text.as_str(), decision.step), ("why", Some(0)));
        assert_eq!((limit.text.as_str(), limit.step), ("why", None));
    }

    /// The code is the parser's, which this crate does not know.
    #[test]
    fn a_reply_of_words_alone_is_a_question_without_its_marks() {
        let json = [
            r#"{"what":"answered","round":1,"reply":{"file":"a","bytes":1,"sha256":""},"raw":{"file":"r","bytes":1,"sha256":""},"finish":"complete","usage":{},"served_model":null,"cost_usd":null,"elapsed_ms":1}"#,
            r#"{"what":"rejected","round":1,"problems":[{"code":"nothing-actionable","message":"m"}],"report":{"file":"b","bytes":1,"sha256":""}}"#,
            r#"{"what":"ended","outcome":"attempts-used-up","rounds":1}"#,
        ];
        let lines = json.map(|line| serde_json::from_str(line).unwrap());
        let read =
            |file: &str| (file == "a").then(|| "&&&start\nEnglish or French?\n&&&end\n".to_owned());
        let reason = RunView::untimed(&lines).reason(&read).unwrap();
        assert!(reason.is_question, "{reason:?}");
        assert_eq!(reason.detail, "English or French?");
    }
}
