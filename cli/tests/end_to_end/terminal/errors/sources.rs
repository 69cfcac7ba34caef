//! No failure is made without a word about what can be done.

use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn no_failure_is_made_without_a_hint() {
    let mut seen = 0;
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for file in ["src", "../runs/src"]
        .iter()
        .flat_map(|folder| sources(&root.join(folder)))
    {
        let text = fs::read_to_string(&file).unwrap();
        for made in text.split("Failure::refused(").skip(1) {
            seen += 1;
            let (hint, rest) = last_argument(made);
            assert!(
                !hint.is_empty(),
                "{}: refused without a remedy: {made:.80}",
                file.display()
            );
            assert!(
                !["\"\"", "String::new()"].contains(&hint),
                "{}: an empty remedy {rest:.40}",
                file.display()
            );
        }
        for made in text.split("Failure::new(").skip(1) {
            seen += 1;
            let (_, behind) = last_argument(made);
            let helped = behind.trim_start().starts_with(".help(");
            assert!(
                helped,
                "{}: a failure without .help: {made:.80}",
                file.display()
            );
        }
    }
    assert!(seen > 100, "the sources were not found: {seen}");
}

/// The last argument of a call whose opening bracket was just passed, and what stands behind the call.
fn last_argument(call: &str) -> (&str, &str) {
    let (mut depth, mut start, mut last, mut quoted, mut escaped) = (1_u32, 0, "", false, false);
    for (at, c) in call.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ if quoted => {}
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            ',' if depth == 1 => {
                last = call.get(start..at).unwrap_or_default().trim();
                start = at + 1;
            }
            _ => {}
        }
        if depth == 0 {
            let argument = call.get(start..at).unwrap_or_default().trim();
            return (
                if argument.is_empty() { last } else { argument },
                call.get(at + 1..).unwrap_or_default(),
            );
        }
    }
    ("", "")
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let files = entries.flat_map(|path| {
        if path.is_dir() {
            sources(&path)
        } else {
            vec![path]
        }
    });
    files
        .filter(|path| path.extension().is_some_and(|kind| kind == "rs"))
        .collect()
}
