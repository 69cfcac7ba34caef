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
const NEWS: [&str; 8] =
    ["changelog", "changes", "history", "news", "releases", "release_notes", "release-notes", "authors"];
const TEST_FOLDERS: [&str; 8] = ["test", "tests", "spec", "specs", "__tests__", "testing", "testdata", "t"];

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
    let (stem, ending) = (stem(path).to_ascii_lowercase(), ending(path).to_ascii_lowercase());
    let is_test =
        path.rsplit('/').skip(1).any(|folder| TEST_FOLDERS.contains(&folder)) || subject(&stem) != stem;
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

/// What a test tests: `parser` for `test_parser`, `parser_test`, `ParserTest` or `parser.spec`, all in lower case; the
/// stem itself for what is no test.
pub(crate) fn subject(stem: &str) -> &str {
    for word in ["tests", "test", "specs", "spec"] {
        if let Some(rest) = stem.strip_prefix(word).and_then(|rest| rest.strip_prefix(['_', '-', '.'])) {
            return rest;
        }
        if let Some(rest) = stem.strip_suffix(word).filter(|rest| rest.len() > 2) {
            return rest.trim_end_matches(['_', '-', '.']);
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
        for stem in ["test_scan", "scan_test", "scantest", "scan.spec", "scan-tests", "scan"] {
            assert_eq!(subject(stem), "scan", "{stem}");
        }
    }
}
