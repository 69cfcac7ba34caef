//! Recorded runs of a phase: is there one to resume?

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use logging::{Redactor, RunFolder};
use loop_phase::Start;

use crate::exit::Failure;
use crate::records::is_unfinished;
use crate::registry::RUN_JSON;

/// The folder with the runs, in the phases' own folder.
pub const LOGS: &str = "logs";

/// A run folder, found by its name.
#[derive(Debug)]
pub(crate) struct Past {
    /// The folder.
    pub path: PathBuf,
    /// Its phase.
    pub phase: u32,
}

/// The run folders of all phases, newest first.
pub(crate) fn all(logs: &Path) -> Vec<Past> {
    let entries = std::fs::read_dir(logs).into_iter().flatten().flatten();
    let past = |path: PathBuf| Some(Past { phase: phase_of(path.file_name()?.to_str()?)?, path });
    let mut runs: Vec<Past> = entries.filter_map(|entry| past(entry.path())).collect();
    runs.sort_by(|one, other| other.path.cmp(&one.path));
    runs
}

/// The `3` in `…-phase3` and `…-phase3-2`.
fn phase_of(name: &str) -> Option<u32> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (_, end) = name.rsplit_once("-phase")?;
    let (phase, count) = end.split_once('-').unwrap_or((end, "2"));
    phase.parse().ok().filter(|_| is_number(phase) && is_number(count))
}

/// The newest run of this phase if it is unfinished.
pub(crate) fn unfinished(logs: &Path, phase: u32, redactor: &Redactor) -> Result<Option<RunFolder>, Failure> {
    let newest = all(logs).into_iter().find(|run| run.phase == phase);
    newest.map_or(Ok(None), |run| run.unfinished(redactor))
}

impl Past {
    /// This run if it is unfinished. Only the newest of its phase can be resumed.
    pub(crate) fn unfinished(self, redactor: &Redactor) -> Result<Option<RunFolder>, Failure> {
        if !self.path.join(perform::JOURNAL).is_file() {
            return Ok(None);
        }
        let folder = RunFolder::open(self.path, redactor.clone());
        Ok(is_unfinished(&folder)?.then_some(folder))
    }
}

/// Where that run began: its facts only make sense from there.
pub(crate) fn start_of(folder: &RunFolder) -> Result<Start, Failure> {
    let text = folder.read(RUN_JSON).map_err(anyhow::Error::from)?;
    let run: serde_json::Value =
        serde_json::from_str(&text).with_context(|| format!("cannot read {RUN_JSON}"))?;
    let start = |name: &str| run.pointer(&format!("/start/{name}"));
    let iteration =
        start("iteration").and_then(serde_json::Value::as_u64).and_then(|number| u32::try_from(number).ok());
    Ok(Start {
        iteration: iteration.unwrap_or(1),
        builder_done: start("builder_done").and_then(serde_json::Value::as_bool).unwrap_or(false),
        failures: start("failures").and_then(serde_json::Value::as_str).map(Into::into),
    })
}
