//! A loop as the commands that work with its runs see it: one row of a table.

use code_commit_perform::Past;

use super::earlier::holds_something;
use super::{Facts, Loop};
use crate::exit::{Exit, Failure};
use crate::registry::Known;
use crate::site::Site;
use crate::{replay, resume};

/// How what a run changed is taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TakesBack {
    /// `undo` restores the pre-images.
    PreImages,
    /// With git: agents write to the tree themselves, so no pre-images are kept.
    Git,
}

/// Continues a recorded run.
pub type Resume = fn(&Known, &resume::Request, &Site<'_>) -> Result<Exit, Failure>;
/// Repeats the decisions of a recorded run.
pub type Replay = fn(&Known, &replay::Request, &Site<'_>) -> Result<Exit, Failure>;

/// One loop.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// What it is.
    pub facts: Facts,
    /// Whether a run can go on and holds something that was paid for.
    pub goes_on: fn(&Past) -> bool,
    /// Continues a run.
    pub resume: Resume,
    /// Repeats a run.
    pub replay: Replay,
    /// Whether the tree is in the middle of a run, or was restored since; `None` if unknown.
    pub in_tree: fn(&Known, &Site<'_>) -> Option<InTree>,
}

/// What the tree holds of an unfinished run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InTree {
    /// Nothing is known beyond the record.
    AsRecorded,
    /// The tree is in the middle of it.
    Unfinished,
    /// The tree was restored to its state before it.
    Restored,
}

impl Row {
    /// The row of a loop.
    pub const fn of<L: Loop>(resume: Resume, replay: Replay) -> Self {
        let in_tree = |_: &Known, _: &Site<'_>| Some(InTree::AsRecorded);
        Self { facts: L::FACTS, goes_on: holds_something::<L>, resume, replay, in_tree }
    }
}
