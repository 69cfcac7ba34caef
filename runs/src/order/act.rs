//! `code-commit order run`: one order, or several in sequence, each from its file to its verdict.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use code_commit_loop_order::Finished as Ended;
use code_commit_perform::Past;
use code_commit_repo::WorkTree;
use code_commit_report::{BAD, GOOD, Output, STRONG, printable_name};
use code_commit_settings::{Keys, Options};
use serde_json::json;

use crate::driver::{Asked, Report};
use crate::exit::{Exit, Failure};
use crate::host::Host;
use crate::order::plan::Terms;
use crate::order::preflight::{self, Read};
use crate::order::prepare::{can_begin, git};
use crate::order::unfinished::clear_up;
use crate::order::work::{Order, Setting};
use crate::project::Project;
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
    pub layer: Options,
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
    let tree = preflight::repository(&args.repo)?;
    let keys = Keys::find(host.environment, tree.root());
    let settings = crate::config::load(tree.root(), &args.layer, host)?;
    let setting = Setting {
        host,
        out: &preflight::out(&args.out, tree.root())?,
        terms: &args.terms,
        settings: &settings,
        model: &preflight::model(&settings, &keys, host)?.into(),
        redactor: &host.output.strike_out(keys.exposed()),
        cancel: &crate::interrupt::watched(host.cancel)?,
    };
    recover(&tree, &setting)?;
    if args.dry_run {
        for file in &args.files {
            let key = args.key.clone();
            order(preflight::read(file)?, &tree, &setting, args, key)?;
        }
        return Ok(Exit::Done);
    }
    if let [only] = args.files.as_slice() {
        let key = args.key.clone();
        let done = order(preflight::read(only)?, &tree, &setting, args, key)?;
        return Ok(done.map_or(Exit::Done, |done| done.exit));
    }
    let orders = checked(args, &tree, &setting)?;
    let rows = all(orders, args, &tree, &setting);
    table(&rows, args.files.len(), host.output);
    let mut exits = rows.iter().map(|row| row.exit);
    Ok(exits.find(|exit| *exit != Exit::Done).unwrap_or(Exit::Done))
}

/// Restores the tree after a killed run, before any order is looked at.
fn recover(tree: &WorkTree, setting: &Setting<'_>) -> Result<(), Failure> {
    let project = Project::of(tree, setting.host);
    let lock = project.lock()?;
    clear_up(&project, &git(&project, setting.settings)?, &lock).map(drop)
}

/// Carries an order out, or answers it from the record; in a dry run only tells what its first prompt takes.
fn order(
    read: Read,
    tree: &WorkTree,
    setting: &Setting<'_>,
    args: &Request,
    key: Option<String>,
) -> Result<Option<Report<Ended>>, Failure> {
    let project = &Project::of(tree, setting.host);
    let lock = project.lock()?;
    let order = Order {
        key,
        is_new: args.new,
        ..Order::open(read, setting, project, &lock)?
    };
    let (driver, plan) = (order.live(lock), order.plan());
    let asked = Asked {
        key: order.key.as_deref(),
        new: args.new,
    };
    if !args.dry_run {
        return driver.start(plan, asked).map(Some);
    }
    if !driver.is_answered(&plan, asked)? {
        order.forecast(plan)?;
    }
    Ok(None)
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
        can_begin(&read, tree.root(), setting)?;
        orders.push((file, read));
    }
    Ok(orders)
}

/// Carries them out in sequence; continues after a failure only if asked to, and never if the state of the
/// tree is in doubt.
fn all(
    orders: Vec<(&PathBuf, Read)>,
    args: &Request,
    tree: &WorkTree,
    setting: &Setting<'_>,
) -> Vec<Row> {
    let output = setting.host.output;
    let mut rows = Vec::new();
    for (file, read) in orders {
        output.report(&output.paint(STRONG, &printable_name(&file.display().to_string())));
        // The same order has the same key, whichever others are carried out with it.
        let key = args
            .key
            .as_ref()
            .map(|key| format!("{key}, order {}", read.order.hash));
        let row = match order(read, tree, setting, args, key) {
            Ok(done) => Row::of(file, done.as_ref()),
            Err(failure) => Row::stopped(file, &failure, output),
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

struct Row {
    file: PathBuf,
    exit: Exit,
    verdict: &'static str,
    stage: String,
    attempts: usize,
}

impl Row {
    /// `None` stands for a dry run.
    fn of(file: &Path, done: Option<&Report<Ended>>) -> Self {
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

    /// Tells why; counts the model calls that there were.
    fn stopped(file: &Path, failure: &Failure, output: &Output) -> Self {
        let exit = failure.tell(output);
        let stage = if exit == Exit::Refused {
            "not begun"
        } else if exit == Exit::Interrupted {
            "interrupted"
        } else {
            "stopped"
        };
        let past = failure
            .stopped
            .as_ref()
            .and_then(|run| Past::read(&run.folder).ok())
            .filter(|_| exit != Exit::Refused)
            .unwrap_or_default();
        Self {
            file: file.to_owned(),
            exit,
            verdict: "FAIL",
            stage: stage.to_owned(),
            attempts: past.steps().rounds_asked() as usize,
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
