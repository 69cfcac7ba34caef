//! Whether the code roll-up is still up to date.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use code_commit_dir::Links;
use code_commit_repo::Index;
use code_commit_report::phrases;

/// Files named in a message.
const NAMED_FILES: usize = 5;
/// Compare at most this many files newer than the roll-up with its content, and only if each is no larger
/// than this.
const MOST_COMPARED: usize = 200;
const MOST_BYTES: u64 = 1 << 20;

/// The code roll-up, as the model sees it.
pub struct Rollup<'t> {
    path: String,
    text: &'t str,
    made: Option<SystemTime>,
}

impl<'t> Rollup<'t> {
    /// The one at `path`, relative to the root.
    pub fn at(root: &Path, path: String, text: &'t str) -> Self {
        let made = fs::metadata(root.join(&path))
            .and_then(|found| found.modified())
            .ok();
        Self { path, text, made }
    }

    /// A warning if the model would see outdated versions of files that may have changed. Files that the roll-up does
    /// not name are not part of it.
    pub fn is_older(&self, root: &Path, index: &Index, dirty: &[PathBuf]) -> Option<String> {
        let is_younger = |path: &&Path| {
            let found = root.join(path).symlink_metadata().ok();
            // File clocks are coarse: a file as old as the roll-up may be newer.
            found.is_some_and(|found| found.is_file() && found.modified().ok() >= self.made)
        };
        let is_later = |time| self.made.is_some_and(|made| time > made);
        let committed = index.iter().filter(|one| is_later(one.modified));
        let changed = committed.map(|one| one.path);
        let changed = changed.chain(dirty.iter().map(PathBuf::as_path));
        let younger = changed.filter(is_younger).take(MOST_COMPARED);
        let younger =
            younger.filter(|path| path.to_str().is_some_and(|path| self.text.contains(path)));
        let mut younger: Vec<String> = younger
            .filter(|path| !self.holds(&root.join(path)))
            .map(|path| path.display().to_string())
            .collect();
        younger.sort();
        younger.dedup();
        let names = (!younger.is_empty()).then(|| phrases::first(&younger, NAMED_FILES))?;
        let path = &self.path;
        Some(format!(
            "{path} is older than {names}: the model sees an old version; update it: code-commit rollup"
        ))
    }

    /// Whether the roll-up is right about the file, which may also mean omitting it because it is not text.
    fn holds(&self, path: &Path) -> bool {
        let read = code_commit_dir::read(path, MOST_BYTES, Links::Refused);
        let text = read
            .ok()
            .flatten()
            .and_then(|bytes| String::from_utf8(bytes).ok());
        text.is_none_or(|text| {
            text.contains('\0') || self.text.contains(text.trim_end_matches('\n'))
        })
    }
}
