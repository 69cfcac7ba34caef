//! What a run sends: found or made in the preflight, stored once nothing is missing.

use std::path::Path;

use code_commit_logging::Redactor;
use code_commit_names::Binds;
use code_commit_prompt::edits::lesson;
use code_commit_repo::WorkTree;
use code_commit_report::Output;
use code_commit_settings::{Environment, Keys, Settings};

use super::plan::{Task, Which};
use super::request::{Query, beside_or_above, refused};
use crate::commit::rollup::Rollup;
use crate::deciders;
use crate::exit::Failure;
use crate::preflight::{self, CODE_ROLLUP, Missing, QUERY};
use crate::rollup::{self, Chosen, Options, RollUp, Stored, window};

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
    /// Where its code roll-up is.
    rollup_file: String,
    /// The roll-up if it was made for this run; else a person or a script has made it.
    made: Option<Made>,
}

struct Made {
    rollup: RollUp,
    options: Options,
    /// The stored one that it replaces.
    old: Option<Stored>,
}

impl Sources<'_> {
    /// Reports everything that is missing together (S1 §The Initial Query, §Safety). Stores nothing.
    pub(super) fn check(self) -> Result<Ready, Failure> {
        let (root, settings) = (self.tree.root(), self.settings);
        let mut missing = Vec::new();
        let query_file = self.place(QUERY);
        let from_file = || preflight::input(root, &query_file, &preflight::query_hint(&query_file));
        let query = or_missing(self.query.text().unwrap_or_else(from_file), &mut missing);
        let codebase = self.codebase(query.as_deref().unwrap_or_default())?;
        let codebase = or_missing(codebase, &mut missing);
        let system = (self.which == Which::Implement).then(|| {
            let file = self.place(SYSTEM_PROMPT);
            or_missing(
                preflight::input(root, &file, SYSTEM_PROMPT_REMEDY),
                &mut missing,
            )
        });
        // Without one of these every call would be in vain.
        or_missing(preflight::key(settings, self.keys), &mut missing);
        or_missing(preflight::price(settings), &mut missing);
        or_missing(
            preflight::build_command(root, &settings.build_command(), self.environment),
            &mut missing,
        );
        let (Some(query), Some((codebase, made)), true) = (query, codebase, missing.is_empty())
        else {
            // An input that is in a folder above is not missing.
            let above =
                preflight::project_above(self.tree).filter(|_| !root.join(&query_file).exists());
            return Err(refused(above.map_or(missing, |one| vec![one])));
        };
        let task = match system.flatten() {
            None => {
                let protected = protected_for_model(settings, self.tree);
                Task::commit(query, codebase, protected, settings)
            }
            // The system prompt is the user's own, and knows of no edits.
            Some(system) if settings.edits() => {
                let system = format!("{}\n\n{}", system.trim_end(), lesson());
                Task::implement(system, query, codebase)
            }
            Some(system) => Task::implement(system, query, codebase),
        };
        Ok(Ready {
            task,
            query_from: self.query.origin(query_file),
            rollup_file: self.place(CODE_ROLLUP),
            made,
        })
    }

    fn place(&self, path: &str) -> String {
        match self.which {
            Which::Commit => path.to_owned(),
            Which::Implement => beside_or_above(self.tree.root(), path),
        }
    }

    /// The stored roll-up if a person made it. One that is ours is rewritten, so that it is never outdated; so
    /// is a missing one if the query is given.
    fn codebase(&self, query: &str) -> Result<Result<(String, Option<Made>), Missing>, Failure> {
        let (root, path) = (self.tree.root(), self.place(CODE_ROLLUP));
        let old = (path == CODE_ROLLUP).then(|| Stored::ours(root)).flatten();
        let may_make = matches!(self.query, Query::Given { .. })
            && preflight::project_above(self.tree).is_none();
        if old.is_none() && !(may_make && root.join(&path).symlink_metadata().is_err()) {
            let read = preflight::input(root, &path, "make it with: code-commit rollup");
            return Ok(read.map(|text| (text, None)));
        }
        let options = old
            .as_ref()
            .map_or_else(|| Options::of(self.settings), |old| old.options.clone());
        let state = self.tree.state_place().ok();
        let sources = rollup::Sources {
            tree: self.tree,
            environment: self.environment,
            redactor: self.redactor,
            query,
            state: state.as_deref(),
        };
        let rollup = rollup::make(sources, &options, self.settings)?;
        if let Some(missing) = rollup.empty() {
            return Ok(Err(missing));
        }
        let made = Made {
            rollup,
            options,
            old,
        };
        Ok(Ok((made.rollup.text.clone(), Some(made))))
    }
}

fn or_missing<T>(found: Result<T, Missing>, missing: &mut Vec<Missing>) -> Option<T> {
    found.map_err(|what| missing.push(what)).ok()
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
        let is_theirs = self.made.is_none();
        is_theirs.then(|| Rollup::at(root, self.rollup_file.clone(), &self.task.codebase.text))
    }

    /// Stores what was made, and says so.
    pub(super) fn store(
        &self,
        root: &Path,
        settings: &Settings,
        output: &Output,
    ) -> Result<(), Failure> {
        let Some(Made {
            rollup,
            options,
            old,
        }) = &self.made
        else {
            window::tell_of_theirs(&self.task.codebase.text, settings, output);
            return Ok(());
        };
        if old.as_ref().is_some_and(|old| old.is(&rollup.text)) {
            rollup.context.iter().for_each(|line| output.note(line));
            return Ok(());
        }
        rollup.keep(root, options).map_err(Failure::cannot_make)?;
        let size = rollup.size();
        if old.is_none() {
            output.note(&format!("{CODE_ROLLUP}: {size}"));
            rollup.tell(output);
        } else {
            output.detail(&format!("{CODE_ROLLUP}: rewritten, {size}"));
            rollup.tell_surprises(output);
        }
        Ok(())
    }
}

/// The protected set as the prompt lists it (S1 §Parsing the Response), plus what the configuration adds.
fn protected_for_model(settings: &Settings, tree: &WorkTree) -> Vec<String> {
    let names = code_commit_names::protected(Binds::Commit).map(|name| {
        let path = name
            .pattern
            .trim_start_matches("**")
            .trim_start_matches('/');
        match path.strip_suffix('/') {
            Some(folder) => format!("anything in the {folder} folder"),
            None if name.pattern.starts_with('/') => path.to_owned(),
            None => format!("any file named {path}"),
        }
    });
    let general = [
        "anything in a .git folder",
        "anything that .gitignore names",
    ]
    .map(str::to_owned);
    let configured = settings.protect.iter().map(|pattern| pattern.0.clone());
    let graders = if settings.protect_grader() {
        deciders::graders(tree.root(), settings)
    } else {
        Vec::new()
    };
    let deciders = deciders::find(tree.root(), Some(tree), settings)
        .into_iter()
        .map(|decider| decider.path);
    names
        .chain(deciders)
        .chain(graders)
        .chain(general)
        .chain(configured)
        .collect()
}
