//! `code-commit again`: goes on from a finished run with its query, its change, its verdict and new words.

use anyhow::anyhow;
use code_commit_logging::RunFolder;
use code_commit_prompt::again::{FollowUp, query};
use code_commit_report::printable;
use code_commit_settings::{Keys, Options, Settings};
use code_commit_timeline::{Command, Run, What};

use crate::changes;
use crate::chronicle::Found;
use crate::commit::{self, Plan, Query};
use crate::exit::{Exit, Failure};
use crate::host::Host;
use crate::project::Project;

/// Of the end of a build's output, at most.
const MOST_BYTES: u64 = 64 << 10;

/// Goes on from the named run, or the newest. `request` is for the new run; its query holds the new words.
pub fn run(named: Option<&str>, request: commit::Request, host: Host<'_>) -> Result<Exit, Failure> {
    let project = Project::here(host)?;
    let known = project
        .registry()
        .find(named)
        .map_err(|error| named.and_then(as_words).unwrap_or(error))?;
    let found = Found::on(known, &project);
    let redactor = host
        .output
        .strike_out(Keys::find(host.environment, &project.root).exposed());
    let run = found.whole(&project.root, &redactor)?;
    let words = words(&run, &request.query)?;
    let folder = RunFolder::open(found.path.clone(), redactor);
    let plan = Plan::load(&folder, &found.known)
        .map_err(|error| Failure::refused(error, "start a new run"))?;
    let edits = run.edits();
    let diffs: Vec<(String, String)> = edits
        .iter()
        .map(|edit| (edit.path.to_owned(), changes::of_edit(edit, &run.contents)))
        .collect();
    let text = query(&FollowUp {
        query: &plan.task.query.text,
        diffs: &diffs,
        is_in_tree: !run.undone,
        verdict: &verdict(&run),
        output: failed_build(&run)
            .and_then(|build| output(&found, build))
            .as_deref(),
        words: &words,
    });
    let request = commit::Request {
        layer: with_model(request.layer, &plan.settings),
        query: Query::Given {
            by: "again",
            text: text.into_bytes(),
        },
        parent: Some(run.name),
        ..request
    };
    commit::run(plan.task.which, &request, host)
}

const SAY: &str = "say it: code-commit again -m \"not like that: …\"";

/// No name of a run has blanks: these are words to the model.
fn as_words(named: &str) -> Option<Failure> {
    let error = || anyhow!("`{}` is not the name of a run", printable(named));
    named
        .contains(char::is_whitespace)
        .then(|| Failure::new(Exit::Usage, error()).help(SAY))
}

/// What the person says to the run. Refuses one that nothing can follow.
fn words(run: &Run, query: &Query) -> Result<String, Failure> {
    let name = &run.name;
    if !["commit", "implement"].contains(&&*run.kind) {
        let error = anyhow!(
            "{name} is a run of {}: `again` continues only runs of code-commit and implement",
            run.kind
        );
        return Err(Failure::refused(
            error,
            "name one of theirs: code-commit runs --loop commit",
        ));
    }
    if run.steps.outcome.is_none() {
        let error = anyhow!("{name} is not finished");
        return Err(Failure::refused(
            error,
            format!("continue it first: code-commit resume {name}"),
        ));
    }
    let given = query
        .text()
        .transpose()
        .map_err(|missing| Failure::refused(anyhow!(missing.what), SAY))?;
    match given {
        Some(words) => Ok(words),
        None if run.is_good == Some(true) => {
            let error =
                anyhow!("{name} reached its goal, and nothing says what should be different");
            Err(Failure::refused(error, SAY))
        }
        None => Ok("Finish the request above: it is not done yet.".to_owned()),
    }
}

/// `done`, `needs person: a question`.
fn verdict(run: &Run) -> String {
    let remark = run
        .remark
        .as_ref()
        .map_or_else(String::new, |remark| format!(": {remark}"));
    format!("{}{remark}", run.verdict)
}

/// The last build, if it failed.
fn failed_build(run: &Run) -> Option<&Command> {
    let mut builds = run.steps.all.iter().filter_map(|step| match &step.what {
        What::Command(command) if command.is_build => Some(command),
        What::Command(_) | What::Call(_) | What::Change(_) | What::Remark(_) => None,
    });
    builds.next_back().filter(|build| !build.is_good)
}

fn output(found: &Found, build: &Command) -> Option<String> {
    let (start, end, _) = found.ends(build.output.first()?, MOST_BYTES)?;
    Some(start + &end)
}

/// The models that the run was given by a flag are those of the new run, unless it has its own.
fn with_model(mut layer: Options, of: &Settings) -> Options {
    if layer.model.name.is_none() && of.is_flag("model.name") {
        layer.model.name.clone_from(&of.model.name);
        if layer.model.base_url.is_none() && of.is_flag("model.base_url") {
            layer.model.base_url.clone_from(&of.model.base_url);
        }
    }
    layer
}
