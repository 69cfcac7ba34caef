//! Finds out whether a build failed because the sandbox hides something: runs it again and records which paths it
//! could not find, then shows it those that exist. The changes of these runs are discarded.

use std::path::PathBuf;
use std::time::Duration;

use code_commit_guard::Guard;
use code_commit_logging::RunFolder;
use code_commit_runner::{Cancel, Command, Confinement, Kind, Lack, Output, Ran, Rung};

use crate::account::Account;
use crate::build::BuildCommand;
use crate::fault::Fault;

/// Which failed builds are run again: each takes its time once more, or several times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Examine {
    /// Those that said nothing about code.
    Unjudged,
    /// All.
    Any,
}

/// With more paths than this, the hint names all of them: finding those that are needed takes a build for each.
const MOST_APART: usize = 6;
/// For a build that takes longer than this, the hint names all paths, too.
const LONGEST_APART: Duration = Duration::from_mins(1);

/// A build that failed, in its harness.
pub(crate) struct Failed<'f> {
    pub(crate) build: &'f BuildCommand,
    pub(crate) guard: &'f Guard,
    pub(crate) account: &'f Account,
    pub(crate) run: &'f RunFolder,
    pub(crate) cancel: &'f Cancel,
    pub(crate) timeout: Option<Duration>,
}

impl Failed<'_> {
    /// What the sandbox hides, if the build passes with it. Never tried with a network: the build could send what it is
    /// shown. Its output and its changes are discarded.
    pub(crate) fn lack(&self, ran: &Ran<'_>) -> Result<Option<Lack>, Fault> {
        let Confinement { rung, access } = &self.build.confinement;
        let is_worth_it = self.build.examine == Examine::Any || !ran.has_judged();
        if ran.output.ended.exit_code().is_none_or(|code| code == 0)
            || !is_worth_it
            // Only this sandbox records what a command is denied.
            || *rung != Rung::Namespaces
            || access.network
            || !access.hosts.is_empty()
        {
            return Ok(None);
        }
        let Some(again) = self.again(&[], true)?.filter(|output| !output.success()) else {
            return Ok(None);
        };
        let mut needed = code_commit_runner::hidden(&again.denied, access);
        if needed.is_empty() || !self.passes_with(&needed)? {
            return Ok(None);
        }
        if needed.len() <= MOST_APART && again.elapsed <= LONGEST_APART {
            for one in needed.clone() {
                let others: Vec<PathBuf> = needed
                    .iter()
                    .filter(|other| **other != one)
                    .cloned()
                    .collect();
                if !others.is_empty() && self.passes_with(&others)? {
                    needed = others;
                }
            }
        }
        Ok(Some(hides(&needed)))
    }

    fn passes_with(&self, readable: &[PathBuf]) -> Result<bool, Fault> {
        Ok(self
            .again(readable, false)?
            .is_some_and(|output| output.success()))
    }

    /// Runs it in a view of its own; `None` where there is none, or the sandbox does not start.
    fn again(&self, readable: &[PathBuf], watched: bool) -> Result<Option<Output>, Fault> {
        let Some(layers) = self.account.beside_view() else {
            return Ok(None);
        };
        let upper = layers.upper();
        layers
            .renew(self.run.path())
            .map_err(Fault::file("make", &upper))?;
        let mut confinement: Confinement = self.build.confinement.clone();
        confinement.access.view = Some(layers.view().map_err(Fault::file("make", &upper))?);
        confinement.access.readable.extend(readable.iter().cloned());
        let command = Command {
            deadline: self.timeout,
            limits: self.build.limits,
            watched,
            ..Command::new(&self.build.argv, self.guard.root(), self.build.env.clone())
        };
        let ran = code_commit_runner::run(&command, &confinement, self.cancel, &mut |_, _| {});
        layers.remove().map_err(Fault::file("remove", &upper))?;
        if self.cancel.is_set() {
            return Err(Fault::Interrupted);
        }
        Ok(ran.ok())
    }
}

fn hides(paths: &[PathBuf]) -> Lack {
    let names: Vec<String> = paths
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    let flags: Vec<String> = names
        .iter()
        .map(|name| format!("--readable {name}"))
        .collect();
    let quoted: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
    Lack {
        kind: Kind::Hidden,
        what: format!(
            "the sandbox hides {}, which the build reads",
            names.join(", ")
        ),
        help: format!(
            "the build passes with `{}`, which was tried; or set `[sandbox] readable = [{}]`",
            flags.join(" "),
            quoted.join(", ")
        ),
    }
}
