//! `code-commit apply`: applies a pasted or saved reply, without a model.

use code_commit_apply::Applied;
use code_commit_engine::{Action, Problem, Reply};
use code_commit_parser::Errors;
use code_commit_perform::{Intake, Shown};
use code_commit_report::{BAD, Output, phrases, printable, printable_name};
use code_commit_runs::apply::{self, Writer};
use code_commit_runs::{Exit, Failure, Host, text};
use serde_json::{Value, json};

use crate::args::ApplyArgs;
use crate::commands::parse;

/// Parses, judges and writes; or shows what would be written.
pub fn run(args: &ApplyArgs, host: Host<'_>) -> Result<Exit, Failure> {
    let output = host.output;
    let bytes = text::read_input(&args.file)?;
    let reply = match code_commit_parser::parse_bytes(&bytes) {
        Ok(reply) => reply,
        Err(errors) => return Ok(unreadable(&errors, &bytes, args, output)),
    };
    let writer = Writer::open(host)?;
    let answer = writer.reply(reply.text());
    if args.dry_run {
        let preview = writer.rules.preview(&answer, &reply, Shown::Tree);
        return match preview.map_err(|error| Failure::refused(error, "fix that and try again"))? {
            Ok(applied) => Ok(done(&applied, "would be", output)),
            Err(refusals) => Ok(refused(&refusals, output)),
        };
    }
    write(&answer, &writer, output)
}

/// Leaves a record, which `undo` needs.
fn write(answer: &Reply, writer: &Writer, output: &Output) -> Result<Exit, Failure> {
    let record = writer.record()?;
    let intake = writer
        .rules
        .take_in(answer, Shown::Tree, &apply::backup(&record));
    match intake.map_err(|error| apply::failed(error, &record))? {
        Intake::Applied {
            applied,
            warnings,
            said,
            no_change,
            ..
        } => {
            for text in said.into_iter().chain(no_change) {
                output.report(&printable(text.trim_end()));
            }
            for warning in warnings {
                output.warn(&warning.message);
            }
            applied
                .warnings
                .iter()
                .for_each(|warning| output.warn(&warning.to_string()));
            let exit = done(&applied, "", output);
            if let Some(name) = apply::settle(&record, Some(&applied)) {
                output.note(&format!("undo with: code-commit undo {name}"));
            }
            Ok(exit)
        }
        Intake::Rejected { problems, .. } => {
            apply::settle(&record, None);
            Ok(refused(&problems, output))
        }
    }
}

fn unreadable(errors: &Errors, bytes: &[u8], args: &ApplyArgs, output: &Output) -> Exit {
    let errors_json = parse::errors_json(errors);
    let object = json!({ "ok": false, "changed": [], "refused": [], "errors": errors_json });
    output.object(&parse::with_more(object, errors));
    parse::print_errors(errors, bytes, &args.file.display().to_string(), output);
    Exit::Failed
}

fn done(applied: &Applied, mood: &str, output: &Output) -> Exit {
    let changed: Vec<Value> = applied
        .changes
        .iter()
        .map(|change| {
            json!({
                "path": change.path, "action": change.action,
                "before_sha256": change.before_sha256, "after_sha256": change.after_sha256,
            })
        })
        .collect();
    output.object(&json!({ "ok": true, "changed": changed, "refused": [], "errors": [] }));
    for change in &applied.changes {
        let what = match (mood, change.action) {
            ("", _) => phrases::change(change),
            (_, Action::Write) => format!("{mood} written: {}", printable_name(&change.path)),
            (_, Action::Delete) => format!("{mood} deleted: {}", printable_name(&change.path)),
            (_, Action::None) => format!("{mood} unchanged: {}", printable_name(&change.path)),
        };
        output.report(&what);
    }
    Exit::Done
}

fn refused(problems: &[Problem], output: &Output) -> Exit {
    let refused: Vec<Value> = problems
        .iter()
        .map(|problem| {
            json!({ "path": problem.path, "verdict": "refuse", "code": problem.code, "reason": problem.message })
        })
        .collect();
    output.object(&json!({ "ok": false, "changed": [], "refused": refused, "errors": [] }));
    for problem in problems {
        let text = format!("{} [{}]", printable_name(&problem.message), problem.code);
        output.error_block(&format!("{} {text}", output.paint_note(BAD, "refused:")));
    }
    output.note("nothing was written");
    Exit::Failed
}
