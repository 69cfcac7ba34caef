//! Runs as files that somebody else reads, written to a file or to standard output.

use std::path::Path;

use anyhow::Context as _;
use code_commit_logging::Redactor;
use code_commit_page::Excerpt;
use code_commit_report::{phrases, printable};
use code_commit_runs::{Exit, Failure, Host, chronicle};
use code_commit_settings::Keys;
use code_commit_timeline::Run;
use serde_json::{Value, json};

use crate::args::{PageArgs, TraceArgs, TraceFormat};

/// `code-commit page`: a run, or all runs of the project, as one HTML file.
pub fn page(args: &PageArgs, host: Host<'_>) -> Result<Exit, Failure> {
    let root = host.root()?;
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
    deliver("page", html.as_bytes(), args.output.as_deref(), host)
}

/// `code-commit trace`: a run in the formats of other tools, one JSON object per line.
pub fn trace(args: &TraceArgs, host: Host<'_>) -> Result<Exit, Failure> {
    let root = host.root()?;
    let found = chronicle::find(args.run.as_deref(), host)?;
    let run = found.whole(&root, &redactor(&root, host))?;
    let records = match args.format {
        TraceFormat::AgentTrace => {
            code_commit_trace::agent_trace(&run, found.revision(&run, &root).as_deref())
        }
        TraceFormat::Otlp => vec![code_commit_trace::otlp(&run)],
    };
    if records.is_empty() {
        host.output.warn("no record was made: the run left no line that a model wrote");
    }
    let lines: String = records.iter().map(|record: &Value| format!("{record}\n")).collect();
    deliver("trace", lines.as_bytes(), args.output.as_deref(), host)
}

/// Redacts every key that is known here, also where the terminal shows it.
fn redactor(root: &Path, host: Host<'_>) -> Redactor {
    host.output.strike_out(Keys::find(host.environment, root).exposed())
}

/// Writes to the file, or to standard output if none is named.
fn deliver(event: &str, bytes: &[u8], file: Option<&Path>, host: Host<'_>) -> Result<Exit, Failure> {
    let output = host.output;
    let Some(file) = file else {
        output.raw(bytes);
        return Ok(Exit::Done);
    };
    code_commit_dir::replace(file, bytes)
        .with_context(|| format!("cannot write {}", file.display()))
        .map_err(|error| Failure::refused(error, "name a file in a folder that exists and is writable"))?;
    let (name, size) = (file.to_string_lossy(), bytes.len());
    output.object(&json!({ "event": event, "file": name, "bytes": size }));
    output.report(&format!("{}: {}", printable(&name), phrases::bytes(size as u64)));
    Ok(Exit::Done)
}
