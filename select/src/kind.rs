//! What kind of file a path names: a test, prose, data; and which test belongs to which source.

/// What a file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Source,
    Test,
    Prose,
    /// What tools read: configuration, fixtures, translations.
    Data,
    /// What is written at each release.
    News,
}

const PROSE: [&str; 8] = ["md", "markdown", "rst", "txt", "adoc", "html", "css", "tex"];
const DATA: [&str; 17] = [
    "json",
    "yml",
    "yaml",
    "toml",
    "xml",
    "csv",
    "lock",
    "cfg",
    "ini",
    "po",
    "pot",
    "svg",
    "properties",
    "in",
    "out",
    "snap",
    "",
];
const NEWS: [&str; 8] = [
    "changelog",
    "changes",
    "history",
    "news",
    "releases",
    "release_notes",
    "release-notes",
    "authors",
];
const TEST_FOLDERS: [&str; 8] = [
    "test",
    "tests",
    "spec",
    "specs",
    "__tests__",
    "testing",
    "testdata",
    "t",
];

/// The name of a file without its folder and its ending.
pub(crate) fn stem(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

fn ending(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.rsplit_once('.').map_or("", |(_, ending)| ending)
}

/// Told by its path only.
pub(crate) fn of(path: &str) -> Kind {
    let is_test = path
        .rsplit('/')
        .skip(1)
        .any(|folder| TEST_FOLDERS.contains(&folder));
    let is_test = is_test || subject(stem(path)) != stem(path);
    let (stem, ending) = (
        stem(path).to_ascii_lowercase(),
        ending(path).to_ascii_lowercase(),
    );
    if NEWS.contains(&stem.as_str()) {
        Kind::News
    } else if PROSE.contains(&ending.as_str()) {
        Kind::Prose
    } else if DATA.contains(&ending.as_str()) && (!ending.is_empty() || !is_test) {
        Kind::Data
    } else if is_test {
        Kind::Test
    } else {
        Kind::Source
    }
}

/// What a test tests: `parser` for `test_parser`, `parser_test` or `parser.spec`, `Parser` for `ParserTest`; the stem
/// itself for what is no test.
pub(crate) fn subject(stem: &str) -> &str {
    let lower = stem.to_ascii_lowercase();
    let separators = ['_', '-', '.'];
    for word in ["tests", "test", "specs", "spec"] {
        let is_hump = |at: usize| stem.as_bytes().get(at).is_some_and(u8::is_ascii_uppercase);
        let (before, after) = (stem.len().saturating_sub(word.len()), word.len());
        let rest = stem.get(after..).filter(|_| lower.starts_with(word));
        if let Some(rest) =
            rest.filter(|rest| rest.starts_with(separators) || (is_hump(0) && is_hump(after)))
        {
            return rest.trim_start_matches(separators);
        }
        let rest = stem
            .get(..before)
            .filter(|rest| lower.ends_with(word) && !rest.is_empty());
        if let Some(rest) = rest.filter(|rest| rest.ends_with(separators) || is_hump(before)) {
            return rest.trim_end_matches(separators);
        }
    }
    stem
}

#[cfg(test)]
mod tests {
    use super::{Kind, of, subject};

    #[test]
    fn a_kind_is_told_by_the_path() {
        for (path, kind) in [
            ("src/a.rs", Kind::Source),
            ("src/a_test.go", Kind::Test),
            ("src/ATest.java", Kind::Test),
            ("spec/a.rb", Kind::Test),
            ("src/a.spec.ts", Kind::Test),
            ("docs/a.md", Kind::Prose),
            ("CHANGES.md", Kind::News),
            ("package.json", Kind::Data),
            ("src/latest.rs", Kind::Source),
        ] {
            assert_eq!(of(path), kind, "{path}");
        }
    }

    #[test]
    fn a_test_is_named_after_what_it_tests() {
        for stem in [
            "test_scan",
            "scan_test",
            "scan.spec",
            "scan-tests",
            "scanTest",
            "scan",
        ] {
            assert_eq!(subject(stem), "scan", "{stem}");
        }
        for stem in ["contest", "latest", "testament", "inspect"] {
            assert_eq!(subject(stem), stem);
        }
        assert_eq!((subject("TestScan"), subject("ScanSpec")), ("Scan", "Scan"));
    }
}
