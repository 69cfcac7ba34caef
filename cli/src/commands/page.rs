//! `code-commit page`: runs as files that somebody else reads, written to a file or to standard output.

use std::collections::BTreeSet;
use std::io::IsTerminal as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

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
    let to = Destination {
        args,
        root: &root,
        host,
    };
    if args.all {
        return all(&to);
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
    let file = to.file(|| found.path.join("page.html"));
    to.deliver(text.as_bytes(), file.as_deref())
}

/// A file of this name would be no page.
fn is_folder(path: &Path) -> bool {
    path.is_dir() || path.extension().is_none()
}

fn all(to: &Destination<'_>) -> Result<Exit, Failure> {
    let Destination { args, root, host } = *to;
    let folder = args.output.as_deref().filter(|path| is_folder(path));
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
    let logs = all.first().and_then(|(_, newest)| newest.path.parent());
    let beside = logs.unwrap_or(root).join("runs.html");
    let runs: Vec<Run> = all.into_iter().map(|(run, _)| run).collect();
    let page_of = |run: &Run| {
        pages
            .contains(&run.name)
            .then(|| format!("./{}.html", run.name))
    };
    let name = root.file_name().unwrap_or(root.as_os_str());
    let html = code_commit_page::all(&name.to_string_lossy(), &runs, &page_of);
    let index = folder.map(|folder| folder.join("index.html"));
    let file = index.or_else(|| to.file(|| beside));
    to.deliver(html.as_bytes(), file.as_deref())
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

/// Where a page goes.
#[derive(Clone, Copy)]
struct Destination<'p> {
    args: &'p PageArgs,
    root: &'p Path,
    host: Host<'p>,
}

impl Destination<'_> {
    /// The named file. Without one, a page that is to be opened, and HTML on a terminal, goes to a file beside the records.
    fn file(&self, beside: impl FnOnce() -> PathBuf) -> Option<PathBuf> {
        let is_html = self.args.format == PageFormat::Html;
        let needs_file = self.args.open || (is_html && std::io::stdout().is_terminal());
        let named = self.args.output.clone();
        named.or_else(|| needs_file.then(beside))
    }

    /// Writes to the file, or to standard output if there is none.
    fn deliver(&self, bytes: &[u8], file: Option<&Path>) -> Result<Exit, Failure> {
        let output = self.host.output;
        let Some(file) = file else {
            output.raw(bytes);
            return Ok(Exit::Done);
        };
        write(file, bytes)?;
        let shown = file.strip_prefix(self.root).unwrap_or(file);
        let size = bytes.len();
        output.object(&json!({ "event": "page", "file": file.to_string_lossy(), "bytes": size }));
        output.report(&format!(
            "{}: {}",
            printable_name(&shown.to_string_lossy()),
            phrases::bytes(size as u64)
        ));
        if self.args.open
            && let Err(error) = self.open(file)
        {
            output.warn(&format!("the page was not opened: {error:#}"));
        }
        Ok(Exit::Done)
    }

    /// Leaves the file to the desktop, without waiting.
    #[expect(
        clippy::disallowed_methods,
        reason = "a browser outlives this program, and the runner leaves no process behind"
    )]
    fn open(&self, file: &Path) -> anyhow::Result<()> {
        let opener = self.host.trusted().programs().find(OPENER)?;
        let mut command = Command::new(&opener);
        command.arg(file).process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(Stdio::null()).spawn()?;
        Ok(())
    }
}

/// The desktop's own program that opens a file.
const OPENER: &str = if cfg!(target_os = "macos") {
    "open"
} else {
    "xdg-open"
};

fn write(file: &Path, bytes: &[u8]) -> Result<(), Failure> {
    code_commit_dir::replace(file, bytes)
        .with_context(|| format!("cannot write {}", file.display()))
        .map_err(|error| {
            Failure::refused(error, "name a file in a folder that exists and is writable")
        })
}
