//! What a run sends: found or made in the preflight, stored once nothing is missing.

use std::path::Path;

use code_commit_logging::Redactor;
use code_commit_prompt::edits::{Form, lesson};
use code_commit_repo::WorkTree;
use code_commit_report::Output;
use code_commit_settings::{Environment, Keys, Settings};

use super::begun::protected_for_model;
use super::query::Query;
use super::request::{Which, beside_or_above, refused};
use crate::commit::plan::{Task, form};
use crate::commit::rollup::Rollup;
use crate::exit::Failure;
use crate::preflight::{self, CODE_ROLLUP, Missing, QUERY};
use crate::rollup::{self, Chosen, Options, RollUp, Stored};

/// Tells the model of S0 how to answer.
pub const SYSTEM_PROMPT: &str = "agent-config/gemini-system-prompt.txt";
const SYSTEM_PROMPT_REMEDY: &str = "make it with: code-commit init --implement";

/// What the preflight looks at.
#[derive(Clone, Copy)]
pub(super) struct Sources<'s> {
    pub(super) which: Which,
    pub(super) tree: &'s WorkTree,
    pub(super) query: &'s Query,
    pub(super) settings: &'s Settings,
    pub(super) keys: &'s Keys,
    pub(super) redactor: &'s Redactor,
    pub(super) environment: &'s Environment,
}

/// A task, and what has to be stored before it is begun.
pub(super) struct Ready {
    pub(super) task: Task,
    /// What the record names as the query's origin.
    pub(super) query_from: String,
    /// The path of the roll-up if a person or a script has made it.
    theirs: Option<String>,
    made: Option<Box<Made>>,
}

struct Made {
    rollup: RollUp,
    options: Options,
    /// The stored one that it replaces.
    old: Option<Stored>,
}

/// The code as the model is shown it.
enum Codebase {
    /// A roll-up that a person or a script has made, unchanged.
    Theirs(String),
    Ours(Box<Made>),
}

impl Sources<'_> {
    /// Reports everything that is missing together (S1 §The Initial Query, §Safety). Stores nothing.
    pub(super) fn check(self) -> Result<Ready, Failure> {
        let Self {
            which,
            tree,
            query,
            settings,
            keys,
            ..
        } = self;
        let root = tree.root();
        let mut missing = Vec::new();
        let mut or_missing =
            |found: Result<String, Missing>| found.map_err(|what| missing.push(what)).ok();
        let query_file = self.place(QUERY);
        let from_file = || preflight::input(root, &query_file, &preflight::query_hint(&query_file));
        let text = or_missing(query.text().unwrap_or_else(from_file));
        let codebase = self
            .codebase(text.as_deref().unwrap_or_default())?
            .map_err(|what| missing.push(what))
            .ok();
        let mut or_missing =
            |found: Result<String, Missing>| found.map_err(|what| missing.push(what)).ok();
        let system = (which == Which::Implement).then(|| {
            or_missing(preflight::input(
                root,
                &self.place(SYSTEM_PROMPT),
                SYSTEM_PROMPT_REMEDY,
            ))
        });
        missing.extend(means(root, settings, keys, self.environment));
        let (Some(text), Some(codebase), true) = (text, codebase, missing.is_empty()) else {
            // An input that is in a folder above is not missing.
            let above = preflight::project_above(tree).filter(|_| !root.join(&query_file).exists());
            return Err(refused(above.map_or(missing, |one| vec![one])));
        };
        let (codebase, theirs, made) = match codebase {
            Codebase::Theirs(text) => (text, Some(self.place(CODE_ROLLUP)), None),
            Codebase::Ours(made) => (made.rollup.text.clone(), None, Some(made)),
        };
        let task = match system.flatten() {
            None => Task::commit(
                text,
                codebase,
                protected_for_model(settings, tree),
                settings,
            ),
            // The system prompt is the user's own, and knows of no edits.
            Some(system) if form(settings) == Form::Edits => Task::implement(
                format!("{}\n\n{}", system.trim_end(), lesson()),
                text,
                codebase,
            ),
            Some(system) => Task::implement(system, text, codebase),
        };
        Ok(Ready {
            task,
            query_from: query.origin(query_file),
            theirs,
            made,
        })
    }

    fn place(&self, path: &str) -> String {
        match self.which {
            Which::Commit => path.to_owned(),
            Which::Implement => beside_or_above(self.tree.root(), path),
        }
    }

    /// The stored roll-up if a person made it. One that is ours is made anew, so that it is never outdated; so
    /// is a missing one if the query is given.
    fn codebase(&self, query: &str) -> Result<Result<Codebase, Missing>, Failure> {
        let (root, path) = (self.tree.root(), self.place(CODE_ROLLUP));
        let old = (path == CODE_ROLLUP).then(|| Stored::ours(root)).flatten();
        let may_make = matches!(self.query, Query::Given { .. })
            && preflight::project_above(self.tree).is_none();
        if old.is_none() && !(may_make && root.join(&path).symlink_metadata().is_err()) {
            let read = preflight::input(root, &path, "make it with: code-commit rollup");
            return Ok(read.map(Codebase::Theirs));
        }
        let options = old
            .as_ref()
            .map_or_else(|| Options::of(self.settings), |old| old.options.clone());
        let Self {
            tree,
            environment,
            redactor,
            ..
        } = *self;
        let sources = rollup::Sources {
            tree,
            environment,
            redactor,
            query,
        };
        let rollup = rollup::make_within(sources, &options, self.settings)?;
        if let Some(missing) = rollup.empty() {
            return Ok(Err(missing));
        }
        Ok(Ok(Codebase::Ours(Box::new(Made {
            rollup,
            options,
            old,
        }))))
    }
}

/// A key, a price and a build: without one of them every call would be in vain.
fn means(root: &Path, settings: &Settings, keys: &Keys, environment: &Environment) -> Vec<Missing> {
    let key = preflight::key(settings, keys).err();
    let price = preflight::price(settings).err();
    let build = preflight::build_command(root, &settings.build.value, environment).err();
    [key, price, build].into_iter().flatten().collect()
}

impl Ready {
    /// What of the code is shown and why, if not all of it is.
    pub(super) fn chosen(&self) -> Vec<Chosen> {
        self.made
            .as_ref()
            .map(|made| made.rollup.chosen.clone())
            .unwrap_or_default()
    }

    /// The roll-up if it may be outdated: it was not made for this run.
    pub(super) fn theirs(&self, root: &Path) -> Option<Rollup<'_>> {
        self.theirs
            .clone()
            .map(|path| Rollup::at(root, path, self.task.codebase()))
    }

    /// Stores what was made, and says so.
    pub(super) fn store(&self, root: &Path, output: &Output) -> Result<(), Failure> {
        self.made
            .as_ref()
            .map_or(Ok(()), |made| made.store(root, output))
    }
}

impl Made {
    fn store(&self, root: &Path, output: &Output) -> Result<(), Failure> {
        let Self {
            rollup,
            options,
            old,
        } = self;
        if old.as_ref().is_some_and(|old| old.is(rollup)) {
            return Ok(());
        }
        rollup.keep(root, options).map_err(Failure::cannot_make)?;
        let size = rollup.size();
        if old.is_none() {
            output.note(&format!("{CODE_ROLLUP}: {size}"));
            rollup.tell(output);
        } else {
            output.note(&format!("{CODE_ROLLUP}: made anew, {size}"));
            rollup.tell_surprises(output);
        }
        Ok(())
    }
}
