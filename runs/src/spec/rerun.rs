//! The same command again, under a supervisor's key: a finished run is answered from the record, and nobody is
//! asked.

use anyhow::anyhow;
use code_commit_logging::RunFolder;
use code_commit_loop_spec::Inputs;

use crate::exit::{Exit, Failure};
use crate::records;
use crate::spec::act::{self, Begun};
use crate::spec::history;
use crate::spec::summary;
use crate::spec::workspace::Workspace;

pub(super) enum Rerun {
    /// Nothing: a new run begins.
    New,
    GoOn(RunFolder, Box<Begun>),
    Done(Exit),
}

/// Looks for the run of this key. The caller holds the lock.
pub(super) fn look(workspace: &Workspace<'_>, inputs: &Inputs, key: &str) -> Result<Rerun, Failure> {
    let is_of_key = |past: &history::Past| past.begun.key.as_deref() == Some(key);
    let Some(past) = history::all(&workspace.root).into_iter().find(is_of_key) else {
        return Ok(Rerun::New);
    };
    let (name, output) = (records::name(&past.path), workspace.host.output);
    if !past.begun.is_same(inputs, workspace.args) {
        let error = anyhow!("the key was used for other work: {name}");
        return Err(Failure::refused(error, "use another key for another focus or other settings"));
    }
    // One that was changed gives no verdict.
    let Ok(record) = records::intact(&past.folder()) else { return Ok(Rerun::New) };
    match record.end().filter(|(outcome, _)| !act::goes_on(Some(outcome))) {
        Some((_, of)) if *of != workspace.holds_for(&past.begun.inputs) => {
            output.warn(&format!("files or specs are no longer as {name} left them, so a new run begins"));
            Ok(Rerun::New)
        }
        Some((outcome, _)) => {
            output.note(&format!("{name} has done this already: nobody was asked"));
            summary::say_again(output, outcome, &past.folder());
            Ok(Rerun::Done(Exit::from(outcome)))
        }
        None => {
            let newest = act::unfinished(workspace)?.filter(|(folder, _)| folder.path() == past.path);
            if newest.is_none() {
                output.warn(&format!(
                    "{name} is not finished, and a newer run has begun since: a new run begins"
                ));
            }
            Ok(newest.map_or(Rerun::New, |(folder, begun)| Rerun::GoOn(folder, Box::new(begun))))
        }
    }
}
