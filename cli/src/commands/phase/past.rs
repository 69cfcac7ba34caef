//! Runs of a phase that are on record: is there one to go on with?

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use engine::{AgentFact, Outcome, Record, Silent};
use logging::{Redactor, RunFolder, Stamp};
use loop_phase::Start;
use loop_phase::state::Status;

use crate::commands::phase::project::{ABL, Project};
use crate::commands::spec::is_unfinished;
use crate::exit::Failure;

/// What a run was begun with, in its folder.
pub const RUN: &str = "run.json";

/// The newest run of this phase that has not come to its end.
pub fn unfinished(logs: &Path, phase: u32, redactor: &Redactor) -> Result<Option<RunFolder>, Failure> {
    let suffix = format!("-phase{phase}");
    let is_of_phase = |name: &str| {
        name.ends_with(&suffix)
            || name
                .rsplit_once('-')
                .is_some_and(|(stem, count)| stem.ends_with(&suffix) && count.parse::<u32>().is_ok())
    };
    let entries = std::fs::read_dir(logs).into_iter().flatten().flatten();
    let mut runs: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    runs.retain(|path| path.file_name().and_then(|name| name.to_str()).is_some_and(is_of_phase));
    runs.sort();
    let newest = runs.pop().filter(|run| run.join(engine::JOURNAL).is_file());
    let Some(folder) = newest.map(|run| RunFolder::open(run, redactor.clone())) else { return Ok(None) };
    Ok(is_unfinished(&folder)?.then_some(folder))
}

/// Makes state file and journal say what the commits say of the open phase: that it has passed. Its harness was killed after the
/// last commit.
pub fn settle(project: &mut Project) -> Result<(), Failure> {
    let current = &project.state.current;
    let is_open = !matches!(current.status, Status::Clean | Status::Completed);
    let Some(phase) = current.phase.filter(|_| is_open) else { return Ok(()) };
    if !project.is_committed_as_passed(phase)? {
        return Ok(());
    }
    let rounds = current.verifier_iteration;
    let own = project.root.join(ABL);
    if let Some(folder) = unfinished(&own.join("logs"), phase, &Redactor::default())? {
        let mut watch = Silent;
        let (mut record, _) = Record::resume(folder, &mut watch).map_err(anyhow::Error::from)?;
        let ended = AgentFact::Ended { outcome: Outcome::Done { rounds } };
        record.note(&ended).map_err(anyhow::Error::from)?;
    }
    project.state.complete(phase, Stamp::now().rfc3339());
    let file = own.join(loop_phase::STATE);
    engine::replace_file(&file, project.state.to_json().as_bytes())
        .with_context(|| format!("cannot write {}", file.display()))?;
    Ok(())
}

/// Where that run began: its facts only make sense from there.
pub fn start_of(folder: &RunFolder) -> Result<Start, Failure> {
    let text = folder.read(RUN).map_err(anyhow::Error::from)?;
    let run: serde_json::Value = serde_json::from_str(&text).with_context(|| format!("cannot read {RUN}"))?;
    let start = |name: &str| run.pointer(&format!("/start/{name}"));
    let iteration =
        start("iteration").and_then(serde_json::Value::as_u64).and_then(|number| u32::try_from(number).ok());
    Ok(Start {
        iteration: iteration.unwrap_or(1),
        builder_done: start("builder_done").and_then(serde_json::Value::as_bool).unwrap_or(false),
        failures: start("failures").and_then(serde_json::Value::as_str).map(Into::into),
    })
}
