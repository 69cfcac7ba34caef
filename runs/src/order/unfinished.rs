//! The run in progress in a work tree: noted in the harness's own state, so that the next command knows what
//! to restore.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use code_commit_perform::Baseline;
use code_commit_repo::{Git, Head};
use serde::{Deserialize, Serialize};

/// Its name in the state folder.
const FILE: &str = "order.json";

/// Everything needed to restore the tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Unfinished {
    /// The run folder.
    pub run: PathBuf,
    /// The commit that was checked out.
    pub commit: String,
    /// The branch that was checked out.
    pub branch: Option<String>,
    /// Whether the tree was restored before the run ended.
    pub restored: bool,
}

impl Unfinished {
    /// The tree is in the middle of the run in this folder, or was restored since.
    pub(crate) fn of(run: &Path, baseline: &Baseline, restored: bool) -> Self {
        Self {
            run: run.to_owned(),
            commit: baseline.commit.clone(),
            branch: branch(baseline.head.clone()),
            restored,
        }
    }

    pub(crate) fn read(state: &Path) -> anyhow::Result<Option<Self>> {
        let path = state.join(FILE);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read {}", path.display()));
            }
        };
        serde_json::from_slice(&text)
            .map(Some)
            .with_context(|| format!("cannot understand {}", path.display()))
    }

    /// Stores the run atomically.
    pub(crate) fn write(&self, state: &Path) -> anyhow::Result<()> {
        let path = state.join(FILE);
        let write = || code_commit_dir::replace(&path, &serde_json::to_vec_pretty(self)?);
        write().with_context(|| format!("cannot write {}", path.display()))
    }

    pub(crate) fn forget(state: &Path) -> anyhow::Result<()> {
        let path = state.join(FILE);
        code_commit_dir::remove(&path).with_context(|| format!("cannot remove {}", path.display()))
    }
}

/// `None` for a detached head.
pub(crate) fn branch(head: Head) -> Option<String> {
    match head {
        Head::Branch(name) => Some(name),
        Head::Detached => None,
    }
}

/// The state to restore.
pub(crate) fn baseline(git: Git, commit: &str, branch: Option<&str>) -> Baseline {
    let head = branch.map_or(Head::Detached, |name| Head::Branch(name.to_owned()));
    Baseline::of(git, commit.to_owned(), head)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn nothing_is_written_through_a_link_in_the_place_of_the_note() {
        let state = tempfile::tempdir().unwrap();
        let other = state.path().join("other");
        fs::File::create(&other).unwrap();
        for name in [FILE, "order.json.new", ".order.json.new"] {
            symlink(&other, state.path().join(name)).unwrap();
        }
        let run = Unfinished {
            run: "/out/run".into(),
            commit: String::new(),
            branch: None,
            restored: false,
        };
        run.write(state.path()).unwrap();
        assert_eq!(fs::metadata(&other).unwrap().len(), 0);
        assert_eq!(Unfinished::read(state.path()).unwrap(), Some(run));
    }
}
