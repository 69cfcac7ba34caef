//! What kind of file a path names: a test, prose, data; and what a test is named after.

use super::words::parts;

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

/// The words that say that a file is a test.
const TESTS: [&str; 4] = ["test", "tests", "spec", "specs"];

/// The name of a file without its folder and its ending.
fn stem(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

fn ending(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.rsplit_once('.').map_or("", |(_, ending)| ending)
}

/// As its path says.
pub(crate) fn of(path: &str) -> Kind {
    let is_test = path
        .rsplit('/')
        .skip(1)
        .any(|folder| TEST_FOLDERS.contains(&folder));
    let is_test = is_test || is_named_as_test(path);
    let (stem, ending) = (stem(path), ending(path));
    let is_one = |all: &[&str], name: &str| all.iter().any(|one| one.eq_ignore_ascii_case(name));
    if is_one(&NEWS, stem) {
        Kind::News
    } else if is_one(&PROSE, ending) {
        Kind::Prose
    } else if is_one(&DATA, ending) && (!ending.is_empty() || !is_test) {
        Kind::Data
    } else if is_test {
        Kind::Test
    } else {
        Kind::Source
    }
}

/// Its name begins or ends like `test_scan`, `scan.spec` or `ScanTest`.
fn is_named_as_test(path: &str) -> bool {
    let (stem, is_test) = (stem(path), |word: &str| TESTS.contains(&word));
    let begins = |part: &[u8]| {
        [b"test", b"spec"]
            .iter()
            .any(|one| part.eq_ignore_ascii_case(*one))
    };
    // Few names have one of these, and the others need not be taken apart.
    if !stem.as_bytes().windows(4).any(begins) {
        return false;
    }
    let words = stem.split(['-', '.']).flat_map(parts);
    let words: Vec<String> = words.map(str::to_lowercase).collect();
    let mut ends = words.first().into_iter().chain(words.last());
    words.len() > 1 && ends.any(|word| is_test(word))
}

#[cfg(test)]
mod tests {
    use super::{Kind, of};

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
    fn a_test_is_known_by_its_name() {
        for name in [
            "test_scan.py",
            "a/scan_test.go",
            "scan.spec.ts",
            "scan-tests.js",
            "ScanTest.java",
            "TestScan",
        ] {
            assert_eq!(of(name), Kind::Test, "{name}");
        }
        for name in ["scan", "contest", "latest", "testament", "inspect", "test"] {
            assert_ne!(of(name), Kind::Test, "{name}");
        }
    }
}
