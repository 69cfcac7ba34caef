//! The run of any loop that is meant.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use code_commit_names::ours::ABL;

use crate::exit::{Exit, Failure};
use crate::host::Host;
use crate::phase::past::{self, LOGS};
use crate::{place, records, spec};

/// The folder of the named run, or of the newest.
pub(crate) fn find(named: Option<&str>, host: Host<'_>) -> Result<PathBuf, Failure> {
    let root = place::root(host)?;
    let tree = place::work_tree(&root).ok();
    let known = tree.as_ref().map(|tree| (tree, records::find_known(tree, named)));
    let spec = known.as_ref().and_then(|(tree, known)| spec::history::meant(tree, named, known));
    let own = match (spec, known) {
        (Some(past), _) => Ok(past.path),
        (None, Some((tree, known))) => known.map(|known| known.path(tree.root())),
        (None, None) => Err(no_run(named)),
    };
    match (own, phase(&root, named)) {
        (Err(_), Some(phase)) => Ok(phase),
        (Ok(own), Some(phase)) if named.is_none() => {
            let newest = [own, phase].into_iter().max_by_key(|run| records::last_written(run));
            newest.ok_or_else(|| no_run(named))
        }
        (own, _) => own,
    }
}

fn phase(root: &Path, named: Option<&str>) -> Option<PathBuf> {
    let mut all = past::all(&root.join(ABL).join(LOGS)).into_iter().map(|past| past.path);
    match named {
        Some(wanted) => all.find(|run| records::is_named(run, wanted)),
        None => all.next(),
    }
}

fn no_run(named: Option<&str>) -> Failure {
    let what =
        named.map_or("there is no run here yet".to_owned(), |name| format!("no run named {name} is here"));
    let exit = if named.is_none() { Exit::NothingToDo } else { Exit::Refused };
    Failure::new(exit, anyhow!(what)).help("code-commit runs lists the runs of a project")
}
