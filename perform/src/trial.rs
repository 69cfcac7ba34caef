//! A command that decides something: what it changed of what decides is put back, and it has failed.

use std::path::{Path, PathBuf};
use std::time::Duration;

use code_commit_changes::{ChangeEngine, Folders};
use code_commit_engine::Problem;
use code_commit_guard::Guard;
use code_commit_runner::{Confinement, Env, Limits, Output, View};

use crate::fault::Fault;
use crate::record::{Record, RecordError};
use crate::spending::Spending;

/// Code of the hint on how to widen the sandbox.
const SANDBOX: &str = "sandbox";

/// How it broke the seal; everything has been restored.
pub(crate) struct Broken {
    /// The noun for messages: `build` or `command`.
    what: &'static str,
    paths: String,
    /// The folder with the content that was replaced.
    kept: Option<PathBuf>,
}

impl Broken {
    /// Restores what decides, however the command ended; `None` if it changed nothing of that.
    pub(crate) fn restore(
        what: &'static str,
        changes: &mut ChangeEngine,
        guard: &Guard,
        run: &Path,
    ) -> Result<Option<Self>, Fault> {
        let (changed, kept) = changes.restore_sealed(guard, run)?;
        Ok((!changed.is_empty()).then(|| Self {
            what,
            paths: changed.join(", "),
            kept,
        }))
    }

    /// The sandbox may have protected the files: then something else changed them.
    fn happened(&self) -> String {
        let Self { what, paths, .. } = self;
        format!("the {what}, or somebody else while it ran, changed {paths}; it was restored")
    }

    /// What a command that has finished comes to, whatever its exit code.
    pub(crate) fn note(&self) -> String {
        format!(
            "{}, and the {} counts as failed",
            self.happened(),
            self.what
        )
    }

    /// For the user, who may want the content back.
    pub(crate) fn tell(&self, has_finished: bool, record: &mut Record) -> Result<(), RecordError> {
        let said = if has_finished {
            self.note()
        } else {
            self.happened()
        };
        let message = match &self.kept {
            Some(folder) => format!("{said}; the old content is in {}", folder.display()),
            None => said,
        };
        record.warn(Problem {
            code: "seal".to_owned(),
            path: Some(self.paths.clone()),
            line: None,
            message,
        })
    }
}

/// How the commands of a run that decide something are run.
#[derive(Debug, Clone)]
pub struct CommandSettings {
    /// Their complete environment.
    pub env: Env,
    /// Time limit of each; what is left of the run's time if that is less.
    pub timeout: Option<Duration>,
    /// Output limits of each.
    pub limits: Limits,
    /// What they can see and touch.
    pub confinement: Confinement,
    /// What they may not change, relative to the root; restored if one does.
    pub sealed: Vec<PathBuf>,
}

impl Default for CommandSettings {
    /// Without a sandbox.
    fn default() -> Self {
        Self {
            env: Env::default(),
            timeout: None,
            limits: Limits::default(),
            confinement: Confinement::off(),
            sealed: Vec::new(),
        }
    }
}

impl CommandSettings {
    pub(crate) fn deadline(&self, spending: &Spending) -> Option<Duration> {
        self.timeout.into_iter().chain(spending.time_left()).min()
    }

    /// The sandbox of the next command, which works in the overlay if there is one.
    pub(crate) fn confined(&self, changes: &ChangeEngine) -> Result<Confinement, Fault> {
        let mut confinement = self.confinement.clone();
        let folders = changes.overlay()?;
        confinement.access.view = folders.map(|Folders { upper, work }| View { upper, work });
        Ok(confinement)
    }

    /// Records and reports what the user should know about a finished command, apart from its end.
    pub(crate) fn tell_about(
        &self,
        what: &str,
        output: &Output,
        record: &mut Record,
    ) -> Result<(), RecordError> {
        let withheld = code_commit_runner::withheld(what, output, &self.confinement, &self.env);
        for message in withheld {
            record.warn(Problem::new(SANDBOX, message))?;
        }
        survivors(output.survivors_left).map_or(Ok(()), |warning| record.warn(warning))
    }
}

/// Warns of processes that outlive the command because they could not be ended.
fn survivors(left: usize) -> Option<Problem> {
    let those = match left {
        0 => return None,
        1 => "a process that it started".to_owned(),
        _ => format!("{left} processes that it started"),
    };
    let message = format!(
        "the command has ended, but {those} could not be killed: they \
         belong to another user, or are stuck in the kernel"
    );
    Some(Problem::new("survivors", message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Observer, Past, Progress};
    use code_commit_engine::Event;
    use code_commit_logging::{Redactor, RunFolder};
    use code_commit_runner::{Captured, Ended};
    use std::cell::RefCell;
    use std::rc::Rc;

    #[derive(Default)]
    struct Warnings(Vec<String>);

    impl Observer for Warnings {
        fn see(&mut self, event: &Progress<'_>) {
            if let Progress::Warning(problem) = event {
                self.0
                    .push(format!("{}: {}", problem.code, problem.message));
            }
        }
    }

    #[test]
    fn processes_that_could_not_be_ended_are_told_once() {
        let folder = tempfile::tempdir().unwrap();
        let heard = Rc::new(RefCell::new(Warnings::default()));
        let run = RunFolder::create(folder.path(), "run", Redactor::default()).unwrap();
        let mut record = Record::begin(run.clone(), Rc::clone(&heard)).unwrap();
        for survivors_left in [0, 1, 3, 1] {
            let output = Output {
                ended: Ended::Exited(0),
                captured: Captured::default(),
                apart: None,
                elapsed: Duration::ZERO,
                survivors_killed: 0,
                survivors_left,
                refused: Vec::new(),
            };
            CommandSettings::default()
                .tell_about("build", &output, &mut record)
                .unwrap();
        }
        drop(record);
        let noted = Past::read(run.path()).unwrap().lines;
        assert!(
            matches!(
                noted.as_slice(),
                [Event::Warned { .. }, Event::Warned { .. }]
            ),
            "{noted:?}"
        );
        let heard = &heard.borrow().0;
        let [one, three] = heard.as_slice() else {
            panic!("{heard:?}")
        };
        assert!(
            one.contains("survivors: ") && one.contains("a process that it started"),
            "{one}"
        );
        assert!(three.contains("3 processes"), "{three}");
    }
}
