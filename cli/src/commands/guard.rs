//! `code-commit guard`: may a model write this, and why not?

use std::ffi::OsString;
use std::io::BufRead as _;

use anyhow::{Context as _, anyhow};
use code_commit_guard::Verdict;
use code_commit_logging::name_as_text;
use code_commit_report::{BAD, GOOD, printable_name};
use code_commit_runs::{Exit, Failure, Host, judge};
use serde_json::json;

use crate::args::GuardArgs;

/// Judges the paths as one reply and prints a verdict for each.
pub fn run(args: &GuardArgs, host: Host<'_>) -> Result<Exit, Failure> {
    let output = host.output;
    let paths = if args.stdin {
        from_stdin()?
    } else {
        args.paths.clone()
    };
    let verdicts = judge::paths(&args.root, &paths, host)?;
    let mut exit = Exit::Done;
    for (path, verdict) in paths.iter().zip(verdicts) {
        let shown = name_as_text(path);
        match verdict {
            Verdict::Admitted(_) => {
                output.object(
                    &json!({ "path": shown, "verdict": "allow", "code": null, "reason": null }),
                );
                output.report(&format!(
                    "{}   {}",
                    output.paint(GOOD, "allow"),
                    printable_name(&shown)
                ));
            }
            Verdict::Refused(refusal) => {
                exit = Exit::Failed;
                let (code, reason) = (refusal.code().as_str(), refusal.to_string());
                output.object(
                    &json!({ "path": shown, "verdict": "refuse", "code": code, "reason": reason }),
                );
                output.report(&format!(
                    "{}  {} [{code}]",
                    output.paint(BAD, "refuse"),
                    printable_name(&reason)
                ));
            }
        }
    }
    Ok(exit)
}

/// One JSON string per line; skips empty lines.
fn from_stdin() -> Result<Vec<OsString>, Failure> {
    let mut paths = Vec::new();
    for (number, line) in std::io::stdin().lock().split(b'\n').enumerate() {
        let line = line.context("cannot read standard input")?;
        if line.trim_ascii().is_empty() {
            continue;
        }
        let path: String = serde_json::from_slice(&line).map_err(|_| {
            Failure::refused(
                anyhow!("line {} is not a JSON string", number + 1),
                "write each path as \"path\"",
            )
        })?;
        paths.push(path.into());
    }
    Ok(paths)
}
