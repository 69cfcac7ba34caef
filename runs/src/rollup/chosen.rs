//! What a roll-up with a budget shows, and why.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use code_commit_prompt::rollup::Builder;
use code_commit_prompt::select::{
    Candidates, Form, Past, Selection, bytes, listed, select, tokens,
};
use code_commit_repo::WorkTree;
use code_commit_report::phrases;
use code_commit_settings::Environment;
use serde::{Deserialize, Serialize};

use super::Sources;
use super::gathered::Gathered;
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
    /// What is shown of it: `whole`, `outline` or `excerpt`.
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
    gathered: &mut Gathered,
    sources: Sources<'_>,
    budget: u64,
) -> (Vec<Chosen>, Vec<(String, String)>) {
    let ask = || History::ask(sources.tree, sources.environment);
    let past = gathered.history.take().unwrap_or_else(ask).past;
    let (gathered, files) = (&*gathered, &gathered.files);
    let everything = files
        .iter()
        .map(|file| tokens(file.path.len() + LINE))
        .sum::<u64>()
        + tokens(FRAME);
    let for_list = everything.min(listed(budget));
    let candidates = Candidates {
        files,
        words: &gathered.words,
        text: &|at| gathered.text(at).unwrap_or_default(),
    };
    let dashes = files.iter().map(|file| file.content.dashes).max();
    let frame = HEADER + dashes.unwrap_or_default();
    let selection = select(candidates, &past, sources.query, budget - for_list, frame);
    let is_shown = show(builder, gathered, &selection);
    let others = files.iter().zip(is_shown).filter(|(_, is_shown)| !is_shown);
    builder.list(
        others.map(|(file, _)| (file.path.as_str(), file.content.bytes)),
        bytes(for_list),
    );
    let path = |at: usize| {
        files
            .get(at)
            .map_or_else(String::new, |file| file.path.clone())
    };
    let chosen = selection.shown.iter().map(|shown| Chosen {
        path: path(shown.file),
        form: match shown.form {
            Form::Whole => whole(),
            Form::Outline(_) => "outline".to_owned(),
            Form::Excerpt(_) => "excerpt".to_owned(),
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
fn show(builder: &mut Builder, gathered: &Gathered, selection: &Selection) -> Vec<bool> {
    let files = &gathered.files;
    let mut forms: Vec<Option<&Form>> = vec![None; files.len()];
    for shown in &selection.shown {
        if let Some(form) = forms.get_mut(shown.file) {
            *form = Some(&shown.form);
        }
    }
    for (at, (file, form)) in files.iter().zip(&forms).enumerate() {
        if *form == Some(&Form::Whole)
            && let Some(text) = gathered.text(at)
        {
            // Its text was checked when it was counted.
            let _ = builder.add(&file.path, text.as_bytes());
        }
    }
    for (file, form) in files.iter().zip(&forms) {
        match form {
            Some(Form::Outline(outline)) => builder.outline(&file.path, outline),
            Some(Form::Excerpt(excerpt)) => builder.excerpt(&file.path, excerpt),
            Some(Form::Whole) | None => (),
        }
    }
    forms.iter().map(Option::is_some).collect()
}

fn whole() -> String {
    "whole".to_owned()
}

/// What git knows of the past.
#[derive(Debug, Default)]
pub(super) struct History {
    /// What is not committed, then commit by commit.
    past: Vec<Past>,
    /// Whether git could tell what is not committed.
    knows_dirty: bool,
}

impl History {
    /// Without a git program nothing is known.
    fn ask(tree: &WorkTree, environment: &Environment) -> Self {
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
        let changed = git.as_ref().and_then(|git| tree.changed(git).ok());
        let knows_dirty = changed.is_some();
        let dirty = (String::new(), changed.unwrap_or_default());
        let commits = git.and_then(|git| git.last_commits(below, COMMITS).ok());
        let all = std::iter::once(dirty).chain(commits.unwrap_or_default());
        let past = all.map(|(message, files)| Past {
            message,
            files: names(files),
        });
        Self {
            past: past.collect(),
            knows_dirty,
        }
    }

    /// In a large tree that takes as long as everything else.
    pub(super) fn ask_meanwhile(sources: Sources<'_>) -> JoinHandle<Self> {
        let (tree, environment) = (sources.tree.clone(), sources.environment.clone());
        std::thread::spawn(move || Self::ask(&tree, &environment))
    }

    /// The files whose content git does not know, if it could tell.
    pub(super) fn dirty(&self) -> Option<HashSet<&str>> {
        let dirty = self.past.first().filter(|_| self.knows_dirty)?;
        Some(dirty.files.iter().map(String::as_str).collect())
    }
}
