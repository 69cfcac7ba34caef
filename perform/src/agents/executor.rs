//! The real executor of loops that drive agents.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use logging::{Durability, Stamp};
use runner::{Cancel, Confinement, Env, Limits};

use crate::agents::Text;
use crate::agents::checkpoint::{commit_all, made};
use crate::agents::drive::Executor;
use crate::agents::fault::{fault, unknown};
use crate::agents::record::Record;
use crate::agents::role::{AgentWatch, Guarded, Repository, Role};
use crate::agents::snapshot::{Kept, Tree};
use crate::agents::turn::Request;
use crate::agents::{AgentFact, AgentFault, AgentStep, Place};

/// A larger file is not read.
const LARGEST: u64 = 16 << 20;

/// No quota is of more than a week.
const LONGEST_WAIT: Duration = Duration::from_hours(8 * 24);

/// Everything that is needed to act. The loop decides when.
pub struct AgentExecutor<'a> {
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
    /// Their walls: they run what an agent has written.
    pub shell_confinement: Confinement,
    /// They may take so long.
    pub shell_timeout: Option<Duration>,
    /// They may print so much, and so much of it the loop hears.
    pub shell_limits: Limits,
    /// Sees every event of every agent.
    pub watch: &'a mut dyn AgentWatch,
    /// Opened before each turn of a role.
    pub around: &'a mut dyn FnMut(&str) -> io::Result<Guarded>,
    /// Raised by Ctrl-C.
    pub cancel: Cancel,
    /// What roles may not touch, as it was.
    pub kept: Kept,
}

impl Executor<AgentStep, AgentFact> for AgentExecutor<'_> {
    type Fault = AgentFault;

    fn perform(
        &mut self,
        step: &AgentStep,
        record: &mut Record<'_, AgentFact>,
    ) -> Result<AgentFact, AgentFault> {
        if self.cancel.is_set() && !matches!(step, AgentStep::Append { .. }) {
            return Err(AgentFault::Interrupted);
        }
        match step {
            AgentStep::List { role } => self.list(role, record),
            AgentStep::Turn { number, role, prompt, system, session } => {
                let number = *number;
                self.turn(&Request { number, role, prompt, system: system.as_deref(), session }, record)
            }
            AgentStep::Shell { number, name, line } => self.shell(*number, name, line, record),
            AgentStep::Commit { repository, message } => self.commit(repository, message),
            AgentStep::Survey { repository } => self.survey(repository),
            AgentStep::Checkpoint { repository, message, spare } => {
                self.checkpoint(repository, message, spare, record)
            }
            AgentStep::Wait { until_unix, at_least_secs } => self.wait(*until_unix, *at_least_secs),
            AgentStep::Announce(event) => Ok(AgentFact::Announced { event: event.clone() }),
            AgentStep::Read(place) => self.read(place, record),
            AgentStep::Write { place, text } => {
                self.change(place, "write", |path| dir::replace(path, text.as_bytes()))
            }
            AgentStep::Append { place, head, text } => {
                self.change(place, "write", |path| dir::append_once(path, head, text))
            }
            AgentStep::Delete(place) => self.change(place, "remove", dir::remove),
        }
    }
}

impl AgentExecutor<'_> {
    pub(super) fn role(&self, name: &str) -> Result<&Role, AgentFault> {
        self.roles.get(name).ok_or_else(unknown("role", name))
    }

    pub(super) fn repository(&self, name: &str) -> Result<&Repository, AgentFault> {
        self.repositories.get(name).ok_or_else(unknown("repository", name))
    }

    /// By the system's clock, looked at every minute: the machine may sleep meanwhile.
    #[expect(clippy::disallowed_methods, reason = "a quota is renewed at a time of the calendar")]
    fn wait(&self, until_unix: u64, at_least_secs: u32) -> Result<AgentFact, AgentFault> {
        let until = until(SystemTime::now(), until_unix, at_least_secs);
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
        Ok(folder.ok_or_else(unknown("place", &place.place))?.join(&place.file))
    }

    fn change(
        &self,
        place: &Place,
        doing: &'static str,
        change: impl FnOnce(&Path) -> io::Result<()>,
    ) -> Result<AgentFact, AgentFault> {
        let path = self.path(place)?;
        change(&path).map_err(fault(doing, &path))?;
        Ok(AgentFact::Wrote { place: place.clone() })
    }

    /// The list of what a role can see is also a file of its own in the run folder.
    fn list(&self, role: &str, record: &Record<'_, AgentFact>) -> Result<AgentFact, AgentFault> {
        let watched = &self.role(role)?.watched;
        let mut lines = Vec::new();
        let shown = [(".".to_owned(), watched.root.clone())].into_iter().chain(watched.shown.iter().cloned());
        for (name, root) in shown {
            let tree = Tree::whole(&root, &watched.skip).map_err(fault("list", &root))?;
            let prefix = if name == "." { String::new() } else { format!("{name}/") };
            lines.extend(tree.paths().map(|path| format!("{prefix}{path}\n")));
        }
        let list = store(record, &format!("map-{role}.txt"), &lines.concat(), Durability::Written)?;
        Ok(AgentFact::Listed { role: role.to_owned(), list, at: Stamp::now().rfc3339() })
    }

    fn commit(&mut self, name: &str, message: &str) -> Result<AgentFact, AgentFault> {
        let repository = self.repository(name)?;
        let fact = |commit| AgentFact::Committed {
            repository: name.to_owned(),
            message: message.to_owned(),
            commit,
        };
        if let Some(commit) = made(repository, message).map_err(AgentFault::Commit)? {
            return Ok(fact(commit));
        }
        let (commit, left_out) = commit_all(repository, message).map_err(AgentFault::Commit)?;
        for folder in left_out {
            self.watch.left_out(name, &folder);
        }
        Ok(fact(commit))
    }

    /// Only a regular file counts: an agent could have put a link or a pipe in its place, or a file that fills the memory.
    fn read(&self, place: &Place, record: &Record<'_, AgentFact>) -> Result<AgentFact, AgentFault> {
        let path = self.path(place)?;
        let read = match dir::read(&path, LARGEST, dir::Links::Refused) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            read => Some(read.map_err(fault("read", &path))?),
        };
        let odd = matches!(read, Some(None));
        let text = read.flatten();
        let name = place.file.replace('/', "-");
        let keep =
            |bytes: Vec<u8>| store(record, &name, &String::from_utf8_lossy(&bytes), Durability::Written);
        Ok(AgentFact::WasRead { place: place.clone(), text: text.map(keep).transpose()?, odd })
    }
}

/// A service, or an agent in its name, may say any number.
fn until(now: SystemTime, until_unix: u64, at_least_secs: u32) -> SystemTime {
    let latest = now + LONGEST_WAIT;
    let soonest = now + Duration::from_secs(at_least_secs.into()).min(LONGEST_WAIT);
    UNIX_EPOCH.checked_add(Duration::from_secs(until_unix)).unwrap_or(latest).clamp(soonest, latest)
}

/// Stores a text in the run folder under a name that no earlier text has, since the journal names each by its hash.
pub(super) fn store(
    record: &Record<'_, AgentFact>,
    file: &str,
    text: &str,
    durability: Durability,
) -> Result<Text, AgentFault> {
    let (stem, end) = file.rsplit_once('.').unwrap_or((file, "txt"));
    let mut name = file.to_owned();
    let mut count = 1;
    while record.folder().path().join(&name).exists() {
        count += 1;
        name = format!("{stem}-{count}.{end}");
    }
    let (stored, text) = record.folder().store_and_tell(&name, text, durability)?;
    Ok(Text::new(stored, text.into()))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Sees nothing.
    pub(in crate::agents) struct Deaf;

    impl AgentWatch for Deaf {
        fn begins(&mut self, _role: &str, _number: u32) {}
        fn sees(&mut self, _role: &str, _event: &agent::Event) {}
    }

    #[expect(clippy::unnecessary_wraps, reason = "what opens before a turn can fail")]
    pub(in crate::agents) fn unguarded(_role: &str) -> io::Result<Guarded> {
        Ok(Box::new(()))
    }

    /// Without roles, places and repositories, and without walls.
    pub(in crate::agents) fn executor<'a>(
        top: &Path,
        watch: &'a mut Deaf,
        around: &'a mut dyn FnMut(&str) -> io::Result<Guarded>,
    ) -> AgentExecutor<'a> {
        let mut shell_env = Env::default();
        shell_env.set("PATH", "/usr/bin:/bin");
        AgentExecutor {
            roles: [].into(),
            places: [].into(),
            repositories: [].into(),
            shell_cwd: top.to_owned(),
            shell_env,
            shell_confinement: Confinement::off(),
            shell_timeout: None,
            shell_limits: Limits::default(),
            watch,
            around,
            cancel: Cancel::new().unwrap(),
            kept: Kept::default(),
        }
    }

    #[test]
    fn a_wait_has_a_shortest_and_a_longest_length() {
        let now = UNIX_EPOCH + Duration::from_secs(1_795_000_000);
        let wait = |until_unix, at_least| until(now, until_unix, at_least).duration_since(now).unwrap();
        assert_eq!(wait(1_795_000_060, 1), Duration::from_mins(1));
        assert_eq!(wait(1, 4), Duration::from_secs(4));
        assert_eq!(wait(u64::MAX, 1), LONGEST_WAIT);
        assert_eq!(wait(u64::MAX, u32::MAX), LONGEST_WAIT);
    }
}
