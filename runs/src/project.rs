//! The project that a run works in: its root, its repository, the harness's state for it, and its runs.

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use code_commit_perform::{JOURNAL, Past};
use code_commit_repo::WorkTree;
use code_commit_settings::Bases;

use crate::exit::Failure;
use crate::host::Host;
use crate::kind::{InTree, LoopKind};
use crate::place;
use crate::records::{self, Head};
use crate::registry::{Known, Registry};
use crate::trusted::Trusted;

/// A project, and the program around it.
#[derive(Clone)]
pub struct Project<'h> {
    /// Its root, without symlinks.
    pub root: PathBuf,
    /// What does not change while its commands run.
    pub trusted: Trusted,
    /// The surroundings.
    pub host: Host<'h>,
}

impl fmt::Debug for Project<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Project")
            .field("root", &self.root)
            .finish_non_exhaustive()
    }
}

impl<'h> Project<'h> {
    /// The project in the current folder.
    pub fn here(host: Host<'h>) -> Result<Self, Failure> {
        Self::at(&host.root()?, host)
    }

    /// The project in this folder. Fails if its repository cannot be read.
    pub fn at(root: &Path, host: Host<'h>) -> Result<Self, Failure> {
        Ok(Self {
            root: root.to_owned(),
            trusted: Trusted::find(root, host.environment)?,
            host,
        })
    }

    /// What the relative paths of its settings refer to.
    pub(crate) fn bases(&self) -> Bases<'_> {
        Bases::new(&self.root, self.host.environment)
    }

    /// The project at the root of this work tree.
    pub fn of(tree: &WorkTree, host: Host<'h>) -> Self {
        Self {
            root: tree.root().to_owned(),
            trusted: Trusted::of(tree, host.environment),
            host,
        }
    }

    /// Its repository, or why there is none.
    pub fn tree(&self) -> Result<&WorkTree, Failure> {
        if let Some(tree) = self.trusted.tree() {
            return Ok(tree);
        }
        place::work_tree(&self.root)?;
        Err(anyhow!(
            "the repository of {} appeared in the meantime",
            self.root.display()
        )
        .into())
    }

    /// The harness's own folder; created if necessary.
    pub(crate) fn state(&self) -> Result<PathBuf, Failure> {
        match self.trusted.tree() {
            Some(tree) => place::state(tree),
            None => place::state_of(&self.root),
        }
    }

    /// The list of its runs.
    pub fn registry(&self) -> Registry<'_> {
        Registry::at(&self.root, self.trusted.tree())
    }

    /// Whether a listed run is over, or holds nothing that a resumed run could use; `None` if its journal cannot be
    /// read.
    pub fn is_over(&self, known: &Known) -> Option<bool> {
        let Some(kind) = self.kind(known) else {
            return Some(true);
        };
        let run = known.path(&self.root);
        let in_tree = (kind.in_tree)(known, self)?;
        if in_tree == InTree::Unfinished {
            return Some(false);
        }
        if known.undone || !run.join(JOURNAL).exists() {
            return Some(true);
        }
        let past = Past::read(&run).ok()?;
        Some(!(kind.goes_on)(&past) || (kind.newest_only && !self.is_newest(known)))
    }

    /// Whether no newer run of its loop has begun, on the same part of the project.
    pub(crate) fn is_newest(&self, known: &Known) -> bool {
        let of = |known: &Known| {
            let head = Head::of(&records::open(&known.path(&self.root))).unwrap_or_default();
            (head.kind, head.phase)
        };
        let wanted = of(known);
        let all = self.registry().all().unwrap_or_default();
        all.iter().find(|other| of(other) == wanted) == Some(known)
    }

    /// The loop of a run; `None` for a run of `apply`, and for a loop that this program does not have.
    pub fn kind(&self, known: &Known) -> Option<&'h LoopKind> {
        let name = known.loop_name(&self.root);
        self.host.loops.iter().find(|kind| kind.name == name)
    }
}
