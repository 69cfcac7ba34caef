//! The ignored files that commands of this run wrote: nothing is lost if a later command replaces them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use code_commit_guard::{Difference, Seen};

/// What the commands left, by path.
#[derive(Debug, Default)]
pub(super) struct Written(BTreeMap<PathBuf, Seen>);

impl Written {
    /// Leaves out the ignored files that are new, and those that an earlier command had left.
    pub(super) fn leave_out(&mut self, differences: &mut Vec<Difference>) {
        differences.retain(|one| {
            let Difference {
                path,
                before,
                after,
            } = one;
            if !one.is_ignored() {
                return true;
            }
            let earlier = match after {
                Some(after) => self.0.insert(path.clone(), *after),
                None => self.0.remove(path),
            };
            let is_loss = |was: &Seen| earlier.is_none_or(|left| identity(&left) != identity(was));
            before.as_ref().is_some_and(is_loss)
        });
    }
}

/// What stays the same when a file is moved.
fn identity(seen: &Seen) -> (u32, u64, (i64, i64), (u64, u64)) {
    (seen.mode, seen.len, seen.mtime, seen.id)
}
