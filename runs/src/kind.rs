//! A loop as the commands that work with its runs see it.

use code_commit_perform::Past;
use code_commit_settings::Options;

use crate::exit::{Exit, Failure};
use crate::project::Project;
use crate::registry::Known;

/// A loop as data.
#[derive(Debug, Clone, Copy)]
pub struct LoopKind {
    /// Its name, as `loop` of `run.json`.
    pub name: &'static str,
    /// What one of its steps is called.
    pub step: &'static str,
    /// What its work is called in messages about keys.
    pub work: &'static str,
    /// Whether only the newest run can go on: agents change the tree themselves, so each run begins on what the one
    /// before it left.
    pub newest_only: bool,
    /// How what a run changed is taken back.
    pub takes_back: TakesBack,
    /// Whether the work is its own key: the newest run of it that still holds, or can go on, answers it.
    pub by_content: bool,
    /// The file with its own summary, if its runs keep one.
    pub own_summary: Option<&'static str>,
    /// Whether a run can go on and holds something that was paid for.
    pub goes_on: fn(&Past) -> bool,
    /// Continues a run.
    pub resume: Resume,
    /// Whether the tree is in the middle of a run, or was restored since; `None` if unknown.
    pub in_tree: fn(&Known, &Project<'_>) -> Option<InTree>,
}

/// How what a run changed is taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TakesBack {
    /// `undo` restores the pre-images.
    PreImages,
    /// With git: agents write to the tree themselves, so no pre-images are kept.
    Git,
}

/// Which run to resume, and how.
#[derive(Debug, Default)]
pub struct Resumption {
    /// The run, by the name of its folder or by its path; the newest if not named.
    pub run: Option<String>,
    /// Resume even if files have changed since the run was stopped.
    pub force: bool,
    /// Limits that replace the original ones.
    pub limits: Options,
}

/// Continues a recorded run.
pub type Resume = fn(&Known, &Resumption, &Project<'_>) -> Result<Exit, Failure>;

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
