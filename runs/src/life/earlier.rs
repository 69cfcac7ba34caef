//! The same work again: a supervisor may start a command any number of times, and pays once.
//!
//! It goes on with its unfinished run. A finished one is answered from the record only under a key, since a person
//! who starts a command again wants another run.

use anyhow::anyhow;
use code_commit_logging::RunFolder;
use code_commit_perform::Past;

use super::{Asked, Life, Loop};
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
    let (root, output) = (&life.site.root, life.site.host.output);
    if asked.new {
        return Ok(Earlier::None);
    }
    let head = |known: &Known| Head::of(&records::open(&known.path(root))).unwrap_or_default();
    let is_its = |known: &Known| {
        let head = head(known);
        let is_listed = known.has_plan() || L::FACTS.newest_only;
        is_listed && (&*head.kind, head.phase) == (L::kind(plan), L::phase(plan))
    };
    let all: Vec<Known> = life.site.registry().all()?.into_iter().filter(is_its).collect();
    let known = match asked.key {
        None => all.first(),
        Some(key) => all.iter().find(|known| head(known).key.as_deref() == Some(key)),
    };
    let Some(known) = known.filter(|known| !known.undone) else { return Ok(Earlier::None) };
    let run = RunFolder::open(known.path(root), life.redactor.clone());
    if L::FACTS.newest_only && asked.key.is_none() {
        // One that cannot be read was paid for, and may hold copies of files that an agent may not change.
        let outcome = records::outcome_of(&run)?;
        outcome.map_or_else(|| records::can_be_continued(run.path()), |_| Ok(()))?;
    }
    let read = || Ok((life.of.load(&run, known)?, records::intact(&run)?));
    let (recorded, past) = match read() {
        Ok(read) => read,
        Err(error) if asked.key.is_some() => {
            return records::refuse_unread(&run, error).map(|()| Earlier::None);
        }
        Err(_) => return Ok(Earlier::None),
    };
    let name = records::name(run.path());
    let is_unfinished = L::kept(&past).is_some() && (!past.lines.is_empty() || L::FACTS.newest_only);
    let warn = |why: &str| {
        if holds_something::<L>(&past) {
            let ways =
                format!("code-commit resume {name} continues it, code-commit undo {name} takes it back");
            output.warn(&format!("{why}: {ways}"));
        }
        Ok(Earlier::None)
    };
    match (life.of.is_same(plan, &recorded), is_unfinished) {
        (false, _) if asked.key.is_some() => {
            let error = anyhow!("the key was used for other work: {name}");
            let help = format!("use another key for another {} or other settings", L::FACTS.work);
            Err(Failure::refused(error, help))
        }
        (false, true) => {
            warn(&format!("{name}, for another {} or other settings, is not finished", L::FACTS.work))
        }
        (true, true) if L::FACTS.newest_only && all.first() != Some(known) => {
            output
                .warn(&format!("{name} is not finished, and a newer run has begun since: a new run begins"));
            Ok(Earlier::None)
        }
        (true, true) => match life.of.may_go_on(&recorded, &run) {
            Ok(()) => Ok(Earlier::Unfinished(known.clone(), recorded)),
            // Its prompts know nothing of the change.
            Err(failure) => warn(&format!("{:#}, so a new run begins", failure.error)),
        },
        (true, false) if asked.key.is_some() && past.outcome().is_some() => {
            if life.of.still_holds(&recorded, &run, &past)? {
                return Ok(Earlier::Finished(run, recorded));
            }
            output.warn(&format!("the files are no longer as {name} left them, so a new run begins"));
            Ok(Earlier::None)
        }
        (_, false) => Ok(Earlier::None),
    }
}

/// Whether a run that can go on holds anything: an answer, or a question that may have been paid for.
pub(crate) fn holds_something<L: Loop>(past: &Past) -> bool {
    L::kept(past).is_some_and(|answers| answers > 0 || (past.outcome().is_none() && !past.lines.is_empty()))
}
