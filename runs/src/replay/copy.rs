//! The project at the start of a run, in a scratch folder.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, symlink};
use std::path::{Component, Path, PathBuf};

use anyhow::Context as _;
use code_commit_apply::Lock;
use code_commit_engine::Line;
use code_commit_guard::Guard;
use code_commit_logging::{Redactor, RunFolder};
use code_commit_names::ours::AGENT_CONFIG;
use code_commit_perform::{RecordOnly, Replayed, Rules, UNDO, undo_folders};
use code_commit_repo::WorkTree;
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::commit::plan::Plan;
use crate::exit::Failure;

/// The current project with the run's pre-images restored.
pub(super) struct ScratchCopy {
    pub root: PathBuf,
    state: PathBuf,
    run: PathBuf,
}

impl ScratchCopy {
    /// Copies what git tracks and would track, and what is at the paths that the run's replies were refused.
    pub(super) fn make(
        tree: &WorkTree,
        run: &Path,
        lines: &[Line],
        scratch: &Path,
    ) -> Result<Self, Failure> {
        let copy = Self {
            root: scratch.join("project"),
            state: scratch.join("state"),
            run: run.to_owned(),
        };
        copy.fill(tree, lines)
            .context("cannot copy the project into a scratch folder")
            .map_err(|error| {
                Failure::refused(
                    error,
                    "see that there is room, or set TMPDIR to another folder",
                )
            })?;
        Ok(copy)
    }

    fn fill(&self, tree: &WorkTree, lines: &[Line]) -> anyhow::Result<()> {
        let root = &self.root;
        fs::create_dir_all(root)?;
        fs::create_dir_all(&self.state)?;
        code_commit_repo::init(root)?;
        let exclude = Path::new("info/exclude");
        if let Ok(rules) = fs::read(tree.common_dir().join(exclude)) {
            let own = root.join(".git").join(exclude);
            fs::create_dir_all(own.parent().unwrap_or(root))?;
            fs::File::create(own)?.write_all(&rules)?;
        }
        let mut inodes = HashMap::new();
        let besides = tree.besides()?.links;
        let tracked = tree.tracked()?.into_iter().map(|file| file.path);
        for path in tracked
            .chain(besides)
            .chain(tree.dirty()?)
            .chain(refused(lines))
        {
            if leads_through_link(tree.root(), &path) {
                continue;
            }
            copy_one(&tree.root().join(&path), &root.join(&path), &mut inodes)
                .with_context(|| format!("cannot copy {path}"))?;
        }
        self.put_back(&undo_folders(&self.run)?)
    }

    fn put_back(&self, rounds: &[PathBuf]) -> anyhow::Result<()> {
        for image in code_commit_apply::pre_images(rounds)? {
            put(&self.root, &image.path, image.content(u64::MAX)?.as_deref())
                .with_context(|| format!("cannot restore {}", image.path))?;
        }
        Ok(())
    }

    pub(super) fn rules(&self, plan: &Plan) -> Result<Rules, Failure> {
        let tree = WorkTree::at(&self.root).map_err(anyhow::Error::from)?;
        let guard = Guard::open(&self.root, plan.policy(&tree)).map_err(anyhow::Error::from)?;
        let lock = Lock::acquire(&self.state, "replay").map_err(anyhow::Error::from)?;
        Ok(Rules {
            root: self.root.clone(),
            guard,
            lock: lock.into(),
        })
    }

    /// The world of the replay. What a build changed between two rounds is in the pre-images of the second.
    pub(super) fn world(&self, only: RecordOnly, rules: Rules, plan: &Plan) -> Replayed<'_> {
        let as_found = |round: u32| {
            let images = self.run.join(UNDO).join(round.to_string());
            let rounds: Vec<PathBuf> = Some(images)
                .filter(|images| images.is_dir())
                .into_iter()
                .collect();
            self.put_back(&rounds).map_err(io::Error::other)
        };
        Replayed::new(
            only,
            rules,
            self.state.join(UNDO),
            Box::new(as_found),
            plan.task.codebase().clone(),
        )
    }

    /// How many files the replayed run changed, and a SHA-256 of their paths and hashes.
    pub(super) fn changed(&self) -> Result<(usize, String), Failure> {
        let rounds = undo_folders(&self.state).map_err(anyhow::Error::from)?;
        let changed = code_commit_apply::pre_images(&rounds).map_err(anyhow::Error::from)?;
        let mut text = String::new();
        for image in &changed {
            let now = fs::read(self.root.join(&image.path)).ok();
            let hash = now.map_or_else(
                || "nothing".to_owned(),
                |now| code_commit_logging::sha256_hex(&now),
            );
            text.push_str(&format!("{} {hash}\n", image.path));
        }
        Ok((
            changed.len(),
            code_commit_logging::sha256_hex(text.as_bytes()),
        ))
    }

    /// For the record of the replay, which is not kept.
    pub(super) fn folder(&self) -> Result<RunFolder, Failure> {
        let folder = RunFolder::create(&self.state, "run", Redactor::default());
        Ok(folder.map_err(anyhow::Error::from)?)
    }
}

/// The refused paths and their parent folders, outermost first.
fn refused(lines: &[Line]) -> impl Iterator<Item = String> {
    let problems = lines.iter().flat_map(|line| {
        if let Line::Rejected(rejected) = line {
            rejected.problems.as_slice()
        } else {
            &[]
        }
    });
    // Paths refused by name alone need no copy, least of all keys and git's own files.
    let by_place = |path: &&Path| {
        path.components().all(|part| match part {
            Component::Normal(name) => !name.eq_ignore_ascii_case(".git") && name != AGENT_CONFIG,
            Component::Prefix(_)
            | Component::RootDir
            | Component::CurDir
            | Component::ParentDir => false,
        })
    };
    let paths = problems
        .filter_map(|problem| problem.path.as_deref())
        .map(Path::new)
        .filter(by_place);
    let mut found: Vec<String> = paths
        .flat_map(|path| {
            path.ancestors()
                .filter(|above| !above.as_os_str().is_empty())
        })
        .map(|path| path.display().to_string())
        .collect();
    found.sort();
    found.dedup();
    found.into_iter()
}

/// What is behind a symlink is not the project's, and must not be written through the copy of the symlink.
fn leads_through_link(root: &Path, path: &str) -> bool {
    let mut above = Path::new(path)
        .ancestors()
        .skip(1)
        .filter(|above| !above.as_os_str().is_empty());
    above.any(|above| root.join(above).is_symlink())
}

/// Copies every kind of file that a path can be refused for: symlinks, pipes, folders, repositories, hard
/// links.
fn copy_one(
    from: &Path,
    to: &Path,
    inodes: &mut HashMap<(u64, u64), PathBuf>,
) -> anyhow::Result<()> {
    let Ok(found) = fs::symlink_metadata(from) else {
        return Ok(());
    };
    if fs::symlink_metadata(to).is_ok() {
        return Ok(());
    }
    fs::create_dir_all(to.parent().unwrap_or(to))?;
    if found.is_symlink() {
        symlink(fs::read_link(from)?, to)?;
    } else if found.file_type().is_fifo() {
        mknodat(CWD, to, FileType::Fifo, Mode::RWXU, 0)?;
    } else if found.is_dir() {
        fs::create_dir(to)?;
        if from.join(".git").exists() {
            fs::create_dir(to.join(".git"))?;
        }
    } else if found.is_file() {
        match inodes.get(&(found.dev(), found.ino())) {
            Some(twin) if found.nlink() > 1 => fs::hard_link(twin, to)?,
            _ => drop(fs::copy(from, to)?),
        }
        inodes.insert((found.dev(), found.ino()), to.to_owned());
    }
    Ok(())
}

/// Restores a pre-image, replacing anything in its place, and follows no symlink; an existing file keeps its
/// mode.
fn put(root: &Path, path: &str, content: Option<&[u8]>) -> io::Result<()> {
    let path = root.join(path);
    let is_other = |path: &Path| path.symlink_metadata().is_ok_and(|found| !found.is_dir());
    let above = path.ancestors().skip(1).take_while(|above| *above != root);
    above
        .collect::<Vec<_>>()
        .into_iter()
        .rev()
        .filter(|above| is_other(above))
        .try_for_each(fs::remove_file)?;
    match content {
        Some(content) => {
            if path.symlink_metadata().is_ok_and(|found| !found.is_file()) {
                code_commit_dir::remove(&path)?;
            }
            fs::create_dir_all(path.parent().unwrap_or(root))?;
            fs::OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .open(path)?
                .write_all(content)
        }
        None => code_commit_dir::remove(&path),
    }
}
