//! Every crate says what it is, and shows it.

use std::path::PathBuf;

/// Those of the workspace: the fuzz targets and the fleet stand outside of it.
fn crates() -> Vec<PathBuf> {
    let is_ours = |folder: &PathBuf| !folder.ends_with("fuzz") && !folder.ends_with("fleet");
    crate::docs::conformance::crates().into_iter().filter(is_ours).collect()
}

#[test]
fn every_crate_has_a_description_keywords_a_licence_and_a_readme() {
    let mut wrong = Vec::new();
    for folder in crates() {
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        let package = manifest.split_once("[package]").unwrap().1.split_once("\n[").unwrap().0;
        for key in [
            "description = \"",
            "keywords = [\"",
            "license.workspace = true",
            "rust-version.workspace = true",
        ] {
            if !package.lines().any(|line| line.starts_with(key)) {
                wrong.push(format!("{} has no {key}", folder.display()));
            }
        }
        if !folder.join("README.md").is_file() {
            wrong.push(format!("{} has no README.md", folder.display()));
        }
    }
    assert!(crates().len() > 15 && wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What stands in a README is the crate's documentation, so that its example is compiled and run.
#[test]
fn the_readme_of_every_library_has_an_example_that_is_a_test() {
    for folder in crates() {
        let Ok(library) = std::fs::read_to_string(folder.join("src/lib.rs")) else { continue };
        assert!(library.starts_with("#![doc = include_str!(\"../README.md\")]"), "{}", folder.display());
        let readme = std::fs::read_to_string(folder.join("README.md")).unwrap();
        let opens = |line: &&str| matches!(*line, "```" | "```rust" | "```no_run");
        let fences = readme.lines().filter(|line| line.starts_with("```"));
        assert!(fences.step_by(2).any(|line| opens(&line)), "{} has no example", folder.display());
    }
}
