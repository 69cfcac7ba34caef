//! Links between pages lead somewhere, the table of contents has every page, and documents about the code name files
//! that are there.

use std::path::{Path, PathBuf};
use std::process::Command;

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
    let about_the_code = std::iter::once(PathBuf::from(ARCHITECTURE)).chain(decisions());
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

/// The values of an attribute in HTML.
fn values<'h>(html: &'h str, attribute: &str) -> Vec<&'h str> {
    let start = format!(" {attribute}=\"");
    html.split(start.as_str())
        .skip(1)
        .filter_map(|rest| Some(rest.split_once('"')?.0))
        .collect()
}

#[test]
fn the_built_book_has_no_dead_link() {
    helps();
    let built = tempfile::tempdir().unwrap();
    let mut build = Command::new("mdbook");
    build
        .arg("build")
        .arg(root().join("docs"))
        .arg("--dest-dir")
        .arg(built.path());
    let Ok(done) = build.output() else {
        eprintln!("SKIPPED: the links of the built book, because mdbook is not installed");
        return;
    };
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    let mut wrong = Vec::new();
    for page in all()
        .iter()
        .filter_map(|page| page.strip_prefix("docs").ok())
    {
        let Some(html) = html(built.path(), page) else {
            continue;
        };
        let text = std::fs::read_to_string(&html).unwrap();
        let links = [values(&text, "href"), values(&text, "src")].concat();
        let is_ours = |link: &&str| {
            !link.contains("://") && !link.starts_with("data:") && !OUTSIDE.contains(link)
        };
        for link in links.into_iter().filter(is_ours) {
            let (file, id) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() {
                html.clone()
            } else {
                html.parent().unwrap().join(file)
            };
            let found = std::fs::read(&target).unwrap_or_default();
            let found = String::from_utf8_lossy(&found);
            if !target.exists() || !(id.is_empty() || values(&found, "id").contains(&id)) {
                wrong.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The file of a page in the built book. The table of contents has none.
fn html(book: &Path, page: &Path) -> Option<PathBuf> {
    let file = book.join(page).with_extension("html");
    let is_contents = page == Path::new("SUMMARY.md");
    assert!(
        is_contents || file.is_file(),
        "the book lacks {}",
        page.display()
    );
    (!is_contents).then_some(file)
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
        text.lines().count() <= 110,
        "it is read at one sitting: decisions belong beside their crates"
    );
}
