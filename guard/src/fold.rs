//! Maps all names that some file system treats as equal to one spelling.

use unicode_normalization::UnicodeNormalization;

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
