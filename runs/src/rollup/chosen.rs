//! What a roll-up with a budget shows, and why.

use std::path::{Path, PathBuf};

use code_commit_prompt::rollup::Builder;
use code_commit_prompt::select::{File, Form, Past, Selection, bytes, listed, select, tokens};
use code_commit_report::phrases;
use serde::{Deserialize, Serialize};

use super::Sources;
use crate::trusted::Trusted;

/// The commits that are searched for such messages and for what changes together.
const COMMITS: u32 = 1_000;
/// Bytes of a line of the list besides the path.
const LINE: usize = 24;
/// Bytes of the list besides its lines, rather too many than too few.
const FRAME: usize = 150;
/// Bytes of a file's header and of the line behind it, besides its path and dashes.
pub(super) const HEADER: usize = 14;

/// A file that is shown, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chosen {
    /// Relative to the root.
    pub path: String,
    /// What is shown of it: `whole` or `outline`.
    #[serde(default = "whole")]
    pub form: String,
    /// The reason.
    pub why: String,
    /// Its tokens as shown, rather too many than too few.
    pub tokens: u64,
}

impl Chosen {
    /// A file of a roll-up that shows all of them.
    pub fn of_all(path: &str, text: &str) -> Self {
        let (path, why) = (path.to_owned(), "all files fit the budget".to_owned());
        Self {
            path,
            form: whole(),
            why,
            tokens: tokens(text.len()),
        }
    }
}

/// Adds the files that matter most for the query, whole or as outlines, and the list of the others. Gives what is
/// shown, and what the query names and does not fit, with the reason.
pub(super) fn add(
    builder: &mut Builder,
    files: &[(String, String)],
    sources: Sources<'_>,
    budget: u64,
) -> (Vec<Chosen>, Vec<(String, String)>) {
    let everything = files
        .iter()
        .map(|(path, _)| tokens(path.len() + LINE))
        .sum::<u64>()
        + tokens(FRAME);
    let for_list = everything.min(listed(budget));
    let candidates: Vec<File<'_>> = files
        .iter()
        .map(|(path, text)| File { path, text })
        .collect();
    let frame =
        HEADER + code_commit_prompt::rollup::dashes_of(files.iter().map(|(_, text)| text.as_str()));
    let selection = select(
        &candidates,
        &past(sources),
        sources.query,
        budget - for_list,
        frame,
    );
    let is_shown = show(builder, files, &selection);
    let others = files.iter().zip(is_shown).filter(|(_, is_shown)| !is_shown);
    builder.list(
        others.map(|((path, text), _)| (path.as_str(), text.len())),
        bytes(for_list),
    );
    let path = |at: usize| {
        files
            .get(at)
            .map_or_else(String::new, |(path, _)| path.clone())
    };
    let chosen = selection.shown.iter().map(|shown| Chosen {
        path: path(shown.file),
        form: if shown.form == Form::Whole {
            whole()
        } else {
            "outline".to_owned()
        },
        why: shown.why.reason().to_owned(),
        tokens: shown.tokens,
    });
    let reason =
        |tokens: &u64| format!("{} do not fit the budget", phrases::count(*tokens, "token"));
    (
        chosen.collect(),
        selection
            .too_large
            .iter()
            .map(|(at, tokens)| (path(*at), reason(tokens)))
            .collect(),
    )
}

/// Adds the whole files in git's order, then the outlines; tells which files are shown.
fn show(builder: &mut Builder, files: &[(String, String)], selection: &Selection) -> Vec<bool> {
    let mut forms: Vec<Option<&Form>> = vec![None; files.len()];
    for shown in &selection.shown {
        if let Some(form) = forms.get_mut(shown.file) {
            *form = Some(&shown.form);
        }
    }
    for ((path, text), _) in files
        .iter()
        .zip(&forms)
        .filter(|(_, form)| **form == Some(&Form::Whole))
    {
        // Its text was checked when it was read.
        let _ = builder.add(path, text.as_bytes());
    }
    for ((path, _), form) in files.iter().zip(&forms) {
        if let Some(Form::Outline(outline)) = form {
            builder.outline(path, outline);
        }
    }
    forms.iter().map(Option::is_some).collect()
}

fn whole() -> String {
    "whole".to_owned()
}

/// What was changed: what is not committed, then commit by commit. Without a git program nothing is known of either.
fn past(sources: Sources<'_>) -> Vec<Past> {
    let Sources {
        tree, environment, ..
    } = sources;
    let below = tree
        .root()
        .strip_prefix(tree.top())
        .unwrap_or(Path::new(""));
    let names = |paths: Vec<PathBuf>| -> Vec<String> {
        paths
            .into_iter()
            .filter_map(|path| path.into_os_string().into_string().ok())
            .collect()
    };
    let git = Trusted::of(tree, environment).git(tree.top()).ok();
    let status = git.as_ref().and_then(|git| tree.status(git).ok());
    let dirty = Past {
        message: String::new(),
        files: names(status.unwrap_or_default().dirty),
    };
    let commits = git
        .and_then(|git| git.last_commits(below, COMMITS).ok())
        .unwrap_or_default();
    let commits = commits.into_iter().map(|(message, files)| Past {
        message,
        files: names(files),
    });
    std::iter::once(dirty).chain(commits).collect()
}
