//! `code-commit order check`: could this order be carried out here, and which of its commands pass already?

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use code_commit_loop_order::{FieldProblem, WorkOrder};
use code_commit_report::{BAD, GOOD, Output, STRONG, phrases, printable_name};
use code_commit_runs::order::{self, preflight};
use code_commit_runs::trusted::Trusted;
use code_commit_runs::{Exit, Failure, Host, check};
use code_commit_settings::Settings;
use serde_json::json;

use crate::args::order::CheckArgs;

/// Reports all problems together; runs the commands if there are none.
pub fn run(args: &CheckArgs, host: Host<'_>) -> Result<Exit, Failure> {
    let (environment, output) = (host.environment, host.output);
    let tree = preflight::repository(&args.repo)?;
    let settings = code_commit_runs::config::load(tree.root(), &args.settings.layer, host)?;
    let bytes = read(&args.file)?;
    let trusted = Trusted::of(&tree, environment);
    let order = WorkOrder::parse(&bytes);
    let mut problems = Vec::new();
    match &order {
        Ok(order) => {
            problems.extend(against(order, &trusted, &settings)?);
            problems.extend(order::unfit(order, tree.root(), environment));
            order::warn_of_verification(order, &tree, host);
        }
        Err(found) => problems.clone_from(found),
    }
    let git = trusted.under(&settings).git(tree.top())?;
    let status = trusted.status(&settings);
    for found in [
        status.and_then(|status| preflight::clean(&tree, &git, &status.dirty)),
        preflight::verification(tree.root()),
    ] {
        problems.extend(found.err().map(|refusal| FieldProblem {
            field: String::new(),
            message: format!("{:#}; {}", refusal.error, refusal.help),
        }));
    }
    report(&args.file, order.as_ref().ok(), &problems, output);
    match order {
        Ok(order) if problems.is_empty() => {
            let timeout = Duration::from_secs(args.timeout_seconds);
            check::with(settings, &tree, check::Of::Order(&order, timeout), host)
        }
        Ok(_) | Err(_) => Ok(Exit::Failed),
    }
}

fn read(file: &Path) -> Result<Vec<u8>, Failure> {
    let read = if file == Path::new("-") {
        preflight::bounded(std::io::stdin().lock())
    } else {
        File::open(file).and_then(preflight::bounded)
    };
    read.with_context(|| format!("cannot read {}", file.display()))
        .map_err(|error| {
            Failure::refused(error, "name a file with an order, or - for standard input")
        })
}

fn against(
    order: &WorkOrder,
    trusted: &Trusted,
    settings: &Settings,
) -> Result<Vec<FieldProblem>, Failure> {
    let guard = preflight::open(trusted, order, settings)?;
    let mut problems = preflight::unwritable(&guard, order);
    problems.extend(
        order::read_files(trusted.root(), order)
            .err()
            .into_iter()
            .flatten(),
    );
    Ok(problems)
}

fn report(file: &Path, order: Option<&WorkOrder>, problems: &[FieldProblem], output: &Output) {
    let list: Vec<_> = problems
        .iter()
        .map(|p| json!({ "field": p.field, "message": p.message }))
        .collect();
    output.object(&json!({
        "ok": problems.is_empty(), "file": file.display().to_string(),
        "work_order_hash": order.map(|order| &order.hash), "problems": list,
    }));
    let shown = printable_name(&file.display().to_string());
    if problems.is_empty() {
        output.report(&format!("{} {shown}", output.paint(GOOD, "ok")));
        if let Some(order) = order {
            output.report(&facts(order));
        }
        return;
    }
    output.report(&format!(
        "{} {shown}",
        output.paint(BAD, "cannot be carried out:")
    ));
    for problem in problems.iter().take(preflight::NAMED_PROBLEMS) {
        let field = match problem.field.as_str() {
            "" => String::new(),
            field => format!("{} ", output.paint(STRONG, field)),
        };
        output.report(&format!("  {field}{}", printable_name(&problem.message)));
    }
}

fn facts(order: &WorkOrder) -> String {
    let commands: Vec<String> = order
        .acceptance_commands
        .iter()
        .map(|command| format!("\n  runs {}", printable_name(&command.text)))
        .collect();
    format!(
        "  may write {}, shows {}{}\n  hash {}",
        phrases::count(order.allowed_files.len() as u64, "file"),
        phrases::count(order.context_files.len() as u64, "file"),
        commands.concat(),
        order.hash
    )
}
