//! Maps all names that some file system treats as equal to one spelling, and name patterns that match every spelling.

use gix_glob::pattern::Case;
use unicode_normalization::UnicodeNormalization;

use crate::patterns::{Kind, Patterns, Within};

/// NFKC and case folding. Goes through upper case, because `ſ`, `ß` and `K` have no lower case that
/// shows what they fold to.
///
/// May fold more than any single file system does, which is safe: it is used only to refuse.
pub(crate) fn fold(name: &str) -> String {
    if name.is_ascii() {
        return name.to_ascii_lowercase();
    }
    let upper: String = name.nfkc().flat_map(char::to_uppercase).collect();
    upper.nfkc().flat_map(char::to_lowercase).nfkc().collect()
}

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
        self.both(path, folded)
            .any(|(patterns, path)| patterns.may_match_below(path))
    }

    fn both<'a>(
        &'a self,
        path: &'a str,
        folded: &'a str,
    ) -> impl Iterator<Item = (&'a Patterns, &'a str)> {
        let unfolded = self.unfolded.iter().map(move |patterns| (patterns, path));
        std::iter::once((&self.patterns, folded)).chain(unfolded)
    }

    /// Whether a pattern names this path without a wildcard, see [`Patterns::name`].
    pub(crate) fn names(&self, folded: &str, within: Within) -> bool {
        self.patterns.name(folded, within)
    }
}

#[cfg(test)]
mod tests {
    use super::fold;

    #[test]
    fn spellings_of_one_name_fold_to_the_same() {
        for (one, other) in [
            ("BUILD.SH", "build.sh"),
            ("build.ſh", "build.sh"),
            ("agent-conﬁg", "agent-config"),
            ("\u{212a}eys", "keys"),
            ("cafe\u{301}", "café"),
            ("STRASSE", "straße"),
            ("ＧＩＴ", "git"),
        ] {
            assert_eq!(fold(one), fold(other), "{one} {other}");
        }
    }

    #[test]
    fn different_names_stay_different() {
        assert_ne!(fold("agent\u{2010}config"), fold("agent-config"));
        assert_ne!(fold("a.rs"), fold("b.rs"));
    }
}
