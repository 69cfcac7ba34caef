//! The content of the files that a run changed, by hash: from its pre-images, from its replies, from the disk and from
//! the commits that it made. A content that does not have the recorded hash is not taken for it, so it does not matter
//! what has become of a file since.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use code_commit_apply::PreImage;
use code_commit_engine::{Action, Changed};
use code_commit_logging::{Redactor, sha256_hex};
use code_commit_names::ours::PHASE_CONFIG;
use code_commit_parser::proposal::{self, Edit, Limits, normalized_path};
use code_commit_parser::{FileAction, edit};
use code_commit_repo::{ChangedIn, Git};
use code_commit_settings::phase::Config;
use code_commit_timeline::{Change, Contents, Run, RunView, Step, What};

use crate::changes::{MOST_BYTES, on_disk};
use crate::exit::Failure;
use crate::{records, text};

/// Adds them to the run, and the changes of its commits.
pub(super) fn add(
    run: &mut Run,
    folder: &Path,
    root: &Path,
    redactor: &Redactor,
    git: Option<&Git>,
) -> Result<(), Failure> {
    let mut store = Store {
        contents: Contents::default(),
        redactor,
    };
    for step in &mut run.steps.all {
        let What::Remark(remark) = &mut step.what else {
            continue;
        };
        let Some(commit) = &remark.commit else {
            continue;
        };
        let (place, prefix) = repository(remark.repository.as_deref(), &run.kind, root);
        // A commit may be gone since.
        let changed = git.and_then(|git| git.at(place).changed_in(commit).ok());
        remark.changes = changed
            .unwrap_or_default()
            .into_iter()
            .map(|file| store.committed(file, &prefix))
            .collect();
    }
    if !run.steps.all.iter().all(|step| step.changes().is_empty()) || run.kind == "apply" {
        of_record(run, folder, root, &mut store)?;
    }
    run.contents = store.contents;
    Ok(())
}

fn of_record(
    run: &mut Run,
    folder: &Path,
    root: &Path,
    store: &mut Store<'_>,
) -> Result<(), Failure> {
    let unreadable = "its files still exist: look in the folder";
    let rounds = code_commit_perform::undo_folders(folder).map_err(anyhow::Error::from);
    let images = rounds.and_then(|rounds| store.pre_images(&rounds));
    let images = images.map_err(|error| Failure::refused(error, unreadable))?;
    if run.kind == "apply" {
        run.steps.all.push(written(images));
    }
    store.results(&run.steps, folder, root);
    Ok(())
}

/// `apply` has no journal: what it wrote is in the manifest of its pre-images.
fn written(images: Vec<PreImage>) -> Step {
    let changes = images
        .into_iter()
        .map(|of| Changed {
            before_mode: of.mode,
            after_mode: of.left_mode,
            ..change(of.path, of.sha256, of.left_as)
        })
        .collect();
    let what = What::Change(Change {
        changes,
        ..Change::default()
    });
    Step {
        round: 0,
        from_ms: 0,
        to_ms: 0,
        what,
    }
}

fn change(path: String, before_sha256: Option<String>, after_sha256: Option<String>) -> Changed {
    let action = if after_sha256.is_some() {
        Action::Write
    } else {
        Action::Delete
    };
    let created = before_sha256.is_none();
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

/// The repository that a commit is in, and what its paths begin with in the project.
fn repository(named: Option<&str>, kind: &str, root: &Path) -> (PathBuf, PathBuf) {
    let config = text::read(&root.join(PHASE_CONFIG))
        .ok()
        .filter(|_| kind == "phase");
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
            self.redactor
                .redact(&String::from_utf8_lossy(&content))
                .into_owned()
                .into_bytes()
        } else {
            content
        };
        self.contents.0.insert(sha256.clone(), shown);
        sha256
    }

    /// Keeps the files of these sets as they were before.
    fn pre_images(&mut self, rounds: &[PathBuf]) -> anyhow::Result<Vec<PreImage>> {
        let mut images = Vec::new();
        for round in rounds {
            images.extend(code_commit_apply::pre_images(std::slice::from_ref(round))?);
        }
        for image in &images {
            image
                .content(MOST_BYTES)?
                .into_iter()
                .for_each(|content| drop(self.keep(content)));
        }
        Ok(images)
    }

    /// Keeps what is on disk now, files that were made from edits, and what each reply makes of a file.
    fn results(&mut self, steps: &RunView, folder: &Path, root: &Path) {
        let paths = steps
            .all
            .iter()
            .flat_map(Step::changes)
            .map(|change| change.path.as_str());
        let paths: BTreeSet<&str> = paths.collect();
        let edited = code_commit_dir::list(folder)
            .into_iter()
            .flatten()
            .flatten();
        let edited =
            edited.filter(|entry| entry.file_name().to_string_lossy().contains("-edited-"));
        let files = paths
            .iter()
            .map(|path| root.join(path))
            .chain(edited.map(|entry| entry.path()));
        files
            .filter_map(|file| on_disk(&file))
            .for_each(|content| drop(self.keep(content)));
        let (record, mut reply) = (records::open(folder), None);
        for step in &steps.all {
            match &step.what {
                What::Call(call) => {
                    reply = call
                        .answer
                        .as_ref()
                        .and_then(|of| record.read(&of.file).ok());
                }
                What::Change(change) => {
                    let reply = reply.as_deref().unwrap_or_default();
                    for change in &change.changes {
                        let before = change
                            .before_sha256
                            .as_ref()
                            .and_then(|hash| self.contents.0.get(hash));
                        let before = before.map(Vec::as_slice).unwrap_or_default();
                        let proposed = proposed(reply, &change.path, before);
                        let made = [fenced(reply, &change.path), proposed]
                            .into_iter()
                            .flatten();
                        made.for_each(|content| drop(self.keep(content)));
                    }
                }
                What::Command(_) | What::Remark(_) => {}
            }
        }
    }

    fn committed(&mut self, file: ChangedIn, prefix: &Path) -> Changed {
        let path = code_commit_logging::name_as_text(&prefix.join(file.path)).into_owned();
        let before = file.before.map(|content| self.keep(content));
        let after = file.after.map(|content| self.keep(content));
        Changed {
            before_mode: file.before_mode,
            after_mode: file.after_mode,
            ..change(path, before, after)
        }
    }
}

/// The content that a reply in fences gives a file.
fn fenced(reply: &str, path: &str) -> Option<Vec<u8>> {
    let parsed = code_commit_parser::parse(reply).ok()?;
    let block = parsed.files().find(|file| file.path == path)?;
    if let FileAction::Write(content) = block.action {
        Some(content.as_bytes().to_vec())
    } else {
        None
    }
}

/// The content that a proposal in JSON gives a file.
fn proposed(reply: &str, path: &str, before: &[u8]) -> Option<Vec<u8>> {
    let proposal = proposal::parse(reply.as_bytes(), &Limits::default()).ok()?;
    let write = proposal
        .writes
        .iter()
        .find(|write| normalized_path(&write.path) == path)?;
    match &write.change {
        proposal::Change::Content(content) => Some(content.as_bytes().to_vec()),
        proposal::Change::Edits(edits) => {
            let before = std::str::from_utf8(before).ok()?;
            Some(
                edit::apply(before, edits.iter().map(Edit::hunk))
                    .ok()?
                    .into_bytes(),
            )
        }
    }
}
