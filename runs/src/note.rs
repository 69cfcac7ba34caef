//! The note on a commit that a run makes: an Agent Trace record, which links each line to the run.
//!
//! It is written before the commit is an answer in the journal. A run that is killed in between finds its commit again and
//! writes the same note again.

use anyhow::Context as _;
use code_commit_engine::{Action, Changed, Problem};
use code_commit_logging::{RunFolder, name_as_text, sha256_hex};
use code_commit_perform::{Past, RUN_JSON};
use code_commit_repo::{ChangedIn, Git, Identity};
use code_commit_timeline::{Event, Run, Step, Tone, What};
use serde_json::Value;

/// Git's own commands show it with `--notes=code-commit`.
pub const REFERENCE: &str = "refs/notes/code-commit";
/// Where a record has our own data.
const ABOUT: &str = "/metadata/dev.code-commit";

/// Notes in the repository of `git` which lines of a commit the run in this folder wrote. A commit without such lines has
/// no note.
pub(crate) fn commit(
    git: &Git,
    folder: &RunFolder,
    commit: &str,
    fallback: Option<Identity<'_>>,
) -> Result<(), Problem> {
    let noted = note(git, folder, commit, fallback).context("the commit has no note");
    noted.map_err(|error| Problem::new("no-note", format!("{error:#}")))
}

fn note(
    git: &Git,
    folder: &RunFolder,
    commit: &str,
    fallback: Option<Identity<'_>>,
) -> anyhow::Result<()> {
    let plan: Value = folder
        .read(RUN_JSON)
        .ok()
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default();
    let name = folder
        .path()
        .file_name()
        .unwrap_or_default()
        .to_string_lossy();
    let mut run = Run::planned(&name, &plan);
    run.steps = Past::read(folder.path())?.steps();
    let changed = git.tree()?.changed_in(commit)?;
    let changes = changed
        .into_iter()
        .map(|file| change(&mut run, file))
        .collect();
    run.steps
        .all
        .push(committed(commit, changes, run.steps.to_ms));
    let is_its =
        |record: &Value| record.pointer("/vcs/revision").and_then(Value::as_str) == Some(commit);
    let records = code_commit_trace::agent_trace(&run, None);
    let Some(mut record) = records.into_iter().find(is_its) else {
        return Ok(());
    };
    // A commit with the same change, made anew elsewhere, is known by it.
    let about = record.pointer_mut(ABOUT).and_then(Value::as_object_mut);
    if let (Some(about), Some(patch_id)) = (about, git.patch_id(commit)?) {
        about.insert("patch_id".to_owned(), patch_id.into());
    }
    Ok(git.note(commit, REFERENCE, &record.to_string(), fallback)?)
}

fn change(run: &mut Run, file: ChangedIn) -> Changed {
    let mut keep = |content: Vec<u8>| {
        let sha256 = sha256_hex(&content);
        run.contents.0.insert(sha256.clone(), content);
        sha256
    };
    let (before_sha256, after_sha256) = (file.before.map(&mut keep), file.after.map(&mut keep));
    let action = if after_sha256.is_some() {
        Action::Write
    } else {
        Action::Delete
    };
    let (path, created) = (
        name_as_text(&file.path).into_owned(),
        before_sha256.is_none(),
    );
    Changed {
        path,
        action,
        before_sha256,
        after_sha256,
        created,
        before_mode: None,
        after_mode: None,
    }
}

fn committed(commit: &str, changes: Vec<Changed>, at_ms: i64) -> Step {
    let what = What::Event(Event {
        tone: Tone::Good,
        commit: Some(commit.to_owned()),
        changes,
        ..Event::default()
    });
    Step {
        round: 0,
        from_ms: at_ms,
        to_ms: at_ms,
        what,
    }
}
