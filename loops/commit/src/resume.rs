//! What still holds of a run that is resumed.

use code_commit_engine::{Line, Outcome, Recorded};

/// How many answers a resumed run keeps, counted from the first. A model that did not reply is asked again. A
/// build that found the machine unfit runs again, unless it has changed files: its pre-images are those of the
/// first time.
pub fn still_holds(answers: &[Recorded], outcome: Option<&Outcome>) -> usize {
    let was_unfit = matches!(outcome, Some(Outcome::Unfit { .. }));
    match answers {
        [kept @ .., last] if last.answers("unanswered") => kept.len(),
        [kept @ .., built, baseline]
            if was_unfit && baseline.answers("baseline-built") && changed_nothing(built) =>
        {
            kept.len()
        }
        all => all.len(),
    }
}

fn changed_nothing(built: &Recorded) -> bool {
    matches!(built.line(), Some(Line::Built(built)) if built.changes.is_empty())
}

#[cfg(test)]
mod tests {
    use code_commit_engine::{
        Action, Ask, BaselineBuilt, Build, BuildBaseline, Built, Cause, Changed, Ended, Restore,
        Restored, Text,
    };

    use super::*;

    fn cause() -> Cause {
        Cause {
            code: "tool-missing".to_owned(),
            message: "no mvn".to_owned(),
            remedy: None,
        }
    }

    fn built(changes: Vec<Changed>) -> Recorded {
        let built = Built {
            round: 1,
            ended: Ended::Exited(127),
            seal_broken: false,
            output: Text::in_file("f", "printed\n"),
            elapsed_ms: 1,
            changes,
            present: Vec::new(),
            put_back: Vec::new(),
            lack: Some(cause()),
            hints: String::new(),
            ignored_bytes: 0,
        };
        Recorded::of(&Build { round: 1 }, &built).unwrap()
    }

    #[test]
    fn the_build_that_found_the_machine_unfit_runs_again_unless_it_changed_files() {
        let baseline = BaselineBuilt {
            round: 1,
            ended: None,
            lack: Some(cause()),
            elapsed_ms: 1,
        };
        let baseline = Recorded::of(&BuildBaseline { round: 1 }, &baseline).unwrap();
        let restored = Recorded::of(&Restore, &Restored { paths: Vec::new() }).unwrap();
        let unfit = Outcome::Unfit {
            round: 1,
            cause: cause(),
        };
        let kept = |built| still_holds(&[restored.clone(), built, baseline.clone()], Some(&unfit));
        assert_eq!(kept(built(Vec::new())), 1);
        let change = Changed {
            path: "a".to_owned(),
            action: Action::Write,
            before_sha256: None,
            after_sha256: None,
            created: true,
            before_mode: None,
            after_mode: None,
        };
        assert_eq!(kept(built(vec![change])), 3);
        let answers = [restored, built(Vec::new()), baseline];
        assert_eq!(
            still_holds(&answers, None),
            3,
            "it was killed, and goes on where it was"
        );
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
        assert_eq!(still_holds(&[built(Vec::new()), none], None), 1);
        assert_eq!(still_holds(&[], None), 0);
    }
}
