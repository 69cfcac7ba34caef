//! The children that this process starts for its own work: git. Whoever looks for what a command of the project
//! left behind spares them, in whatever process group they are.

use std::collections::BTreeSet;
use std::io;
use std::process::{Child, ChildStdin, ChildStdout, Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};

static CHILDREN: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

/// Their process IDs. While the guard lives, none is started, and none that has been waited for is forgotten.
pub fn own_children() -> MutexGuard<'static, BTreeSet<u32>> {
    CHILDREN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A child that is spared until it has been waited for.
#[derive(Debug)]
pub struct OwnChild(Child);

impl OwnChild {
    /// # Errors
    ///
    /// As [`Command::spawn`].
    pub fn start(command: &mut Command) -> io::Result<Self> {
        let mut children = own_children();
        let child = command.spawn()?;
        children.insert(child.id());
        Ok(Self(child))
    }

    /// Its process ID.
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// Its standard input and output, if both are piped and for whoever asks first.
    pub fn pipes(&mut self) -> Option<(ChildStdin, ChildStdout)> {
        self.0.stdin.take().zip(self.0.stdout.take())
    }

    /// What it printed to the streams that are piped.
    ///
    /// # Errors
    ///
    /// As [`Child::wait_with_output`].
    pub fn wait(self) -> io::Result<Output> {
        let id = self.id();
        let done = self.0.wait_with_output();
        own_children().remove(&id);
        done
    }
}
