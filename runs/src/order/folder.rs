//! The run folder of an order, `<out>/<run_id>` (S2 §7).

use std::fs::{self, File};
use std::path::Path;

use anyhow::Context as _;
use code_commit_logging::{Redactor, RunFolder};
use code_commit_perform::JOURNAL;

use crate::exit::Failure;
use crate::order::plan::OrderPlan;
use crate::order::unfinished::is_finished;
use crate::order::work::Order;
use crate::records::{self, NewRun};

/// A new one. A run of the same name that was made here makes room. One of another clone, which `--out` may hold, too,
/// stays, and the new run gets the next free name.
pub(super) fn new_run(order: &Order<'_>, plan: &OrderPlan) -> Result<NewRun, Failure> {
    let (base, name, help) = (&order.out, plan.run_id(), "make the folder writable");
    let claim = fs::create_dir_all(base)
        .and_then(|()| File::open(base))
        .with_context(|| format!("cannot create {}", base.display()))
        .map_err(|error| Failure::refused(error, help))?;
    // Some file systems have no locks.
    let _ = claim.lock();
    let path = base.join(&name);
    if order.project.registry().knows(&path)? {
        make_room(&path, order)?;
    }
    let new = NewRun::create(base, &name, order.setting.redactor.clone(), help)?;
    Ok(new.claiming(claim))
}

/// Renames a run to the next free name: its answers were paid for. Warns if it is unfinished and `--new` was not given.
fn make_room(path: &Path, order: &Order<'_>) -> Result<(), Failure> {
    let folder = records::open(path);
    if !path.join(JOURNAL).is_file() {
        // It was killed before its first step.
        records::discard(&folder);
        return Ok(());
    }
    let is_left = !order.is_new && !is_finished(path)?;
    if is_left {
        records::can_be_continued(path)?;
    }
    let name = records::name(path);
    let aside = RunFolder::create(&order.out, &name, Redactor::default())
        .map_err(|error| Failure::refused(error, "make the folder writable"))?;
    order.project.registry().will_move(path, aside.path())?;
    fs::rename(path, aside.path())
        .with_context(|| format!("cannot move {} aside", path.display()))?;
    if is_left && records::has_begun(aside.path()) {
        let now = records::name(aside.path());
        order.project.host.output.warn(&format!(
            "the unfinished run {name} has other settings or another key and was renamed to {now}; code-commit resume {now} continues it"
        ));
    }
    Ok(())
}
