//! `code-commit apply`: applies a pasted or saved reply, without a model.

use std::path::PathBuf;

use anyhow::Context as _;
use code_commit_apply::Applied;
use code_commit_changes::BACKUP;
use code_commit_engine::{Action, Problem, Reply};
use code_commit_guard::{Configuration, Guard, Surroundings};
use code_commit_logging::{Redactor, RunFolder, Stamp};
use code_commit_names::ours::AGENT_CONFIG;
use code_commit_parser::Errors;
use code_commit_perform::{Fault, Intake, Rules, Shown};
use code_commit_repo::WorkTree;
use code_commit_report::{BAD, Output, phrases, printable, printable_name};
use code_commit_runs::commit::leaves_tree_changed;
use code_commit_runs::gitignore::hides_agent_config;
use code_commit_runs::registry::Registry;
use code_commit_runs::{Exit, Failure, Host, commit, lock, place, preflight, records, text};
use code_commit_settings::{Keys, Layer};
use serde_json::{Value, json};

use crate::args::ApplyArgs;
use crate::commands::parse;

/// Parses, judges and writes; or shows what would be written.
pub fn run(args: &ApplyArgs, host: Host<'_>) -> Result<Exit, Failure> {
    let Host {
        environment,
        output,
        ..
    } = host;
    let bytes = text::read_input(&args.file)?;
    let reply = match code_commit_parser::parse_bytes(&bytes) {
        Ok(reply) => reply,
        Err(errors) => return Ok(unreadable(&errors, &bytes, args, output)),
    };
    let tree = place::work_tree(host.here()?)?;
    let lock = lock::take(&tree, host)?;
    let settings = code_commit_runs::config::load(tree.root(), Layer::default(), host)?;
    let guard = Guard::open(
        tree.root(),
        commit::policy(&settings, tree.root(), Some(&tree)),
    )
    .map_err(|error| Failure::refused(error, "make the folder readable"))?;
    let rules = Rules {
        root: tree.root().to_owned(),
        guard: guard.into(),
        lock: lock.into(),
    };
    let answer = answer(reply.text(), &Keys::find(environment, tree.root()));
    if args.dry_run {
        let preview = rules.preview(&answer, &reply, Shown::Tree);
        return match preview.map_err(|error| Failure::refused(error, "fix that and try again"))? {
            Ok(applied) => Ok(done(&applied, "would be", output)),
            Err(refusals) => Ok(refused(&refusals, output)),
        };
    }
    write(&answer, &rules, &tree, output)
}

/// Leaves a record, which `undo` needs.
fn write(answer: &Reply, rules: &Rules, tree: &WorkTree, output: &Output) -> Result<Exit, Failure> {
    let folder = folder(tree)?;
    let intake = rules.take_in(answer, Shown::Tree, &folder.path().join(BACKUP).join("1"));
    match intake.map_err(|error| failed(error, &folder))? {
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
            let is_as_before = applied
                .changes
                .iter()
                .all(|change| change.action == code_commit_apply::Action::None);
            let exit = done(&applied, "", output);
            if is_as_before {
                records::discard(&folder);
            } else {
                output.note(&format!(
                    "undo with: code-commit undo {}",
                    records::name(folder.path())
                ));
            }
            Ok(exit)
        }
        Intake::Rejected { problems, .. } => {
            // Nothing was written, so no record is needed.
            records::discard(&folder);
            Ok(refused(&problems, output))
        }
    }
}

fn failed(error: Fault, record: &RunFolder) -> Failure {
    if leaves_tree_changed(&error) {
        let help = format!(
            "the next command restores files that were not changed since; the old contents are in {}",
            record.path().join(BACKUP).display()
        );
        return Failure::new(Exit::TreeNotRestored, error).help(help);
    }
    records::discard(record);
    Failure::refused(error, "fix that and try again; the work tree is unchanged")
}

/// The reply in the form that a model gives.
fn answer(text: &str, keys: &Keys) -> Reply {
    let held_key = Redactor::new(keys.exposed()).finds_key(text);
    Reply {
        held_key,
        ..Reply::of_text(text)
    }
}

fn folder(tree: &WorkTree) -> Result<RunFolder, Failure> {
    let base = base_for_tools(tree)?;
    RunFolder::create(
        &base,
        &format!("{}-apply", Stamp::now().folder_name()),
        Redactor::default(),
    )
    .context("cannot keep a record")
    .map_err(|error| Failure::refused(error, "make the folder writable"))
    .and_then(|folder| {
        Registry::of(tree)
            .add(folder.path(), None)
            .inspect_err(|_| records::discard(&folder))?;
        Ok(folder)
    })
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
            (_, Action::None) => format!("{mood} left as it is: {}", printable_name(&change.path)),
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

/// Where `apply` keeps its record: with the runs if git ignores them, otherwise in the harness's own state.
fn base_for_tools(tree: &WorkTree) -> Result<PathBuf, Failure> {
    let around = Surroundings::find(tree.root(), Configuration::All).ok();
    let hidden = around.is_some_and(|around| hides_agent_config(&around).unwrap_or(false));
    let is_own = preflight::own_or_absent(tree.root()).is_ok();
    if hidden && is_own && tree.root().join(AGENT_CONFIG).is_dir() {
        return Ok(records::logs(tree.root()));
    }
    let state = tree.state_of_root()?;
    Ok(state.join(records::RUNS))
}
