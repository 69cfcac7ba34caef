//! Commands of all loops, in one form.

use code_commit_engine::{BaselineBuilt, Built, Ended, Measured, Ran, ShellRan};

use crate::step::{Command, Purpose};

impl Command {
    /// Whether it is the build of a round.
    pub fn is_build(&self) -> bool {
        self.purpose == Purpose::Build
    }

    /// Whether its result is one of the round.
    pub fn decides(&self) -> bool {
        self.ended.is_some() && self.purpose != Purpose::Baseline
    }
}

impl From<&Built> for Command {
    fn from(built: &Built) -> Self {
        Self {
            purpose: Purpose::Build,
            name: "build".to_owned(),
            ended: Some(built.ended),
            is_good: built.passed(),
            output: vec![built.output.stored.file.clone()],
            changes: built.changes.clone(),
            put_back: built.put_back.clone(),
            ignored_bytes: built.ignored_bytes,
            seal_broken: built.seal_broken,
            lack: built.lack.clone(),
        }
    }
}

impl From<&BaselineBuilt> for Command {
    fn from(built: &BaselineBuilt) -> Self {
        Self {
            purpose: Purpose::Baseline,
            name: "build without the changes".to_owned(),
            ended: built.ended,
            is_good: built.ended == Some(Ended::Exited(0)),
            lack: built.lack.clone(),
            ..Self::default()
        }
    }
}

impl From<&Ran> for Command {
    fn from(ran: &Ran) -> Self {
        let before = if ran.is_probe() {
            " (must fail before the change)"
        } else {
            ""
        };
        Self {
            name: format!("{}{before}", ran.argv.join(" ")),
            ended: Some(ran.ended),
            is_good: ran.passed() != ran.is_probe(),
            output: vec![ran.stdout.file.clone(), ran.stderr.file.clone()],
            seal_broken: ran.seal_broken,
            ..Self::default()
        }
    }
}

impl From<&ShellRan> for Command {
    fn from(ran: &ShellRan) -> Self {
        Self {
            name: ran.name.clone(),
            ended: Some(ran.ended),
            is_good: ran.ended == Ended::Exited(0),
            output: vec![ran.output.stored.file.clone()],
            ..Self::default()
        }
    }
}

/// What the commands of an order changed together.
impl From<&Measured> for Command {
    fn from(of: &Measured) -> Self {
        Self {
            name: "what the commands changed".to_owned(),
            is_good: true,
            changes: of.changes.clone(),
            put_back: of.put_back.clone(),
            ..Self::default()
        }
    }
}
