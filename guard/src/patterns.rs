//! Lists of gitignore patterns, and which paths they match; those that protect files, and those that choose them.

use bstr::{BStr, ByteSlice};
use gix_glob::pattern::{self, Case};
use gix_glob::wildmatch::Mode;

/// Whether the path is a folder, so that a pattern with a trailing slash can match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Folder,
}

/// Whether git ignores the folder that contains a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Within {
    Ignored,
    Known,
}

/// The patterns of one source, in order; the last match decides.
#[derive(Debug, Default, Clone)]
pub(crate) struct Patterns(Vec<gix_glob::Pattern>);

impl Patterns {
    /// Parses the content of a `.gitignore` file.
    ///
    /// Git strips a CR at the end of the file even if the last line feed is missing; gix does so
    /// only before a line feed.
    pub(crate) fn parse(content: &[u8]) -> Self {
        let mut content = content.to_vec();
        content.push(b'\n');
        Patterns(
            gix_ignore::parse(&content, false)
                .map(|(pattern, _, _)| pattern)
                .collect(),
        )
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// `Some(true)`: ignored; `Some(false)`: re-included by a `!` pattern; `None`: no pattern
    /// matches.
    ///
    /// `path` is relative to the folder of the pattern file.
    pub(crate) fn verdict(&self, path: &str, kind: Kind, case: Case) -> Option<bool> {
        let basename = path.rfind('/').map(|slash| slash + 1);
        let path = BStr::new(path);
        let is_dir = Some(kind == Kind::Folder);
        let mode = Mode::NO_MATCH_SLASH_LITERAL;
        let matches = |p: &&gix_glob::Pattern| match after_literal(p, path, case) {
            Some((pattern, path))
                if kind == Kind::Folder || !p.mode.contains(pattern::Mode::MUST_BE_DIR) =>
            {
                gix_glob::wildmatch(pattern, path, mode | folding(case))
            }
            Some(_) => false,
            None => p.matches_repo_relative_path(path, basename, is_dir, case, mode),
        };
        self.0
            .iter()
            .rev()
            .find(matches)
            .map(|pattern| !pattern.is_negative())
    }

    /// Whether the path or one of its parent folders matches. Nothing below a matched folder can be
    /// re-included.
    pub(crate) fn covers(&self, path: &str, kind: Kind, case: Case) -> bool {
        folders(path).any(|folder| self.verdict(folder, Kind::Folder, case) == Some(true))
            || self.verdict(path, kind, case) == Some(true)
    }

    /// The verdict on the file or, if no pattern matches it, on the nearest of its folders that one matches: how git
    /// reads the patterns of a sparse checkout.
    pub(crate) fn nearest_verdict(&self, path: &str, case: Case) -> Option<bool> {
        let of_folder = |folder| self.verdict(folder, Kind::Folder, case);
        self.verdict(path, Kind::File, case)
            .or_else(|| folders(path).rev().find_map(of_folder))
    }

    /// Whether a path below `folder` may match; false only if no pattern can.
    pub(crate) fn may_match_below(&self, folder: &str) -> bool {
        self.0
            .iter()
            .any(|pattern| !pattern.is_negative() && may_lead_below(pattern, folder))
    }

    /// Whether a pattern names this path, or one below it, without a wildcard. Within ignored
    /// folders, naming a parent folder counts, too.
    pub(crate) fn name(&self, path: &str, within: Within) -> bool {
        self.0
            .iter()
            .any(|pattern| !pattern.is_negative() && names(pattern, path, within))
    }
}

/// Gitignore patterns that choose files below a root. A pattern that matches a folder chooses everything in it.
#[derive(Debug, Default, Clone)]
pub struct Choice(Patterns);

impl Choice {
    /// One list of patterns; the last one that matches decides, and `!` takes back.
    pub fn of<S: AsRef<str>>(patterns: &[S]) -> Self {
        let lines: String = patterns
            .iter()
            .map(|pattern| format!("{}\n", pattern.as_ref()))
            .collect();
        Self(Patterns::parse(lines.as_bytes()))
    }

    /// Whether no pattern was given.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the file at this path relative to the root is chosen.
    pub fn covers(&self, path: &str) -> bool {
        self.0.covers(path, Kind::File, Case::Sensitive)
    }
}

/// Whether a pattern is relative to the folder of its file, and does not match names at any depth.
fn is_anchored(p: &gix_glob::Pattern) -> bool {
    !p.mode.contains(pattern::Mode::NO_SUB_DIR) || p.mode.contains(pattern::Mode::ABSOLUTE)
}

fn may_lead_below(p: &gix_glob::Pattern, folder: &str) -> bool {
    // A bracket may contain a slash, and two stars match across slashes.
    if !is_anchored(p) || p.text.contains(&b'[') {
        return true;
    }
    for (part, name) in p.text.split_str("/").zip(folder.split('/')) {
        if part.contains_str("**") {
            return true;
        }
        if !gix_glob::wildmatch(
            BStr::new(part),
            BStr::new(name),
            Mode::NO_MATCH_SLASH_LITERAL,
        ) {
            return false;
        }
    }
    true
}

fn names(p: &gix_glob::Pattern, path: &str, within: Within) -> bool {
    let is_inside = within == Within::Ignored;
    if !is_anchored(p) {
        let mut names = path
            .rsplit('/')
            .take(if is_inside { usize::MAX } else { 1 });
        return p.first_wildcard_pos.is_none() && names.any(|name| p.text == name);
    }
    let text: &[u8] = &p.text;
    let start = p.first_wildcard_pos.and_then(|at| text.get(..at));
    let literal = start.map_or(text, |start| {
        start
            .rfind_byte(b'/')
            .and_then(|end| start.get(..end))
            .unwrap_or(b"")
    });
    let leads = literal
        .split_str("/")
        .zip(path.split('/'))
        .all(|(part, name)| part == name.as_bytes());
    let is_longer = path.split('/').count() > literal.split_str("/").count();
    leads && !literal.is_empty() && (is_inside || !is_longer)
}

/// The rest of a pattern such as `f**/x`, and of the path, after their common literal start.
///
/// Git compares the literal start first and then matches the rest separately, so `**` is at its beginning and
/// matches across slashes; gix matches the whole pattern, in which it does not.
fn after_literal<'a>(
    p: &'a gix_glob::Pattern,
    path: &'a BStr,
    case: Case,
) -> Option<(&'a BStr, &'a BStr)> {
    let start = p
        .first_wildcard_pos
        .filter(|start| *start > 0 && is_anchored(p))?;
    let (literal, rest) = p.text.split_at_checked(start)?;
    if !rest.starts_with(b"**") || literal.ends_with(b"/") {
        return None;
    }
    let (begin, path) = path.split_at_checked(start)?;
    let is_same = match case {
        Case::Sensitive => begin == literal,
        Case::Fold => begin.eq_ignore_ascii_case(literal),
    };
    is_same.then(|| (BStr::new(rest), BStr::new(path)))
}

fn folding(case: Case) -> Mode {
    match case {
        Case::Sensitive => Mode::empty(),
        Case::Fold => Mode::IGNORE_CASE,
    }
}

/// The parent folders of `path`, outermost first: `a/b/c` gives `a`, `a/b`.
pub(crate) fn folders(path: &str) -> impl DoubleEndedIterator<Item = &str> {
    path.as_bytes()
        .find_iter("/")
        .filter_map(|slash| path.get(..slash))
        .collect::<Vec<_>>()
        .into_iter()
}

#[cfg(test)]
mod tests {
    use super::{Choice, Kind, Patterns};
    use gix_glob::pattern::Case;

    /// The expected verdicts are those of `git check-ignore --no-index`.
    #[test]
    fn patterns_on_which_git_and_gix_differ_are_read_as_git_does() {
        for (pattern, path, case) in [
            ("f**/x", "foo/b/x", Case::Sensitive),
            ("F**/x", "foo/b/X", Case::Fold),
            ("/a/f**/x", "a/fo/b/x", Case::Sensitive),
            ("/f**", "foo/b/x", Case::Sensitive),
            ("*.o\r", "a.o", Case::Sensitive),
        ] {
            let patterns = Patterns::parse(pattern.as_bytes());
            assert_eq!(
                patterns.verdict(path, Kind::File, case),
                Some(true),
                "{pattern} {path}"
            );
        }
        assert_eq!(
            Patterns::parse(b"f**/x").verdict("goo/b/x", Kind::File, Case::Sensitive),
            None
        );
        assert_eq!(
            Patterns::parse(b"f**/x/").verdict("foo/b/x", Kind::File, Case::Sensitive),
            None
        );
    }

    /// The expected files are those that `git status` leaves out of `f`, `a/f`, `a/b/f` and `x`.
    #[test]
    fn odd_patterns_match_what_git_matches() {
        let files = ["f", "a/f", "a/b/f", "x"];
        let (none, all, in_a) = (&[][..], &files[..], &files[1..3]);
        for (pattern, ignored) in [
            ("/", none),
            ("//", none),
            ("!/", none),
            ("!", none),
            ("//f", none),
            ("a//f", none),
            ("./f", none),
            ("a/./f", none),
            (".", none),
            ("/ ", none),
            ("\\", none),
            ("f\\", none),
            ("f\\ ", none),
            (" f", none),
            ("[", none),
            ("/[", none),
            ("[a", none),
            ("**", all),
            ("/**", all),
            ("**/**", all),
            ("/*", all),
            ("**/", in_a),
            ("/**/", in_a),
            ("***/", in_a),
            ("*/", in_a),
            ("*/**", in_a),
            ("a/**", in_a),
            ("a/**/", &files[2..3]),
            ("a/**/b/", &files[2..3]),
            ("**f", &files[..3]),
            ("f ", &files[..3]),
        ] {
            let patterns = Patterns::parse(pattern.as_bytes());
            let covered: Vec<&str> = files
                .into_iter()
                .filter(|path| patterns.covers(path, Kind::File, Case::Sensitive))
                .collect();
            assert_eq!(covered, ignored, "{pattern:?}");
        }
    }

    #[test]
    fn patterns_are_those_of_gitignore() {
        let choice = Choice::of(&["/src/", "*.md", "!README.md"]);
        for (path, is_chosen) in [
            ("src/a/b.rs", true),
            ("docs/a.md", true),
            ("README.md", false),
            ("x/src/a.rs", false),
        ] {
            assert_eq!(choice.covers(path), is_chosen, "{path}");
        }
        assert!(Choice::of::<&str>(&[]).is_empty() && !choice.is_empty());
    }
}
