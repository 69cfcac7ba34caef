//! Work that was done before: a supervisor may start a command any number of times, and pays once.
//!
//! It goes on with its unfinished run. A finished one is answered from the record under a key, or where the work is its
//! own key: a person who starts another command again wants another run.

use anyhow::anyhow;
use code_commit_logging::RunFolder;
use code_commit_perform::{JOURNAL, Past};

use super::Driver;
use super::loop_trait::{Asked, Loop};
use crate::exit::Failure;
use crate::records::{self, Head};
use crate::registry::Known;

pub(super) enum Earlier<P> {
    /// Nothing of use: a new run begins.
    None,
    Unfinished(Known, P),
    Finished(RunFolder, P),
}

/// Looks for the run of this work. The caller holds the lock, so that the tree is not in the middle of a write.
pub(super) fn look<L: Loop>(
    driver: &Driver<'_, L>,
    plan: &L::Plan,
    asked: Asked<'_>,
) -> Result<Earlier<L::Plan>, Failure> {
    if asked.new {
        return Ok(Earlier::None);
    }
    let (mut is_newest, mut is_first) = (true, true);
    for known in driver.project().registry().all()? {
        let run = driver.folder(&known);
        let head = Head::of(&run).unwrap_or_default();
        if !known.has_plan() || (&*head.kind, head.phase) != (L::name(plan), L::phase(plan)) {
            continue;
        }
        if asked.key.is_none_or(|key| head.key.as_deref() == Some(key)) {
            let is_undone = known.undone;
            let found = if is_undone {
                Earlier::None
            } else {
                one(driver, (known, run), (is_newest, is_first), plan, asked)?
            };
            if !L::KIND.by_content || !matches!(found, Earlier::None) {
                return Ok(found);
            }
            is_first &= is_undone;
        }
        is_newest = false;
    }
    Ok(Earlier::None)
}

/// Judges one run; whether it is the newest of the loop, and the newest that is meant.
fn one<L: Loop>(
    driver: &Driver<'_, L>,
    (known, run): (Known, RunFolder),
    (is_newest, is_first): (bool, bool),
    plan: &L::Plan,
    asked: Asked<'_>,
) -> Result<Earlier<L::Plan>, Failure> {
    if L::KIND.newest_only && asked.key.is_none() {
        // One that cannot be read was paid for, and may hold copies of files that an agent may not change.
        let outcome = records::outcome_of(&run)?;
        outcome.map_or_else(|| records::can_be_continued(run.path()), |_| Ok(()))?;
    }
    let unread = |error: anyhow::Error| match asked.key {
        Some(_) => records::refuse_unread(&run, error).map(|()| Earlier::None),
        None => Ok(Earlier::None),
    };
    let recorded = match driver.of.load(&run, &known) {
        Ok(recorded) => recorded,
        Err(error) => return unread(error),
    };
    let is_same = driver.of.is_same(plan, &recorded);
    if L::KIND.by_content && !is_same && (asked.key.is_none() || !is_first) {
        return Ok(Earlier::None);
    }
    let past = match records::intact(&run) {
        Ok(past) => past,
        Err(error) => {
            let has_begun = run.path().join(JOURNAL).is_file();
            if L::KIND.by_content && asked.key.is_none() && has_begun {
                let name = records::name(run.path());
                driver.project().host.output.warn(&format!(
                    "the record of {name} was changed, so its verdict does not count"
                ));
            }
            return unread(error.into());
        }
    };
    let found = Found {
        driver,
        known,
        is_newest,
        run,
        past: &past,
    };
    found.judge(is_same, recorded, asked)
}

struct Found<'f, L> {
    driver: &'f Driver<'f, L>,
    known: Known,
    is_newest: bool,
    run: RunFolder,
    past: &'f Past,
}

impl<L: Loop> Found<'_, L> {
    fn judge(
        self,
        is_same: bool,
        recorded: L::Plan,
        asked: Asked<'_>,
    ) -> Result<Earlier<L::Plan>, Failure> {
        let Self { driver, past, .. } = self;
        let (name, work) = (records::name(self.run.path()), L::KIND.work);
        let is_unfinished =
            L::kept(past).is_some() && (!past.lines.is_empty() || L::KIND.newest_only);
        match (is_same, is_unfinished) {
            (false, _) if asked.key.is_some() => {
                let error = anyhow!("the key was used for other work: {name}");
                let help = format!("use another key for another {work} or other settings");
                Err(Failure::refused(error, help))
            }
            (false, true) => Ok(self.leave(&format!(
                "{name}, for another {work} or other settings, is not finished"
            ))),
            (true, true) if L::KIND.newest_only && !self.is_newest => {
                let why = "is not finished, and a newer run has begun since";
                driver
                    .project()
                    .host
                    .output
                    .warn(&format!("{name} {why}: a new run begins"));
                Ok(Earlier::None)
            }
            (true, true) => match driver.of.may_go_on(&recorded, &self.run) {
                Ok(()) => Ok(Earlier::Unfinished(self.known, recorded)),
                Err(_) if L::KIND.by_content => Ok(Earlier::None),
                // Its prompts know nothing of the change.
                Err(failure) => {
                    Ok(self.leave(&format!("{:#}, so a new run begins", failure.error)))
                }
            },
            (true, false)
                if (asked.key.is_some() || L::KIND.by_content) && past.outcome().is_some() =>
            {
                if driver.of.still_holds(&recorded, &self.run, past)? {
                    return Ok(Earlier::Finished(self.run, recorded));
                }
                if asked.key.is_some() {
                    driver.project().host.output.warn(&format!(
                        "the files are no longer as {name} left them, so a new run begins"
                    ));
                }
                Ok(Earlier::None)
            }
            (_, false) => Ok(Earlier::None),
        }
    }

    /// A new run begins, although this one could go on.
    fn leave<P>(&self, why: &str) -> Earlier<P> {
        let name = records::name(self.run.path());
        if holds_something::<L>(self.past) && !L::KIND.newest_only {
            let ways = format!(
                "code-commit resume {name} continues it, code-commit undo {name} takes it back"
            );
            self.driver
                .project()
                .host
                .output
                .warn(&format!("{why}: {ways}"));
        }
        Earlier::None
    }
}

/// Whether a run that can go on holds anything: an answer, or a question that may have been paid for.
pub(crate) fn holds_something<L: Loop>(past: &Past) -> bool {
    L::kept(past)
        .is_some_and(|answers| answers > 0 || (past.outcome().is_none() && !past.lines.is_empty()))
}
