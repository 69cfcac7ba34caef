//! `code-commit diff`, and the questions of `code-commit undo --patch`.

use std::io::{self, BufRead as _, IsTerminal as _};

use anyhow::{Context as _, anyhow};
use code_commit_report::{Output, STRONG, printable, printable_name};
use code_commit_runs::{Exit, Failure, Host, changes, chronicle, undo};
use serde_json::json;

use crate::args::UndoArgs;

/// Shows what a run changed, as it left the files: whatever became of them since.
pub fn diff(named: Option<&str>, host: Host<'_>) -> Result<Exit, Failure> {
    let (output, root) = (host.output, host.root()?);
    let found = chronicle::find(named, host)?;
    let run = found.whole(&root, &output.strike_out([]))?;
    let diffs: Vec<(char, &str, String)> = run
        .edits()
        .iter()
        .map(|edit| (edit.letter(), edit.path, changes::of_edit(edit, &run.contents)))
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
        output.report(changes::coloured(diff, output).trim_end());
    }
    Ok(Exit::Done)
}

/// Takes back what a run changed: all of it, some files, or pieces that are chosen one by one.
pub fn undo(args: &UndoArgs, host: Host<'_>) -> Result<Exit, Failure> {
    if !args.patch {
        return undo::run(&args.request(), None, host);
    }
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        let help = "name files instead: code-commit undo RUN FILE; or the whole run: code-commit undo RUN";
        return Err(Failure::refused(anyhow!("there is no terminal to ask on"), help));
    }
    let mut rest = None;
    let mut choose = |path: &str, pieces: &[String]| choose(path, pieces, &mut rest, host.output);
    undo::run(&args.request(), Some(&mut choose), host)
}

/// Asks for each piece; `rest` is the answer for all that follow, once there is one.
fn choose(
    path: &str,
    pieces: &[String],
    rest: &mut Option<bool>,
    output: &Output,
) -> Result<Vec<bool>, Failure> {
    let mut answers = Vec::new();
    let mut of_file = None;
    for piece in pieces {
        let known = rest.or(of_file);
        if let Some(known) = known {
            answers.push(known);
            continue;
        }
        output.report(&output.paint(STRONG, &printable_name(path)));
        output.report(changes::coloured(piece, output).trim_end());
        let answer = loop {
            output.error_block(
                "Take this back? [y]es, [n]o, [a]ll of this file, [d]one with this file, [q]uit:",
            );
            let mut line = String::new();
            let read = io::stdin().lock().read_line(&mut line).context("cannot read the answer")?;
            match line.trim() {
                "y" => break true,
                "n" => break false,
                "a" => break *of_file.insert(true),
                "d" => break *of_file.insert(false),
                "q" => break *rest.insert(false),
                _ if read == 0 => break *rest.insert(false),
                other => output.error_block(&format!("{} is none of y, n, a, d, q", printable(other))),
            }
        };
        answers.push(answer);
    }
    Ok(answers)
}
