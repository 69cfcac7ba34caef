//! What still holds of a run that is resumed.

use code_commit_engine::{Outcome, Recorded};

/// How many answers a resumed run keeps, counted from the first. A model that did not reply is asked again, and a
/// build that could not be started is tried again.
pub fn still_holds(answers: &[Recorded], outcome: Option<&Outcome>) -> usize {
    let was_unfit = matches!(outcome, Some(Outcome::Unfit { .. }));
    match answers {
        [kept @ .., last] if last.answers("unanswered") => kept.len(),
        [kept @ .., built] if was_unfit && built.answers("built") => kept.len(),
        all => all.len(),
    }
}

#[cfg(test)]
mod tests {
    use code_commit_engine::{Ask, Build, Built, Cause, Ended, Restore, Restored, Text};

    use super::*;

    fn cause() -> Cause {
        Cause {
            code: "c".to_owned(),
            message: "m".to_owned(),
            remedy: None,
        }
    }

    fn built() -> Recorded {
        let built = Built {
            round: 1,
            ended: Ended::NotFound,
            seal_broken: false,
            output: Text::in_file("f", "printed\n"),
            elapsed_ms: 1,
            changes: Vec::new(),
            present: Vec::new(),
            put_back: Vec::new(),
            ignored_bytes: 0,
        };
        Recorded::of(&Build { round: 1 }, &built).unwrap()
    }

    #[test]
    fn a_build_that_could_not_be_started_is_tried_again() {
        let restored = Recorded::of(&Restore, &Restored { paths: Vec::new() }).unwrap();
        let unfit = Outcome::Unfit {
            round: 1,
            cause: cause(),
        };
        assert_eq!(still_holds(&[restored, built()], Some(&unfit)), 1);
        let killed = still_holds(&[built()], None);
        assert_eq!(killed, 1, "it goes on where it was");
    }

    #[test]
    fn a_model_without_an_answer_is_asked_again() {
        let ask = Ask {
            round: 1,
            prompt: "p".into(),
            stable: 1,
            system: 0,
        };
        let none = code_commit_engine::Unanswered {
            round: 1,
            cause: cause(),
        };
        let none = Recorded::of(&ask, &code_commit_engine::AskAnswer::Unanswered(none)).unwrap();
        assert_eq!(still_holds(&[built(), none], None), 1);
        assert_eq!(still_holds(&[], None), 0);
    }
}
