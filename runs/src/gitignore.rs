//! The line of the project's `.gitignore` that keeps `agent-config` out of git: a run that misses it adds it, and the undo
//! of that run takes it back.

use std::fs::OpenOptions;
use std::io::{self, ErrorKind};
use std::path::Path;

use anyhow::Context as _;
use code_commit_dir::Links;
use code_commit_guard::Surroundings;
use code_commit_logging::{RunFolder, sha256_hex};
use serde::{Deserialize, Serialize};

use crate::exit::Failure;
use crate::preflight::{CODE_ROLLUP, QUERY};
use crate::registry::Known;
use crate::trusted::cannot_read;

const LINE: &str = "/agent-config";
const GITIGNORE: &str = ".gitignore";

/// What a run says that has added the line, and `init`.
pub const ADDED: &str = ".gitignore: added /agent-config, where keys and logs are kept";

/// `.gitignore`, after the line was added to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddedLine {
    /// Its length before; none if there was no such file.
    bytes_before: Option<u64>,
    /// SHA-256 of it with the line.
    sha256: String,
}

/// The part of `run.json` that an undo reads.
#[derive(Deserialize)]
struct Recorded {
    added_line: Option<AddedLine>,
}

/// Whether git ignores all of `agent-config`, which holds keys, by whatever rule.
pub fn hides_agent_config(around: &Surroundings) -> Result<bool, Failure> {
    // A rule for the folder matches all of them, and so does `agent-config/*`. None of them is ever meant to be tracked.
    let samples = [
        QUERY,
        CODE_ROLLUP,
        "agent-config/any-key.txt",
        "agent-config/logs/any",
    ];
    for path in samples {
        if !around.ignores(path).map_err(cannot_read)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Adds the line unless git ignores all of `agent-config` already.
pub fn hide_agent_config(around: &Surroundings, root: &Path) -> Result<Option<AddedLine>, Failure> {
    if hides_agent_config(around)? {
        return Ok(None);
    }
    let path = root.join(GITIGNORE);
    let added = || -> io::Result<AddedLine> {
        let before = content(&path)?;
        code_commit_dir::append(&path, LINE)?;
        Ok(AddedLine {
            bytes_before: before.map(|bytes| bytes.len() as u64),
            sha256: sha256_hex(&content(&path)?.unwrap_or_default()),
        })
    };
    let added = added().context("cannot add to .gitignore");
    added.map(Some).map_err(Failure::cannot_make)
}

impl AddedLine {
    /// The line that a run has added, if it has.
    pub(crate) fn of(known: &Known, run: &RunFolder) -> Option<Self> {
        known.plan::<Recorded>(run).ok()?.added_line
    }

    /// Takes the line away, and the file if there was none; false if anything there was changed since.
    pub(crate) fn take_back(&self, root: &Path) -> io::Result<bool> {
        let path = root.join(GITIGNORE);
        let Some(now) = content(&path)? else {
            return Ok(false);
        };
        if sha256_hex(&now) != self.sha256 {
            return Ok(false);
        }
        match self.bytes_before {
            Some(length) => OpenOptions::new()
                .write(true)
                .open(&path)?
                .set_len(length)?,
            None => std::fs::remove_file(&path)?,
        }
        Ok(true)
    }
}

/// `None` if there is no file.
fn content(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match code_commit_dir::read(path, u64::MAX, Links::Refused) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Ok(None) => Err(io::Error::other("it is not a regular file")),
        read => read,
    }
}
