//! The tables of `docs/conformance`: each row names a test that is there, or says why there is none.

use std::path::{Path, PathBuf};

use crate::page::{all, root, text};

/// How the cell of a row without a test begins.
const NO_TEST: &str = "No test:";

#[test]
fn every_row_names_a_test_that_is_there_or_says_why_not() {
    let mut wrong = Vec::new();
    let mut rows = 0;
    for page in all().iter().filter(|page| page.starts_with("docs/conformance")) {
        for (number, line) in text(page).lines().enumerate().filter(|(_, line)| is_row(line)) {
            rows += 1;
            let tests = tests_named(line);
            if tests.is_empty() && !line.contains(NO_TEST) {
                wrong.push(format!("{}:{} names no test and does not say why", page.display(), number + 1));
            }
            let absent = tests.into_iter().filter(|test| !exists(test));
            wrong.extend(absent.map(|test| format!("{}:{}: there is no test {test}", page.display(), number + 1)));
        }
    }
    assert!(rows > 0, "no table was found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_test_that_is_not_there_is_noticed() {
    assert!(exists("cli::docs::conformance::a_test_that_is_not_there_is_noticed"));
    assert!(!exists("cli::docs::conformance::a_test_that_is_nowhere"));
    assert!(!exists("cli::docs::page::a_test_that_is_not_there_is_noticed"), "it is in another file");
    assert!(!exists("cli::docs::conformance::exists"), "it is no test");
}

/// A row of a table, but for its head.
fn is_row(line: &str) -> bool {
    line.starts_with('|') && !line.starts_with("|-") && !line.starts_with("| sentence")
}

/// What stands between backquotes and looks like the path of a test: `parser::fences::a_file_is_deleted`.
fn tests_named(line: &str) -> Vec<&str> {
    let quoted = line.split('`').skip(1).step_by(2);
    quoted.filter(|text| text.contains("::") && !text.contains([' ', '(', '{'])).collect()
}

/// Whether the crate's folder has a file on that path that holds a test of that name.
fn exists(test: &str) -> bool {
    let mut parts = test.split("::");
    let folder = root().join(parts.next().unwrap_or_default().replace('_', "-"));
    let mut modules: Vec<&str> = parts.collect();
    let Some(name) = modules.pop() else { return false };
    sources(&folder).iter().filter(|path| lies_at(path, &modules)).any(|path| holds(path, name))
}

/// Whether the names of the modules are, in their order, among the names on the way to the file.
fn lies_at(path: &Path, modules: &[&str]) -> bool {
    let path = path.with_extension("");
    let mut names = path.iter().filter_map(|name| name.to_str());
    modules.iter().filter(|&&module| module != "tests").all(|module| names.any(|name| name == *module))
}

/// A function behind `#[test]`, or a name that stands alone on its line, as in a macro that makes one test of each.
fn holds(path: &Path, name: &str) -> bool {
    let source = std::fs::read_to_string(path).unwrap();
    let mut attributed = false;
    source.lines().map(str::trim).any(|line| {
        let found = (attributed && line.contains(&format!("fn {name}("))) || line.trim_end_matches(',') == name;
        attributed = line == "#[test]" || (attributed && (line.starts_with("#[") || line.starts_with("//")));
        found
    })
}

/// Every Rust file below `src` and `tests` of a crate.
fn sources(folder: &Path) -> Vec<PathBuf> {
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
