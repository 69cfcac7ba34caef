//! A run on the list.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use code_commit_logging::RunFolder;
pub use code_commit_perform::RUN_JSON;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::records::{self, Head};

/// A run that was made here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    /// Its folder, relative to the root if it is below it.
    pub(super) folder: PathBuf,
    /// SHA-256 of its `run.json`; `None` for a run without a plan.
    pub(super) plan_sha256: Option<String>,
    /// Whether it was undone: then it cannot be resumed.
    pub undone: bool,
    /// Whether a person has looked at what the run made and kept it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub accepted: bool,
    /// Set for a run that was made elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) imported: Option<Imported>,
}

/// A run that was made elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Imported {
    /// Who vouches for it; `None` if nobody does.
    pub(crate) believed: Option<String>,
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
    pub fn kind(&self, root: &Path) -> String {
        Head::of(&records::open(&self.path(root))).map_or_else(|| "apply".to_owned(), |head| head.kind)
    }

    /// Whether it began with a plan; `apply` has none.
    pub(crate) fn has_plan(&self) -> bool {
        self.plan_sha256.is_some()
    }

    /// Its status since it ended, appended to the outcome.
    pub fn since(&self) -> &'static str {
        match (&self.imported, self.undone) {
            (Some(_), _) => ", imported",
            (None, true) => ", undone since",
            (None, false) => "",
        }
    }

    /// Where it was made, and who vouches for it.
    pub fn belief(&self) -> String {
        match self.imported.as_ref().map(|imported| imported.believed.as_deref()) {
            None => "made here".to_owned(),
            Some(Some("--trust")) => "imported; believed because of --trust".to_owned(),
            Some(Some(who)) => format!("imported; signed by {who}"),
            Some(None) => "imported; nobody vouches for it".to_owned(),
        }
    }

    /// Whether it was made elsewhere.
    pub fn is_imported(&self) -> bool {
        self.imported.is_some()
    }

    /// Whether its plan and its verdict count: it was made here, or somebody vouches for it.
    pub(crate) fn is_believed(&self) -> bool {
        self.imported.as_ref().is_none_or(|imported| imported.believed.is_some())
    }

    /// Who vouches for a run that was made elsewhere.
    pub(crate) fn vouched_for(&self) -> Option<String> {
        self.imported.as_ref()?.believed.clone()
    }

    /// Its plan, read from its folder. Refuses one that differs from the plan that the run began with.
    pub(crate) fn plan<P: DeserializeOwned>(&self, folder: &RunFolder) -> anyhow::Result<P> {
        let name = records::name(folder.path());
        let plan = folder.read(RUN_JSON).with_context(|| format!("{name} has no plan"))?;
        if self.plan_sha256.as_deref() != Some(code_commit_logging::sha256_hex(plan.as_bytes()).as_str()) {
            return Err(anyhow!(
                "{RUN_JSON} of {} is not what it was when the run began",
                self.folder.display()
            ));
        }
        serde_json::from_str(&plan)
            .with_context(|| format!("{RUN_JSON} of {name} was written by another version"))
    }
}
