//! Lists of gitignore patterns, and what they say of a path.

use gix::bstr::{BStr, ByteSlice};
use gix::glob::pattern::Case;
use gix::glob::wildmatch::Mode;

/// Whether a pattern that ends in a slash may match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Folder,
}

/// The patterns of one source, in their order; the last that matches decides.
#[derive(Debug, Default, Clone)]
pub(crate) struct Patterns(Vec<gix::glob::Pattern>);

impl Patterns {
    /// Parses the content of a `.gitignore` file.
    ///
    /// Git strips a CR before the end of the file even where the last line feed is missing; gix needs the line feed.
    pub(crate) fn parse(content: &[u8]) -> Self {
        let mut content = content.to_vec();
        content.push(b'\n');
        Patterns(gix::ignore::parse(&content, false).map(|(pattern, _, _)| pattern).collect())
    }

    /// `Some(true)`: ignored; `Some(false)`: taken back by a `!` pattern; `None`: no pattern speaks of it.
    ///
    /// `path` is relative to the folder that the patterns stand in.
    pub(crate) fn verdict(&self, path: &str, kind: Kind, case: Case) -> Option<bool> {
        let basename = path.rfind('/').map(|slash| slash + 1);
        let path = BStr::new(path);
        let is_dir = Some(kind == Kind::Folder);
        self.0
            .iter()
            .rev()
            .find(|p| {
                p.matches_repo_relative_path(path, basename, is_dir, case, Mode::NO_MATCH_SLASH_LITERAL)
            })
            .map(|pattern| !pattern.is_negative())
    }

    /// Whether the path, or a folder on its way, matches: what lies below a matched folder cannot be taken back.
    pub(crate) fn covers(&self, path: &str, kind: Kind, case: Case) -> bool {
        folders(path).any(|folder| self.verdict(folder, Kind::Folder, case) == Some(true))
            || self.verdict(path, kind, case) == Some(true)
    }
}

/// The folders on the way to `path`, the outermost first: `a/b/c` gives `a`, `a/b`.
pub(crate) fn folders(path: &str) -> impl DoubleEndedIterator<Item = &str> {
    path.as_bytes().find_iter("/").filter_map(|slash| path.get(..slash)).collect::<Vec<_>>().into_iter()
}
