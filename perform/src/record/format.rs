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

/// The format of a record. Raise [`CURRENT`](Self::CURRENT) whenever an older program would misread what a run
/// writes, and whenever this one can no longer continue or undo what it wrote before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// What this program writes.
    Current,
    /// It can be shown, exported and verified, but not continued or undone.
    Older(u32),
    /// It cannot be read.
    Newer(u32),
}

/// Why a record cannot be used: its format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[error("{run} was recorded by {} version: its record has format {format}, this version {}",
    if *format < Format::CURRENT { "an older" } else { "a newer" }, Format::CURRENT)]
pub struct OtherFormat {
    run: String,
    format: u32,
}

impl Format {
    /// 1: the second edition, whose plans name no format and whose journals name no manifest of pre-images. 2: both are
    /// named.
    pub const CURRENT: u32 = 2;

    /// That of plans which name none.
    #[must_use]
    pub const fn first() -> u32 {
        1
    }

    /// Of the run in this folder. Without a plan that can be read every check of the current format applies.
    pub fn of(run: &Path) -> Self {
        #[derive(Deserialize)]
        struct Head {
            #[serde(default = "Format::first")]
            record_format: u32,
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
        match head.map_or(Self::CURRENT, |Head { record_format }| record_format) {
            format if format < Self::CURRENT => Self::Older(format),
            format if format > Self::CURRENT => Self::Newer(format),
            _ => Self::Current,
        }
    }

    /// Refuses the run in this folder unless its format is the current one: it would be continued or undone by rules
    /// that it was not recorded by.
    ///
    /// # Errors
    ///
    /// Names the run and both formats.
    pub fn same(run: &Path) -> Result<(), OtherFormat> {
        match Self::of(run) {
            Self::Current => Ok(()),
            Self::Older(format) | Self::Newer(format) => {
                let run = run
                    .file_name()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned();
                Err(OtherFormat { run, format })
            }
        }
    }

    /// Checks that a reader understands the format of the run: the current one or an older one.
    ///
    /// # Errors
    ///
    /// As [`same`](Self::same).
    pub fn readable(run: &Path) -> Result<(), OtherFormat> {
        if matches!(Self::of(run), Self::Newer(_)) {
            Self::same(run)
        } else {
            Ok(())
        }
    }
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
