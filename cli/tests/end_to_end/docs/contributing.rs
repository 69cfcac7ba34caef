//! The table of likely changes in CONTRIBUTING.md names tests, files and identifiers that exist.

use std::path::Path;

use crate::docs::conformance::{names_in, tests};
use crate::docs::page::{root, text};

const HEADING: &str = "## The ten most likely changes";

/// The files that a row links to, all in one text.
fn linked(row: &str) -> String {
    let targets = row
        .split("](")
        .skip(1)
        .filter_map(|rest| Some(rest.split_once(')')?.0));
    targets
        .map(|target| std::fs::read_to_string(root().join(target)).unwrap_or_default())
        .collect()
}

/// Whether a span between backquotes is a name of our code.
fn is_identifier(span: &str) -> bool {
    let mut characters = span.trim_end_matches('!').chars();
    characters.clone().count() > 3
        && characters.all(|c| c.is_ascii_alphabetic() || c == '_')
        && span != "match"
}

/// The names of a row that are neither those of a test nor in one of the files that it links to.
fn missing(row: &str, tests: &[String]) -> Vec<String> {
    let files = linked(row);
    let is_a_test = |span: &str| tests.iter().any(|test| test == span);
    let spans = row
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(|span| is_identifier(span));
    let unknown = spans.filter(|span| {
        !is_a_test(span)
            && (names_in(&format!("`{span}`")).next().is_some() || !files.contains(*span))
    });
    unknown.map(str::to_owned).collect()
}

#[test]
fn every_name_in_the_table_of_likely_changes_is_there() {
    let page = text(Path::new("CONTRIBUTING.md"));
    let section = page
        .lines()
        .skip_while(|line| *line != HEADING)
        .skip(1)
        .take_while(|line| !line.starts_with("## "));
    let rows: Vec<&str> = section
        .filter(|line| line.starts_with("| "))
        .skip(1)
        .collect();
    assert_eq!(rows.len(), 10, "{rows:?}");
    let tests = tests();
    let wrong: Vec<String> = rows.iter().flat_map(|row| missing(row, &tests)).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}
