//! The planned changes.

use std::borrow::Cow;
use std::collections::BTreeSet;

use code_commit_dir::Folder;
use code_commit_guard::{Admitted, Op};

use crate::change::{Change, Content};
use crate::error::ApplyError;
use crate::place::Place;
use crate::report::Applied;

/// Changes that are applied all together or not at all, in the order in which they were added.
#[derive(Debug, Default)]
pub struct ChangeSet<'a> {
    changes: Vec<(Admitted, Option<Cow<'a, [u8]>>)>,
}

impl<'a> ChangeSet<'a> {
    /// A set without changes.
    pub fn new() -> Self {
        ChangeSet::default()
    }

    /// Creates the file or replaces its content, byte for byte.
    pub fn write(&mut self, path: Admitted, content: impl Into<Cow<'a, [u8]>>) {
        self.changes.push((path, Some(content.into())));
    }

    /// Removes the file; a missing one is reported as [`Action::None`](crate::Action::None).
    pub fn delete(&mut self, path: Admitted) {
        self.changes.push((path, None));
    }

    /// Checks that each path was admitted for this operation, under this root, and occurs only
    /// once.
    pub(crate) fn check(&self, root: &Folder) -> Result<(), ApplyError> {
        let mut paths = BTreeSet::new();
        for (path, content) in &self.changes {
            let wanted = if content.is_some() {
                Op::Write
            } else {
                Op::Delete
            };
            let reason = match () {
                () if path.op() != wanted => "it was judged for the other operation",
                () if path.root_id() != root.id() => "it was judged under another root",
                () if !paths.insert(path.path()) => "it is in the set twice",
                () => continue,
            };
            return Err(ApplyError::Misused {
                path: path.path().to_owned(),
                reason,
            });
        }
        Ok(())
    }

    pub(crate) fn into_changes(self) -> Vec<Change<'a>> {
        self.changes
            .into_iter()
            .map(|(path, content)| change(&path, content))
            .collect()
    }
}

/// What applying the set would change if the tree stays as it is. Changes nothing.
pub fn dry_run(set: &ChangeSet<'_>) -> Applied {
    let report = |(path, content): &(Admitted, Option<Cow<'_, [u8]>>)| {
        change(path, content.as_deref().map(Cow::Borrowed)).report()
    };
    Applied {
        changes: set.changes.iter().map(report).collect(),
        warnings: Vec::new(),
    }
}

fn change<'a>(path: &Admitted, content: Option<Cow<'a, [u8]>>) -> Change<'a> {
    let before = path.before().cloned();
    let content = content.map(Content::Bytes);
    Change {
        place: Place::of(path),
        before,
        content,
        attributes: None,
    }
}
