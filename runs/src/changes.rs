//! Everything that a run changed: its pre-images compared with the disk.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use code_commit_apply::PreImage;
use code_commit_perform::sha256_on_disk;
use similar::{ChangeTag, TextDiff};

use code_commit_report::{BAD, FileStat, GOOD, Output, STRONG, printable};
use code_commit_timeline::{Contents, FileEdit};

/// One file, before and after the run. Its content is read when it is asked for: all of them together may be larger
/// than the memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// Relative to the root.
    pub path: String,
    before: PreImage,
    after: PathBuf,
    is_there: bool,
}

/// A longer file is shown like one that is not text.
pub(crate) const MOST_BYTES: u64 = 64 << 20;

/// Every file that the run in this folder changed, by path.
pub fn of_run(root: &Path, run: &Path) -> anyhow::Result<Vec<FileChange>> {
    let rounds = code_commit_perform::undo_folders(run)?;
    let before =
        code_commit_apply::pre_images(&rounds).context("cannot read what the run has changed")?;
    let mut changes: Vec<FileChange> = before
        .into_iter()
        .filter_map(|before| change(root, before))
        .collect();
    changes.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(changes)
}

/// `None` if the file is as it was.
fn change(root: &Path, before: PreImage) -> Option<FileChange> {
    let after = root.join(&before.path);
    let now = sha256_on_disk(&after);
    let (path, is_there) = (before.path.clone(), now.is_some());
    (now != before.sha256).then_some(FileChange {
        path,
        before,
        after,
        is_there,
    })
}

/// The content of a regular file, unless it is too long to be shown.
pub fn on_disk(path: &Path) -> Option<Vec<u8>> {
    code_commit_dir::read(path, MOST_BYTES, code_commit_dir::Links::Refused)
        .ok()
        .flatten()
}

impl FileChange {
    /// Its entry of the summary.
    pub fn stat(&self) -> FileStat {
        let status = match (&self.before.sha256, self.is_there) {
            (None, _) => 'A',
            (Some(_), false) => 'D',
            (Some(_), true) => 'M',
        };
        let texts = self.texts();
        let texts = texts
            .as_ref()
            .map(|(before, after)| (before.as_str(), after.as_str()));
        let (added, removed) = texts.map(count_lines).unzip();
        FileStat {
            path: self.path.clone(),
            status,
            added,
            removed,
            by_build: false,
            named_by_build: false,
        }
    }

    /// A unified diff with git's headers.
    pub fn diff(&self) -> String {
        let texts = self.texts();
        let texts = texts
            .as_ref()
            .map(|(before, after)| (before.as_str(), after.as_str()));
        unified(
            &self.path,
            [self.before.sha256.is_some(), self.is_there],
            texts,
        )
    }

    /// Both sides, empty where there is no file.
    fn texts(&self) -> Option<(String, String)> {
        let before = match self.before.sha256 {
            Some(_) => self.before.content(MOST_BYTES).ok()??,
            None => Vec::new(),
        };
        let after = if self.is_there {
            on_disk(&self.after)?
        } else {
            Vec::new()
        };
        Some((
            String::from_utf8(before).ok()?,
            String::from_utf8(after).ok()?,
        ))
    }
}

/// The change of a file that a record holds, as [`FileChange::diff`].
pub fn of_edit(edit: &FileEdit<'_>, contents: &Contents) -> String {
    let is_there = [edit.before, edit.after].map(|side| side.is_some());
    let Some((before, after)) = contents.both(edit.before, edit.after) else {
        return format!("{}: the record does not hold its content\n", edit.path);
    };
    let texts = std::str::from_utf8(before)
        .ok()
        .zip(std::str::from_utf8(after).ok());
    unified(edit.path, is_there, texts)
}

/// `is_there` says of either side whether there is a file; no texts are those of a file that is not text.
fn unified(path: &str, is_there: [bool; 2], texts: Option<(&str, &str)>) -> String {
    let Some((before, after)) = texts else {
        return format!("Binary files a/{path} and b/{path} differ\n");
    };
    let [was_there, is_there] = is_there;
    let side = |there: bool, letter: &str| {
        if there {
            format!("{letter}/{path}")
        } else {
            "/dev/null".to_owned()
        }
    };
    let diff = TextDiff::from_lines(before, after);
    diff.unified_diff()
        .header(&side(was_there, "a"), &side(is_there, "b"))
        .to_string()
}

/// Lines added and removed. A new or deleted file is counted without a diff: it may be large.
fn count_lines((before, after): (&str, &str)) -> (usize, usize) {
    if before.is_empty() || after.is_empty() {
        return (after.lines().count(), before.lines().count());
    }
    let diff = TextDiff::from_lines(before, after);
    let count = |tag| {
        diff.iter_all_changes()
            .filter(|change| change.tag() == tag)
            .count()
    };
    (count(ChangeTag::Insert), count(ChangeTag::Delete))
}

/// A unified diff in git's colours.
pub fn coloured(diff: &str, output: &Output) -> String {
    diff.lines()
        .map(|line| {
            let text = printable(line);
            match line.as_bytes().first() {
                Some(b'+') if !line.starts_with("+++") => output.paint(GOOD, &text) + "\n",
                Some(b'-') if !line.starts_with("---") => output.paint(BAD, &text) + "\n",
                Some(b'-' | b'+') => output.paint(STRONG, &text) + "\n",
                _ => text + "\n",
            }
        })
        .collect()
}
