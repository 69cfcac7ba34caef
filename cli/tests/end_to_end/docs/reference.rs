//! Lists of the reference are whole and in the order of their one owner.

use std::path::Path;

use crate::docs::helps::helps;
use crate::docs::page::{root, text};

/// The codes in the first column of the table below a heading.
pub fn listed(page: &str, heading: &str) -> Vec<String> {
    let text = text(Path::new(page));
    let heading = format!("## {heading}");
    let table = text
        .lines()
        .skip_while(|line| *line != heading)
        .skip(1)
        .take_while(|line| !line.starts_with("## "));
    table
        .filter_map(|line| Some(line.strip_prefix("| `")?.split_once('`')?.0.to_owned()))
        .collect()
}

#[test]
fn the_exit_codes_are_those_of_the_program() {
    let source = std::fs::read_to_string(root().join("runs/src/exit.rs")).unwrap();
    let codes: Vec<String> = source
        .lines()
        .filter_map(|line| {
            Some(
                line.trim()
                    .split_once(" => ")?
                    .1
                    .strip_suffix(',')?
                    .to_owned(),
            )
        })
        .filter(|code| code.parse::<u8>().is_ok())
        .collect();
    assert_eq!(listed("docs/reference/exit-codes.md", "All of them"), codes);
    let readme = text(Path::new("README.md"));
    for code in codes {
        assert!(
            readme.contains(&format!("| {code} |")),
            "the README lacks {code}"
        );
    }
}

#[test]
fn the_keys_of_a_summary_are_those_of_its_schema() {
    let schema = std::fs::read_to_string(root().join("docs/schemas/events.schema.json")).unwrap();
    let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
    let keys = schema["$defs"]["summary"]["properties"]
        .as_object()
        .unwrap()
        .keys();
    let mut described = listed("docs/reference/events.md", "The summary");
    described.sort_unstable();
    let mut keys: Vec<String> = keys.cloned().collect();
    keys.sort_unstable();
    assert_eq!(described, keys);
}

#[test]
fn the_bounds_of_orders_are_those_of_the_program() {
    let page = text(Path::new("docs/reference/orders.md"));
    let row = |of: &str| {
        let row = page
            .lines()
            .find(|line| line.starts_with(&format!("| {of} |")));
        row.unwrap_or_else(|| panic!("no bound of {of}")).to_owned()
    };
    let limits = code_commit_parser::proposal::Limits::default();
    assert!(row("a proposed file").contains(&format!("{} KB", limits.file_bytes >> 10)));
    assert!(
        row("all proposed files together").contains(&format!("{} KB", limits.total_bytes >> 10))
    );
    assert!(row("their content that is shown").contains(&format!(
        "{} KB",
        code_commit_loop_order::CONTEXT_BYTES >> 10
    )));
    assert!(row("files of `context_files`").contains(&format!(
        "{} files",
        code_commit_loop_order::MOST_CONTEXT_FILES
    )));
}

#[test]
fn every_command_is_in_the_reference_and_the_readme() {
    let help = |command: &str| {
        helps()
            .iter()
            .find(|help| help.command == format!("code-commit{command}"))
    };
    let main = help("").unwrap();
    let listed = main
        .lines
        .iter()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty());
    let names = listed
        .filter(|line| !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next());
    let readme = text(Path::new("README.md"));
    for name in names.filter(|name| *name != "help") {
        assert!(help(&format!(" {name}")).is_some(), "no help of {name}");
        let (alone, beside) = (format!("`code-commit {name}"), format!("`{name}"));
        assert!(
            readme.contains(&alone) || readme.contains(&beside),
            "the README lacks {name}"
        );
    }
}
