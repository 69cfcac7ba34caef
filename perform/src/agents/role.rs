//! Roles: who works, what each can reach, where commits go, and who observes.

use std::any::Any;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use code_commit_agent::{Event, Installed, Key, Permissions};
use code_commit_repo::{Git, Identity, WorkTree};
use code_commit_runner::{Confinement, Env};

use code_commit_engine::Marked;

use crate::agents::fault::AgentFault;

/// The committer in repositories made by the harness if no identity is configured.
pub(super) const IDENTITY: Identity<'_> = Identity {
    name: "code-commit",
    email: "code-commit@localhost",
};

/// An agent.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "those without are what their types say")]
pub struct Worker {
    pub cli: Installed,
    /// Chosen by the CLI if `None`.
    pub model: Option<String>,
    /// Overrides everything else: the address of its service.
    pub extra_env: Vec<(std::ffi::OsString, std::ffi::OsString)>,
    /// The one key that it needs.
    pub key: Option<Key>,
}

/// The agent in a few words: `Claude Code`, `Codex with gpt-6`.
impl std::fmt::Display for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.cli.kind.name())?;
        self.model
            .as_ref()
            .map_or(Ok(()), |model| write!(f, " with {model}"))
    }
}

/// One role: which agent it is, and what it can reach.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "those without are what their types say")]
pub struct Role {
    pub worker: Worker,
    /// Who else works where the first one cannot, then who works on repairs, numbered from 1.
    pub others: Vec<Worker>,
    pub cwd: PathBuf,
    pub confinement: Confinement,
    pub env: Env,
    /// Its own home folder; the user's if `None`.
    pub home: Option<PathBuf>,
    /// Whether it may use tools without asking.
    pub permissions: Permissions,
    /// Time limit of a turn.
    pub timeout: Option<Duration>,
    /// How long it may be silent.
    pub idle_timeout: Option<Duration>,
    /// What is checked before and after each of its turns.
    pub watched: Watched,
    /// The file that holds the raw output of its last turn.
    pub log: Option<PathBuf>,
}

impl Role {
    /// The agent of this number, from 0.
    pub(super) fn worker(&self, choice: u32) -> &Worker {
        let other = usize::try_from(choice)
            .ok()
            .and_then(|choice| choice.checked_sub(1));
        other
            .and_then(|other| self.others.get(other))
            .unwrap_or(&self.worker)
    }
}

/// A folder whose changes count as the role's.
#[derive(Debug, Clone, Default)]
pub struct Watched {
    /// The folder.
    pub root: PathBuf,
    /// Its work tree as it was opened when the run began.
    pub tree: Option<WorkTree>,
    /// Who is asked for what git has, where the tree is in a work tree.
    pub git: Option<Git>,
    /// Its path in the project that `protect` refers to, with a final `/`; empty if it is the project's
    /// root.
    pub within: String,
    /// Folders to skip, relative to it: repositories, build products. A name without a `/` matches at any
    /// level; one with a leading `/` does not.
    pub skip: Vec<String>,
    /// What the role may touch, relative to the root: files, or folders with a final `/`, `/` for everything.
    /// The last matching entry decides, and a leading `!` negates it. Everything else is restored after the
    /// turn; the replaced content is kept in the run folder. In a git work tree ignored files do not count.
    /// `None`: it may touch everything that its sandbox allows.
    pub may_touch: Option<Vec<String>>,
    /// What it may never touch, new and ignored files too: lists of gitignore patterns, relative to the project.
    pub protect: Vec<Vec<String>>,
    /// More folders for the list of what the role can see, each with its display name.
    pub shown: Vec<(String, PathBuf)>,
}

/// A repository that the loop commits in.
#[derive(Debug, Clone)]
pub struct Repository {
    /// The git program for it.
    pub git: Git,
    /// Never committed; relative to the folder of `git`.
    pub exclude: Vec<String>,
}

/// Observes agents at work.
pub trait AgentWatch {
    /// The loop makes a request.
    ///
    /// # Errors
    ///
    /// Fails if the run cannot continue.
    fn before_request(&mut self) -> Result<(), AgentFault> {
        Ok(())
    }
    /// A turn begins.
    fn begins(&mut self, role: &str, number: u32);
    /// The agent did something. Its text does not include the markers that are listened for.
    fn sees(&mut self, role: &str, event: &Event);
    /// A turn is over, and what the role may not touch is restored.
    ///
    /// # Errors
    ///
    /// Fails if the run cannot continue.
    fn ends(&mut self, _role: &str, _markers: &[Marked]) -> Result<(), AgentFault> {
        Ok(())
    }
    /// A folder is excluded from the commits of this repository because it is a repository itself.
    fn left_out(&mut self, _repository: &str, _folder: &str) {}
    /// The names of the markers to extract from the role's text.
    fn listens_for(&self, _role: &str) -> &[&'static str] {
        &[]
    }
    /// Whether this marker ends the turn immediately.
    fn ends_turn(&self, _marker: &Marked) -> bool {
        false
    }
    /// The agent emitted a marker. Called during the turn.
    fn marked(&mut self, _role: &str, _marker: &Marked) -> io::Result<()> {
        Ok(())
    }
}

/// Something that must exist during a turn; dropped at its end.
pub type Guarded = Box<dyn Any>;
