//! Every crate is ready to be published: it says what it is, shows it, and contains its licences.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::docs::conformance::{crates, rust_files};
use crate::docs::page::root;

/// The categories of <https://crates.io/category_slugs> that ours are in.
const CATEGORIES: &[&str] = &[
    "api-bindings",
    "command-line-interface",
    "command-line-utilities",
    "config",
    "data-structures",
    "development-tools",
    "development-tools::build-utils",
    "development-tools::testing",
    "encoding",
    "filesystem",
    "os::linux-apis",
    "parser-implementations",
    "text-processing",
    "visualization",
    "web-programming::http-client",
];
/// In every package, and the same as those at the top.
const LICENCES: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];

#[test]
fn every_crate_is_ready_to_be_published() {
    let mut cargo = Command::new(env!("CARGO"));
    let said = cargo
        .args(["metadata", "--format-version=1", "--no-deps", "--locked"])
        .current_dir(root());
    let said: Value = serde_json::from_slice(&said.output().unwrap().stdout).unwrap();
    let packages = said["packages"].as_array().unwrap().iter();
    let published: Vec<_> = packages
        .filter(|package| package["name"] != "code-commit-features")
        .collect();
    assert_eq!(published.len(), crates().len());
    let wrong: Vec<String> = published.into_iter().flat_map(faults).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What crates.io would refuse, or a reader would miss there.
fn faults(package: &Value) -> Vec<String> {
    let words =
        |key: &str| -> Vec<String> { serde_json::from_value(package[key].clone()).unwrap() };
    let is_keyword = |word: &String| {
        let is_fit = |c: char| c.is_ascii_alphanumeric() || "-_+".contains(c);
        word.len() <= 20
            && word.starts_with(|c: char| c.is_ascii_alphanumeric())
            && word.chars().all(is_fit)
    };
    let (keywords, categories) = (words("keywords"), words("categories"));
    let folder = Path::new(package["manifest_path"].as_str().unwrap())
        .parent()
        .unwrap();
    let is_same = |name: &&str| {
        std::fs::read(folder.join(name)).ok() == Some(std::fs::read(root().join(name)).unwrap())
    };
    let checks = [
        ("it may be published", package["publish"].is_null()),
        ("a description", package["description"].is_string()),
        (
            "one to five keywords",
            (1..=5).contains(&keywords.len()) && keywords.iter().all(is_keyword),
        ),
        (
            "one to five categories, listed here",
            (1..=5).contains(&categories.len())
                && categories.iter().all(|slug| CATEGORIES.contains(&&**slug)),
        ),
        ("our licence", package["license"] == "MIT OR Apache-2.0"),
        ("the texts of both licences", LICENCES.iter().all(is_same)),
        ("the oldest Rust", package["rust_version"].is_string()),
        ("README.md", package["readme"] == "README.md"),
        (
            "docs.rs shows all features",
            package["metadata"]["docs"]["rs"]["all-features"] == true,
        ),
        (
            "no repository as long as there is none",
            package["repository"].is_null(),
        ),
    ];
    let failed = checks.iter().filter(|(_, holds)| !holds);
    failed
        .map(|(what, _)| format!("{}: {what}", folder.join("Cargo.toml").display()))
        .collect()
}

/// What stands in a README is the crate's documentation, so that its example is compiled and run.
#[test]
fn the_readme_of_every_library_has_an_example_that_is_a_test() {
    for folder in crates() {
        let Ok(library) = std::fs::read_to_string(folder.join("src/lib.rs")) else {
            continue;
        };
        assert!(
            library.starts_with("#![doc = include_str!(\"../README.md\")]"),
            "{}",
            folder.display()
        );
        let readme = std::fs::read_to_string(folder.join("README.md")).unwrap();
        let opens = |line: &&str| matches!(*line, "```" | "```rust" | "```no_run");
        let fences = readme.lines().filter(|line| line.starts_with("```"));
        assert!(
            fences.step_by(2).any(|line| opens(&line)),
            "{} has no example",
            folder.display()
        );
    }
}

/// A new case of an error must not break whoever handles the others. A loop, though, handles every case of `Stop`.
#[test]
fn every_public_error_but_stop_is_non_exhaustive() {
    let is_head = |line: &&&str| {
        ["pub ", "pub(", "enum ", "struct "]
            .iter()
            .any(|word| line.starts_with(word))
    };
    let (mut all, mut exhaustive) = (0, Vec::new());
    for file in crates().iter().flat_map(|folder| rust_files(folder)) {
        let text = std::fs::read_to_string(&file).unwrap();
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        let is_error = |line: &str| line.starts_with("#[derive(") && line.contains("Error");
        for (at, _) in lines.iter().enumerate().filter(|(_, line)| is_error(line)) {
            let head = lines[at..].iter().find(is_head).unwrap();
            let attributes = lines[at..].iter().take_while(|line| line != &head);
            all += 1;
            if head.starts_with("pub ")
                && !attributes
                    .into_iter()
                    .any(|line| *line == "#[non_exhaustive]")
            {
                exhaustive.push((*head).to_owned());
            }
        }
    }
    assert!(all > 30, "{all} errors were found");
    assert_eq!(exhaustive, ["pub enum Stop<F> {"]);
}
