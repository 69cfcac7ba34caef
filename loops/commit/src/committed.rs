//! The commit of a run that is done.

use code_commit_engine::{Commit, Harness, Outcome};

/// Commits what a run has changed, if it is done. The run ends only after the commit: if it was killed before, the commit
/// still has to be made. Git may refuse; then the answer says so, and the run is done all the same.
///
/// # Errors
///
/// What stopped the harness. The run can be resumed.
pub fn committed<H>(harness: &mut H, outcome: Outcome, message: &str) -> Result<Outcome, H::Stop>
where
    H: Harness<Commit>,
{
    if matches!(outcome, Outcome::Done { .. }) {
        harness.perform(Commit {
            message: message.to_owned(),
        })?;
    }
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use code_commit_engine::{CommitAnswer, NotCommitted, Scripted};

    use super::*;

    #[test]
    fn a_run_that_is_done_is_committed_and_stays_done_if_git_refuses() {
        let refused = CommitAnswer::NotCommitted(NotCommitted {
            message: "locked".to_owned(),
            changed: None,
        });
        let mut harness = Scripted::default().then(refused);
        let done = Outcome::Done { rounds: 2 };
        assert_eq!(
            committed(&mut harness, done.clone(), "Add a flag."),
            Ok(done)
        );
        assert_eq!(harness.requests[0].1["message"], "Add a flag.");
    }

    #[test]
    fn a_run_that_failed_is_not_committed() {
        let mut harness = Scripted::default();
        let failed = Outcome::AttemptsUsedUp { rounds: 4 };
        assert_eq!(
            committed(&mut harness, failed.clone(), "Add a flag."),
            Ok(failed)
        );
        assert!(harness.requests.is_empty());
    }
}
