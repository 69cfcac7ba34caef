//! `code-commit order run`: one order, or several in sequence, each from its file to its verdict.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use code_commit_loop_order::Finished as Ended;
use code_commit_perform::Past;
use code_commit_repo::WorkTree;
use code_commit_report::{BAD, GOOD, Output, STRONG, printable_name};
use code_commit_settings::{Keys, Layer};
use serde_json::json;

use crate::exit::{Exit, Failure};
use crate::host::Host;
use crate::life::{Asked, Finished};
use crate::order::plan::Terms;
use crate::order::preflight::{self, Read};
use crate::order::prepare;
use crate::order::setting::{Order, Setting};
use crate::order::settle;
use crate::registry::Registry;
use crate::site::Site;
use crate::trusted::Trusted;

/// Orders to carry out in sequence.
#[derive(Debug)]
pub struct Request {
    /// The files of the orders.
    pub files: Vec<PathBuf>,
    /// The repository.
    pub repo: PathBuf,
    /// Where to create run folders.
    pub out: PathBuf,
    /// What a run depends on besides settings.
    pub terms: Terms,
    /// Settings that override those of all files.
    pub layer: Layer,
    /// Continue with the next order after one fails.
    pub keep_going: bool,
    /// Begin a new run, whatever is recorded.
    pub new: bool,
    /// Tell what the first prompt of each order takes, and send nothing.
    pub dry_run: bool,
    /// The supervisor's name for this work. Of several orders, each has it with its number.
    pub key: Option<String>,
}

/// Carries the orders out; the exit code is that of the first one that did not pass.
pub fn run(args: &Request, host: Host<'_>) -> Result<Exit, Failure> {
    let Host {
        environment,
        output,
        ..
    } = host;
    let tree = preflight::repository(&args.repo)?;
    let keys = Keys::find(environment, tree.root());
    let redactor = output.strike_out(keys.exposed());
    let settings = crate::config::load(tree.root(), args.layer.clone(), host)?;
    let model = preflight::model(&settings, &keys, host)?.into();
    let cancel = crate::interrupt::watched()?;
    let setting = Setting {
        repo: &tree,
        out: &args.out,
        terms: &args.terms,
        host,
        cancel: &cancel,
        settings: &settings,
        model: &model,
        redactor: &redactor,
        goes_on: false,
        new: args.new,
        dry_run: args.dry_run,
        key: args.key.as_deref(),
    };
    settle::recover(&tree, &settings, host)?;
    if let [only] = args.files.as_slice() {
        let done = order(preflight::read(only)?, &setting)?;
        return Ok(done.map_or(Exit::Done, |done| done.exit));
    }
    if args.dry_run {
        for file in &args.files {
            order(preflight::read(file)?, &setting)?;
        }
        return Ok(Exit::Done);
    }
    let orders = checked(args, &tree, &setting)?;
    let rows = all(orders, args, &tree, &setting);
    table(&rows, args.files.len(), output);
    let failed = rows
        .iter()
        .map(|row| row.exit)
        .find(|exit| *exit != Exit::Done);
    Ok(failed.unwrap_or(Exit::Done))
}

/// Carries an order out, or answers it from the record; in a dry run only tells what its first prompt takes.
pub(super) fn order(read: Read, setting: &Setting<'_>) -> Result<Option<Finished<Ended>>, Failure> {
    let site = &Site::of(setting.repo, setting.host);
    let lock = site.lock()?;
    let order = Order::open(read, setting, site, &lock)?;
    let (life, mut plan) = (order.live(lock), order.plan());
    let asked = Asked {
        key: setting.key,
        new: setting.new,
    };
    if setting.dry_run {
        if life.is_answered(&plan, asked)? {
            return Ok(None);
        }
        let (_, at) = prepare::check(&order)?;
        let inputs = prepare::anew(&order, &mut plan, at)?;
        prepare::holds_no_key(&inputs, setting.redactor)?;
        let output = setting.host.output;
        prepare::first(&inputs).tell(&**setting.model, setting.settings, output)?;
        return Ok(None);
    }
    life.start(plan, asked).map(Some)
}

/// Reads and checks every order before the first one costs anything.
fn checked<'f>(
    args: &'f Request,
    tree: &WorkTree,
    setting: &Setting<'_>,
) -> Result<Vec<(&'f PathBuf, Read)>, Failure> {
    if !args.terms.commit {
        let error = anyhow!(
            "several orders without --commit: each one finds the changes of the one before it"
        );
        return Err(Failure::refused(
            error,
            "--commit commits what passes; or run them one by one",
        ));
    }
    let (trusted, mut orders) = (Trusted::of(tree, setting.host.environment), Vec::new());
    for file in &args.files {
        let read = preflight::read(file)?;
        preflight::guard(&trusted, &read, setting.settings)?;
        prepare::can_begin(&read, tree.root(), setting)?;
        orders.push((file, read));
    }
    Ok(orders)
}

struct Row {
    file: PathBuf,
    exit: Exit,
    verdict: &'static str,
    stage: String,
    attempts: usize,
}

/// Carries them out in sequence; continues after a failure only if asked to, and never if the state of the
/// tree is in doubt.
fn all(
    orders: Vec<(&PathBuf, Read)>,
    args: &Request,
    tree: &WorkTree,
    setting: &Setting<'_>,
) -> Vec<Row> {
    let mut rows = Vec::new();
    for (file, read) in orders {
        // The same order has the same key, whichever others are carried out with it.
        let key = args
            .key
            .as_ref()
            .map(|key| format!("{key}, order {}", read.order.hash));
        let row = one(
            file,
            read,
            tree,
            &Setting {
                key: key.as_deref(),
                ..*setting
            },
        );
        let exit = row.exit;
        rows.push(row);
        let is_final = matches!(exit, Exit::Interrupted | Exit::TreeNotRestored);
        if is_final || (exit != Exit::Done && !args.keep_going) {
            break;
        }
    }
    rows
}

fn one(file: &Path, read: Read, tree: &WorkTree, setting: &Setting<'_>) -> Row {
    setting.host.output.report(
        &setting
            .host
            .output
            .paint(STRONG, &printable_name(&file.display().to_string())),
    );
    let failure = match order(read, setting) {
        Ok(done) => return Row::of(file, done.as_ref()),
        Err(failure) => failure,
    };
    let exit = failure.tell(setting.host.output);
    let (stage, attempts) = if exit == Exit::Refused {
        ("not begun", 0)
    } else {
        let stage = if exit == Exit::Interrupted {
            "interrupted"
        } else {
            "stopped"
        };
        (stage, attempts_of_newest(tree))
    };
    Row {
        file: file.to_owned(),
        exit,
        verdict: "FAIL",
        stage: stage.to_owned(),
        attempts,
    }
}

/// The number of model calls of the run that was just stopped.
fn attempts_of_newest(tree: &WorkTree) -> usize {
    let newest = Registry::of(tree)
        .all()
        .ok()
        .and_then(|all| all.into_iter().next());
    let past = newest
        .and_then(|run| Past::read(&run.path(tree.root())).ok())
        .unwrap_or_default();
    past.steps().rounds_asked() as usize
}

impl Row {
    /// `None` stands for a dry run.
    fn of(file: &Path, done: Option<&Finished<Ended>>) -> Self {
        let exit = done.map_or(Exit::Done, |done| done.exit);
        let verdict = done.map_or("FAIL", |done| done.ended.summary.verdict.as_str());
        let (stage, attempts) = match done {
            None => ("stopped", 0),
            Some(done) if done.from_record => ("done before", 0),
            Some(done) => (
                &*done.ended.summary.ended_stage,
                done.ended.summary.attempts.len(),
            ),
        };
        Self {
            file: file.to_owned(),
            exit,
            verdict,
            stage: stage.to_owned(),
            attempts,
        }
    }
}

fn table(rows: &[Row], of: usize, output: &Output) {
    let width = rows
        .iter()
        .map(|row| row.file.display().to_string().chars().count())
        .max()
        .unwrap_or_default();
    output.report("");
    for row in rows {
        let style = if row.exit == Exit::Done { GOOD } else { BAD };
        let file = printable_name(&row.file.display().to_string());
        let verdict = output.paint(style, row.verdict);
        output.report_prose(&format!(
            "{verdict}  {file:width$}  {:21}  attempts {}",
            row.stage, row.attempts
        ));
    }
    let skipped = of - rows.len();
    if skipped > 0 {
        output.report(&format!(
            "{skipped} not begun (--keep-going continues after a failure)"
        ));
    }
    let rows: Vec<_> = rows
        .iter()
        .map(|row| json!({ "file": row.file.display().to_string(), "verdict": row.verdict, "stage": row.stage, "attempts": row.attempts }))
        .collect();
    output.object(&json!({ "event": "orders", "orders": rows, "not_begun": skipped }));
}
