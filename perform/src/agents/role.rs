//! Who works, how far each can reach, where commits go, and who looks on.

use std::any::Any;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use agent::{Event, Installed, Key, Permissions};
use repo::{Git, Identity};
use runner::{Confinement, Env};

use engine::Marked;

use crate::agents::fault::AgentFault;

/// Who commits in a repository that the harness made, when nobody has set a name.
pub(super) const IDENTITY: Identity<'_> = Identity { name: "code-commit", email: "code-commit@localhost" };

/// One role: which agent it is, and how far it can reach.
#[derive(Debug, Clone)]
pub struct Role {
    /// The CLI.
    pub cli: Installed,
    /// Where it works.
    pub cwd: PathBuf,
    /// Its walls.
    pub confinement: Confinement,
    /// Left to the CLI where `None`.
    pub model: Option<String>,
    /// What it finds in its environment.
    pub env: Env,
    /// Put over everything else: where its service is.
    pub extra_env: Vec<(std::ffi::OsString, std::ffi::OsString)>,
    /// The one key that it needs.
    pub key: Option<Key>,
    /// A home of its own, or the user's.
    pub home: Option<PathBuf>,
    /// Whether it may use tools without asking.
    pub permissions: Permissions,
    /// A turn may take so long.
    pub timeout: Option<Duration>,
    /// It may be silent for so long.
    pub idle_timeout: Option<Duration>,
    /// What is looked at before and after each of its turns.
    pub watched: Watched,
    /// The file that always holds the raw output of its last turn.
    pub log: Option<PathBuf>,
}

/// A folder whose changes count as the role's.
#[derive(Debug, Clone, Default)]
pub struct Watched {
    /// The folder.
    pub root: PathBuf,
    /// Where it lies in the project that `protected` speaks of, with a final `/`; empty where it is the project's root.
    pub within: String,
    /// Folders that are not looked into, relative to it: repositories, build products. A name without a `/` counts anywhere.
    pub skip: Vec<String>,
    /// What the role may touch, relative to the root: files, or folders with a final `/`, `/` for all of them; the last entry
    /// that fits counts, and one with a `!` before it takes back. Everything else is put back after the turn; what it was put
    /// back from is kept in the run folder. In a git work tree only files that git does not ignore count.
    /// `None`: it may touch everything that its walls let it.
    pub may_touch: Option<Vec<String>>,
    /// What it may not touch whatever else is said: a policy that refuses names for any other reason than its scope. Counts also
    /// for files that are new, and for those that git ignores.
    pub protected: Option<guard::Policy>,
    /// Further folders for the list of what the role can see, each with the name that stands for it.
    pub shown: Vec<(String, PathBuf)>,
}

/// A repository that the loop commits in.
#[derive(Debug, Clone)]
pub struct Repository {
    /// The git program for it.
    pub git: Git,
    /// Never committed, relative to the folder of `git`.
    pub exclude: Vec<String>,
}

/// Whoever watches agents work.
pub trait AgentWatch {
    /// The loop asks for something.
    ///
    /// # Errors
    ///
    /// Fails where the run cannot go on.
    fn before_request(&mut self) -> Result<(), AgentFault> {
        Ok(())
    }
    /// A turn begins.
    fn begins(&mut self, role: &str, number: u32);
    /// The agent did something. Markers that are listened for are not part of its text.
    fn sees(&mut self, role: &str, event: &Event);
    /// A turn is over, and what the role may not touch is restored.
    ///
    /// # Errors
    ///
    /// Fails where the run cannot go on.
    fn ends(&mut self, _role: &str, _markers: &[Marked]) -> Result<(), AgentFault> {
        Ok(())
    }
    /// A folder is in no commit of this repository, since it is a repository of its own.
    fn left_out(&mut self, _repository: &str, _folder: &str) {}
    /// The names of the markers that are read out of the role's text.
    fn listens_for(&self, _role: &str) -> &[&'static str] {
        &[]
    }
    /// Whether the turn ends with this marker, whatever the agent is at.
    fn ends_turn(&self, _marker: &Marked) -> bool {
        false
    }
    /// The agent has emitted such a marker. Called before the turn is over.
    fn marked(&mut self, _role: &str, _marker: &Marked) -> io::Result<()> {
        Ok(())
    }
}

/// Something that has to be there while a turn lasts and ends when it is dropped.
pub type Guarded = Box<dyn Any>;
