//! Commands of all loops, in one form.

use code_commit_engine::{Built, Ended, Measured, Ran, ShellRan};

use crate::step::Command;

impl From<&Built> for Command {
    fn from(built: &Built) -> Self {
        Self {
            is_build: true,
            name: "build".to_owned(),
            ended: Some(built.ended),
            is_good: built.passed(),
            output: vec![built.output.stored.file.clone()],
            changes: built.changes.clone(),
            put_back: built.put_back.clone(),
            ignored_bytes: built.ignored_bytes,
            seal_broken: built.seal_broken,
        }
    }
}

impl From<&Ran> for Command {
    fn from(ran: &Ran) -> Self {
        Self {
            name: ran.argv.join(" "),
            ended: Some(ran.ended),
            is_good: ran.passed(),
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
