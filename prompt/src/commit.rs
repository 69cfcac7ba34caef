//! The prompts of the default loop (S1 §The Initial Query, §Running the Build).

use std::ops::Range;

use code_commit_parser::fence::NEED;

use crate::edits::{self, Form};
use crate::header::{LONGER_HEADERS, PLAIN, dashes};
use crate::rollup::is_partial;
use crate::{push_last_part, push_part};

const PROJECT_STRUCTURE: &str = include_str!("../text/commit/project-structure.md");
const MODIFICATION_INSTRUCTIONS: &str = include_str!("../text/commit/modification-instructions.md");
const INITIAL_QUERY: &str = include_str!("../text/commit/initial-query.md");
const REPAIR_QUERY: &str = include_str!("../text/commit/repair-query.md");

const NEED_FILES: &str = include_str!("../text/commit/need.md");

/// Precedes the output of the last build if the reply after it was not used.
const LAST_BUILD: &str = "Before that reply, build.sh had printed:\n";

/// What stays the same over all rounds of a run.
#[derive(Debug, Clone, Copy)]
pub struct Task<'a> {
    /// `agent-config/query.txt`, unchanged.
    pub query: &'a str,
    /// `agent-config/codeRollup.txt`, unchanged.
    pub codebase: &'a str,
    /// What may not be written: names or rules, shown to the model as a list.
    pub protected: &'a [String],
    /// Whether the model may edit lines.
    pub form: Form,
}

/// A prompt, and the positions of the two inputs in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InitialPrompt {
    /// The whole text.
    pub text: String,
    /// The byte range of the query.
    pub query: Range<usize>,
    /// The byte range of the codebase.
    pub codebase: Range<usize>,
}

/// The current state of a file that the model has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it all")]
pub enum Replacement<'a> {
    /// The file was written.
    File { path: &'a str, data: &'a str },
    /// The file was deleted.
    Removed { path: &'a str },
}

/// Why a round has failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure<'a> {
    /// The build failed and printed this.
    Build(&'a str),
    /// The reply was not used.
    Reply {
        /// Why.
        reasons: &'a str,
        /// The output of the last build, if there was one. The reply has not fixed what it
        /// reported, and without it the model would have to guess what to repair.
        last_build: Option<&'a str>,
    },
}

/// The first prompt: `[project structure] [code modification instructions] [initial query] [query] [codebase]`.
#[must_use]
pub fn initial(task: &Task<'_>) -> InitialPrompt {
    let mut text = String::with_capacity(8192 + task.query.len() + task.codebase.len());
    push_rules(&mut text, task);
    push_part(&mut text, INITIAL_QUERY);
    let query = push_query(&mut text, task);
    let codebase = text.len()..text.len() + task.codebase.len();
    push_last_part(&mut text, task.codebase);
    InitialPrompt {
        text,
        query,
        codebase,
    }
}

/// A repair prompt: `[project structure] [code modification instructions] [repair query] [build.sh
/// output] [query] [codebase] [file replacements]`. `replacements` holds only the latest state of
/// each file.
#[must_use]
pub fn repair(task: &Task<'_>, failure: &Failure<'_>, replacements: &[Replacement<'_>]) -> String {
    let mut text = String::with_capacity(8192 + task.query.len() + task.codebase.len());
    push_rules(&mut text, task);
    push_part(&mut text, &repair_query(task.form));
    push_failure(&mut text, failure);
    push_query(&mut text, task);
    push_part(&mut text, task.codebase);
    push_replacements(&mut text, task.codebase, replacements);
    text
}

/// With what it asks for. One with edits asks for nothing else.
fn repair_query(form: Form) -> String {
    let answer = match form {
        Form::Files => "the whole content",
        Form::Edits => "edits, against its latest content,",
    };
    REPAIR_QUERY.replace("{ANSWER}", answer)
}

fn push_query(text: &mut String, task: &Task<'_>) -> Range<usize> {
    let query = text.len()..text.len() + task.query.len();
    push_part(text, task.query);
    query
}

fn push_failure(text: &mut String, failure: &Failure<'_>) {
    match *failure {
        Failure::Build(output) => push_part(text, output),
        Failure::Reply {
            reasons,
            last_build,
        } => {
            push_part(text, reasons);
            if let Some(output) = last_build {
                text.push_str(LAST_BUILD);
                push_part(text, output);
            }
        }
    }
}

/// `--- FILE REPLACEMENT [filename] ---`, as S1 §Running the Build has it; with more dashes if the code
/// holds such a line.
fn push_replacements(text: &mut String, codebase: &str, replacements: &[Replacement<'_>]) {
    let data = replacements
        .iter()
        .filter_map(|replacement| match replacement {
            Replacement::File { data, .. } => Some(*data),
            Replacement::Removed { .. } => None,
        });
    let shown: Vec<&str> = data.chain([codebase]).collect();
    let begins = [" FILE REPLACEMENT ", " FILE REMOVED "];
    let needed = begins
        .into_iter()
        .map(|begins| dashes(shown.iter().copied(), begins))
        .max();
    let dashes = "-".repeat(needed.unwrap_or_default());
    for replacement in replacements {
        match replacement {
            Replacement::File { path, data } => {
                text.push_str(&format!("{dashes} FILE REPLACEMENT {path} ---\n"));
                push_last_part(text, data);
            }
            Replacement::Removed { path } => {
                text.push_str(&format!("{dashes} FILE REMOVED {path} ---\n"));
            }
        }
    }
}

/// The number of bytes at the beginning that all prompts of a task have in common.
#[must_use]
pub fn stable_bytes(task: &Task<'_>) -> usize {
    let mut text = String::new();
    push_rules(&mut text, task);
    text.len()
}

fn push_rules(text: &mut String, task: &Task<'_>) {
    push_part(text, PROJECT_STRUCTURE);
    if task
        .codebase
        .bytes()
        .take_while(|byte| *byte == b'-')
        .count()
        > PLAIN
    {
        push_part(text, LONGER_HEADERS);
    }
    push_last_part(text, MODIFICATION_INSTRUCTIONS);
    for name in task.protected {
        text.push_str(&format!("+ {name}\n"));
    }
    text.push('\n');
    if task.form == Form::Edits {
        push_part(text, &edits::lesson());
    }
    if is_partial(task.codebase) {
        push_part(text, &NEED_FILES.replace("{NEED}", NEED));
    }
}

#[cfg(test)]
mod tests;
