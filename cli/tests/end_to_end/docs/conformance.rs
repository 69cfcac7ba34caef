//! The tables of `docs/conformance`: each row names a test that is there, or says why there is none.

use std::path::{Path, PathBuf};

use crate::docs::page::{all, root, text};

/// How the last cell of a row without a test begins.
const NO_TEST: &str = "No test:";
/// A word between backquotes with so many underscores is taken for the name of a test.
const UNDERSCORES: usize = 2;

#[test]
fn every_test_that_a_table_names_is_there() {
    let (rows, tests) = (rows(), tests());
    assert!(rows.len() > 50, "the tables were not found");
    let wrong: Vec<String> = rows
        .iter()
        .flat_map(|(place, row)| faults(place, row, &tests))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_row_names_a_test_or_says_why_there_is_none() {
    let rows = rows();
    let bare = rows.iter().filter(|(place, row)| {
        place.contains("docs/conformance/")
            && !row.contains(NO_TEST)
            && names_in(row).next().is_none()
    });
    let bare: Vec<&String> = bare.map(|(place, _)| place).collect();
    assert!(bare.is_empty(), "no test and no reason: {bare:?}");
}

/// What is wrong with the tests that a row names: none has the name, or several have, or the name comes with a module, which may change.
fn faults(place: &str, row: &str, tests: &[String]) -> Vec<String> {
    names_in(row)
        .filter_map(
            |name| match tests.iter().filter(|test| *test == name).count() {
                _ if !is_plain(name) => Some(format!(
                    "{place}: {name}: the name of the function is enough"
                )),
                1 => None,
                count => Some(format!("{place}: {count} tests are called {name}")),
            },
        )
        .collect()
}

/// The rows of all tables but for their heads, each with its place.
fn rows() -> Vec<(String, String)> {
    let mut rows = Vec::new();
    for page in all()
        .iter()
        .filter(|page| page.starts_with("docs/conformance"))
    {
        let text = text(page);
        let lines: Vec<&str> = text.lines().collect();
        for (number, line) in lines
            .iter()
            .enumerate()
            .filter(|(_, line)| line.starts_with("| "))
        {
            if !lines
                .get(number + 1)
                .is_some_and(|next| next.starts_with("|-"))
            {
                rows.push((
                    format!("{}:{}", page.display(), number + 1),
                    (*line).to_owned(),
                ));
            }
        }
    }
    rows
}

/// What stands between backquotes and ends as the name of a test does.
pub(crate) fn names_in(row: &str) -> impl Iterator<Item = &str> {
    let is_name = |text: &str| {
        let last = text.rsplit([':', ' ']).next().unwrap_or_default();
        is_plain(last) && last.matches('_').count() >= UNDERSCORES
    };
    row.split('`')
        .skip(1)
        .step_by(2)
        .filter(move |text| is_name(text))
}

fn is_plain(name: &str) -> bool {
    name.contains('_')
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

/// The names of all tests.
pub(crate) fn tests() -> Vec<String> {
    crates()
        .iter()
        .flat_map(|folder| rust_files(folder))
        .flat_map(|file| tests_in(&file))
        .collect()
}

/// Functions behind `#[test]`, and names that stand alone on their line, as in a macro that makes one test of each.
fn tests_in(path: &Path) -> Vec<String> {
    let source = std::fs::read_to_string(path).unwrap();
    let mut attributed = false;
    let mut tests = Vec::new();
    for line in source.lines().map(str::trim) {
        let function = line
            .split_once("fn ")
            .and_then(|(_, rest)| rest.split_once('('))
            .map(|(name, _)| name);
        tests.extend(
            function
                .filter(|_| attributed)
                .or_else(|| is_plain(line).then_some(line))
                .map(str::to_owned),
        );
        attributed = line == "#[test]" || (attributed && function.is_none());
    }
    tests
}

/// The folders of our crates; the gateway stands outside of the workspace.
pub fn crates() -> Vec<PathBuf> {
    let above = ["", "loops", "views"].map(|above| std::fs::read_dir(root().join(above)).unwrap());
    let folders = above
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().path());
    folders
        .filter(|folder| folder.join("Cargo.toml").is_file() && !folder.ends_with("gateway"))
        .collect()
}

/// Every Rust file below `src` and `tests` of a crate.
pub fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.join("src"), folder.join("tests")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    files
}
