//! `spec plan`: a person talks with an agent about specs and backlog.

use std::io::{self, IsTerminal as _};
use std::path::Path;

use anyhow::anyhow;
use code_commit_agent::{Home, Spawn};
use code_commit_changes::BACKUP;
use code_commit_logging::{RunFolder, Stamp};
use code_commit_perform::watch_over;
use code_commit_prompt::spec::{Who, system};
use code_commit_report::printable;

use crate::exit::{Exit, Failure};
use crate::host::Host;
use crate::site::Site;
use crate::spec::act::WORDS;
use crate::spec::history::PLAN;
use crate::spec::options::AgentOptions;
use crate::spec::workspace::{Mailboxes, Workspace};

/// Hands the terminal to the agent; its exit code is ours. What it may not write is put back when it is over.
pub fn run(root: &Path, args: &AgentOptions, host: Host<'_>) -> Result<Exit, Failure> {
    let output = host.output;
    if !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
        return Err(Failure::refused(
            anyhow!("spec plan needs a terminal"),
            "write the task into a file below .cuggino/backlog yourself",
        ));
    }
    let site = Site::at(root, host)?;
    let workspace = Workspace::open_for_a_talk(&site, args)?;
    let _lock = site.lock()?;
    let name = format!("{}-{PLAN}", Stamp::now().folder_name());
    let scratch = RunFolder::create(&workspace.runs, &name, workspace.redactor.clone())
        .map_err(|error| Failure::refused(error, "make the folder writable"))?;
    let watched = workspace.watched_plan();
    let role = workspace.role(watched.clone(), workspace.access(Mailboxes::Open));
    let who = system(Who::Plan, &workspace.config.specs);
    let spawn = spawn(&role, &who);
    let (done, put_back) = watch_over(&watched, TAKEN, scratch.path(), || {
        code_commit_agent::interactive(&role.worker.cli, &spawn, &workspace.cancel)
    })
    .map_err(|error| WORDS.fault(error, &scratch))?;
    for path in &put_back {
        output.warn(&format!(
            "{} may not be changed while planning: it was restored; the other version is in {}",
            printable(path),
            scratch.path().join(BACKUP).join(TAKEN).display()
        ));
    }
    Ok(Exit::Handed(done.map_err(anyhow::Error::from)?))
}

/// What the agent changed and may not.
const TAKEN: &str = "left";

fn spawn<'r>(role: &'r code_commit_perform::Role, who: &'r str) -> Spawn<'r> {
    Spawn {
        system_prompt: Some(who),
        model: role.worker.model.as_deref(),
        // A person is there to be asked.
        permissions: code_commit_agent::Permissions::Ask,
        env: role.env.clone(),
        extra_env: role.worker.extra_env.clone(),
        key: role.worker.key.clone(),
        home: Home::User,
        ..Spawn::new(&role.cwd, "", &role.cwd, &role.confinement)
    }
}
