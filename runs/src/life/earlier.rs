//! Work that was done before: a supervisor may start a command any number of times, and pays once.
//!
//! It goes on with its unfinished run. A finished one is answered from the record only under a key, since a person
//! who starts a command again wants another run.

use anyhow::anyhow;
use code_commit_logging::RunFolder;
use code_commit_perform::Past;

use super::Life;
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
    life: &Life<'_, L>,
    plan: &L::Plan,
    asked: Asked<'_>,
) -> Result<Earlier<L::Plan>, Failure> {
    let Some((known, is_newest)) = find(life, plan, asked)? else {
        return Ok(Earlier::None);
    };
    let run = RunFolder::open(known.path(&life.site.root), life.redactor.clone());
    if L::FACTS.newest_only && asked.key.is_none() {
        // One that cannot be read was paid for, and may hold copies of files that an agent may not change.
        let outcome = records::outcome_of(&run)?;
        outcome.map_or_else(|| records::can_be_continued(run.path()), |_| Ok(()))?;
    }
    let read = || Ok((life.of.load(&run, &known)?, records::intact(&run)?));
    match read() {
        Ok((recorded, past)) => Found {
            life,
            known,
            is_newest,
            run,
            past: &past,
        }
        .judge(plan, recorded, asked),
        Err(error) if asked.key.is_some() => {
            records::refuse_unread(&run, error).map(|()| Earlier::None)
        }
        Err(_) if L::FACTS.by_content => {
            let name = records::name(run.path());
            life.site.host.output.warn(&format!(
                "the record of {name} was changed, so its verdict does not count"
            ));
            Ok(Earlier::None)
        }
        Err(_) => Ok(Earlier::None),
    }
}

/// The run of this key, or the newest of the loop, and whether it is the newest.
fn find<L: Loop>(
    life: &Life<'_, L>,
    plan: &L::Plan,
    asked: Asked<'_>,
) -> Result<Option<(Known, bool)>, Failure> {
    if asked.new {
        return Ok(None);
    }
    let mut is_newest = true;
    for known in life.site.registry().all()? {
        let head = Head::of(&records::open(&known.path(&life.site.root))).unwrap_or_default();
        if !known.has_plan() || (&*head.kind, head.phase) != (L::kind(plan), L::phase(plan)) {
            continue;
        }
        let is_same = || {
            let run = RunFolder::open(known.path(&life.site.root), life.redactor.clone());
            let recorded = life.of.load(&run, &known);
            recorded.is_ok_and(|recorded| life.of.is_same(plan, &recorded))
        };
        let is_it = match asked.key {
            Some(key) => head.key.as_deref() == Some(key),
            None => !L::FACTS.by_content || (!known.undone && is_same()),
        };
        if is_it {
            return Ok(Some((known, is_newest)).filter(|(known, _)| !known.undone));
        }
        is_newest = false;
    }
    Ok(None)
}

struct Found<'f, L> {
    life: &'f Life<'f, L>,
    known: Known,
    is_newest: bool,
    run: RunFolder,
    past: &'f Past,
}

impl<L: Loop> Found<'_, L> {
    fn judge(
        self,
        plan: &L::Plan,
        recorded: L::Plan,
        asked: Asked<'_>,
    ) -> Result<Earlier<L::Plan>, Failure> {
        let Self { life, past, .. } = self;
        let (name, work) = (records::name(self.run.path()), L::FACTS.work);
        let is_unfinished =
            L::kept(past).is_some() && (!past.lines.is_empty() || L::FACTS.newest_only);
        match (life.of.is_same(plan, &recorded), is_unfinished) {
            (false, _) if asked.key.is_some() => {
                let error = anyhow!("the key was used for other work: {name}");
                let help = format!("use another key for another {work} or other settings");
                Err(Failure::refused(error, help))
            }
            (false, true) => Ok(self.leave(&format!(
                "{name}, for another {work} or other settings, is not finished"
            ))),
            (true, true) if L::FACTS.newest_only && !self.is_newest => {
                let why = "is not finished, and a newer run has begun since";
                life.site
                    .host
                    .output
                    .warn(&format!("{name} {why}: a new run begins"));
                Ok(Earlier::None)
            }
            (true, true) => match life.of.may_go_on(&recorded, &self.run) {
                Ok(()) => Ok(Earlier::Unfinished(self.known, recorded)),
                // Its prompts know nothing of the change.
                Err(failure) => {
                    Ok(self.leave(&format!("{:#}, so a new run begins", failure.error)))
                }
            },
            (true, false)
                if (asked.key.is_some() || L::FACTS.by_content) && past.outcome().is_some() =>
            {
                if life.of.still_holds(&recorded, &self.run, past)? {
                    return Ok(Earlier::Finished(self.run, recorded));
                }
                if asked.key.is_some() {
                    life.site.host.output.warn(&format!(
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
        if holds_something::<L>(self.past) && !L::FACTS.newest_only {
            let ways = format!(
                "code-commit resume {name} continues it, code-commit undo {name} takes it back"
            );
            self.life.site.host.output.warn(&format!("{why}: {ways}"));
        }
        Earlier::None
    }
}

/// Whether a run that can go on holds anything: an answer, or a question that may have been paid for.
pub(crate) fn holds_something<L: Loop>(past: &Past) -> bool {
    L::kept(past)
        .is_some_and(|answers| answers > 0 || (past.outcome().is_none() && !past.lines.is_empty()))
}
