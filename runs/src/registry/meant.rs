//! Which run a word of the command line means.

use std::path::Path;

use anyhow::anyhow;
use code_commit_report::phrases;

use super::Known;
use crate::exit::Failure;
use crate::records::{self, NAMED_RUNS};

/// The run that `wanted` means among all runs, newest first; `None` if there is none.
///
/// It is the name of a run, the path of its folder or of a file in it, `@` for the newest, `@-2` for the second one
/// before it, or the beginning of exactly one name.
pub(super) fn run<'k>(all: &'k [Known], root: &Path, wanted: &str) -> Result<Option<&'k Known>, Failure> {
    if let Some(named) = all.iter().find(|run| records::is_named(&run.path(root), wanted)) {
        return Ok(Some(named));
    }
    if let Some(back) = wanted.strip_prefix('@') {
        let back =
            if back.is_empty() { Some(0) } else { back.strip_prefix('-').and_then(|n| n.parse().ok()) };
        return Ok(back.and_then(|back| newest(all, root, back)));
    }
    let begins = |run: &&Known| !wanted.is_empty() && run.name(root).starts_with(wanted);
    let begun: Vec<&Known> = all.iter().filter(begins).collect();
    if let [_, _, ..] = *begun {
        let names: Vec<String> = begun.iter().map(|run| run.name(root)).collect();
        let error = anyhow!("{wanted} could be any of {}", phrases::first(&names, NAMED_RUNS));
        return Err(Failure::refused(error, "write more of the name; code-commit runs lists them all"));
    }
    Ok(begun.first().copied())
}

/// The run that began `back` runs before the newest. Of those made here: an imported one has to be named. If none has
/// begun, one that was refused.
pub(super) fn newest<'k>(all: &'k [Known], root: &Path, back: usize) -> Option<&'k Known> {
    let own = || all.iter().filter(|run| !run.is_imported());
    let begun = |run: &&Known| records::has_begun(&run.path(root));
    if own().any(|run| begun(&run)) { own().filter(begun).nth(back) } else { own().nth(back) }
}
