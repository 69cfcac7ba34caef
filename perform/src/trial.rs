//! A command that decides something: run once under seal, and once more where it changed what it may not change.

use std::path::{Path, PathBuf};

use logging::RunFolder;
use runner::{Confinement, Output};

use engine::Problem;

use crate::fault::Fault;
use crate::record::{Record, RecordError};
use crate::seal::{Attic, Seal};

/// Code of the hint how to widen the sandbox.
const SANDBOX: &str = "wall";

/// Where hints about the sandbox go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hints {
    /// To the record as well: the sandbox hides it.
    Recorded,
    /// To the person alone: the record may lie in the tree, where a command could read how to get out.
    Told,
}

/// One of at most two times.
pub(crate) struct Trial<'t> {
    /// What runs, in one word: `build`, `command`.
    what: &'static str,
    seal: &'t Seal,
    time: Time,
}

/// Which.
enum Time {
    First,
    /// With the words that begin its log.
    Again {
        head: String,
    },
}

/// What it left of the seal; all of it is as it was again.
pub(crate) struct Broken {
    changed: Vec<String>,
    /// The folder that now holds what was there instead.
    kept: Option<PathBuf>,
    /// For the end of the log, where it is the second time: then it has failed, whatever its exit code.
    pub(crate) note: Option<String>,
}

/// Does `once`, and again where it broke the seal; gives what came of the last time and what that left of the seal.
pub(crate) fn under_seal<T>(
    what: &'static str,
    root: &Path,
    sealed: &[PathBuf],
    record: &mut Record<'_>,
    once: impl Fn(&Trial<'_>, &mut Record<'_>) -> Result<(T, Broken), Fault>,
) -> Result<(T, Broken), Fault> {
    let seal = Seal::take(root, sealed).map_err(Fault::file("look at", root))?;
    let (came, broken) = once(&Trial { what, seal: &seal, time: Time::First }, record)?;
    if broken.changed.is_empty() {
        return Ok((came, broken));
    }
    let said = format!("{}; it was restored and the {what} run again", broken.changes(what));
    let head = format!("[code-commit] {said}\n");
    record.warn(broken.warning(said))?;
    let (came, broken) = once(&Trial { what, seal: &seal, time: Time::Again { head } }, record)?;
    if let Some(note) = &broken.note {
        record.warn(broken.warning(note.clone()))?;
    }
    Ok((came, broken))
}

impl Broken {
    /// The wall may have held the files fast: then it was somebody else.
    fn changes(&self, what: &str) -> String {
        format!("the {what}, or somebody while it ran, changed {}", self.changed.join(", "))
    }

    /// For a person, when the command came to no end and is not run again.
    pub(crate) fn tell(&self, trial: &Trial<'_>, record: &mut Record<'_>) -> Result<(), RecordError> {
        if self.changed.is_empty() {
            return Ok(());
        }
        let said = format!("{}; it was restored", self.changes(trial.what));
        record.warn(self.warning(said))
    }

    /// For a person, who may want to have it back.
    fn warning(&self, said: String) -> Problem {
        let message = match &self.kept {
            Some(folder) => format!("{said}; what stood there is in {}", folder.display()),
            None => said,
        };
        Problem { code: "seal".to_owned(), path: Some(self.changed.join(", ")), line: None, message }
    }
}

impl Trial<'_> {
    /// How its log begins.
    pub(crate) fn head(&self) -> &str {
        match &self.time {
            Time::First => "",
            Time::Again { head } => head,
        }
    }

    /// Puts back what may not be changed, however the command ended; what stood there instead is kept in the run folder.
    pub(crate) fn restore(&self, run: &RunFolder) -> Result<Broken, Fault> {
        let mut attic = Attic::of(run.path());
        let changed = self.seal.restore(&mut attic)?;
        let mut broken = Broken { changed, kept: attic.folder().map(Path::to_owned), note: None };
        if matches!(self.time, Time::Again { .. }) && !broken.changed.is_empty() {
            broken.note = Some(format!("{} again: it counts as failed", broken.changes(self.what)));
        }
        Ok(broken)
    }
}

/// Records, and tells whoever watches, what a person should know of a command that is over, apart from its end. How to open the walls, if
/// they are what it failed at, goes to the person alone: a model decides nothing about them, and what it learned here it could ask for.
pub(crate) fn tell_about(
    output: &Output,
    confinement: &Confinement,
    hints: Hints,
    record: &mut Record<'_>,
) -> Result<(), RecordError> {
    if let Some(message) = runner::explain(output, confinement) {
        let hint = Problem::new(SANDBOX, message);
        match hints {
            Hints::Recorded => record.warn(hint)?,
            Hints::Told => record.hint(hint),
        }
    }
    survivors(output.survivors_left).map_or(Ok(()), |warning| record.warn(warning))
}

/// No process of a command outlives it, but those that we cannot end.
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
    use engine::Line;
    use logging::{Redactor, RunFolder};
    use runner::{Captured, Ended};
    use std::time::Duration;

    #[derive(Default)]
    struct Warnings(Vec<String>);

    impl Observer for Warnings {
        fn see(&mut self, event: &Event<'_>) {
            if let Event::Warning(problem) = event {
                self.0.push(format!("{}: {}", problem.code, problem.message));
            }
        }
    }

    #[test]
    fn processes_that_could_not_be_ended_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let mut heard = Warnings::default();
        let run = RunFolder::create(folder.path(), "run", Redactor::default()).unwrap();
        let mut record = Record::begin(run.clone(), &mut heard).unwrap();
        for survivors_left in [0, 1, 3] {
            let output = Output {
                ended: Ended::Exited(0),
                captured: Captured::default(),
                apart: None,
                elapsed: Duration::ZERO,
                survivors_killed: 0,
                survivors_left,
            };
            tell_about(&output, &Confinement::off(), Hints::Recorded, &mut record).unwrap();
        }
        drop(record);
        let noted = Past::read(run.path()).unwrap().lines;
        assert!(matches!(noted.as_slice(), [Line::Warned { .. }, Line::Warned { .. }]), "{noted:?}");
        let [one, three] = heard.0.as_slice() else { panic!("{:?}", heard.0) };
        assert!(one.contains("survivors: ") && one.contains("a process that it started"), "{one}");
        assert!(three.contains("3 processes"), "{three}");
    }
}
