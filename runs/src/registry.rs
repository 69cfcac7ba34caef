//! The runs that were made here: a list in the harness's own state, which no repository can contain.
//!
//! Run folders are in the project, so a cloned repository could contain one: with a plan that disables the
//! sandbox, or with pre-images that restore a hook. Only listed runs are resumed or undone, and
//! only with the plan that they began with.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use code_commit_engine::Stored;
use code_commit_names::ours::STATE;
use code_commit_repo::WorkTree;
use code_commit_report::printable_name;

mod known;

pub use self::known::{Known, RUN_JSON};

use crate::exit::{Exit, Failure};
use crate::preflight;
use crate::records::NAMED_RUNS;

const LIST: &str = "known-runs.json";

/// Whether the changes of a run were taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Undone {
    Yes,
    No,
}

/// The list of a project's runs.
#[derive(Debug, Clone, Copy)]
pub struct Registry<'p> {
    root: &'p Path,
    tree: Option<&'p WorkTree>,
}

impl<'p> Registry<'p> {
    /// That of the project at the root of this work tree.
    pub fn of(tree: &'p WorkTree) -> Self {
        Self {
            root: tree.root(),
            tree: Some(tree),
        }
    }

    /// That of a project that need not have a repository.
    pub fn at(root: &'p Path, tree: Option<&'p WorkTree>) -> Self {
        Self { root, tree }
    }

    /// Every run that was made here and still exists, newest first.
    pub fn all(&self) -> Result<Vec<Known>, Failure> {
        let mut known = self.read()?;
        known.retain(|run| run.path(self.root).is_dir());
        known.reverse();
        Ok(known)
    }

    /// The run that is meant by a name, or the newest that has begun.
    pub fn find(&self, named: Option<&str>) -> Result<Known, Failure> {
        let all = self.all()?;
        let found = match named {
            Some(wanted) => known::meant(&all, self.root, wanted)?,
            None => known::newest(&all, self.root, 0),
        };
        found.cloned().ok_or_else(|| {
            let what = named.map_or("there is no run here yet".to_owned(), |name| {
                format!("no run named {name} was made here")
            });
            let help = self.hint(named, &all);
            let exit = if named.is_none() {
                Exit::NothingToDo
            } else {
                Exit::Refused
            };
            Failure::new(exit, anyhow!(what)).help(help)
        })
    }

    /// Where runs may be if none was made here: the project is in a folder above.
    pub fn elsewhere(&self) -> Option<String> {
        let above = preflight::project_above(self.tree?)?;
        Some(format!("{}: {}", above.what, above.hint))
    }

    /// What to do if no run is found.
    fn hint(&self, named: Option<&str>, all: &[Known]) -> String {
        if let Some(elsewhere) = self.elsewhere().filter(|_| all.is_empty()) {
            return elsewhere;
        }
        if all.is_empty() {
            return "runs are not part of a clone; start the first one here with code-commit -m \"…\"; code-commit demo shows an example"
                .to_owned();
        }
        if let Some(file) = named.filter(|name| self.root.join(name).is_file()) {
            let file = printable_name(file);
            return format!("{file} is a file; to undo its change: code-commit undo @ {file}");
        }
        let newest: Vec<String> = all
            .iter()
            .take(NAMED_RUNS)
            .map(|run| run.name(self.root))
            .collect();
        format!(
            "code-commit runs lists them all; the newest: {}",
            newest.join(", ")
        )
    }

    /// The folders that hold runs on the list, and those that held one when a command was killed.
    pub(crate) fn bases(&self) -> Result<BTreeSet<PathBuf>, Failure> {
        let bases = self
            .read()?
            .into_iter()
            .filter_map(|run| Some(run.path(self.root).parent()?.to_owned()));
        Ok(bases.collect())
    }

    /// Whether the run in this folder was made here. A run of another clone may be in the place of one that was.
    pub(crate) fn knows(&self, folder: &Path) -> Result<bool, Failure> {
        let plan = code_commit_dir::read(
            &folder.join(RUN_JSON),
            u64::MAX,
            code_commit_dir::Links::Refused,
        );
        let sha256 = plan
            .ok()
            .flatten()
            .map(|plan| code_commit_logging::sha256_hex(&plan));
        let is_it = |run: &Known| run.path(self.root) == folder && run.plan_sha256 == sha256;
        Ok(self.read()?.iter().any(is_it))
    }

    /// Adds a run as the newest, with its plan. The caller holds the lock of the tree.
    pub fn add(&self, folder: &Path, plan: Option<Stored>) -> Result<(), Failure> {
        let folder = folder.strip_prefix(self.root).unwrap_or(folder).to_owned();
        let plan_sha256 = plan.map(|plan| plan.sha256);
        let mut known = self.read()?;
        known.retain(|run| run.folder != folder && run.path(self.root).is_dir());
        known.push(Known {
            folder,
            plan_sha256,
            undone: false,
        });
        let written = if known.last().is_some_and(Known::has_plan) {
            self.write_before_begin(&known)
        } else {
            self.write(&known)
        };
        written.map_err(Failure::no_record)
    }

    /// Removes a run from the list; its folder then no longer counts as a run. The caller holds the lock of the
    /// tree.
    pub(crate) fn forget(&self, folder: &Path) -> Result<(), Failure> {
        self.change(|known| known.retain(|run| run.path(self.root) != folder))
    }

    /// Notes that the changes of a run were taken back, or are in the tree again.
    pub(crate) fn mark(&self, folder: &Path, undone: Undone) -> Result<(), Failure> {
        self.change(|known| {
            let found = known.iter_mut().filter(|run| run.path(self.root) == folder);
            found.for_each(|run| run.undone = undone == Undone::Yes);
        })
    }

    /// Also lists a run under the path that its folder is about to be moved to, so that the list is right if the
    /// harness is killed before or after the move. Adding the next run removes the old path.
    pub(crate) fn will_move(&self, from: &Path, to: &Path) -> Result<(), Failure> {
        let folder = to.strip_prefix(self.root).unwrap_or(to);
        self.change(|known| {
            let moved = known
                .iter()
                .cloned()
                .enumerate()
                .find(|(_, run)| run.path(self.root) == from);
            if let Some((at, run)) = moved {
                known.insert(
                    at,
                    Known {
                        folder: folder.to_owned(),
                        ..run
                    },
                );
            }
        })
    }

    /// Where the list is, or would be.
    fn list(&self) -> Result<PathBuf, Failure> {
        Ok(match self.tree {
            Some(tree) => tree.state_of_root()?.join(LIST),
            None => self.root.join(STATE).join(LIST),
        })
    }

    fn read(&self) -> Result<Vec<Known>, Failure> {
        let path = self.list()?;
        match fs::read(&path) {
            Ok(text) => serde_json::from_slice(&text)
                .with_context(|| format!("cannot understand {}", path.display()))
                .map_err(|error| {
                    Failure::refused(
                        error,
                        "remove it; the runs that it lists can then only be read by hand",
                    )
                }),
            Err(none) if none.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => {
                let error =
                    anyhow::Error::from(error).context(format!("cannot read {}", path.display()));
                Err(Failure::refused(error, "make sure that you own it"))
            }
        }
    }

    fn change(&self, change: impl FnOnce(&mut Vec<Known>)) -> Result<(), Failure> {
        let mut known = self.read()?;
        change(&mut known);
        Ok(self.write(&known)?)
    }

    /// A run that is not on the list on disk could not be resumed after a power cut, and would be paid for again.
    fn write(&self, known: &[Known]) -> anyhow::Result<()> {
        self.replace(known, |list, known| {
            Ok(code_commit_dir::replace(list, known)?)
        })
    }

    /// Writes the list before a run begins; its name is synced with the folder when the run is noted as under way.
    fn write_before_begin(&self, known: &[Known]) -> anyhow::Result<()> {
        self.replace(known, |list, known| {
            let fill = |file: &mut fs::File| file.write_all(known).and_then(|()| file.sync_all());
            Ok(code_commit_dir::replace_with(list, fill)?)
        })
    }

    fn replace(
        &self,
        known: &[Known],
        replace: impl FnOnce(&Path, &[u8]) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let write = || {
            if self.tree.is_none() {
                code_commit_repo::state_dir_in_tree(self.root)?;
            }
            let list = self.list().map_err(|failure| failure.error)?;
            replace(&list, &serde_json::to_vec_pretty(known)?)
        };
        write().context("cannot keep the list of runs")
    }
}
