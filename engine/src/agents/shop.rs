//! The real hands of loops that drive agents.

use std::any::Any;
use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use agent::{Event, Installed, Key, Permissions};
use logging::{Durability, FolderError, Stamp};
use repo::{Git, GitError, Identity};
use runner::{Cancel, Confinement, Env};

use crate::agents::snapshot::Tree;
use crate::agents::{AgentFact, AgentStep, Marked, Place};
use crate::record::RecordError;
use crate::{Hands, Record, Text};

/// Who commits in a repository that the harness made, when nobody has set a name.
pub(super) const IDENTITY: Identity<'_> = Identity { name: "code-commit", email: "code-commit@localhost" };

/// What stops a run from the outside. The journal stays as it is, so that the run can be resumed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentFault {
    /// A person pressed Ctrl-C.
    #[error("interrupted")]
    Interrupted,
    /// The prompt holds a key: it is not sent.
    #[error("the prompt of turn {number} holds an API key and was not sent")]
    KeyInPrompt {
        /// Which turn.
        number: u32,
    },
    /// The record could not be kept.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A file of the project or of the harness.
    #[error("cannot {doing} {}", path.display())]
    File {
        /// What was tried: `read`, `write`, `list`.
        doing: &'static str,
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The agent could not be watched over.
    #[error("cannot run the {role}")]
    Agent {
        /// Whose turn.
        role: String,
        /// Why.
        source: agent::AgentError,
    },
    /// A marker could not be kept.
    #[error("cannot keep a marker of the {role}")]
    Marker {
        /// Whose.
        role: String,
        /// Why.
        source: io::Error,
    },
    /// What goes on beside a turn could not be started.
    #[error("cannot get ready for the {role}")]
    Guard {
        /// Whose turn.
        role: String,
        /// Why.
        source: io::Error,
    },
    /// The user's own command could not be watched over.
    #[error("cannot run a command")]
    Run(#[source] runner::RunError),
    /// A commit was not made.
    #[error("cannot commit")]
    Commit(#[source] GitError),
    /// The loop asked for what the shop does not have: a fault of ours.
    #[error("there is no {0}")]
    Unknown(String),
}

impl From<FolderError> for AgentFault {
    fn from(error: FolderError) -> Self {
        Self::Record(error.into())
    }
}

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
    /// Folders that are not looked into, relative to it: repositories, build products. A name without a `/` counts anywhere.
    pub skip: Vec<String>,
    /// What the role may touch, relative to the root: files, or folders with a final `/`, `/` for all of them; the last entry
    /// that fits counts, and one with a `!` before it takes back. Everything else is put back after the turn; what it was put
    /// back from is kept in the run folder. In a git work tree only files that git does not ignore count.
    /// `None`: it may touch everything that its walls let it.
    pub may_touch: Option<Vec<String>>,
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
    /// A turn begins.
    fn begins(&mut self, role: &str, number: u32);
    /// The agent did something. Markers that are listened for are not part of its text.
    fn sees(&mut self, role: &str, event: &Event);
    /// The names of the markers that are read out of the role's text.
    fn listens_for(&self, _role: &str) -> &[&'static str] {
        &[]
    }
    /// The agent has emitted such a marker. Called before the turn is over.
    fn marked(&mut self, _role: &str, _marker: &Marked) -> io::Result<()> {
        Ok(())
    }
}

/// Something that has to be there while a turn lasts and ends when it is dropped.
pub type Guarded = Box<dyn Any>;

/// Everything that is needed to act. The loop decides when.
pub struct AgentShop<'a> {
    /// By name.
    pub roles: BTreeMap<String, Role>,
    /// Folders by name.
    pub places: BTreeMap<String, PathBuf>,
    /// Repositories by name.
    pub repositories: BTreeMap<String, Repository>,
    /// Where the user's own command lines run.
    pub shell_cwd: PathBuf,
    /// What they find in their environment.
    pub shell_env: Env,
    /// They may take so long.
    pub shell_timeout: Option<Duration>,
    /// Sees every event of every agent.
    pub watch: &'a mut dyn AgentWatch,
    /// Opened before each turn of a role.
    pub around: &'a mut dyn FnMut(&str) -> io::Result<Guarded>,
    /// Raised by Ctrl-C.
    pub cancel: Cancel,
}

impl Hands<AgentStep, AgentFact> for AgentShop<'_> {
    type Fault = AgentFault;

    fn perform(
        &mut self,
        step: &AgentStep,
        record: &mut Record<'_, AgentFact>,
    ) -> Result<AgentFact, AgentFault> {
        if self.cancel.is_set() {
            return Err(AgentFault::Interrupted);
        }
        match step {
            AgentStep::List { role } => self.list(role, record),
            AgentStep::Turn { number, role, prompt, system, session } => {
                let request = super::turn::Request {
                    number: *number,
                    role,
                    prompt,
                    system: system.as_deref(),
                    session,
                };
                self.turn(&request, record)
            }
            AgentStep::Shell { number, name, line } => self.shell(*number, name, line, record),
            AgentStep::Commit { repository, message } => self.commit(repository, message),
            AgentStep::Survey { repository } => self.survey(repository),
            AgentStep::Checkpoint { repository, message, spare } => {
                self.checkpoint(repository, message, spare, record)
            }
            AgentStep::Wait { until_unix } => self.wait(*until_unix),
            AgentStep::Announce(event) => Ok(AgentFact::Announced { event: event.clone() }),
            AgentStep::Read(place) => self.read(place, record),
            AgentStep::Write { place, text } => {
                let path = self.path(place)?;
                write(&path, text.as_bytes()).map_err(fault("write", &path))?;
                Ok(AgentFact::Wrote { place: place.clone() })
            }
            AgentStep::Append { place, head, text } => {
                let path = self.path(place)?;
                append(&path, head, text).map_err(fault("write", &path))?;
                Ok(AgentFact::Wrote { place: place.clone() })
            }
            AgentStep::Delete(place) => {
                let path = self.path(place)?;
                remove(&path).map_err(fault("remove", &path))?;
                Ok(AgentFact::Wrote { place: place.clone() })
            }
        }
    }
}

impl AgentShop<'_> {
    pub(super) fn role(&self, name: &str) -> Result<&Role, AgentFault> {
        self.roles.get(name).ok_or_else(|| AgentFault::Unknown(format!("role {name}")))
    }

    pub(super) fn repository(&self, name: &str) -> Result<&Repository, AgentFault> {
        self.repositories.get(name).ok_or_else(|| AgentFault::Unknown(format!("repository {name}")))
    }

    /// By the system's clock, looked at every minute: the machine may sleep meanwhile.
    #[expect(clippy::disallowed_methods, reason = "a quota is renewed at a time of the calendar")]
    fn wait(&self, until_unix: u64) -> Result<AgentFact, AgentFault> {
        let until = UNIX_EPOCH + Duration::from_secs(until_unix);
        while let Ok(left) = until.duration_since(SystemTime::now()) {
            if self.cancel.wait(left.min(Duration::from_mins(1))) {
                return Err(AgentFault::Interrupted);
            }
            if left.is_zero() {
                break;
            }
        }
        Ok(AgentFact::Waited { until_unix })
    }

    fn path(&self, place: &Place) -> Result<PathBuf, AgentFault> {
        let folder = self.places.get(&place.place);
        Ok(folder.ok_or_else(|| AgentFault::Unknown(format!("place {}", place.place)))?.join(&place.file))
    }

    /// The list of what a role can see is also a file of its own in the run folder.
    fn list(&self, role: &str, record: &Record<'_, AgentFact>) -> Result<AgentFact, AgentFault> {
        let watched = &self.role(role)?.watched;
        let mut lines = Vec::new();
        let shown = [(".".to_owned(), watched.root.clone())].into_iter().chain(watched.shown.iter().cloned());
        for (name, root) in shown {
            let tree = Tree::of(&root, &watched.skip).map_err(fault("list", &root))?;
            let prefix = if name == "." { String::new() } else { format!("{name}/") };
            lines.extend(tree.paths().map(|path| format!("{prefix}{path}\n")));
        }
        let list = store(record, &format!("map-{role}.txt"), &lines.concat(), Durability::Written)?;
        Ok(AgentFact::Listed { role: role.to_owned(), list, at: Stamp::now().rfc3339() })
    }

    fn commit(&self, name: &str, message: &str) -> Result<AgentFact, AgentFault> {
        let repository = self.repository(name)?;
        let exclude: Vec<&str> = repository.exclude.iter().map(String::as_str).collect();
        let commit =
            repository.git.commit_all(&exclude, message, Some(IDENTITY)).map_err(AgentFault::Commit)?;
        Ok(AgentFact::Committed { repository: name.to_owned(), message: message.to_owned(), commit })
    }

    /// Only a regular file counts: an agent could have put a link in its place.
    fn read(&self, place: &Place, record: &Record<'_, AgentFact>) -> Result<AgentFact, AgentFault> {
        let path = self.path(place)?;
        let text = match fs::symlink_metadata(&path) {
            Ok(data) if data.is_file() => Some(fs::read(&path).map_err(fault("read", &path))?),
            Ok(_) => None,
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(source) => return Err(fault("read", &path)(source)),
        };
        let name = place.file.replace('/', "-");
        let keep =
            |bytes: Vec<u8>| store(record, &name, &String::from_utf8_lossy(&bytes), Durability::Written);
        Ok(AgentFact::WasRead { place: place.clone(), text: text.map(keep).transpose()? })
    }
}

/// Stores a text in the run folder under a name that no earlier text has, since the journal names each by its hash.
pub(super) fn store(
    record: &Record<'_, AgentFact>,
    file: &str,
    text: &str,
    durability: Durability,
) -> Result<Text, AgentFault> {
    let text = record.folder().redactor().redact(text).into_owned();
    let (stem, end) = file.rsplit_once('.').unwrap_or((file, "txt"));
    let mut name = file.to_owned();
    let mut count = 1;
    while record.folder().path().join(&name).exists() {
        count += 1;
        name = format!("{stem}-{count}.{end}");
    }
    let stored = record.folder().store(&name, &text, durability)?;
    Ok(Text::new(stored, text.into()))
}

pub(super) fn fault(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> AgentFault {
    let path = path.to_owned();
    move |source| AgentFault::File { doing, path, source }
}

/// Whole or not at all: a state file that is half written would lose a run.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    fs::create_dir_all(folder)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let staged = folder.join(format!(".{name}.new"));
    // What an earlier, killed write has left; a link there must not be followed.
    remove(&staged)?;
    let mut file = OpenOptions::new().write(true).create_new(true).open(&staged)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&staged, path)
}

/// A run that was killed between this and its fact does it again: the lines must not be there twice.
fn append(path: &Path, head: &str, text: &str) -> io::Result<()> {
    let old = match fs::read(path) {
        Ok(old) => old,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    if !text.is_empty() && old.ends_with(text.as_bytes()) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut file = OpenOptions::new().append(true).create(true).open(path)?;
    let start = if old.is_empty() { head } else { "" };
    let end_of_line = if old.is_empty() || old.ends_with(b"\n") { "" } else { "\n" };
    file.write_all(format!("{end_of_line}{start}{text}").as_bytes())
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_are_there_already_are_not_added_again() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("logs/tokens.csv");
        for rows in ["1,a\n", "1,a\n", "2,b\n", "2,b\n", ""] {
            append(&file, "n,name\n", rows).unwrap();
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), "n,name\n1,a\n2,b\n");
    }

    #[test]
    fn a_state_file_is_replaced_whole_and_never_through_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (file, target) = (folder.path().join("state.json"), folder.path().join("target"));
        write(&target, b"mine").unwrap();
        std::os::unix::fs::symlink(&target, folder.path().join(".state.json.new")).unwrap();
        write(&file, b"{}").unwrap();
        assert_eq!(
            (fs::read(&file).unwrap(), fs::read(&target).unwrap()),
            (b"{}".to_vec(), b"mine".to_vec())
        );
    }
}
