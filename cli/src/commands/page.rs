//! `code-commit page`: runs as files that somebody else reads, written to a file or to standard output.

use std::collections::BTreeSet;
use std::io::IsTerminal as _;
use std::path::Path;

use anyhow::{Context as _, anyhow};
use code_commit_logging::Redactor;
use code_commit_page::Excerpt;
use code_commit_report::{phrases, printable_name};
use code_commit_runs::chronicle::Found;
use code_commit_runs::{Exit, Failure, Host, chronicle};
use code_commit_settings::Keys;
use code_commit_timeline::Run;
use serde_json::json;

use crate::args::{PageArgs, PageFormat};

/// `code-commit page`: a run, or all runs of the project, as one file; or an index with a page for each run.
pub fn run(args: &PageArgs, host: Host<'_>) -> Result<Exit, Failure> {
    let root = host.root()?;
    let is_html = args.all || args.format == PageFormat::Html;
    if is_html && args.output.is_none() && std::io::stdout().is_terminal() {
        return Err(Failure::refused(
            anyhow!("a page is HTML, which a terminal does not show"),
            "write it to a file, and open that in a browser: code-commit page --output run.html",
        ));
    }
    if args.all {
        let folder = args.output.as_deref().filter(|path| is_folder(path));
        return all(args.output.as_deref(), folder, &root, host);
    }
    if let Some(folder) = args.output.as_deref().filter(|path| path.is_dir()) {
        let error = anyhow!(
            "{} is a folder, and the page of a run is a file",
            folder.display()
        );
        return Err(Failure::refused(
            error,
            "name a file, or write the pages of all runs there with --all",
        ));
    }
    let found = chronicle::find(args.run.as_deref(), host)?;
    let text = one(&found, args.format, &redactor(&root, host), &root)?;
    deliver(text.as_bytes(), args.output.as_deref(), host)
}

/// A file of this name would be no page.
fn is_folder(path: &Path) -> bool {
    path.is_dir() || path.extension().is_none()
}

fn all(
    file: Option<&Path>,
    folder: Option<&Path>,
    root: &Path,
    host: Host<'_>,
) -> Result<Exit, Failure> {
    let with_facts = |found: Found| (found.facts(), found);
    let mut all: Vec<(Run, Found)> = chronicle::all(host)?.into_iter().map(with_facts).collect();
    all.sort_by(|(one, _), (other, _)| {
        (other.steps.from_ms, &other.name).cmp(&(one.steps.from_ms, &one.name))
    });
    let mut pages = BTreeSet::new();
    if let Some(folder) = folder {
        let redactor = redactor(root, host);
        for (run, found) in &all {
            match one(found, PageFormat::Html, &redactor, root) {
                Ok(html) => {
                    write(&folder.join(format!("{}.html", run.name)), html.as_bytes())?;
                    pages.insert(run.name.clone());
                }
                Err(failure) => host
                    .output
                    .warn(&format!("{} has no page: {:#}", run.name, failure.error)),
            }
        }
    }
    let runs: Vec<Run> = all.into_iter().map(|(run, _)| run).collect();
    let page_of = |run: &Run| {
        pages
            .contains(&run.name)
            .then(|| format!("./{}.html", run.name))
    };
    let name = root.file_name().unwrap_or(root.as_os_str());
    let html = code_commit_page::all(&name.to_string_lossy(), &runs, &page_of);
    let index = folder.map(|folder| folder.join("index.html"));
    deliver(html.as_bytes(), index.as_deref().or(file), host)
}

fn one(
    found: &Found,
    format: PageFormat,
    redactor: &Redactor,
    root: &Path,
) -> Result<String, Failure> {
    let run = found.whole(root, redactor)?;
    let read = |file: &str, most| {
        found
            .ends(file, most)
            .map(|(head, tail, bytes)| Excerpt { head, tail, bytes })
    };
    Ok(match format {
        PageFormat::Html => code_commit_page::run(&run, &read),
        PageFormat::Markdown => code_commit_page::markdown(&run),
    })
}

/// Redacts every key that is known here, also where the terminal shows it.
pub(super) fn redactor(root: &Path, host: Host<'_>) -> Redactor {
    host.output
        .strike_out(Keys::find(host.environment, root).exposed())
}

/// Writes to the file, or to standard output if none is named.
fn deliver(bytes: &[u8], file: Option<&Path>, host: Host<'_>) -> Result<Exit, Failure> {
    let output = host.output;
    let Some(file) = file else {
        output.raw(bytes);
        return Ok(Exit::Done);
    };
    write(file, bytes)?;
    let (name, size) = (file.to_string_lossy(), bytes.len());
    output.object(&json!({ "event": "page", "file": name, "bytes": size }));
    output.report(&format!(
        "{}: {}",
        printable_name(&name),
        phrases::bytes(size as u64)
    ));
    Ok(Exit::Done)
}

fn write(file: &Path, bytes: &[u8]) -> Result<(), Failure> {
    code_commit_dir::replace(file, bytes)
        .with_context(|| format!("cannot write {}", file.display()))
        .map_err(|error| {
            Failure::refused(error, "name a file in a folder that exists and is writable")
        })
}
