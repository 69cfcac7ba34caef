//! A loop as the commands that work with its runs see it: one row of a table.

use code_commit_perform::Past;
use code_commit_settings::Layer;

use crate::exit::{Exit, Failure};
use crate::registry::Known;
use crate::site::Site;

/// What a loop is, as data.
#[derive(Debug, Clone, Copy)]
pub struct Facts {
    /// Its name, as `loop` of `run.json`.
    pub kind: &'static str,
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
    /// Whether its runs keep a summary of their own.
    pub own_summary: bool,
}

impl Facts {
    /// A loop whose changes are kept as pre-images.
    pub const PLAIN: Self = Self {
        kind: "",
        step: "round",
        work: "query",
        newest_only: false,
        by_content: false,
        takes_back: TakesBack::PreImages,
        own_summary: false,
    };
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
    pub limits: Layer,
}

/// Continues a recorded run.
pub type Resume = fn(&Known, &Resumption, &Site<'_>) -> Result<Exit, Failure>;

/// One loop.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// What it is.
    pub facts: Facts,
    /// Whether a run can go on and holds something that was paid for.
    pub goes_on: fn(&Past) -> bool,
    /// Continues a run.
    pub resume: Resume,
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
