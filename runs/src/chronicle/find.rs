//! The runs of all loops.

use std::path::Path;

use code_commit_names::ours::ABL;

use super::Found;
use crate::exit::Failure;
use crate::host::Host;
use crate::phase::past::{self, LOGS};
use crate::registry::{self, Known};
use crate::travel::meant;
use crate::{place, spec};

/// The named run, or the newest, of any loop.
pub fn find(named: Option<&str>, host: Host<'_>) -> Result<Found, Failure> {
    let path = meant::find(named, host)?;
    let known = listed(&place::root(host)?)?.into_iter().find(|found| found.path == path);
    Ok(known.unwrap_or(Found { path, known: None }))
}

/// Every run of the project, of all loops.
pub fn all(host: Host<'_>) -> Result<Vec<Found>, Failure> {
    let root = place::root(host)?;
    let mut all = listed(&root)?;
    let specs = spec::history::all(&root).into_iter().map(|past| past.path);
    let phases = past::all(&root.join(ABL).join(LOGS)).into_iter().map(|past| past.path);
    all.extend(specs.chain(phases).map(|path| Found { path, known: None }));
    Ok(all)
}

/// Those that the list names. A folder outside of a work tree has none.
fn listed(root: &Path) -> Result<Vec<Found>, Failure> {
    let Ok(tree) = place::work_tree(root) else { return Ok(Vec::new()) };
    let found = |known: Known| Found { path: known.path(tree.root()), known: Some(known) };
    Ok(registry::with_imported(&tree)?.into_iter().map(found).collect())
}
