//! A command that decides something: run under seal, and again if it broke the seal.

use std::path::{Path, PathBuf};

use code_commit_logging::RunFolder;
use code_commit_runner::{Confinement, Output};

use code_commit_engine::Problem;

use crate::attic::Attic;
use crate::fault::Fault;
use crate::record::{Record, RecordError};
use crate::seal::Seal;

/// Code of the hint on how to widen the sandbox.
const SANDBOX: &str = "sandbox";

/// Where hints about the sandbox go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hints {
    /// Also to the record: the sandbox hides it.
    Recorded,
    /// Only to the user: the record may be in the tree, where a command could read how to escape.
    Told,
}

/// A command under seal: at most two executions.
pub(crate) struct Trial {
    /// What runs: `build` or `command`.
    what: &'static str,
    seal: Seal,
    /// The heading of the log of the second execution.
    head: Option<String>,
}

/// How it broke the seal; everything has been restored.
pub(crate) struct Broken {
    changed: Vec<String>,
    /// The folder with the content that was replaced.
    kept: Option<PathBuf>,
    /// For the end of the log of a second execution, which has then failed, whatever its exit code.
    pub(crate) note: Option<String>,
}

impl Trial {
    /// Before the first execution, at this root.
    pub(crate) fn of(what: &'static str, root: &Path, sealed: &[PathBuf]) -> Result<Self, Fault> {
        let seal = Seal::take(root, sealed).map_err(Fault::file("look at", root))?;
        Ok(Self {
            what,
            seal,
            head: None,
        })
    }

    /// The heading of the log of this execution.
    pub(crate) fn head(&self) -> &str {
        self.head.as_deref().unwrap_or_default()
    }

    /// Restores the sealed files, however the command ended; the replaced content is kept in the run folder.
    /// `in_view` are those that it changed in its view, where they are restored already.
    pub(crate) fn restore(&self, run: &RunFolder, in_view: Vec<String>) -> Result<Broken, Fault> {
        let mut attic = Attic::of(run.path());
        let mut changed = self.seal.restore(&mut attic)?;
        changed.extend(in_view);
        let mut broken = Broken {
            changed,
            kept: attic.folder().map(Path::to_owned),
            note: None,
        };
        if self.head.is_some() && !broken.changed.is_empty() {
            broken.note = Some(format!(
                "{} again: it counts as failed",
                broken.changes(self.what)
            ));
        }
        Ok(broken)
    }

    /// Tells how a finished execution broke the seal; gives whether the command is to run again.
    pub(crate) fn runs_again(
        &mut self,
        broken: &Broken,
        record: &mut Record,
    ) -> Result<bool, RecordError> {
        if let Some(note) = &broken.note {
            record.warn(broken.warning(note.clone()))?;
        }
        if self.head.is_some() || broken.changed.is_empty() {
            return Ok(false);
        }
        let what = self.what;
        let said = format!(
            "{}; it was restored, and the {what} ran again",
            broken.changes(what)
        );
        self.head = Some(format!("[code-commit] {said}\n"));
        record.warn(broken.warning(said))?;
        Ok(true)
    }
}

impl Broken {
    /// The sandbox may have protected the files: then something else changed them.
    fn changes(&self, what: &str) -> String {
        format!(
            "the {what}, or somebody else while it ran, changed {}",
            self.changed.join(", ")
        )
    }

    /// For the user, if the command did not finish and is not run again.
    pub(crate) fn tell(&self, trial: &Trial, record: &mut Record) -> Result<(), RecordError> {
        if self.changed.is_empty() {
            return Ok(());
        }
        let said = format!("{}; it was restored", self.changes(trial.what));
        record.warn(self.warning(said))
    }

    /// For the user, who may want the content back.
    fn warning(&self, said: String) -> Problem {
        let message = match &self.kept {
            Some(folder) => format!("{said}; what was there is in {}", folder.display()),
            None => said,
        };
        Problem {
            code: "seal".to_owned(),
            path: Some(self.changed.join(", ")),
            line: None,
            message,
        }
    }
}

/// Records and reports what the user should know about a finished command, apart from its end. How to widen
/// the sandbox goes to the user alone: a model has no say in it, and could ask for it.
pub(crate) fn tell_about(
    output: &Output,
    confinement: &Confinement,
    hints: Hints,
    record: &mut Record,
) -> Result<(), RecordError> {
    if let Some(message) = code_commit_runner::explain(output, confinement) {
        let hint = Problem::new(SANDBOX, message);
        match hints {
            Hints::Recorded => record.warn(hint)?,
            Hints::Told => record.hint(hint),
        }
    }
    survivors(output.survivors_left).map_or(Ok(()), |warning| record.warn(warning))
}

/// Warns of processes that outlive the command because they could not be ended.
fn survivors(left: usize) -> Option<Problem> {
    let those = match left {
        0 => return None,
        1 => "a process that it started".to_owned(),
        _ => format!("{left} processes that it started"),
    };
    let message = format!(
        "the command is over, but {those} could not be ended: another user's, or stuck in the kernel"
    );
    Some(Problem::new("survivors", message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Event, Observer, Past};
    use code_commit_engine::Line;
    use code_commit_logging::{Redactor, RunFolder};
    use code_commit_runner::{Captured, Ended};
    use std::cell::RefCell;
    use std::rc::Rc;
    use std::time::Duration;

    #[derive(Default)]
    struct Warnings(Vec<String>);

    impl Observer for Warnings {
        fn see(&mut self, event: &Event<'_>) {
            if let Event::Warning(problem) = event {
                self.0
                    .push(format!("{}: {}", problem.code, problem.message));
            }
        }
    }

    #[test]
    fn processes_that_could_not_be_ended_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let heard = Rc::new(RefCell::new(Warnings::default()));
        let run = RunFolder::create(folder.path(), "run", Redactor::default()).unwrap();
        let mut record = Record::begin(run.clone(), Rc::clone(&heard)).unwrap();
        for survivors_left in [0, 1, 3] {
            let output = Output {
                ended: Ended::Exited(0),
                captured: Captured::default(),
                apart: None,
                elapsed: Duration::ZERO,
                survivors_killed: 0,
                survivors_left,
                denied: Vec::new(),
                refused: Vec::new(),
            };
            tell_about(&output, &Confinement::off(), Hints::Recorded, &mut record).unwrap();
        }
        drop(record);
        let noted = Past::read(run.path()).unwrap().lines;
        assert!(
            matches!(noted.as_slice(), [Line::Warned { .. }, Line::Warned { .. }]),
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
