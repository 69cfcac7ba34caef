//! Runs of a phase that are on record: is there one to go on with?

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use engine::{Note, Outcome};
use logging::{Redactor, RunFolder, Stamp};
use loop_phase::Start;
use loop_phase::state::Status;
use names::ours::ABL;
use perform::{Record, Silent};

use crate::exit::Failure;
use crate::phase::project::Project;
use crate::records::is_unfinished;
use crate::registry::RUN_JSON;

/// Where the runs are, in the phases' own folder.
pub const LOGS: &str = "logs";

/// A folder of a run, by its name.
#[derive(Debug)]
pub(crate) struct Past {
    /// The folder.
    pub path: PathBuf,
    /// Its phase.
    pub phase: u32,
}

/// The run folders of every phase, the newest first.
pub(crate) fn all(logs: &Path) -> Vec<Past> {
    let entries = std::fs::read_dir(logs).into_iter().flatten().flatten();
    let past = |path: PathBuf| Some(Past { phase: phase_of(path.file_name()?.to_str()?)?, path });
    let mut runs: Vec<Past> = entries.filter_map(|entry| past(entry.path())).collect();
    runs.sort_by(|one, other| other.path.cmp(&one.path));
    runs
}

/// `3` of `…-phase3` and `…-phase3-2`.
fn phase_of(name: &str) -> Option<u32> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (_, end) = name.rsplit_once("-phase")?;
    let (phase, count) = end.split_once('-').unwrap_or((end, "2"));
    phase.parse().ok().filter(|_| is_number(phase) && is_number(count))
}

/// The newest run of this phase that has not come to its end.
pub(crate) fn unfinished(logs: &Path, phase: u32, redactor: &Redactor) -> Result<Option<RunFolder>, Failure> {
    let newest = all(logs).into_iter().find(|run| run.phase == phase);
    newest.map_or(Ok(None), |run| run.unfinished(redactor))
}

impl Past {
    /// The same of this one. Only the newest of its phase can be gone on with.
    pub(crate) fn unfinished(self, redactor: &Redactor) -> Result<Option<RunFolder>, Failure> {
        if !self.path.join(perform::JOURNAL).is_file() {
            return Ok(None);
        }
        let folder = RunFolder::open(self.path, redactor.clone());
        Ok(is_unfinished(&folder)?.then_some(folder))
    }
}

/// Makes state file and journal say what the commits say of the open phase: that it has passed. Its harness was killed after the
/// last commit.
pub(crate) fn settle(project: &mut Project) -> Result<(), Failure> {
    let current = &project.state.current;
    let is_open = !matches!(current.status, Status::Clean | Status::Completed);
    let Some(phase) = current.phase.filter(|_| is_open) else { return Ok(()) };
    if !project.is_committed_as_passed(phase)? {
        return Ok(());
    }
    let rounds = current.verifier_iteration;
    let own = project.root.join(ABL);
    if let Some(folder) = unfinished(&own.join(LOGS), phase, &Redactor::default())? {
        let mut watch = Silent;
        let (mut record, _) = Record::resume(folder, &mut watch).map_err(anyhow::Error::from)?;
        let ended = Note::Ended { outcome: Outcome::Done { rounds } };
        record.note(&ended).map_err(anyhow::Error::from)?;
    }
    project.state.complete(phase, Stamp::now().rfc3339());
    let file = own.join(loop_phase::STATE);
    dir::replace(&file, project.state.to_json().as_bytes())
        .with_context(|| format!("cannot write {}", file.display()))?;
    Ok(())
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
