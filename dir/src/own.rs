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

/// A child that is spared until it has ended. Whoever drops it waits for that.
#[derive(Debug)]
pub struct OwnChild {
    id: u32,
    child: Option<Child>,
}

impl OwnChild {
    /// # Errors
    ///
    /// As [`Command::spawn`].
    pub fn start(command: &mut Command) -> io::Result<Self> {
        let mut children = own_children();
        let child = command.spawn()?;
        let id = child.id();
        children.insert(id);
        let child = Some(child);
        Ok(Self { id, child })
    }

    /// Its process ID.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Its standard input and output, if both are piped, for whoever asks first.
    pub fn pipes(&mut self) -> Option<(ChildStdin, ChildStdout)> {
        let child = self.child.as_mut()?;
        child.stdin.take().zip(child.stdout.take())
    }

    /// What it printed to the streams that are piped.
    ///
    /// # Errors
    ///
    /// As [`Child::wait_with_output`].
    pub fn wait(mut self) -> io::Result<Output> {
        self.ended()
            .unwrap_or_else(|| Err(io::ErrorKind::NotFound.into()))
    }

    fn ended(&mut self) -> Option<io::Result<Output>> {
        let done = self.child.take()?.wait_with_output();
        own_children().remove(&self.id);
        Some(done)
    }
}

impl Drop for OwnChild {
    fn drop(&mut self) {
        let _ = self.ended();
    }
}
