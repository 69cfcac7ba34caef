//! The world of loops that drive agents. The loop decides when to do what.

use std::io;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use code_commit_changes::{BACKUP, put_back_warning};
use code_commit_engine::{
    AgentLoop, Announce, Announced, Checkpoint, CheckpointResult, Checkpointed, CommitAll,
    CommitAnswer, Committed, Digest, Durability, Event, Identified, Identify, List, Listed, Live,
    Named as _, Outcome, Problem, Recorded, Shell, ShellRan, Survey, Surveyed, Text, Turn,
    TurnAnswer, Wait, Waited, World,
};
use code_commit_logging::{Stamp, name_as_text};
use code_commit_names::ours::STATE;
use code_commit_repo::Git;
use code_commit_runner::{Cancel, Confinement, Env, Limits};

use crate::agents::checkpoint::{self, Commit, checkpoint, commit, failed};
use crate::agents::fault::{AgentFault, fault};
use crate::agents::limits::{AgentLimits, AgentUsage};
use crate::agents::listing;
use crate::agents::role::{AgentWatch, Guarded, Repository, Role, Watched};
use crate::agents::watched::Copies;
use crate::ask::flag_value;
use crate::identity::{HoldsNow, identity};
use crate::record::{Record, store};
use crate::spending::OUT_OF_QUOTA;

mod files;

/// No quota lasts longer than a week.
const LONGEST_WAIT: Duration = Duration::from_hours(8 * 24);

/// Maps a project's roles, places and repositories to real ones.
pub trait Cast<P: AgentLoop> {
    /// Which agent a role is, and what it can reach.
    fn role(&self, role: P::Role) -> &Role;
    /// Where a place is.
    fn folder(&self, place: P::Place) -> PathBuf;
    /// Which repository is meant.
    fn repository(&self, repository: P::Repository) -> &Repository;
    /// Which files of a place make its identity.
    fn counted(&self, place: P::Place) -> Counted;
}

/// The files that make the identity of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Counted {
    /// All of them.
    All,
    /// Those that no rule ignores, without these paths.
    NotIgnored {
        /// Relative to the folder.
        without: Vec<String>,
    },
}

/// Opens what a turn of a role needs.
pub type Around<'w> = Box<dyn FnMut(&str) -> io::Result<Guarded> + 'w>;

/// How the user's own command lines run.
#[derive(Debug, Clone)]
pub struct ShellSettings {
    /// Working folder.
    pub cwd: PathBuf,
    /// Their environment.
    pub env: Env,
    /// Their sandbox: they run code that an agent wrote.
    pub confinement: Confinement,
    /// Time limit of each.
    pub timeout: Option<Duration>,
    /// How much each may print, and how much of that the loop gets.
    pub limits: Limits,
    /// What they cannot see, relative to the working folder, with a leading `/`.
    pub hidden: Vec<String>,
    /// Who is asked for what git has there.
    pub git: Option<Git>,
}

impl ShellSettings {
    /// A command may touch what its sandbox allows, but leaves nothing that git would start.
    fn watched(&self) -> Watched {
        let mut skip = [".git", STATE].map(str::to_owned).to_vec();
        skip.extend(self.hidden.iter().cloned());
        Watched {
            root: self.cwd.clone(),
            git: self.git.clone(),
            skip,
            ..Watched::default()
        }
    }
}

/// Everything that a run of agents needs.
#[expect(missing_docs, reason = "those without are what their types say")]
pub struct AgentWorld<'w, C> {
    pub record: Record,
    /// Maps roles, places and repositories.
    pub cast: C,
    /// How the user's own command lines run.
    pub shell: ShellSettings,
    /// Sees every event of every agent.
    pub watch: Box<dyn AgentWatch + 'w>,
    /// Opened before each turn of a role.
    pub around: Around<'w>,
    /// Raised by Ctrl-C.
    pub cancel: Cancel,
    /// Copies of what roles may not touch.
    pub copies: Copies,
    pub limits: AgentLimits,
    pub used: AgentUsage,
    /// What a verdict given now holds for.
    pub holds_for: HoldsNow<'w>,
    /// How long a turn may wait for a quota, and how long it has.
    pub patience: Duration,
    pub waited: Duration,
    /// Template for session names: a UUID whose end is replaced by the turn's number.
    pub session: Option<String>,
}

impl<C> World for AgentWorld<'_, C> {
    type Fault = AgentFault;

    fn record(&mut self, entry: &Recorded, durability: Durability) -> Result<(), AgentFault> {
        Ok(self.record.answer(entry, durability)?)
    }

    fn fetch(&mut self, text: &mut Text) -> Result<(), AgentFault> {
        Ok(self.record.texts().fetch(text)?)
    }

    fn fetch_output(&mut self, text: &mut Text) -> Result<(), AgentFault> {
        Ok(self.record.texts().fetch_output(text)?)
    }

    fn recall(&mut self, digest: &Digest) -> Option<String> {
        self.record.texts().recall(digest)
    }

    fn end(&mut self, outcome: &Outcome) -> Result<(), AgentFault> {
        let holds_for = (self.holds_for)(outcome, code_commit_dir::NEVER);
        let outcome = outcome.clone();
        Ok(self.record.note(&Event::Ended { outcome, holds_for })?)
    }
}

impl<P: AgentLoop, C: Cast<P>> Live<List<P>> for AgentWorld<'_, C> {
    /// The list of what a role can see is also a separate file in the run folder.
    fn perform(&mut self, List { role }: &List<P>) -> Result<Listed, AgentFault> {
        self.begin()?;
        let watched = &self.cast.role(*role).watched;
        let mut lines = Vec::new();
        let own = [(String::new(), watched.root.clone())];
        for (name, root) in own.iter().chain(&watched.shown) {
            let prefix = if name.is_empty() { "" } else { "/" };
            let files = listing::files(watched, root).map_err(fault("list", root))?;
            let paths = files.iter().map(|path| name_as_text(path));
            lines.extend(paths.map(|path| format!("{name}{prefix}{path}\n")));
        }
        let list = self.store(&format!("map-{}.txt", role.name()), &lines.concat())?;
        Ok(Listed {
            role: role.name().to_owned(),
            list,
            at: Stamp::now().rfc3339(),
        })
    }
}

impl<P: AgentLoop, C: Cast<P>> Live<Turn<P>> for AgentWorld<'_, C> {
    fn perform(&mut self, turn: &Turn<P>) -> Result<TurnAnswer, AgentFault> {
        self.begin()?;
        self.turn(turn)
    }
}

impl<C> Live<Shell> for AgentWorld<'_, C> {
    fn perform(&mut self, Shell { name, line }: &Shell) -> Result<ShellRan, AgentFault> {
        self.begin()?;
        let watched = self.shell.watched();
        let folder = self.record.folder().path().to_owned();
        let left = format!("left-by-{name}");
        self.copies.open(&watched, name, left.clone(), &folder)?;
        let ran = self.shell(name, line);
        let changes = self.copies.close()?;
        let left = folder.join(BACKUP).join(left);
        let warning = put_back_warning(name, &changes.put_back, Some(&left));
        for problem in warning.into_iter().chain(changes.warnings) {
            self.record.warn(problem)?;
        }
        let ran = ran?;
        self.used.add_time(ran.elapsed_ms);
        Ok(ran)
    }
}

impl<P: AgentLoop, C: Cast<P>> Live<CommitAll<P>> for AgentWorld<'_, C> {
    fn perform(&mut self, request: &CommitAll<P>) -> Result<CommitAnswer, AgentFault> {
        self.begin()?;
        let CommitAll {
            repository: name,
            message,
            is_mark,
        } = request;
        let repository = self.cast.repository(*name);
        let made = commit(repository, message, *is_mark).map_err(AgentFault::Commit)?;
        self.tell_left_out(name.name(), &made.left_out);
        Ok(CommitAnswer::Committed(Committed {
            repository: Some(name.name().to_owned()),
            message: Some(message.clone()),
            commit: Some(made.commit),
        }))
    }
}

impl<P: AgentLoop, C: Cast<P>> Live<Survey<P>> for AgentWorld<'_, C> {
    fn perform(&mut self, Survey { repository }: &Survey<P>) -> Result<Surveyed, AgentFault> {
        self.begin()?;
        let (head, uncommitted) = checkpoint::survey(self.cast.repository(*repository))?;
        Ok(Surveyed {
            repository: repository.name().to_owned(),
            head,
            uncommitted,
        })
    }
}

impl<P: AgentLoop, C: Cast<P>> Live<Checkpoint<P>> for AgentWorld<'_, C> {
    fn perform(&mut self, request: &Checkpoint<P>) -> Result<Checkpointed, AgentFault> {
        self.begin()?;
        let Checkpoint {
            repository: name,
            message,
            spare,
        } = request;
        let redactor = self.record.folder().redactor();
        let message = checkpoint::short(&redactor.redact(message));
        // A git failure is a result, not an error.
        let checkpoint = match checkpoint(self.cast.repository(*name), &message, spare) {
            Ok(Commit { commit, left_out }) => {
                self.tell_left_out(name.name(), &left_out);
                commit.map_or(CheckpointResult::Nothing, |commit| CheckpointResult::Made {
                    commit,
                })
            }
            Err(error) => CheckpointResult::Failed {
                error: self.record.short(&failed(&error, redactor)),
            },
        };
        Ok(Checkpointed {
            repository: name.name().to_owned(),
            message,
            checkpoint,
        })
    }
}

impl<P: AgentLoop, C: Cast<P>> Live<Identify<P>> for AgentWorld<'_, C> {
    fn perform(&mut self, Identify { place }: &Identify<P>) -> Result<Identified, AgentFault> {
        self.begin()?;
        let folder = self.cast.folder(*place);
        let sha256 = match self.cast.counted(*place) {
            Counted::All if folder.is_dir() => {
                let hash = code_commit_repo::stable_hash(&folder, code_commit_dir::NEVER);
                Some(hash.map_err(|error| fault("read", &error.path)(error.source))?)
            }
            Counted::All => None,
            Counted::NotIgnored { without } => {
                identity(&folder, None, &without, None, code_commit_dir::NEVER)
                    .map_err(fault("identify", &folder))?
            }
        };
        Ok(Identified {
            place: place.name().to_owned(),
            sha256,
        })
    }
}

impl<C> Live<Wait> for AgentWorld<'_, C> {
    /// Uses the system clock, checked every minute, because the machine may sleep meanwhile.
    #[expect(
        clippy::disallowed_methods,
        reason = "a quota is renewed at a time of the calendar"
    )]
    fn perform(
        &mut self,
        Wait {
            until_unix,
            at_least_secs,
            why,
        }: &Wait,
    ) -> Result<Waited, AgentFault> {
        self.begin()?;
        let now = SystemTime::now();
        let until = until(now, *until_unix, *at_least_secs);
        let left = until.duration_since(now).unwrap_or_default();
        let time = Stamp::now()
            .after(left)
            .map(Stamp::words)
            .unwrap_or_default();
        self.waited += left;
        let is_too_long = self.waited > self.patience;
        let message = if is_too_long {
            format!(
                "the agent {why}; try again at {time}, or let the run wait with --wait {}",
                flag_value(self.waited)
            )
        } else {
            format!("the agent {why}; waiting until {time}")
        };
        self.record.warn(Problem::new(OUT_OF_QUOTA, message))?;
        while let Ok(left) = until.duration_since(SystemTime::now())
            && !(is_too_long || left.is_zero())
        {
            if self.cancel.wait(left.min(Duration::from_mins(1))) {
                return Err(AgentFault::Interrupted);
            }
        }
        Ok(Waited {
            until_unix: *until_unix,
            is_too_long,
        })
    }
}

impl<C> Live<Announce> for AgentWorld<'_, C> {
    fn perform(&mut self, Announce(event): &Announce) -> Result<Announced, AgentFault> {
        self.begin()?;
        Ok(Announced {
            event: event.clone(),
        })
    }
}

impl<C> AgentWorld<'_, C> {
    /// Before every request but one.
    fn begin(&mut self) -> Result<(), AgentFault> {
        if self.cancel.is_set() {
            return Err(AgentFault::Interrupted);
        }
        self.watch.before_request()
    }

    fn tell_left_out(&mut self, repository: &str, folders: &[String]) {
        for folder in folders {
            self.watch.left_out(repository, folder);
        }
    }

    /// Stores a text in the run folder under a new name, since the journal names each text by its hash.
    pub(super) fn store(&self, file: &str, text: &str) -> Result<Text, AgentFault> {
        Ok(store(&self.record, &self.unused(file), text)?)
    }

    /// `file`, or the next free name after it.
    pub(super) fn unused(&self, file: &str) -> String {
        let (stem, end) = file.rsplit_once('.').unwrap_or((file, "txt"));
        let mut name = file.to_owned();
        let mut count = 1;
        while self.record.folder().path().join(&name).exists() {
            count += 1;
            name = format!("{stem}-{count}.{end}");
        }
        name
    }
}

/// A service, or an agent relaying it, may send any number.
fn until(now: SystemTime, until_unix: u64, at_least_secs: u32) -> SystemTime {
    let latest = now + LONGEST_WAIT;
    let soonest = now + Duration::from_secs(at_least_secs.into()).min(LONGEST_WAIT);
    UNIX_EPOCH
        .checked_add(Duration::from_secs(until_unix))
        .unwrap_or(latest)
        .clamp(soonest, latest)
}

#[cfg(test)]
pub(super) mod tests {
    use std::path::Path;

    use code_commit_logging::RunFolder;

    use super::*;

    /// Ignores everything.
    struct Deaf;

    impl AgentWatch for Deaf {
        fn begins(&mut self, _role: &str, _number: u32) {}
        fn sees(&mut self, _role: &str, _event: &code_commit_agent::Event) {}
    }

    /// With this cast, and without a sandbox.
    pub(crate) fn world<'w, C>(top: &Path, run: RunFolder, cast: C) -> AgentWorld<'w, C> {
        let mut env = Env::default();
        env.set("PATH", "/usr/bin:/bin");
        AgentWorld {
            record: Record::begin(run, crate::Silent).unwrap(),
            cast,
            shell: ShellSettings {
                cwd: top.to_owned(),
                env,
                confinement: Confinement::off(),
                timeout: None,
                limits: Limits::default(),
                hidden: Vec::new(),
                git: None,
            },
            watch: Box::new(Deaf),
            around: Box::new(|_| Ok(Box::new(()))),
            cancel: Cancel::new().unwrap(),
            copies: Copies::default(),
            limits: AgentLimits::default(),
            used: AgentUsage::default(),
            holds_for: Box::new(|_, _| code_commit_engine::HoldsFor::default()),
            patience: Duration::ZERO,
            waited: Duration::ZERO,
            session: None,
        }
    }

    #[test]
    fn a_wait_has_a_shortest_and_a_longest_length() {
        let now = UNIX_EPOCH + Duration::from_secs(1_795_000_000);
        let wait = |until_unix, at_least| {
            until(now, until_unix, at_least)
                .duration_since(now)
                .unwrap()
        };
        assert_eq!(wait(1_795_000_060, 1), Duration::from_mins(1));
        assert_eq!(wait(1, 4), Duration::from_secs(4));
        assert_eq!(wait(u64::MAX, 1), LONGEST_WAIT);
        assert_eq!(wait(u64::MAX, u32::MAX), LONGEST_WAIT);
    }
}
