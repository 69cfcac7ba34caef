//! The tables of `docs/conformance`: each row names a test that is there, or says why there is none.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::docs::page::{all, root, text};

/// How the last cell of a row without a test begins.
const NO_TEST: &str = "No test:";
/// A word between backquotes with so many underscores is taken for the name of a test.
const UNDERSCORES: usize = 3;

#[test]
fn every_test_that_a_table_names_is_there() {
    let known: BTreeSet<String> =
        crates().iter().flat_map(|folder| rust_files(folder)).flat_map(|file| tests_in(&file)).collect();
    let mut wrong = Vec::new();
    let rows = rows();
    for (place, row) in &rows {
        let names: Vec<&str> = quoted(row).filter_map(name_of_a_test).collect();
        wrong.extend(
            names
                .iter()
                .filter(|name| !known.contains(**name))
                .map(|name| format!("{place}: there is no test {name}")),
        );
    }
    assert!(rows.len() > 50, "the tables were not found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_row_names_a_test_or_says_why_there_is_none() {
    let rows = rows();
    let bare = rows.iter().filter(|(place, row)| {
        place.contains("docs/conformance/")
            && !row.contains(NO_TEST)
            && quoted(row).all(|text| name_of_a_test(text).is_none())
    });
    let bare: Vec<&String> = bare.map(|(place, _)| place).collect();
    assert!(bare.is_empty(), "no test and no reason: {bare:?}");
}

#[test]
fn every_sentence_has_a_test_on_its_path_or_a_reason_where_a_page_gives_paths() {
    let mut wrong = Vec::new();
    for (place, row) in
        rows().iter().filter(|(place, _)| ["s0.md", "s1.md", "s4.md"].iter().any(|page| place.contains(page)))
    {
        let paths: Vec<&str> = quoted(row).filter(|text| text.contains("::")).collect();
        if paths.is_empty() && !row.contains(NO_TEST) {
            wrong.push(format!("{place} names no test and does not say why"));
        }
        wrong.extend(
            paths.iter().filter(|path| !exists(path)).map(|path| format!("{place}: there is no test {path}")),
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_test_that_is_not_there_is_noticed() {
    assert!(exists("cli::docs::conformance::a_test_that_is_not_there_is_noticed"));
    assert!(!exists("cli::docs::conformance::a_test_that_is_nowhere"));
    assert!(!exists("cli::docs::page::a_test_that_is_not_there_is_noticed"), "it is in another file");
    assert!(!exists("cli::docs::conformance::name_of_a_test"), "it is no test");
}

/// The rows of all tables but for their heads, each with its place.
fn rows() -> Vec<(String, String)> {
    let mut rows = Vec::new();
    for page in all().iter().filter(|page| page.starts_with("docs/conformance")) {
        let text = text(page);
        let lines: Vec<&str> = text.lines().collect();
        for (number, line) in lines.iter().enumerate().filter(|(_, line)| line.starts_with("| ")) {
            if !lines.get(number + 1).is_some_and(|next| next.starts_with("|-")) {
                rows.push((format!("{}:{}", page.display(), number + 1), (*line).to_owned()));
            }
        }
    }
    rows
}

fn quoted(row: &str) -> impl Iterator<Item = &str> {
    row.split('`').skip(1).step_by(2)
}

/// `a_file_is_deleted` for `parser::fences::a_file_is_deleted` and for `fences: a_file_is_deleted`.
fn name_of_a_test(quoted: &str) -> Option<&str> {
    let name = quoted.rsplit([':', ' ']).next()?;
    (is_plain(name) && name.matches('_').count() >= UNDERSCORES).then_some(name)
}

fn is_plain(name: &str) -> bool {
    name.contains('_') && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

/// Whether the crate's folder has a file on that path that holds a test of that name.
fn exists(test: &str) -> bool {
    let mut parts = test.split("::");
    let folder = root().join(parts.next().unwrap_or_default().replace('_', "-"));
    let mut modules: Vec<&str> = parts.collect();
    let Some(name) = modules.pop() else { return false };
    rust_files(&folder)
        .iter()
        .filter(|path| lies_at(path, &modules))
        .any(|path| tests_in(path).iter().any(|test| test == name))
}

/// Whether the names of the modules are, in their order, among the names on the way to the file.
fn lies_at(path: &Path, modules: &[&str]) -> bool {
    let path = path.with_extension("");
    let mut names = path.iter().filter_map(|name| name.to_str());
    modules.iter().filter(|&&module| module != "tests").all(|module| names.any(|name| name == *module))
}

/// Functions behind `#[test]`, and names that stand alone on their line, as in a macro that makes one test of each.
fn tests_in(path: &Path) -> Vec<String> {
    let source = std::fs::read_to_string(path).unwrap();
    let mut attributed = false;
    let mut tests = Vec::new();
    for line in source.lines().map(str::trim) {
        let function =
            line.split_once("fn ").and_then(|(_, rest)| rest.split_once('(')).map(|(name, _)| name);
        tests.extend(
            function.filter(|_| attributed).or_else(|| is_plain(line).then_some(line)).map(str::to_owned),
        );
        attributed = line == "#[test]" || (attributed && (line.starts_with("#[") || line.starts_with("//")));
    }
    tests
}

/// The folders of our crates.
pub fn crates() -> Vec<PathBuf> {
    let folders = std::fs::read_dir(root()).unwrap().map(|entry| entry.unwrap().path());
    folders.filter(|folder| folder.join("Cargo.toml").is_file()).collect()
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
