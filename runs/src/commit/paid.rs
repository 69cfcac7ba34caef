//! Answers that the same work has paid for in another clone: the same command here uses them again.
//!
//! The imported record need not be believed: an answer counts only for exactly the prompt that it was given to,
//! and it is judged again like any other.

use code_commit_logging::{Redactor, RunFolder};
use code_commit_loop_commit::still_holds;
use code_commit_perform::{Paid, Past};
use code_commit_repo::WorkTree;
use code_commit_report::phrases;

use crate::commit::plan::Plan;
use crate::exit::Failure;
use crate::host::Host;
use crate::records;
use crate::registry::{Known, Registry};

/// How many answers hold if the run goes on; none if it is over. It can go on if it was killed, or ended because the
/// model gave no answer or the build could not be started, and its changes were not reverted.
pub(super) fn kept(past: &Past) -> Option<usize> {
    let kept = still_holds(&past.answers, past.outcome());
    (past.outcome().is_none() || kept < past.answers.len()).then_some(kept)
}

/// The answers of unfinished runs of this work that were imported since it was last done here, without those that
/// the run that goes on has `used`. Whoever starts the command of finished work wants other answers.
pub(crate) fn elsewhere(
    plan: &Plan,
    tree: &WorkTree,
    redactor: &Redactor,
    used: &Past,
    host: Host<'_>,
) -> Result<Paid, Failure> {
    let paid = Paid::default();
    let newest_first = Registry::of(tree).with_imported()?;
    let Some(oldest) = newest_first.iter().rposition(Known::is_imported) else {
        return Ok(paid);
    };
    for known in newest_first.iter().take(oldest + 1) {
        let folder = RunFolder::open(known.path(tree.root()), redactor.clone());
        let is_same = Plan::load(&folder, known).is_ok_and(|recorded| recorded.task == plan.task);
        let Some(past) = is_same.then(|| records::intact(&folder).ok()).flatten() else {
            continue;
        };
        match (known.is_imported(), !known.undone && kept(&past).is_some()) {
            (true, true) => {
                paid.add(&folder, &past);
            }
            (true, false) | (false, true) => {}
            (false, false) => break,
        }
    }
    paid.use_up(used);
    if paid.count() > 0 {
        let answers = phrases::count(paid.count() as u64, "reply");
        host.output.note(&format!(
            "{answers} of a run that was made elsewhere need not be paid for again"
        ));
    }
    Ok(paid)
}
