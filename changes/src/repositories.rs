//! What git would read as a part of a repository in the tree that results, whoever made which part of it.

use std::ffi::OsStr;
use std::fs::Metadata;
use std::path::Path;

use code_commit_guard::Guard;

use crate::change::Change;
use crate::snapshot::RUN_BY_GIT;

/// The tree that results: what `now` has goes before what the root has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Resulting<'l> {
    /// The layer with the changes, or the root.
    pub(crate) now: &'l Path,
    pub(crate) guard: &'l Guard,
}

/// What a change is to a repository, as git reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// No part of one.
    None,
    /// A part for which git runs nothing; ignored.
    Harmless,
    /// Git may run a program for it.
    Dangerous,
}

/// Larger configurations are not judged.
const MOST_READ: u64 = 64 << 10;

/// The folders that a path may be a part of as a repository; one that is new may make a folder one.
fn folders_of(path: &Path, is_new: bool) -> impl Iterator<Item = &Path> {
    let parts = path.ancestors().zip(path.ancestors().skip(1));
    let is_part = move |part: &Path| match part.file_name().and_then(OsStr::to_str) {
        Some("HEAD" | "objects" | "refs") => part == path && is_new,
        name => name.is_some_and(|name| RUN_BY_GIT.contains(&name)),
    };
    parts
        .filter(move |(part, _)| is_part(part))
        .map(|(_, folder)| folder)
}

impl Resulting<'_> {
    /// What a change is to a repository. Where git ignores it, only a repository that has hooks, or whose
    /// configuration names a file, is dangerous: package managers clone there. The same where a role made it.
    pub(crate) fn part(self, one: &Change, is_of_role: bool) -> Part {
        let path = &one.path;
        let mut folders = folders_of(path, one.before.is_none()).peekable();
        if folders.peek().is_none() {
            return Part::None;
        }
        let is_ignored = self.is_ignored(path);
        let is_dangerous = |folder: &Path| {
            let is_git = self.is_repository(folder) || (is_of_role && folder.ends_with(".git"));
            is_git && !((is_ignored || is_of_role) && self.is_harmless(folder))
        };
        if one.after.is_some() && folders.any(is_dangerous) {
            Part::Dangerous
        } else if is_ignored {
            Part::Harmless
        } else {
            Part::None
        }
    }

    /// Whether git takes a folder for a repository, with a work tree or without (gitrepository-layout(5)). What
    /// a layer hides counts as there.
    pub(crate) fn is_repository(self, folder: &Path) -> bool {
        let has = |name: &str| self.find(&folder.join(name)).is_some();
        has("HEAD") && ((has("objects") && has("refs")) || has("commondir"))
    }

    /// Whether git runs nothing for it: it has no hooks, and its configuration names no file.
    pub(crate) fn is_harmless(self, folder: &Path) -> bool {
        let hooks = self
            .bases()
            .into_iter()
            .filter_map(|base| code_commit_dir::list(base.join(folder).join("hooks")).ok());
        let mut hooks = hooks.flatten().flatten().map(|entry| entry.file_name());
        let is_link = self
            .find(&folder.join("hooks"))
            .is_some_and(|found| !found.is_dir());
        let has = |name: &str| self.find(&folder.join(name)).is_some();
        !has("config.worktree")
            && !has("commondir")
            && !is_link
            && hooks.all(|name| name.as_encoded_bytes().ends_with(b".sample"))
            && (!has("config") || self.config_names_nothing(&folder.join("config")))
    }

    fn config_names_nothing(self, config: &Path) -> bool {
        let there = |path: &std::path::PathBuf| path.symlink_metadata().is_ok();
        let found = self
            .bases()
            .map(|base| base.join(config))
            .into_iter()
            .find(there);
        let text = found.and_then(|path| {
            code_commit_dir::read(&path, MOST_READ, code_commit_dir::Links::Refused)
                .ok()
                .flatten()
        });
        text.is_some_and(|text| {
            code_commit_repo::config_names_nothing(&String::from_utf8_lossy(&text))
        })
    }

    fn bases(&self) -> [&Path; 2] {
        [self.now, self.guard.root()]
    }

    fn find(self, path: &Path) -> Option<Metadata> {
        self.bases()
            .into_iter()
            .find_map(|base| base.join(path).symlink_metadata().ok())
    }

    fn is_ignored(self, path: &Path) -> bool {
        let is_folder = |path: &Path| self.find(path).is_some_and(|found| found.is_dir());
        path.ancestors()
            .any(|path| path != Path::new("") && self.guard.has_ignored(path, is_folder(path)))
    }
}
