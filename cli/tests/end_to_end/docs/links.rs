//! Links between pages lead somewhere, the table of contents has every page, and documents about the code name files
//! that are there.

use std::path::{Path, PathBuf};

use crate::docs::conformance::{crates, rust_files};
use crate::docs::helps::helps;
use crate::docs::page::{all, blocks, root, text};

const ARCHITECTURE: &str = "ARCHITECTURE.md";

/// Links of the book to the source tree, dead in the book alone. None may be added.
const OUTSIDE: [&str; 1] = ["../../fixtures/tests/own_dialect.rs"];

/// The decisions of all crates, relative to the root.
fn decisions() -> Vec<PathBuf> {
    let pages = crates()
        .into_iter()
        .map(|folder| folder.join("DECISIONS.md"))
        .filter(|page| page.is_file());
    pages
        .map(|page| page.strip_prefix(root()).unwrap().to_owned())
        .collect()
}

/// The names in backticks that end in `.rs`.
fn rust_names(text: &str) -> impl Iterator<Item = &str> {
    let names = text.split('`').skip(1).step_by(2);
    names.filter(|name| {
        Path::new(name)
            .extension()
            .is_some_and(|extension| extension == "rs")
    })
}

/// Where the links of a page lead, but for addresses of the web.
fn targets(text: &str) -> Vec<&str> {
    let inside: Vec<std::ops::Range<usize>> = blocks(text)
        .iter()
        .map(|block| block.at..block.at + block.lines.len())
        .collect();
    let prose = text
        .lines()
        .enumerate()
        .filter(|(at, _)| !inside.iter().any(|lines| lines.contains(at)));
    prose
        .flat_map(|(_, line)| line.split("](").skip(1))
        .filter_map(|rest| Some(rest.split_once(')')?.0))
        .filter(|target| !target.contains("://"))
        .collect()
}

/// The anchor of a heading, as the usual renderers make it.
fn anchor(heading: &str) -> String {
    let kept = heading
        .trim_start_matches('#')
        .trim()
        .chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

#[test]
fn every_link_leads_to_a_file_and_a_heading_that_are_there() {
    // Makes a page that others lead to.
    helps();
    let mut wrong = Vec::new();
    let about_the_code = [
        PathBuf::from(ARCHITECTURE),
        PathBuf::from("CONTRIBUTING.md"),
    ]
    .into_iter()
    .chain(decisions());
    for page in all().into_iter().chain(about_the_code) {
        let folder = root().join(&page).parent().unwrap().to_owned();
        for target in targets(&text(&page)) {
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            let path = if file.is_empty() {
                root().join(&page)
            } else {
                folder.join(file)
            };
            let found = std::fs::read_to_string(&path).unwrap_or_default();
            let has_heading = heading.is_empty()
                || found
                    .lines()
                    .any(|line| line.starts_with('#') && anchor(line) == heading);
            if !path.exists() || !has_heading {
                wrong.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// In the built book a link to the source tree is dead.
#[test]
fn a_page_of_the_book_links_to_nothing_outside_of_it() {
    helps();
    let book = root().join("docs");
    let mut wrong = Vec::new();
    for page in all().into_iter().filter(|page| page.starts_with("docs")) {
        let folder = root().join(&page).parent().unwrap().to_owned();
        let text = text(&page);
        let files = targets(&text)
            .into_iter()
            .filter_map(|target| target.split('#').next());
        for file in files.filter(|file| !file.is_empty() && !OUTSIDE.contains(file)) {
            let is_inside =
                std::fs::canonicalize(folder.join(file)).is_ok_and(|path| path.starts_with(&book));
            if !is_inside {
                wrong.push(format!("{}: {file}", page.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_table_of_contents_has_every_page() {
    let contents = text(Path::new("docs/SUMMARY.md"));
    let listed = targets(&contents);
    for page in all()
        .iter()
        .filter_map(|page| page.strip_prefix("docs").ok())
    {
        let name = page.to_str().unwrap();
        assert!(
            name == "SUMMARY.md" || listed.contains(&name),
            "{name} is not in docs/SUMMARY.md"
        );
    }
}

#[test]
fn every_rust_file_that_the_architecture_names_is_there() {
    let files: Vec<PathBuf> = crates()
        .iter()
        .flat_map(|folder| rust_files(folder))
        .collect();
    let others = [
        PathBuf::from(ARCHITECTURE),
        PathBuf::from("docs/explanation/design.md"),
    ];
    let mut wrong = Vec::new();
    for page in decisions().into_iter().chain(others) {
        for name in rust_names(&text(&page)) {
            // A name without its crate is that of a file beside one that was named before.
            if !files.iter().any(|file| file.ends_with(name)) {
                wrong.push(format!("{}: {name}", page.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_architecture_leads_to_the_decisions_of_every_crate() {
    let text = text(Path::new(ARCHITECTURE));
    let linked = targets(&text);
    let missing: Vec<PathBuf> = decisions()
        .into_iter()
        .filter(|page| !linked.contains(&page.to_str().unwrap()))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert!(
        text.lines().count() <= 125,
        "it is read at one sitting: decisions belong beside their crates"
    );
}
