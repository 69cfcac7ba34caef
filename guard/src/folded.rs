//! Name patterns that match every spelling that some file system treats as the same name.

use gix::glob::pattern::Case;

use crate::fold::fold;
use crate::patterns::{Kind, Patterns, Within};

#[derive(Debug, Clone)]
pub(crate) struct Folded {
    patterns: Patterns,
    /// The patterns as given, if folding changes what they match: no folded name matches `[[:upper:]]` or
    /// `[!a-z]`, and folding can change the number of characters that `?` and non-ASCII letters stand for.
    unfolded: Option<Patterns>,
    pub(crate) what: String,
}

impl Folded {
    pub(crate) fn new(pattern: &str, what: &str) -> Self {
        let may_lose = pattern.contains(['[', '?']) || !pattern.is_ascii();
        Folded {
            patterns: Patterns::parse(fold(pattern).as_bytes()),
            unfolded: may_lose.then(|| Patterns::parse(pattern.as_bytes())),
            what: what.to_owned(),
        }
    }

    /// `folded` is the folded path. The last name counts as a folder, too: a file must not replace a
    /// protected folder.
    pub(crate) fn covers(&self, path: &str, folded: &str) -> bool {
        self.both(path, folded).any(|(patterns, path)| {
            patterns.covers(path, Kind::Folder, Case::Sensitive)
                || patterns.verdict(path, Kind::File, Case::Sensitive) == Some(true)
        })
    }

    /// Whether anything below this folder may be covered; `folded` as for [`covers`](Self::covers).
    pub(crate) fn may_cover_below(&self, path: &str, folded: &str) -> bool {
        self.both(path, folded).any(|(patterns, path)| patterns.may_match_below(path))
    }

    fn both<'a>(&'a self, path: &'a str, folded: &'a str) -> impl Iterator<Item = (&'a Patterns, &'a str)> {
        let unfolded = self.unfolded.iter().map(move |patterns| (patterns, path));
        std::iter::once((&self.patterns, folded)).chain(unfolded)
    }

    /// Whether a pattern names this path without a wildcard, see [`Patterns::name`].
    pub(crate) fn names(&self, folded: &str, within: Within) -> bool {
        self.patterns.name(folded, within)
    }
}
