//! Whether the code roll-up still shows the project as it is.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use dir::Links;
use repo::Look;
use report::phrases;

/// So many files are named.
const NAMED_FILES: usize = 5;
/// Of so many files that are younger than the roll-up it is asked whether it holds them, if each is no larger than this.
const MOST_COMPARED: usize = 200;
const MOST_BYTES: u64 = 1 << 20;

/// The code roll-up, as the model is shown it.
pub struct Rollup<'t> {
    path: String,
    text: &'t str,
    made: Option<SystemTime>,
}

impl<'t> Rollup<'t> {
    /// The one at `path`, relative to the root.
    pub fn at(root: &Path, path: String, text: &'t str) -> Self {
        let made = fs::metadata(root.join(&path)).and_then(|found| found.modified()).ok();
        Self { path, text, made }
    }

    /// When it was made, for the look at the tree.
    pub fn made(&self) -> Option<SystemTime> {
        self.made
    }

    /// One sentence where the model is shown files as they were. One that the roll-up does not name is no part of it.
    pub fn is_older(&self, root: &Path, look: &Look) -> Option<String> {
        let is_younger = |path: &&PathBuf| {
            let found = root.join(path).symlink_metadata().ok();
            // Clocks of disks are coarse: what is as old as the roll-up may have come after it.
            found.is_some_and(|found| found.is_file() && found.modified().ok() >= self.made)
        };
        let younger = look.since.iter().chain(&look.dirty).filter(is_younger).take(MOST_COMPARED);
        let younger = younger.filter(|path| path.to_str().is_some_and(|path| self.text.contains(path)));
        let mut younger: Vec<String> = younger
            .filter(|path| !self.holds(&root.join(path)))
            .map(|path| path.display().to_string())
            .collect();
        younger.sort();
        younger.dedup();
        let names = (!younger.is_empty()).then(|| phrases::first(&younger, NAMED_FILES))?;
        let path = &self.path;
        Some(format!(
            "{path} is older than {names}: the model sees what was there before; code-commit rollup makes it anew"
        ))
    }

    /// Or shows by right without it: what is no text.
    fn holds(&self, path: &Path) -> bool {
        let read = dir::read(path, MOST_BYTES, Links::Refused);
        let text = read.ok().flatten().and_then(|bytes| String::from_utf8(bytes).ok());
        text.is_none_or(|text| text.contains('\0') || self.text.contains(text.trim_end_matches('\n')))
    }
}
