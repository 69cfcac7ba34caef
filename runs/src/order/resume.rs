//! `code-commit resume` for the run of an order: continues it like `order run`, with the order and settings
//! that it began with, and with other limits if given.

use code_commit_logging::RunFolder;
use code_commit_perform::Past;
use code_commit_settings::Keys;

use crate::exit::{Exit, Failure};
use crate::order::folder;
use crate::order::preflight;
use crate::order::recorded::Recorded;
use crate::order::setting::{Order, Setting};
use crate::order::settle;
use crate::records::{self, closed};
use crate::registry::Known;
use crate::resume::Request;
use crate::site::Site;

pub(crate) fn run(known: &Known, args: &Request, site: &Site<'_>) -> Result<Exit, Failure> {
    let (host, tree) = (site.host, site.tree()?);
    let keys = Keys::find(host.environment, tree.root());
    let redactor = host.output.strike_out(keys.exposed());
    let folder = RunFolder::open(known.path(tree.root()), redactor.clone());
    let Recorded {
        folder,
        mut plan,
        read,
    } = Recorded::load(known, folder)
        .map_err(|error| Failure::refused(error, "begin a new run: code-commit order run"))?;
    if is_over(&folder)? {
        return Err(closed(&records::name(folder.path()), "is over"));
    }
    settle::recover(tree, &plan.settings, host)?;
    plan.settings = crate::config::unpacked(&plan.settings, tree.root(), host.environment);
    plan.settings.put_flags(args.limits.clone());
    let model = preflight::model(&plan.settings, &keys, host)?.into();
    let out = folder.path().parent().unwrap_or(folder.path());
    let setting = Setting {
        repo: tree,
        out,
        terms: &plan.terms,
        host,
        cancel: &crate::interrupt::watched()?,
        settings: &plan.settings,
        model: &model,
        redactor: &redactor,
        goes_on: true,
        new: false,
        dry_run: false,
        key: plan.key.as_deref(),
    };
    let lock = site.lock()?;
    let order = Order::open(read, &setting, site, &lock)?;
    let life = order.live(lock);
    // One that passed and committed, but was killed before its journal said so, is answered from its record.
    let done = if is_over(&folder)? {
        life.close(&plan, &folder, None)
    } else {
        life.go_on(known)
    };
    done.map(|done| done.exit)
}

fn is_over(folder: &RunFolder) -> Result<bool, Failure> {
    let past = Past::read_if_begun(folder.path())
        .map_err(|error| Failure::refused(error, "start a new run"))?;
    Ok(folder::is_over(&past))
}
