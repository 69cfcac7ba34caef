//! The files of a record, the version of its format, which its plan names, and why it cannot be read.

use std::path::{Path, PathBuf};

use code_commit_logging::{FolderError, JournalError};
use serde::Deserialize;

/// The plan of a run in its folder, whatever its loop.
pub const RUN_JSON: &str = "run.json";
/// Name of the journal in a run folder.
pub const JOURNAL: &str = "events.jsonl";
/// The member of an answer that names the sets of pre-images made for it, with the hashes of their manifests.
pub(super) const SETS: &str = "sets";

/// The format of a record, which its plan names. Raise it whenever an older program would misread what a run writes, and
/// whenever this one can no longer continue or undo what it wrote before.
pub const RECORD_FORMAT: u32 = 3;

/// Why a record cannot be used: its format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[error("{run} was recorded by another version, whose records have another format")]
pub struct OtherFormat {
    run: String,
}

/// Refuses the run in this folder if its plan names another format: it would be continued or undone by rules that it was
/// not recorded by. Without a plan that can be read every check of this format applies.
///
/// # Errors
///
/// Names the run.
pub fn same_format(run: &Path) -> Result<(), OtherFormat> {
    #[derive(Deserialize)]
    struct Head {
        record_format: Option<u32>,
    }
    let plan = code_commit_dir::read(
        &run.join(RUN_JSON),
        u64::MAX,
        code_commit_dir::Links::Refused,
    );
    let head = plan
        .ok()
        .flatten()
        .and_then(|plan| serde_json::from_slice(&plan).ok());
    if head.is_none_or(|Head { record_format }| record_format == Some(RECORD_FORMAT)) {
        return Ok(());
    }
    let name = run.file_name().unwrap_or_default();
    Err(OtherFormat {
        run: name.to_string_lossy().into_owned(),
    })
}

/// Why a record cannot be kept or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// A file of the run folder.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A line that this version does not write.
    #[error("line {line} of the journal {} was written by another version", path.display())]
    OtherVersion {
        /// The journal.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What it lacks.
        source: serde_json::Error,
    },
    /// Its format.
    #[error(transparent)]
    OtherFormat(#[from] OtherFormat),
}

pub(super) fn other_version(path: &Path, line: u64, source: serde_json::Error) -> RecordError {
    RecordError::OtherVersion {
        path: path.to_owned(),
        line,
        source,
    }
}
