//! `code-commit resume` for the run of an order: continues it like `order run`, with the order and settings
//! that it began with, and with other limits if given.

use anyhow::anyhow;
use code_commit_logging::RunFolder;
use code_commit_loop_order::run_id;
use code_commit_perform::Past;
use code_commit_repo::WorkTree;
use code_commit_settings::{Keys, Layer};

use crate::exit::{Exit, Failure};
use crate::host::Host;
use crate::order::act::{self, Done};
use crate::order::recorded::Recorded;
use crate::order::setting::Setting;
use crate::order::settle::{self, Answer};
use crate::order::{batch, folder, preflight};
use crate::records;
use crate::registry::Known;

pub(crate) fn run(known: &Known, limits: &Layer, tree: &WorkTree, host: Host<'_>) -> Result<Exit, Failure> {
    let Host { environment, output, .. } = host;
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
    if !known.is_imported() {
        records::can_be_continued(folder.path())?;
    }
    settle::recover(tree, &plan.settings, host)?;
    // It passed and committed, but was killed before its journal said so.
    if is_over(&folder)? {
        let name = records::name(folder.path());
        let answer = Answer::of(Recorded { folder, plan, read });
        let done = Done::before(answer.ok_or_else(|| anyhow!("the record of {name} was changed"))?, tree)?;
        batch::print(&done, output);
        return Ok(done.exit);
    }
    plan.settings = crate::config::unpacked(&plan.settings, tree.root(), environment);
    plan.settings.put_flags(limits.clone());
    let model = preflight::model(&plan.settings, &keys, tree, host)?;
    let cancel = crate::interrupt::watched()?;
    // One that was made elsewhere is begun anew beside its record, under its own id.
    let out = folder.path().parent().unwrap_or(folder.path());
    let id = run_id(&plan.work_order_hash, &plan.repo_tree_hash_before, &plan.config_hash);
    let run = if known.is_imported() { out.join(id) } else { folder.path().to_owned() };
    let setting = Setting {
        repo: tree.root(),
        out,
        terms: &plan.terms,
        host,
        cancel: &cancel,
        settings: &plan.settings,
        model: &*model,
        redactor: &redactor,
        going_on: Some(&run),
        new: false,
        key: plan.key.as_deref(),
    };
    let done = act::order(read, &setting)?;
    batch::print(&done, output);
    Ok(done.exit)
}

fn is_over(folder: &RunFolder) -> Result<bool, Failure> {
    let past =
        Past::read_if_begun(folder.path()).map_err(|error| Failure::refused(error, "start a new run"))?;
    Ok(folder::is_over(&past))
}
