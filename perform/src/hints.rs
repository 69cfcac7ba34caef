//! What the output of a failed build points at: the tests that failed, and lines of source.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Read as _;
use std::path::Path;

use code_commit_dir::Folder;
use code_commit_prompt::rollup::{LARGEST_FILE, may_show};

/// At most as many places are quoted.
const MOST_PLACES: usize = 10;
/// At most as many are looked for: an output may name any number.
const MOST_LOOKED_AT: usize = 200;
/// Lines before and after the one that is named.
const AROUND: usize = 2;
/// A longer line is cut.
const MOST_CHARS: usize = 200;
/// At most as many tests are named.
const MOST_TESTS: usize = 20;

/// How runners name a test that failed: what is before its name on a line, and what is behind it, if anything.
const TESTS: &[(&str, &str)] = &[
    ("test ", " ... FAILED"),      // cargo test
    ("FAILED ", " - "),            // pytest
    ("FAILED ", ""),               // pytest without a reason
    ("FAIL: ", ""),                // unittest
    ("--- FAIL: ", " ("),          // go test
    ("\u{25cf} ", ""),             // Jest
    ("FAIL  ", ""),                // Vitest
    ("[ERROR] ", " <<< FAILURE!"), // Maven
    ("[ERROR] ", " <<< ERROR!"),   // Maven
    ("rspec ", " # "),             // RSpec
    ("not ok ", ""),               // TAP
];

/// A line of a file that an output names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedLine {
    /// Relative to the root.
    pub path: String,
    /// From 1.
    pub line: usize,
    /// The line of the output that names it; below a line that only points, the one before it, too.
    pub said: String,
}

/// The first lines of files below `root` that an output names, each once. They are there: other places in an output
/// are times, addresses, or files of a library.
pub fn named_lines(output: &str, root: &Path) -> Vec<NamedLine> {
    let mut named: Vec<NamedLine> = Vec::new();
    for Place { path, line, said } in places(output, root).take(MOST_LOOKED_AT) {
        let is_known = named
            .iter()
            .any(|known| known.path == path && known.line == line);
        if is_known || named.len() >= MOST_PLACES {
            continue;
        }
        if read(root, &path, |_: &str, _: &str| true)
            .is_some_and(|text| around(&text, line).is_some())
        {
            named.push(NamedLine { path, line, said });
        }
    }
    named
}

/// Lines for the prompt, or nothing. `may_see` says whether the model may see a file with this content.
pub(crate) fn of(output: &str, root: &Path, may_see: impl Fn(&str, &str) -> bool) -> String {
    let mut hints = String::new();
    let tests = failed_tests(output);
    if !tests.is_empty() {
        let _ = writeln!(
            hints,
            "[code-commit] Tests that failed: {}",
            tests.join(", ")
        );
    }
    let mut files: BTreeMap<String, Option<String>> = BTreeMap::new();
    let mut quoted: Vec<(String, usize)> = Vec::new();
    for Place { path, line, .. } in places(output, root).take(MOST_LOOKED_AT) {
        let is_quoted =
            |(other, at): &(String, usize)| *other == path && at.abs_diff(line) <= AROUND;
        if quoted.len() >= MOST_PLACES || quoted.iter().any(is_quoted) {
            continue;
        }
        let text = files
            .entry(path.clone())
            .or_insert_with(|| read(root, &path, &may_see));
        let Some(lines) = text.as_deref().and_then(|text| around(text, line)) else {
            continue;
        };
        if quoted.is_empty() {
            hints.push_str("[code-commit] Lines that the output names, as they are now:\n");
        }
        let _ = write!(hints, "{path}:{line}\n{lines}");
        quoted.push((path, line));
    }
    hints
}

/// The text of a file that a roll-up might show, too. The build may have put a symlink anywhere on the way to it.
fn read(root: &Path, path: &str, may_see: impl Fn(&str, &str) -> bool) -> Option<String> {
    let file = Folder::open(root)
        .and_then(|root| root.open_file_below(Path::new(path)))
        .ok()??;
    let mut content = Vec::new();
    file.take(LARGEST_FILE + 1).read_to_end(&mut content).ok()?;
    let text = String::from_utf8(content).ok()?;
    (may_show(path, &text) && may_see(path, &text)).then_some(text)
}

fn around(text: &str, line: usize) -> Option<String> {
    text.lines().nth(line.checked_sub(1)?)?;
    let first = line.saturating_sub(AROUND).max(1);
    let lines = text
        .lines()
        .enumerate()
        .skip(first - 1)
        .take(line + AROUND + 1 - first);
    let quote = |(index, text): (usize, &str)| {
        let sign = if index + 1 == line { '>' } else { ' ' };
        format!(
            "{sign}{:>5} | {}\n",
            index + 1,
            text.chars().take(MOST_CHARS).collect::<String>()
        )
    };
    Some(lines.map(quote).collect())
}

struct Place {
    path: String,
    line: usize,
    said: String,
}

/// The places that an output names, in its order: `PATH:LINE`, `PATH(LINE` and `"PATH", line LINE`.
fn places(output: &str, root: &Path) -> impl Iterator<Item = Place> {
    let root = format!("{}/", root.display());
    let is_apart =
        |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '[' | ']' | '<' | '>' | '=');
    let before = [""].into_iter().chain(output.lines());
    before.zip(output.lines()).flat_map(move |(before, line)| {
        let root = root.clone();
        let of_python = line
            .trim_start()
            .strip_prefix("File \"")
            .and_then(|rest| rest.split_once("\", line "));
        let words = line.split(is_apart).filter_map(|word| {
            let word = word.trim_start_matches('(');
            let (at, _) = word.char_indices().find(|(at, c)| {
                let behind = word.get(at + 1..).unwrap_or_default();
                matches!(c, ':' | '(') && behind.starts_with(|c: char| c.is_ascii_digit())
            })?;
            Some((word.get(..at)?, word.get(at + 1..)?))
        });
        let named = of_python.into_iter().chain(words).collect::<Vec<_>>();
        named.into_iter().filter_map(move |(path, rest)| {
            let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
            let path = path
                .strip_prefix(&root)
                .or_else(|| path.strip_prefix("./"))
                .unwrap_or(path);
            let is_inside = !path.starts_with('/')
                && !path.split('/').any(|part| part == ".." || part.is_empty());
            if !is_inside || !path.contains(['.', '/']) {
                return None;
            }
            Some(Place {
                path: path.to_owned(),
                line: digits.parse().ok()?,
                said: said(before, line),
            })
        })
    })
}

/// rustc and others say what is wrong on the line before the one that points at it.
fn said(before: &str, line: &str) -> String {
    let (before, line) = (before.trim(), line.trim());
    if line.starts_with("-->") {
        format!("{before}\n{line}")
    } else {
        line.to_owned()
    }
}

/// The names of the tests that failed, each once, in the order of the output.
fn failed_tests(output: &str) -> Vec<&str> {
    let mut tests: Vec<&str> = Vec::new();
    for test in output.lines().filter_map(failed_test) {
        if tests.len() < MOST_TESTS && !tests.contains(&test) {
            tests.push(test);
        }
    }
    tests
}

fn failed_test(line: &str) -> Option<&str> {
    let line = line.trim();
    // PHPUnit numbers them, Gradle has no sign before them.
    let numbered = line
        .trim_start_matches(|c: char| c.is_ascii_digit())
        .strip_prefix(") ")
        .filter(|name| name.contains("::"));
    let of_gradle = line
        .strip_suffix(" FAILED")
        .filter(|name| name.contains(" > ") && !name.starts_with('>'));
    let of_table = || {
        TESTS.iter().find_map(|(before, behind)| {
            let rest = line.strip_prefix(before)?;
            if behind.is_empty() {
                Some(rest)
            } else {
                rest.split_once(behind)
                    .or(rest.strip_suffix(behind.trim_end()).map(|name| (name, "")))
                    .map(|(name, _)| name)
            }
        })
    };
    let name = numbered.or(of_gradle).or_else(of_table)?.trim();
    (!name.is_empty() && name.len() <= MOST_CHARS).then_some(name)
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "the tests make a tree with plain writes"
)]
mod tests {
    use super::*;

    #[test]
    fn the_tests_that_failed_are_named_as_their_runners_name_them() {
        for (line, name) in [
            ("test ring::tests::wraps ... FAILED", "ring::tests::wraps"),
            (
                "FAILED tests/test_ring.py::test_wraps - assert 1 == 2",
                "tests/test_ring.py::test_wraps",
            ),
            (
                "FAILED tests/test_ring.py::test_wraps",
                "tests/test_ring.py::test_wraps",
            ),
            ("FAIL: test_wraps (ring.Tests)", "test_wraps (ring.Tests)"),
            ("    --- FAIL: TestWraps/twice (0.00s)", "TestWraps/twice"),
            ("  \u{25cf} ring \u{203a} wraps", "ring \u{203a} wraps"),
            (
                " FAIL  src/ring.test.ts > ring > wraps",
                "src/ring.test.ts > ring > wraps",
            ),
            (
                "[ERROR] RingTest.wraps -- Time elapsed: 0.01 s <<< FAILURE!",
                "RingTest.wraps -- Time elapsed: 0.01 s",
            ),
            ("RingTest > wraps() FAILED", "RingTest > wraps()"),
            (
                "rspec ./spec/ring_spec.rb:4 # Ring wraps",
                "./spec/ring_spec.rb:4",
            ),
            ("1) RingTest::testWraps", "RingTest::testWraps"),
            ("not ok 3 - wraps", "3 - wraps"),
        ] {
            assert_eq!(failed_tests(line), [name], "{line}");
        }
        assert_eq!(
            failed_tests("test a ... ok\nFAILED\n1) first\n> Task :test FAILED\n"),
            [""; 0]
        );
    }

    #[test]
    fn lines_that_the_output_names_are_quoted_if_the_model_may_see_their_files() {
        let top = tempfile::tempdir().unwrap();
        let root = top.path();
        let lines: String = (1..=20).map(|line| format!("line {line}\n")).collect();
        for path in ["a.py", "b.c", "hidden.py", "server.pem"] {
            std::fs::write(root.join(path), &lines).unwrap();
        }
        let token = ["ghp", "_", "9aK3zQ7mW1xR5tY8uP2sD4fG6hJ0lC"].concat() + "bVnE4x";
        std::fs::write(root.join("key.py"), format!("key = \"{token}\"\n")).unwrap();
        let output = format!(
            "  File \"{0}/a.py\", line 1, in f\n{0}/a.py:2:5: error\n./b.c:9:1: warning\nb.c(20,3): error\n\
             b.c:99: nothing\nhidden.py:3\nserver.pem:3\nkey.py:1\n../a.py:1\n/etc/passwd:1\nat 12:30:05\n",
            root.display()
        );
        std::os::unix::fs::symlink(root, root.join("link")).unwrap();
        let output = format!("{output}link/a.py:15\n");
        insta::assert_snapshot!(of(&output, root, |path, _| path != "hidden.py"), @r"
        [code-commit] Lines that the output names, as they are now:
        a.py:1
        >    1 | line 1
             2 | line 2
             3 | line 3
        b.c:9
             7 | line 7
             8 | line 8
        >    9 | line 9
            10 | line 10
            11 | line 11
        b.c:20
            18 | line 18
            19 | line 19
        >   20 | line 20
        ");
        let many: String = (1..=20)
            .map(|n| format!("b.c:{}\n", n * 5))
            .chain((0..1000).map(|n| format!("b.c:{n}\n")))
            .collect();
        assert!(of(&many, root, |_, _| true).matches("b.c:").count() <= MOST_PLACES);
        assert_eq!(of("all is well\n", root, |_, _| true), "");
    }

    #[test]
    fn a_named_line_is_there_and_has_what_the_output_says_of_it() {
        let top = tempfile::tempdir().unwrap();
        std::fs::write(top.path().join("a.rs"), "one\ntwo\nthree\n").unwrap();
        let output = "error[E0308]: mismatched types\n --> a.rs:2:5\na.rs:2:9: again\na.rs:3:1: error: no\n\
                      a.rs:9:1\nb.rs:1:1\nat 12:30:05\n";
        let named: Vec<String> = named_lines(output, top.path())
            .iter()
            .map(|NamedLine { path, line, said }| format!("{path}:{line} {said:?}"))
            .collect();
        insta::assert_snapshot!(named.join("\n"), @r#"
        a.rs:2 "error[E0308]: mismatched types\n--> a.rs:2:5"
        a.rs:3 "a.rs:3:1: error: no"
        "#);
    }
}
