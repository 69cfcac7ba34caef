//! The content of the files that a run changed, by hash: from its pre-images, from its replies, from the disk and from
//! the commits that it made. A content that does not have the recorded hash is not taken for it, so it does not matter
//! what has become of a file since.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use code_commit_engine::{Action, Changed};
use code_commit_logging::{Redactor, sha256_hex};
use code_commit_names::ours::PHASE_CONFIG;
use code_commit_repo::{ChangedIn, WorkTree};
use code_commit_settings::phase::Config;
use code_commit_timeline::{Change, Contents, Run, Step, What};

use crate::changes::{MOST_BYTES, on_disk};
use crate::exit::Failure;
use crate::{records, text};

/// Adds them to the run, and the changes of its commits.
pub(super) fn add(run: &mut Run, folder: &Path, root: &Path, redactor: &Redactor) -> Result<(), Failure> {
    let mut store = Store { contents: Contents::default(), redactor };
    for step in &mut run.steps.all {
        let What::Event(event) = &mut step.what else { continue };
        let Some(commit) = &event.commit else { continue };
        let (place, prefix) = repository(event.repository.as_deref(), &run.kind, root);
        // An imported record names commits that are not here.
        let changed = WorkTree::at(&place).ok().and_then(|tree| tree.changed_in(commit).ok());
        event.changes =
            changed.unwrap_or_default().into_iter().map(|file| store.committed(file, &prefix)).collect();
    }
    if !run.steps.all.iter().all(|step| step.changes().is_empty()) || run.kind == "apply" {
        of_record(run, folder, root, &mut store)?;
    }
    run.contents = store.contents;
    Ok(())
}

fn of_record(run: &mut Run, folder: &Path, root: &Path, store: &mut Store<'_>) -> Result<(), Failure> {
    let unreadable = "its files still exist: look in the folder";
    let refused = |error: anyhow::Error| Failure::refused(error, unreadable);
    let rounds = code_commit_perform::undo_folders(folder).map_err(|error| refused(error.into()))?;
    let mut applied = Vec::new();
    for round in &rounds {
        let images = code_commit_apply::pre_images(std::slice::from_ref(round))
            .map_err(|error| refused(error.into()))?;
        for image in images {
            let content = image.content(MOST_BYTES).map_err(|error| refused(error.into()))?;
            content.into_iter().for_each(|content| drop(store.keep(content)));
            applied.push((image.path, image.sha256, image.left_as));
        }
    }
    if run.kind == "apply" {
        run.steps.all.push(written(applied));
    }
    let paths: BTreeSet<&str> =
        run.steps.all.iter().flat_map(Step::changes).map(|change| change.path.as_str()).collect();
    for path in paths {
        if let Some(content) = on_disk(&root.join(path)) {
            store.keep(content);
        }
    }
    of_replies(run, folder, store);
    Ok(())
}

/// `apply` has no journal: what it wrote is in the manifest of its pre-images.
fn written(files: Vec<(String, Option<String>, Option<String>)>) -> Step {
    let changes = files.into_iter().map(|(path, before, after)| change(path, before, after)).collect();
    let what = What::Change(Change { changes, ..Change::default() });
    Step { round: 0, from_ms: 0, to_ms: 0, what }
}

fn change(path: String, before_sha256: Option<String>, after_sha256: Option<String>) -> Changed {
    let action = if after_sha256.is_some() { Action::Write } else { Action::Delete };
    let created = before_sha256.is_none();
    Changed { path, action, before_sha256, after_sha256, created, before_mode: None, after_mode: None }
}

/// Whole files in replies, and files that were made from edits.
fn of_replies(run: &Run, folder: &Path, store: &mut Store<'_>) {
    let (record, limits) = (records::open(folder), code_commit_parser::proposal::Limits::default());
    for call in run.steps.calls() {
        let Some(text) = call.answer.as_ref().and_then(|stored| record.read(&stored.file).ok()) else {
            continue;
        };
        for file in code_commit_parser::parse(&text).iter().flat_map(code_commit_parser::Reply::files) {
            if let code_commit_parser::FileAction::Write(content) = file.action {
                store.keep(content.as_bytes().to_vec());
            }
        }
        for write in code_commit_parser::proposal::parse(text.as_bytes(), &limits)
            .iter()
            .flat_map(|proposal| &proposal.writes)
        {
            if let code_commit_parser::proposal::Change::Content(content) = &write.change {
                store.keep(content.as_bytes().to_vec());
            }
        }
    }
    let edited = code_commit_dir::list(folder).into_iter().flatten().flatten();
    let edited = edited.filter(|entry| entry.file_name().to_string_lossy().contains("-edited-"));
    edited.filter_map(|entry| on_disk(&entry.path())).for_each(|content| drop(store.keep(content)));
}

/// The repository that a commit is in, and what its paths begin with in the project.
fn repository(named: Option<&str>, kind: &str, root: &Path) -> (PathBuf, PathBuf) {
    let config = text::read(&root.join(PHASE_CONFIG)).ok().filter(|_| kind == "phase");
    let config = config.and_then(|text| Config::parse(text.as_deref()).ok());
    let below = match (named, config) {
        (Some("src"), Some(config)) => PathBuf::from(config.src),
        (Some("tests"), Some(config)) => PathBuf::from(config.tests),
        _ => PathBuf::new(),
    };
    (root.join(&below), below)
}

struct Store<'r> {
    contents: Contents,
    redactor: &'r Redactor,
}

impl Store<'_> {
    /// Keeps a content under its hash. Pre-images and files on disk are raw, so keys are redacted here.
    fn keep(&mut self, content: Vec<u8>) -> String {
        let sha256 = sha256_hex(&content);
        let shown = if self.redactor.finds_key(&content) {
            self.redactor.redact(&String::from_utf8_lossy(&content)).into_owned().into_bytes()
        } else {
            content
        };
        self.contents.0.insert(sha256.clone(), shown);
        sha256
    }

    fn committed(&mut self, file: ChangedIn, prefix: &Path) -> Changed {
        let path = code_commit_logging::name_as_text(&prefix.join(file.path)).into_owned();
        let before = file.before.map(|content| self.keep(content));
        let after = file.after.map(|content| self.keep(content));
        change(path, before, after)
    }
}
