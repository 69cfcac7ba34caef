//! The prompts of the default loop (S1 §The Initial Query, §Running the Build).

use std::ops::Range;

use crate::edits::{self, Form};
use crate::header::{LONGER_HEADERS, PLAIN, dashes};
use crate::{push_last_part, push_part, rollup};

const PROJECT_STRUCTURE: &str = include_str!("../text/commit/project-structure.md");
const MODIFICATION_INSTRUCTIONS: &str = include_str!("../text/commit/modification-instructions.md");
const INITIAL_QUERY: &str = include_str!("../text/commit/initial-query.md");
const REPAIR_QUERY: &str = include_str!("../text/commit/repair-query.md");
const CACHED_INITIAL_QUERY: &str = include_str!("../text/commit/cached-initial-query.md");
const CACHED_REPAIR_QUERY: &str = include_str!("../text/commit/cached-repair-query.md");

/// What follows the dashes of the line behind the codebase.
const END_OF_CODEBASE: &str = " END OF THE CODEBASE ";

/// What follows the dashes of a file's header in the codebase.
const FILE_HEADER: &str = " FILE ";

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
    /// The order of the parts.
    pub order: Order,
    /// What a repair shows of the code.
    pub repair: Repair,
}

/// What a repair prompt holds of the output and the code.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Repair {
    /// The whole output, the codebase as it was, and the newest state of each file that was changed (S1).
    #[default]
    Whole,
    /// The failing part of the output, and each file once, as it is on disk.
    Focused,
}

/// The order of a prompt's parts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Order {
    /// That of S1.
    #[default]
    Seed,
    /// What all prompts of a run have in common comes first: services charge less for a beginning that they
    /// have seen before.
    Cache,
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
/// In [`Order::Cache`], `[initial query]` comes last.
#[must_use]
pub fn initial(task: &Task<'_>) -> InitialPrompt {
    let mut text = String::with_capacity(8192 + task.query.len() + task.codebase.len());
    push_rules(&mut text, task);
    if task.order == Order::Seed {
        push_part(&mut text, INITIAL_QUERY);
    }
    let query = push_query(&mut text, task);
    let codebase = text.len()..text.len() + task.codebase.len();
    push_last_part(&mut text, task.codebase);
    if task.order == Order::Cache {
        push_end_of_codebase(&mut text, task);
        push_last_part(&mut text, CACHED_INITIAL_QUERY);
    }
    InitialPrompt {
        text,
        query,
        codebase,
    }
}

/// A repair prompt: `[project structure] [code modification instructions] [repair query] [build.sh
/// output] [query] [codebase] [file replacements]`. `replacements` holds only the latest state of
/// each file. In [`Order::Cache`], `[query] [codebase]` come before `[repair query]`.
#[must_use]
pub fn repair(task: &Task<'_>, failure: &Failure<'_>, replacements: &[Replacement<'_>]) -> String {
    let mut text = String::with_capacity(8192 + task.query.len() + task.codebase.len());
    push_rules(&mut text, task);
    let mut shown = None;
    match task.order {
        Order::Seed => {
            shown = (task.repair == Repair::Focused)
                .then(|| with_replacements(task.codebase, replacements));
            push_part(&mut text, &filled(REPAIR_QUERY, task));
            push_failure(&mut text, failure);
            push_query(&mut text, task);
            push_part(
                &mut text,
                shown.as_ref().map_or(task.codebase, |(now, _)| now),
            );
        }
        // What all prompts begin with stays as it is.
        Order::Cache => {
            push_query(&mut text, task);
            push_last_part(&mut text, task.codebase);
            push_end_of_codebase(&mut text, task);
            push_part(&mut text, &filled(CACHED_REPAIR_QUERY, task));
            push_failure(&mut text, failure);
        }
    }
    match shown {
        Some((now, left)) => push_replacements(&mut text, &now, &left),
        None => push_replacements(&mut text, task.codebase, replacements),
    }
    text
}

/// The codebase as it is now, and the replacements of files that it does not show, or not so that their lines could not be
/// taken for a header.
fn with_replacements<'r>(
    codebase: &str,
    replacements: &[Replacement<'r>],
) -> (String, Vec<Replacement<'r>>) {
    let mut left: Vec<Replacement<'r>> = replacements.to_vec();
    let (mut now, mut at) = (String::with_capacity(codebase.len()), 0);
    let own_dashes = codebase.bytes().take_while(|byte| *byte == b'-').count();
    for (path, content) in rollup::files(codebase) {
        let fits = |one: &Replacement<'_>| match one {
            Replacement::File { path: other, data } => {
                *other == path && dashes([*data], FILE_HEADER) <= own_dashes
            }
            Replacement::Removed { path: other } => *other == path,
        };
        let Some(found) = left.iter().position(fits) else {
            continue;
        };
        let start = content.as_ptr().addr() - codebase.as_ptr().addr();
        let header = codebase
            .get(..start.saturating_sub(1))
            .and_then(|text| text.rfind('\n'))
            .map_or(0, |end| end + 1);
        match left.remove(found) {
            Replacement::File { data, .. } => {
                now.push_str(codebase.get(at..start).unwrap_or_default());
                push_last_part(&mut now, data);
            }
            Replacement::Removed { .. } => {
                now.push_str(codebase.get(at..header).unwrap_or_default())
            }
        }
        at = start + content.len();
    }
    now.push_str(codebase.get(at..).unwrap_or_default());
    (now, left)
}

/// A repair query with what it asks for and shows. One with edits asks for nothing else.
fn filled(query: &str, task: &Task<'_>) -> String {
    let answer = match task.form {
        Form::Files => "the whole content",
        Form::Edits => "edits, against its latest content,",
    };
    let (output, code) = match task.repair {
        Repair::Whole => ("the last output of build.sh", CODE_AS_IT_WAS),
        Repair::Focused => (
            "the failing part of the last output of build.sh",
            CODE_AS_IT_IS,
        ),
    };
    query
        .replace("{ANSWER}", answer)
        .replace("{OUTPUT}", output)
        .replace("{CODE}", code)
}

const CODE_AS_IT_WAS: &str = "the codebase as it was before any of your changes; and the latest\nversion of each file that you or \
build.sh have changed since";
const CODE_AS_IT_IS: &str = "and the codebase as it is now, with\nevery change of yours or of build.sh; changed files that it \
does not show follow it";

fn push_query(text: &mut String, task: &Task<'_>) -> Range<usize> {
    let query = text.len()..text.len() + task.query.len();
    push_part(text, task.query);
    query
}

/// Without it, what follows could be taken for the end of the last file.
fn push_end_of_codebase(text: &mut String, task: &Task<'_>) {
    let dashes = "-".repeat(dashes([task.codebase], END_OF_CODEBASE));
    push_part(text, &format!("\n{dashes}{END_OF_CODEBASE}---\n"));
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
                text.push_str(&format!("{dashes} FILE REMOVED {path} ---\n"))
            }
        }
    }
}

/// The number of bytes at the beginning that all prompts of a task have in common.
#[must_use]
pub fn stable_bytes(task: &Task<'_>) -> usize {
    match task.order {
        Order::Seed => rules_bytes(task),
        Order::Cache => initial(task).text.len() - CACHED_INITIAL_QUERY.len(),
    }
}

/// The number of bytes at the beginning that are a system instruction: none in [`Order::Seed`], whose prompt is one text.
#[must_use]
pub fn system_bytes(task: &Task<'_>) -> usize {
    match task.order {
        Order::Seed => 0,
        Order::Cache => rules_bytes(task),
    }
}

fn rules_bytes(task: &Task<'_>) -> usize {
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
}

#[cfg(test)]
mod tests;
