//! Everything that a run changed: its pre-images compared with the disk.

use std::os::unix::fs::MetadataExt as _;
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
        let contents = self.contents();
        let contents = contents
            .as_ref()
            .map(|(before, after)| (before.as_slice(), after.as_slice()));
        stat(&self.path, status, contents)
    }

    /// A diff that `git apply` takes.
    pub fn diff(&self) -> String {
        let Some((before, after)) = self.contents() else {
            return too_long(&self.path);
        };
        let now = self.after.symlink_metadata();
        let old = self.before.sha256.is_some().then(|| Side {
            content: &before,
            mode: self.before.mode,
        });
        let new = self.is_there.then(|| Side {
            content: &after,
            mode: now.ok().map(|now| now.mode()),
        });
        patch(&self.path, old, new)
    }

    /// Both sides, empty where there is no file; `None` if one is too long.
    fn contents(&self) -> Option<(Vec<u8>, Vec<u8>)> {
        let before = match self.before.sha256 {
            Some(_) => self.before.content(MOST_BYTES).ok()??,
            None => Vec::new(),
        };
        let after = if self.is_there {
            on_disk(&self.after)?
        } else {
            Vec::new()
        };
        Some((before, after))
    }
}

/// The change of a file that a record holds, as [`FileChange::diff`].
pub fn of_edit(edit: &FileEdit<'_>, contents: &Contents) -> String {
    let Some((before, after)) = contents.both(edit.before, edit.after) else {
        return format!("{}: its content is not in the record\n", edit.path);
    };
    let old = edit.before.map(|_| Side {
        content: before,
        mode: edit.before_mode,
    });
    let new = edit.after.map(|_| Side {
        content: after,
        mode: edit.after_mode,
    });
    patch(edit.path, old, new)
}

/// As [`FileChange::stat`].
pub fn stat_of_edit(edit: &FileEdit<'_>, contents: &Contents) -> FileStat {
    let contents = contents.both(edit.before, edit.after);
    stat(edit.path, edit.letter(), contents)
}

fn stat(path: &str, status: char, contents: Option<(&[u8], &[u8])>) -> FileStat {
    let text = std::str::from_utf8;
    let texts = contents.and_then(|(before, after)| text(before).ok().zip(text(after).ok()));
    let (added, removed) = texts.map(count_lines).unzip();
    FileStat {
        path: path.to_owned(),
        status,
        added,
        removed,
        by_build: false,
        named_by_build: false,
    }
}

fn too_long(path: &str) -> String {
    format!("Binary files a/{path} and b/{path} differ\n")
}

/// A file on one side of a diff.
#[derive(Clone, Copy)]
struct Side<'t> {
    content: &'t [u8],
    /// Its permission bits, if they are known.
    mode: Option<u32>,
}

impl Side<'_> {
    fn mode(self) -> &'static str {
        match self.mode {
            Some(mode) if mode & 0o100 != 0 => "100755",
            Some(_) | None => "100644",
        }
    }
}

/// A diff as git writes it; `None` stands for no file.
fn patch(path: &str, old: Option<Side<'_>>, new: Option<Side<'_>>) -> String {
    let (a, b) = (quoted("a/", path), quoted("b/", path));
    let modes = match (old, new) {
        (Some(old), Some(new)) if old.mode() != new.mode() => {
            format!("old mode {}\nnew mode {}\n", old.mode(), new.mode())
        }
        (None, Some(new)) => format!("new file mode {}\n", new.mode()),
        (Some(old), None) => format!("deleted file mode {}\n", old.mode()),
        (Some(_), Some(_)) | (None, None) => String::new(),
    };
    let header = format!("diff --git {a} {b}\n{modes}");
    let [old_bytes, new_bytes] = [old, new].map(|side| side.map(|side| side.content));
    let (before, after) = (old_bytes.unwrap_or_default(), new_bytes.unwrap_or_default());
    if before == after {
        return header;
    }
    let (Ok(before), Ok(after)) = (std::str::from_utf8(before), std::str::from_utf8(after)) else {
        return header + &code_commit_repo::binary_patch(old_bytes, new_bytes);
    };
    let none = || "/dev/null".to_owned();
    let (a, b) = (old.map_or_else(none, |_| a), new.map_or_else(none, |_| b));
    format!("{header}--- {a}\n+++ {b}\n{}", hunks(before, after))
}

/// A path as a patch has it: in quotes if a line could not hold it.
fn quoted(prefix: &str, path: &str) -> String {
    let is_special = |c: char| c.is_ascii_control() || matches!(c, '"' | '\\');
    if !path.contains(is_special) {
        return format!("{prefix}{path}");
    }
    let escape = |c: char| {
        if is_special(c) {
            format!("\\{:03o}", u32::from(c))
        } else {
            c.to_string()
        }
    };
    format!(
        "\"{prefix}{}\"",
        path.chars().map(escape).collect::<String>()
    )
}

/// A carriage return is a character like others: git ends lines at newlines alone.
fn hunks(before: &str, after: &str) -> String {
    let lines = |text| str::split_inclusive(text, '\n').collect::<Vec<_>>();
    let (before, after) = (lines(before), lines(after));
    let diff = TextDiff::from_slices(&before, &after);
    let mut text = String::new();
    for hunk in diff.unified_diff().iter_hunks() {
        text.push_str(&format!("{}\n", hunk.header()));
        for change in hunk.iter_changes() {
            text.push_str(&format!("{}{}", change.tag(), change.value()));
            if !change.value().ends_with('\n') {
                text.push_str("\n\\ No newline at end of file\n");
            }
        }
    }
    text
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
