//! The tree around a turn of a role: what it may not touch is put back.

use std::path::{Path, PathBuf};

use code_commit_changes::{ChangeEngine, IsOver, Scope, Turned};
use code_commit_engine::Problem;
use code_commit_guard::{Guard, Policy};
use code_commit_logging::name_as_text;

use crate::agents::fault::{AgentFault, fault};
use crate::agents::role::Watched;

/// The copies of one executor, removed with it unless something is still to be put back.
#[derive(Debug, Default)]
pub struct Copies {
    run: PathBuf,
    tree: Option<Tree>,
}

/// A tree that a role works in, or has worked in.
#[derive(Debug)]
struct Tree {
    guard: Guard,
    engine: ChangeEngine,
}

impl Drop for Copies {
    fn drop(&mut self) {
        if let Some(Tree { engine, .. }) = self.tree.as_mut().filter(|tree| !tree.engine.is_open())
        {
            // Leftovers are harmless: the next run in this folder removes them.
            let _ = engine.end(&self.run);
        }
    }
}

impl Copies {
    /// Looks at the tree before the turn of `who`. What is taken out of it goes to a folder of the name `left` in the
    /// backup of the run. Gives a warning.
    pub(super) fn open(
        &mut self,
        watched: &Watched,
        who: &str,
        left: String,
        run: &Path,
    ) -> Result<Option<Problem>, AgentFault> {
        let guard = watched.guard()?;
        let mut engine = watched.engine(who, left);
        if let Some(earlier) = self.tree.take() {
            engine = engine.after(earlier.engine);
        }
        let warning = engine.open(&guard, run).map_err(AgentFault::Changes)?;
        (self.run, self.tree) = (run.to_owned(), Some(Tree { guard, engine }));
        Ok(warning)
    }

    /// What the role may not touch is put back. If that fails, the copies stay.
    pub(super) fn close(&mut self) -> Result<Changes, AgentFault> {
        let Some(Tree { guard, engine }) = &mut self.tree else {
            return Ok(Changes::default());
        };
        let turned = engine.close_turn(guard, &self.run);
        let turned = turned.map_err(|error| AgentFault::not_put_back(error, &self.run))?;
        Ok(changes(turned, guard))
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    pub(super) allowed: Vec<String>,
    /// Those of `allowed` that were removed.
    pub(super) gone: Vec<String>,
    pub(super) put_back: Vec<String>,
    /// For the user.
    pub(super) warnings: Vec<Problem>,
}

impl Watched {
    /// Whether a path is not looked at. Of a repository in the tree only what git would run is.
    pub(super) fn skips(&self, path: &Path) -> bool {
        let is_at = |skipped: &String| Path::new(skipped.trim_start_matches('/')) == path;
        let name = path.file_name().unwrap_or_default();
        name == ".git"
            || self
                .skip
                .iter()
                .any(|skipped| is_at(skipped) || name == &**skipped)
    }

    fn policy(&self) -> Policy {
        let everything = || vec!["/".to_owned()];
        let entries = self.may_touch.clone().unwrap_or_else(everything);
        let policy = Policy::role(entries).within(self.within.clone());
        self.protect.iter().fold(policy, Policy::protect)
    }

    fn engine(&self, who: &str, left: String) -> ChangeEngine {
        let (own, names): (Vec<String>, Vec<String>) = self
            .skip
            .iter()
            .cloned()
            .partition(|skipped| skipped.contains('/'));
        let own = own.iter().map(|path| path.trim_start_matches('/').into());
        let engine = ChangeEngine::new(Scope {
            who: who.to_owned().into(),
            may_change: self.policy(),
            own: own.collect(),
            skipped_names: names.into_iter().filter(|name| name != ".git").collect(),
            left: Some(left),
            ..Scope::default()
        });
        let engine = engine.asking(self.git.clone());
        match &self.tree {
            Some(tree) => engine.of(tree),
            None => engine,
        }
    }

    fn guard(&self) -> Result<Guard, AgentFault> {
        Guard::open(&self.root, Policy::new())
            .map_err(|error| fault("look at", &self.root)(std::io::Error::other(error)))
    }
}

fn changes(turned: Turned, guard: &Guard) -> Changes {
    let Turned {
        mut allowed,
        mut gone,
        put_back,
        warnings,
    } = turned;
    // What the role has git ignore from now on is no work of its.
    if allowed.iter().any(|path| path.ends_with(".gitignore"))
        && let Ok(now) = Guard::open(guard.root(), Policy::new())
    {
        allowed.retain(|path| !now.ignores(path));
        gone.retain(|path| !now.ignores(path));
    }
    let text = |path: PathBuf| name_as_text(&path).into_owned();
    Changes {
        allowed: allowed.into_iter().map(text).collect(),
        gone: gone.into_iter().map(text).collect(),
        put_back,
        warnings,
    }
}

/// Does `work`, restores what it may not touch, and gives those paths. What was there is then in a folder of the name
/// `left` in the backup of the run.
pub fn watch_over<T>(
    watched: &Watched,
    left: &str,
    run: &Path,
    work: impl FnOnce() -> T,
) -> Result<(T, Vec<String>), AgentFault> {
    let mut copies = Copies::default();
    copies.open(watched, "the agent", left.to_owned(), run)?;
    let result = work();
    Ok((result, copies.close()?.put_back))
}

/// Restores what a turn that was cut off may not have changed; gives the paths. The copies stay.
pub(super) fn put_back_after(
    watched: &Watched,
    left: String,
    run: &Path,
) -> Result<Vec<String>, AgentFault> {
    let mut engine = watched.engine("the agent", left);
    let is_open = engine
        .reopen(&watched.root, run)
        .map_err(AgentFault::Changes)?;
    if !is_open {
        return Ok(Vec::new());
    }
    let turned = engine.put_back_turn(&watched.guard()?, run, IsOver::NotYet);
    Ok(turned
        .map_err(|error| AgentFault::not_put_back(error, run))?
        .put_back)
}

#[cfg(test)]
mod tests;
