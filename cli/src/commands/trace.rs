//! `code-commit trace`: a run in the formats of other tools.

use code_commit_runs::{Exit, Failure, Host, chronicle, place};
use serde_json::Value;

use crate::args::{TraceArgs, TraceFormat};
use crate::commands::product::{self, redactor};

/// Writes the records: one JSON object per line.
pub fn run(args: &TraceArgs, host: Host<'_>) -> Result<Exit, Failure> {
    let root = place::root(host)?;
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
    product::deliver("trace", lines.as_bytes(), args.output.as_deref(), host)
}
