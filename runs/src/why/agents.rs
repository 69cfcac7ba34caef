//! Commits that runs of phases and specs have made: what agents write is known by its commit alone.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use code_commit_engine::Turned;
use code_commit_perform::JOURNAL;
use code_commit_repo::{Source, WorkTree};
use code_commit_timeline::{Run as Facts, What};

use crate::chronicle::Found;
use crate::records;
use crate::registry::Known;

/// What a commit follows in a journal.
const COMMIT: &str = "\"commit\":\"";

/// A commit of a run, with the last turn before it.
#[derive(Debug)]
pub(super) struct Commit {
    pub folder: PathBuf,
    pub facts: Rc<Facts>,
    pub turn: u32,
    pub role: String,
    pub model: Option<String>,
    id: String,
    /// When it was written, and the first line of its message: a rebase keeps both.
    written: Option<(i64, String)>,
}

impl Commit {
    /// Whether these lines came with it.
    pub(super) fn is(&self, source: &Source) -> bool {
        is_commit(source, &self.id, self.written.as_ref())
    }
}

fn is_commit(source: &Source, id: &str, written: Option<&(i64, String)>) -> bool {
    let Some(commit) = &source.commit else {
        return false;
    };
    let is_written =
        |(time, summary): &(i64, String)| (*time, summary) == (source.author_time, &source.summary);
    commit == id || written.is_some_and(is_written)
}

/// Those of these runs that lines of the file came with.
pub(super) fn commits(
    known: &[Known],
    root: &Path,
    tree: &WorkTree,
    sources: &[Source],
) -> Vec<Commit> {
    let mut commits: Vec<Commit> = known
        .iter()
        .cloned()
        .flat_map(|known| of_run(&Found::of(known, root), tree, sources))
        .collect();
    commits.retain(|commit| sources.iter().any(|source| commit.is(source)));
    commits
}

/// None if its record was changed.
fn of_run(found: &Found, tree: &WorkTree, sources: &[Source]) -> Vec<Commit> {
    let run = &found.path;
    // Before the whole record is checked, which takes much longer.
    let is_asked = |id: &str| {
        let written = tree.written(id);
        sources
            .iter()
            .any(|source| is_commit(source, id, written.as_ref()))
    };
    let text = std::fs::read_to_string(run.join(JOURNAL)).unwrap_or_default();
    let mut ids = text
        .split(COMMIT)
        .skip(1)
        .filter_map(|rest| rest.split('"').next());
    let Some(past) = ids
        .any(is_asked)
        .then(|| records::intact(&records::open(run)).ok())
        .flatten()
    else {
        return Vec::new();
    };
    let facts = Rc::new(found.facts());
    let (mut commits, mut turn) = (Vec::new(), None);
    for step in past.steps_held().all {
        match step.what {
            What::Call(call) => turn = call.turned,
            What::Event(event) => {
                commits.extend(event.commit.zip(turn.as_ref()).map(|(id, turn)| Commit {
                    folder: run.clone(),
                    facts: Rc::clone(&facts),
                    turn: turn.number,
                    role: turn.role.clone(),
                    model: model_of(turn),
                    written: tree.written(&id),
                    id,
                }));
            }
            What::Change(_) | What::Command(_) => {}
        }
    }
    commits
}

/// The model that wrote most; others are asked for small things.
fn model_of(turn: &Turned) -> Option<String> {
    turn.usage
        .iter()
        .max_by_key(|usage| usage.usage.output_tokens)
        .map(|usage| usage.model.clone())
}
