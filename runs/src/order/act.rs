//! One order from its file to its verdict.

use std::cell::RefCell;

use code_commit_logging::RunFolder;
use code_commit_loop_order::Finished as Ended;
use code_commit_perform::Past;

use crate::exit::Failure;
use crate::life::{Finished, Life, Loop};
use crate::order::folder::{self, Start};
use crate::order::preflight::{self, Read};
use crate::order::prepare::{self, Prepared};
use crate::order::recorded::{self, Recorded};
use crate::order::setting::Setting;
use crate::order::settle::{self, Asked};
use crate::order::unfinished::Unfinished;
use crate::order::work::Order;
use crate::records;
use crate::registry::Known;
use crate::site::Site;

/// Carries an order out, or answers it from the record; in a dry run only tells what its first prompt takes.
pub(super) fn order(read: Read, setting: &Setting<'_>) -> Result<Option<Finished<Ended>>, Failure> {
    let site = &Site::at(setting.repo, setting.host);
    let (tree, output) = (site.tree()?, setting.host.output);
    let lock = site.lock()?;
    let git = preflight::git(tree, setting.settings, setting.host.environment)?;
    let unfinished = folder::clear_up(&site.state()?, tree, &git, &lock, output)?;
    let asked = Asked { order: &read.order, terms: setting.terms, key: setting.key };
    let before = if setting.new { None } else { settle::answered(&asked, tree, &git, output)? };
    let (lock, cancel, redactor) = (lock.into(), setting.cancel.clone(), setting.redactor.clone());
    if let Some((recorded, past)) = before {
        let name = records::name(recorded.folder.path());
        output.note(&format!("{name} is already finished; no model was called; --new does it again"));
        let inputs = recorded.inputs(tree.root(), &past)?;
        let Recorded { folder, plan, read } = recorded;
        let order = Order::new(setting, site, read, inputs)?;
        let life = Life { of: &order, site, lock, cancel, redactor };
        return if setting.dry_run { Ok(None) } else { life.close(&plan, &folder, None).map(Some) };
    }
    let Prepared { read, guard, baseline, mut unfinished, mut inputs } =
        prepare::prepare(read, setting, tree, &git, unfinished)?;
    if setting.dry_run {
        prepare::first(&inputs).tell(&**setting.model, setting.settings, output)?;
        return Ok(None);
    }
    let (start, claim) = folder::folder(&unfinished.run, tree, setting)?;
    start.folder().path().clone_into(&mut unfinished.run);
    let elsewhere = match &start {
        Start::New { of_another, .. } if !setting.new => {
            of_another.iter().cloned().chain(imported(&unfinished, site, setting)?).collect()
        }
        Start::New { .. } => Vec::new(),
        Start::Resumed(run) => {
            inputs.form = recorded::form(run).unwrap_or(inputs.form);
            let past = Past::read_if_begun(run.path()).map_err(anyhow::Error::from)?;
            recorded::as_summarized(&mut inputs, run, &past);
            records::pass_over(&past.lines, &**setting.model);
            Vec::new()
        }
    };
    let order = Order {
        unfinished: RefCell::new(unfinished),
        opened: RefCell::new(Some((guard, baseline))),
        elsewhere,
        claim: RefCell::new(Some(claim)),
        ..Order::new(setting, site, read, inputs)?
    };
    let life = Life { of: &order, site, lock, cancel, redactor };
    let mut plan = order.plan();
    match start {
        Start::New { run, .. } => {
            prepare::first(&order.inputs).check(&**setting.model, setting.settings)?;
            let ready = order.ready(&mut plan, None)?;
            life.begin_in(run, &plan, ready).map(Some)
        }
        Start::Resumed(run) => {
            let ready = order.ready(&mut plan, Some(&run))?;
            life.resume_with(&run, &plan, ready).map(Some)
        }
    }
}

/// The records of the same run that were made elsewhere.
fn imported(run: &Unfinished, site: &Site<'_>, setting: &Setting<'_>) -> Result<Vec<RunFolder>, Failure> {
    let all = site.registry().with_imported()?.into_iter().filter(Known::is_imported);
    let open = |known: &Known| RunFolder::open(known.path(&site.root), setting.redactor.clone());
    let is_same = |known: &Known| {
        Recorded::load(known, open(known)).is_ok_and(|Recorded { plan, .. }| {
            (&plan.work_order_hash, &plan.config_hash, &plan.repo_tree_hash_before)
                == (&run.work_order_hash, &run.config_hash, &run.tree_hash_before)
        })
    };
    Ok(all.filter(is_same).map(|known| open(&known)).collect())
}
