//! `code-commit resume` for the run of an order: it goes on as `order run` would, with the order and the settings that it began with, under
//! other limits if asked.

use anyhow::anyhow;
use logging::RunFolder;
use perform::Past;
use repo::WorkTree;
use report::Output;
use settings::{Environment, Keys};

use crate::args::LimitArgs;
use crate::commands::order::act::{self, Done};
use crate::commands::order::recorded::Recorded;
use crate::commands::order::setting::Setting;
use crate::commands::order::{batch, preflight, runs, settle};
use crate::commands::registry::Known;
use crate::exit::{Exit, Failure};

/// Goes on with the run.
pub fn run(
    known: &Known,
    limits: &LimitArgs,
    tree: &WorkTree,
    environment: &Environment,
    output: &Output,
) -> Result<Exit, Failure> {
    let keys = Keys::find(environment, tree.root());
    let redactor = output.strike_out(keys.exposed());
    let folder = RunFolder::open(known.path(tree.root()), redactor.clone());
    let Recorded { folder, mut plan, read } = Recorded::load(known, folder)
        .map_err(|error| Failure::refused(error, "begin a new run: code-commit order run"))?;
    if is_over(&folder)? {
        return Err(Failure::nothing_to_do(
            anyhow!("that run is over"),
            "code-commit show tells how it ended",
        ));
    }
    settle::recover(tree, environment, output)?;
    // It had passed and committed, and was killed before its journal said so.
    if is_over(&folder)? {
        let done = Done::before(&Recorded { folder, plan, read }, tree)?;
        batch::print(&done, output);
        return Ok(done.exit);
    }
    plan.settings.put_flags(limits.layer.clone());
    let model = preflight::model(&plan.settings, &keys, environment, tree, output)?;
    let cancel = crate::interrupt::watched()?;
    let setting = Setting {
        repo: tree.root(),
        out: folder.path().parent().unwrap_or(folder.path()),
        terms: &plan.terms,
        environment,
        output,
        cancel: &cancel,
        settings: &plan.settings,
        model: &*model,
        redactor: &redactor,
        going_on: Some(folder.path()),
    };
    let done = act::order(read, &setting)?;
    batch::print(&done, output);
    Ok(done.exit)
}

fn is_over(folder: &RunFolder) -> Result<bool, Failure> {
    let past = Past::read(folder.path()).map_err(|error| Failure::refused(error, "start a new run"))?;
    Ok(runs::is_over(&past))
}
