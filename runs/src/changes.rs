//! Everything that a run changed: its pre-images compared with the disk.

use std::path::Path;

use anyhow::Context as _;
use similar::{ChangeTag, TextDiff};

use report::{BAD, FileStat, GOOD, Output, STRONG, printable};

/// One file, before and after the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// Relative to the root.
    pub path: String,
    before: Option<Vec<u8>>,
    after: Option<Vec<u8>>,
}

/// Every file that the run in this folder changed, by path.
pub fn of_run(root: &Path, run: &Path) -> anyhow::Result<Vec<FileChange>> {
    let rounds = perform::undo_folders(run)?;
    let before = apply::pre_images(&rounds).context("cannot read what the run has changed")?;
    let mut changes: Vec<FileChange> = before
        .into_iter()
        .map(|image| FileChange {
            after: on_disk(&root.join(&image.path)),
            path: image.path,
            before: image.content,
        })
        .filter(|change| change.before != change.after)
        .collect();
    changes.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(changes)
}

/// The content of a regular file; a build may have replaced it with a FIFO or a symlink.
pub fn on_disk(path: &Path) -> Option<Vec<u8>> {
    dir::read(path, u64::MAX, dir::Links::Refused).ok().flatten()
}

impl FileChange {
    /// Its entry of the summary.
    pub fn stat(&self) -> FileStat {
        let status = match (&self.before, &self.after) {
            (None, _) => 'A',
            (Some(_), None) => 'D',
            (Some(_), Some(_)) => 'M',
        };
        let (added, removed) = self.texts().map(count_lines).unzip();
        FileStat { path: self.path.clone(), status, added, removed, by_build: false, named_by_build: false }
    }

    /// A unified diff with git's headers.
    pub fn diff(&self) -> String {
        let Some((before, after)) = self.texts() else {
            return format!("Binary files a/{0} and b/{0} differ\n", self.path);
        };
        let side = |there: bool, letter: &str| {
            if there { format!("{letter}/{}", self.path) } else { "/dev/null".to_owned() }
        };
        let diff = TextDiff::from_lines(before, after);
        diff.unified_diff()
            .header(&side(self.before.is_some(), "a"), &side(self.after.is_some(), "b"))
            .to_string()
    }

    fn texts(&self) -> Option<(&str, &str)> {
        Some((text(self.before.as_ref())?, text(self.after.as_ref())?))
    }
}

/// Lines added and removed. A new or deleted file is counted without a diff: it may be large.
fn count_lines((before, after): (&str, &str)) -> (usize, usize) {
    if before.is_empty() || after.is_empty() {
        return (after.lines().count(), before.lines().count());
    }
    let diff = TextDiff::from_lines(before, after);
    let count = |tag| diff.iter_all_changes().filter(|change| change.tag() == tag).count();
    (count(ChangeTag::Insert), count(ChangeTag::Delete))
}

fn text(side: Option<&Vec<u8>>) -> Option<&str> {
    side.map_or(Some(""), |bytes| std::str::from_utf8(bytes).ok())
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
