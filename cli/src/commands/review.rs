//! `code-commit diff`, `review`, and the questions of `code-commit undo --patch`.

use std::io::{self, BufRead as _, IsTerminal as _};

use anyhow::{Context as _, anyhow};
use code_commit_report::{Output, STRONG, printable, printable_name};
use code_commit_runs::registry::Known;
use code_commit_runs::review::{self, Decision};
use code_commit_runs::{Exit, Failure, Host, Site, changes, chronicle, undo};
use serde_json::json;

use super::retell::redactor;
use crate::args::{ReviewArgs, UndoArgs};

/// Shows what a run changed, as it left the files: whatever became of them since.
pub fn diff(named: Option<&str>, host: Host<'_>) -> Result<Exit, Failure> {
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
        output.report(changes::coloured(diff, output).trim_end());
    }
    Ok(Exit::Done)
}

/// Undoes what a run changed: all of it, some files, or hunks that the person chooses.
pub fn undo(args: &UndoArgs, host: Host<'_>) -> Result<Exit, Failure> {
    if !args.patch {
        return undo::run(&args.request(), None, host);
    }
    on_terminal(
        "name files instead: code-commit undo RUN FILE; or the whole run: code-commit undo RUN",
    )?;
    let mut rest = None;
    let mut choose = |path: &str, hunks: &[String]| choose(path, hunks, &mut rest, host.output);
    undo::run(&args.request(), Some(&mut choose), host)
}

/// Shows the change of a run that waits for a person, and carries out what that person decides.
pub fn review(args: &ReviewArgs, host: Host<'_>) -> Result<Exit, Failure> {
    let site = Site::here(host)?;
    let known = review::find(args.run.as_deref(), &site)?;
    let decision = match &args.message {
        Some(words) => Decision::Words(words.clone()),
        None if args.accept => Decision::Accept,
        None if args.reject => Decision::Reject(&args.files),
        None => return ask(&known.name(&site.root), &known, host),
    };
    review::carry_out(&known, decision, host)
}

fn ask(name: &str, known: &Known, host: Host<'_>) -> Result<Exit, Failure> {
    diff(Some(name), host)?;
    on_terminal("say it: code-commit review --accept, --reject or -m \"…\"")?;
    let question = "[a]ccept, [r]eject, [p]atch (hunk by hunk), [w]ords to the model, [q]uit:";
    loop {
        match answer(question, host.output)?.as_deref().unwrap_or("q") {
            "a" => return review::carry_out(known, Decision::Accept, host),
            "r" => return review::carry_out(known, Decision::Reject(&[]), host),
            "p" => {
                let mut rest = None;
                let mut choose =
                    |path: &str, hunks: &[String]| choose(path, hunks, &mut rest, host.output);
                let request = undo::Request {
                    run: Some(name),
                    ..undo::Request::default()
                };
                undo::run(&request, Some(&mut choose), host)?;
                // Who quits has not decided about the rest.
                return if rest.is_some() {
                    Ok(Exit::WaitsForReview)
                } else {
                    review::settle(known, host)
                };
            }
            "w" => {
                let words = answer("What should be different?", host.output)?.unwrap_or_default();
                return review::carry_out(known, Decision::Words(words), host);
            }
            "q" => return Ok(Exit::WaitsForReview),
            other => host
                .output
                .error_block(&format!("{} is none of a, r, p, w, q", printable(other))),
        }
    }
}

fn on_terminal(instead: &str) -> Result<(), Failure> {
    if io::stdin().is_terminal() && io::stderr().is_terminal() {
        return Ok(());
    }
    Err(Failure::refused(
        anyhow!("there is no terminal to ask on"),
        instead,
    ))
}

/// A line that the person types; `None` at the end of the input.
fn answer(question: &str, output: &Output) -> Result<Option<String>, Failure> {
    output.error_block(question);
    let mut line = String::new();
    let read = io::stdin()
        .lock()
        .read_line(&mut line)
        .context("cannot read the answer")?;
    Ok((read > 0).then(|| line.trim().to_owned()))
}

/// Asks about each hunk. `rest` is the answer for all that follow, once the person has quit.
fn choose(
    path: &str,
    hunks: &[String],
    rest: &mut Option<bool>,
    output: &Output,
) -> Result<Vec<bool>, Failure> {
    let mut answers = Vec::new();
    let mut of_file = None;
    for hunk in hunks {
        let known = rest.or(of_file);
        if let Some(known) = known {
            answers.push(known);
            continue;
        }
        output.report(&output.paint(STRONG, &printable_name(path)));
        output.report(changes::coloured(hunk, output).trim_end());
        let is_undone = loop {
            let question =
                "Undo this hunk? [y]es, [n]o, [a]ll of this file, [d]one with this file, [q]uit:";
            match answer(question, output)?.as_deref().unwrap_or("q") {
                "y" => break true,
                "n" => break false,
                "a" => break *of_file.insert(true),
                "d" => break *of_file.insert(false),
                "q" => break *rest.insert(false),
                other => {
                    output.error_block(&format!("{} is none of y, n, a, d, q", printable(other)))
                }
            }
        };
        answers.push(is_undone);
    }
    Ok(answers)
}
