//! `code-commit page`: a run, or all runs of the project, as one HTML file.

use code_commit_page::Excerpt;
use code_commit_runs::{Exit, Failure, Host, chronicle, place};
use code_commit_timeline::Run;

use crate::args::PageArgs;
use crate::commands::product::{self, redactor};

/// Makes the page.
pub fn run(args: &PageArgs, host: Host<'_>) -> Result<Exit, Failure> {
    let root = place::root(host)?;
    let html = if args.all {
        let mut all: Vec<Run> = chronicle::all(host)?.iter().map(chronicle::Found::facts).collect();
        all.sort_by(|one, other| (other.steps.from_ms, &other.name).cmp(&(one.steps.from_ms, &one.name)));
        let name = root.file_name().unwrap_or(root.as_os_str());
        code_commit_page::all(&name.to_string_lossy(), &all)
    } else {
        let found = chronicle::find(args.run.as_deref(), host)?;
        let run = found.whole(&root, &redactor(&root, host))?;
        code_commit_page::run(&run, &|file, most| {
            found.ends(file, most).map(|(head, tail, bytes)| Excerpt { head, tail, bytes })
        })
    };
    product::deliver("page", html.as_bytes(), args.output.as_deref(), host)
}
