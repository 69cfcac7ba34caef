//! Going through a recorded run again: the recorded facts answer what the model and the build answered then; everything that this
//! program does itself is done again, in a scratch tree, and compared.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;

use crate::executor::{Fault, untidy};
use crate::intake::Intake;
use crate::record::RecordError;
use crate::{Answer, CallFact, Executor, Fact, Problem, Record, Rules, Step};

/// Where a replay came out differently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// In which round.
    pub round: u32,
    /// What differs: `the prompt`, `what the reply changed`, `the command`.
    pub what: &'static str,
    /// As it was recorded: the first line that differs; of a long one what stands around the difference.
    pub recorded: String,
    /// As it is now.
    pub now: String,
}

/// Why a replay ended before the recorded run did.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayFault {
    /// It came out differently.
    #[error("{} of round {} differs: recorded `{}`, now `{}`", .0.what, .0.round, .0.recorded, .0.now)]
    Differs(Difference),
    /// The record ends here.
    #[error("the record ends before round {round} does")]
    RecordEnds {
        /// The round that was not recorded.
        round: u32,
    },
    /// The scratch tree could not be used.
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl From<RecordError> for ReplayFault {
    fn from(error: RecordError) -> Self {
        Self::Fault(error.into())
    }
}

/// Makes the scratch tree what the recorded run found before it wrote in a round: no build is run that could have changed it since.
pub type AsFound<'f> = Box<dyn FnMut(u32) -> io::Result<()> + 'f>;

/// The recorded facts as an executor.
pub struct Replayed<'f> {
    /// The scratch tree.
    pub rules: Rules,
    /// Where pre-images of the scratch tree go.
    undo: PathBuf,
    facts: VecDeque<Fact>,
    as_found: AsFound<'f>,
}

impl<'f> Replayed<'f> {
    /// An executor that answers with these facts.
    pub fn new(facts: Vec<Fact>, rules: Rules, undo: PathBuf, as_found: AsFound<'f>) -> Self {
        Self { rules, undo, facts: facts.into(), as_found }
    }

    /// The next recorded fact that `wanted` takes something from; others are passed over.
    fn next<T>(&mut self, round: u32, wanted: impl Fn(&Fact) -> Option<T>) -> Result<T, ReplayFault> {
        while let Some(fact) = self.facts.pop_front() {
            if let Some(found) = wanted(&fact) {
                return Ok(found);
            }
        }
        Err(ReplayFault::RecordEnds { round })
    }

    fn ask(&mut self, round: u32, prompt: &str) -> Result<Fact, ReplayFault> {
        let recorded = self.next(round, |fact| {
            if let Fact::Call(CallFact::Asked { round: of, prompt }) = fact {
                (*of == round).then(|| prompt.share())
            } else {
                None
            }
        })?;
        compare(round, "the prompt", &recorded, prompt)?;
        let came = self.next(round, |fact| {
            matches!(fact, Fact::Call(CallFact::Answered { .. } | CallFact::Unanswered { .. }))
                .then(|| fact.clone())
        })?;
        let goes_on = || self.facts.iter().any(|fact| matches!(fact, Fact::Resumed));
        if matches!(came, Fact::Call(CallFact::Unanswered { .. })) && goes_on() {
            return self.ask(round, prompt);
        }
        Ok(came)
    }

    fn apply(&mut self, round: u32, answer: &Answer) -> Result<Fact, ReplayFault> {
        let recorded = self.next(round, |fact| {
            matches!(fact, Fact::Applied { .. } | Fact::Rejected { .. }).then(|| fact.clone())
        })?;
        (self.as_found)(round).map_err(Fault::file("look at", &self.rules.root))?;
        let intake = self.rules.take_in(answer, &self.undo.join(round.to_string()))?;
        let now = match (intake, &recorded) {
            (Intake::Applied { applied, warnings, no_change, .. }, _) => Fact::Applied {
                round,
                warnings: warnings.into_iter().chain(applied.warnings.iter().map(untidy)).collect(),
                changes: applied.changes,
                no_change,
            },
            // The report's file is part of the record, not of what is compared.
            (Intake::Rejected { problems, .. }, Fact::Rejected { report, .. }) => {
                Fact::Rejected { round, problems, report: report.clone() }
            }
            (Intake::Rejected { problems, .. }, _) => {
                return Err(differs(
                    round,
                    "what the reply changed",
                    &essence(&recorded),
                    &listed(&problems),
                ));
            }
        };
        compare(round, "what the reply changed", &essence(&recorded), &essence(&now))?;
        Ok(recorded)
    }
}

impl Executor<Step, Fact> for Replayed<'_> {
    type Fault = ReplayFault;

    fn perform(&mut self, step: &Step, _record: &mut Record<'_>) -> Result<Fact, ReplayFault> {
        match step {
            Step::Ask { round, prompt } => self.ask(*round, prompt),
            Step::Apply { round, answer } => self.apply(*round, answer),
            Step::Build { round } => {
                self.next(*round, |fact| matches!(fact, Fact::Built { .. }).then(|| fact.clone()))
            }
            Step::Restore => self.next(0, |fact| matches!(fact, Fact::Restored { .. }).then(|| fact.clone())),
        }
    }
}

/// What is compared of a fact: every path with its hashes, or every problem.
fn essence(fact: &Fact) -> String {
    match fact {
        Fact::Applied { changes, .. } => changes
            .iter()
            .map(|change| {
                let hash = |hash: &Option<String>| hash.clone().unwrap_or_else(|| "nothing".to_owned());
                format!(
                    "{}: {} -> {}\n",
                    change.path,
                    hash(&change.before_sha256),
                    hash(&change.after_sha256)
                )
            })
            .collect(),
        Fact::Rejected { problems, .. } => listed(problems),
        Fact::Call(_)
        | Fact::Built { .. }
        | Fact::Warned { .. }
        | Fact::Restored { .. }
        | Fact::Resumed
        | Fact::Ended { .. } => String::new(),
    }
}

fn listed(problems: &[Problem]) -> String {
    problems.iter().map(|problem| format!("{}: {}\n", problem.code, problem.message)).collect()
}

pub(crate) fn compare(round: u32, what: &'static str, recorded: &str, now: &str) -> Result<(), ReplayFault> {
    if recorded == now { Ok(()) } else { Err(differs(round, what, recorded, now)) }
}

/// So far before the first difference a line may begin that is shown from its start.
const LINE_START: usize = 120;
/// So many characters are shown: a path and two hashes.
const SHOWN: usize = 240;

/// Of both texts the first line that differs.
pub(crate) fn differs(round: u32, what: &'static str, recorded: &str, now: &str) -> ReplayFault {
    let same = recorded.bytes().zip(now.bytes()).take_while(|(a, b)| a == b).count();
    let cut = |text: &str| -> String {
        let (near, at) = (same.saturating_sub(20), text.floor_char_boundary(same));
        let line = text.get(..at).and_then(|before| before.rfind('\n')).map_or(0, |end| end + 1);
        let start = if same - line <= LINE_START { line } else { text.floor_char_boundary(near) };
        let line = text.get(start..).and_then(|from| from.lines().next());
        line.unwrap_or_default().chars().take(SHOWN).collect()
    };
    ReplayFault::Differs(Difference { round, what, recorded: cut(recorded), now: cut(now) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recorded and now, as they are shown.
    fn difference(recorded: &str, now: &str) -> (String, String) {
        let Err(ReplayFault::Differs(found)) = compare(2, "the prompt", recorded, now) else {
            panic!("no difference was found")
        };
        assert_eq!((found.round, found.what), (2, "the prompt"));
        (found.recorded, found.now)
    }

    #[test]
    fn the_first_difference_is_shown_from_the_start_of_its_line() {
        let (recorded, now) = difference("the same\nof both: red\n", "the same\nof both: blue\n");
        assert_eq!((recorded.as_str(), now.as_str()), ("of both: red", "of both: blue"));
        assert!(compare(2, "the prompt", "the same", "the same").is_ok());
        assert_eq!(difference("a\nb\n", "a\n"), ("b".to_owned(), String::new()));
    }

    #[test]
    fn of_a_long_line_only_what_stands_around_the_difference_is_shown() {
        let long = "the same again and again, ".repeat(20);
        let (recorded, now) = difference(&format!("{long}red"), &format!("{long}blue"));
        assert_eq!(
            (recorded.as_str(), now.as_str()),
            ("me again and again, red", "me again and again, blue")
        );
        let (recorded, _) = difference(&"ä".repeat(900), "ö");
        assert_eq!(recorded.chars().count(), SHOWN);
    }

    #[test]
    fn a_difference_inside_of_a_character_does_not_cut_it() {
        assert_eq!(difference("ä", "ö"), ("ä".to_owned(), "ö".to_owned()));
        assert_eq!(difference("xä", "xö"), ("xä".to_owned(), "xö".to_owned()));
    }
}
