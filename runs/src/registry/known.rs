//! A run on the list.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use code_commit_logging::RunFolder;
pub use code_commit_perform::RUN_JSON;
use code_commit_perform::same_format;
use code_commit_report::phrases;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::exit::Failure;
use crate::records::{self, Head, NAMED_RUNS};

/// A run that was made here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    /// Its folder, relative to the root if it is below it.
    pub(super) folder: PathBuf,
    /// SHA-256 of its `run.json`; `None` for a run without a plan.
    pub(super) plan_sha256: Option<String>,
    /// Whether it was undone: then it cannot be resumed.
    pub undone: bool,
}

impl Known {
    /// Its folder.
    pub fn path(&self, root: &Path) -> PathBuf {
        root.join(&self.folder)
    }

    /// Its name: that of its folder.
    pub fn name(&self, root: &Path) -> String {
        records::name(&self.path(root))
    }

    /// The loop that its plan names; `apply` without a plan.
    pub fn loop_name(&self, root: &Path) -> String {
        Head::of(&records::open(&self.path(root)))
            .map_or_else(|| "apply".to_owned(), |head| head.kind)
    }

    /// Whether it began with a plan; `apply` has none.
    pub(crate) fn has_plan(&self) -> bool {
        self.plan_sha256.is_some()
    }

    /// Its status since it ended, appended to the outcome.
    pub fn since(&self) -> &'static str {
        if self.undone { ", undone since" } else { "" }
    }

    /// Its plan, read from its folder. Refuses one that differs from the plan that the run began with, and that of a record
    /// of another format.
    pub(crate) fn plan<P: DeserializeOwned>(&self, folder: &RunFolder) -> anyhow::Result<P> {
        same_format(folder.path())?;
        let name = records::name(folder.path());
        let plan = folder
            .read(RUN_JSON)
            .with_context(|| format!("{name} has no plan"))?;
        if self.plan_sha256.as_deref()
            != Some(code_commit_logging::sha256_hex(plan.as_bytes()).as_str())
        {
            return Err(anyhow!(
                "{RUN_JSON} of {} has changed since the run began",
                self.folder.display()
            ));
        }
        serde_json::from_str(&plan)
            .with_context(|| format!("{RUN_JSON} of {name} was written by another version"))
    }
}

/// The run that `wanted` means among all runs, newest first; `None` if there is none.
///
/// It is the name of a run, the path of its folder or of a file in it, `@` for the newest, `@-2` for the second one
/// before it, or the beginning of exactly one name.
pub(super) fn meant<'k>(
    all: &'k [Known],
    root: &Path,
    wanted: &str,
) -> Result<Option<&'k Known>, Failure> {
    if let Some(named) = all
        .iter()
        .find(|run| records::is_named(&run.path(root), wanted))
    {
        return Ok(Some(named));
    }
    if let Some(back) = wanted.strip_prefix('@') {
        let back = if back.is_empty() {
            Some(0)
        } else {
            back.strip_prefix('-').and_then(|n| n.parse().ok())
        };
        return Ok(back.and_then(|back| newest(all, root, back)));
    }
    let begins = |run: &&Known| !wanted.is_empty() && run.name(root).starts_with(wanted);
    let begun: Vec<&Known> = all.iter().filter(begins).collect();
    if let [_, _, ..] = *begun {
        let names: Vec<String> = begun.iter().map(|run| run.name(root)).collect();
        let error = anyhow!(
            "{wanted} could be any of {}",
            phrases::first(&names, NAMED_RUNS)
        );
        return Err(Failure::refused(
            error,
            "write more of the name; code-commit runs lists them all",
        ));
    }
    Ok(begun.first().copied())
}

/// The run that began `back` runs before the newest. If none has begun, one that was refused.
pub(super) fn newest<'k>(all: &'k [Known], root: &Path, back: usize) -> Option<&'k Known> {
    let begun = |run: &&Known| records::has_begun(&run.path(root));
    if all.iter().any(|run| begun(&run)) {
        all.iter().filter(begun).nth(back)
    } else {
        all.get(back)
    }
}
