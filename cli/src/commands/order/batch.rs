//! `code-commit order run`: one order, or several one after another.

use std::path::PathBuf;

use loop_order::Verdict;
use serde_json::json;

use crate::commands::order::args::RunOrderArgs;
use crate::commands::order::perform::{self, Done, Setting};
use crate::commands::order::plan::Terms;
use crate::commands::order::preflight;
use crate::config;
use crate::environment::Environment;
use crate::exit::{Exit, Failure};
use crate::keys::Keys;
use crate::output::{BAD, GOOD, Output, STRONG, printable};

/// What became of one order of several.
struct Row {
    file: PathBuf,
    exit: Exit,
    verdict: &'static str,
    stage: String,
    attempts: usize,
}

/// Carries the orders out; the exit code is that of the first one that did not pass.
pub fn run(args: &RunOrderArgs, environment: &Environment, output: &Output) -> Result<Exit, Failure> {
    let tree = preflight::repository(&args.repo)?;
    let keys = Keys::find(environment, tree.root());
    let redactor = output.strike_out(keys.exposed());
    let name = args.llm_model.parse().map_err(|error| {
        Failure::refused(
            anyhow::anyhow!("--llm-model {}: {error}", args.llm_model),
            "for example openai/NAME",
        )
    })?;
    let settings = config::load(tree.root(), environment, args.layer(name), output)?;
    let model = preflight::model(&settings, &keys, environment, &tree)?;
    let cancel = crate::interrupt::watched()?;
    let setting = Setting {
        repo: &args.repo,
        out: &args.out,
        terms: &Terms::of(args),
        environment,
        output,
        cancel: &cancel,
        settings: &settings,
        model: &*model,
        redactor: &redactor,
        going_on: None,
    };
    let files: Vec<PathBuf> = args.work_order.iter().chain(&args.files).cloned().collect();
    if let [only] = files.as_slice() {
        let done = perform::order(preflight::read(only)?, &setting)?;
        print(&done, output);
        return Ok(done.exit);
    }
    let rows = all(&files, args, &setting);
    table(&rows, files.len(), output);
    let failed = rows.iter().map(|row| row.exit).find(|exit| *exit != Exit::Done);
    Ok(failed.unwrap_or(Exit::Done))
}

/// In their order; behind one that fails only where that is asked for, and never behind one that leaves the tree in doubt.
fn all(files: &[PathBuf], args: &RunOrderArgs, setting: &Setting<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    for file in files {
        setting.output.report(&setting.output.paint(STRONG, &printable(&file.display().to_string())));
        let row = match preflight::read(file).and_then(|read| perform::order(read, setting)) {
            Ok(done) => {
                print(&done, setting.output);
                Row {
                    file: file.clone(),
                    exit: done.exit,
                    verdict: done.summary.verdict.as_str(),
                    stage: done.summary.ended_stage.clone(),
                    attempts: done.summary.attempts.len(),
                }
            }
            Err(failure) => {
                let exit = setting.output.failure(&failure);
                Row { file: file.clone(), exit, verdict: "FAIL", stage: "not begun".to_owned(), attempts: 0 }
            }
        };
        let exit = row.exit;
        rows.push(row);
        let is_final = matches!(exit, Exit::Interrupted | Exit::TreeNotRestored);
        if is_final || (exit != Exit::Done && !args.keep_going) {
            break;
        }
    }
    rows
}

/// The verdict and where the summary is (S2 §3).
pub fn print(done: &Done, output: &Output) {
    let Done { summary, path, changes, .. } = done;
    let style = if summary.verdict == Verdict::Pass { GOOD } else { BAD };
    let tries = if summary.attempts.len() == 1 { "attempt" } else { "attempts" };
    let verdict = output.paint(style, summary.verdict.as_str());
    output.report(&format!("{verdict} ({}) after {} {tries}", summary.ended_stage, summary.attempts.len()));
    for change in changes {
        output.report(&crate::summary::line(&change.stat(), output));
    }
    output.report(&path.display().to_string());
    output.object(&json!({ "event": "summary", "path": path, "summary": summary }));
}

fn table(rows: &[Row], of: usize, output: &Output) {
    let width =
        rows.iter().map(|row| row.file.display().to_string().chars().count()).max().unwrap_or_default();
    output.report("");
    for row in rows {
        let style = if row.exit == Exit::Done { GOOD } else { BAD };
        let file = printable(&row.file.display().to_string());
        let verdict = output.paint(style, row.verdict);
        output
            .report_prose(&format!("{verdict}  {file:width$}  {:21}  attempts {}", row.stage, row.attempts));
    }
    let skipped = of - rows.len();
    if skipped > 0 {
        output.report(&format!("{skipped} not begun (--keep-going goes on behind one that fails)"));
    }
    let rows: Vec<_> = rows
        .iter()
        .map(|row| json!({ "file": row.file, "verdict": row.verdict, "stage": row.stage, "attempts": row.attempts }))
        .collect();
    output.object(&json!({ "event": "orders", "orders": rows, "not_begun": skipped }));
}
