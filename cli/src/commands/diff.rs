//! `code-commit diff`.

use code_commit_runs::{Exit, Failure, Host, changes, chronicle};
use serde_json::json;

use super::page::redactor;

/// Shows what a run changed, as it left the files: whatever became of them since.
pub fn run(named: Option<&str>, host: Host<'_>) -> Result<Exit, Failure> {
    let (output, root) = (host.output, host.root()?);
    let found = chronicle::find(named, host)?;
    let run = found.whole(&root, &redactor(&root, host))?;
    let diffs: Vec<(char, &str, String)> = run
        .edits()
        .iter()
        .map(|edit| {
            (
                edit.letter(),
                edit.path,
                changes::of_edit(edit, &run.contents),
            )
        })
        .collect();
    let files: Vec<_> = diffs
        .iter()
        .map(|(letter, path, diff)| json!({ "path": path, "status": letter.to_string(), "diff": diff }))
        .collect();
    output.object(&json!({ "run": run.name, "files": files }));
    if diffs.is_empty() {
        output.note(&format!("{} changed no file", run.name));
    }
    for (_, _, diff) in &diffs {
        if output.is_for_a_person() {
            output.report(changes::coloured(diff, output).trim_end());
        } else if !output.json {
            output.raw(diff.as_bytes());
        }
    }
    Ok(Exit::Done)
}
