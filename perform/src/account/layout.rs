//! What git would read as a part of a repository in the tree that results, whoever made which part of it.

use std::ffi::OsStr;
use std::path::Path;

use code_commit_guard::{Difference, Guard};

/// The tree that results: what `now` has goes before what the root has.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout<'l> {
    /// The layer with the changes, or the root.
    pub(super) now: &'l Path,
    pub(super) guard: &'l Guard,
}

/// What a difference is to a repository, as git reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// No part of one.
    None,
    /// A part for which git runs nothing; ignored.
    Harmless,
    /// Git may run a program for it.
    Dangerous,
}

/// Larger configurations are not judged.
const MOST_READ: u64 = 64 << 10;
/// What makes git run programs (gitrepository-layout(5)).
pub(crate) const RUN_BY_GIT: [&str; 4] = ["config", "config.worktree", "commondir", "hooks"];

/// The folders that a path may be a part of as a repository; one that is new may make a folder one.
pub(crate) fn folders_of(path: &Path, is_new: bool) -> Vec<&Path> {
    let parts = path.ancestors().zip(path.ancestors().skip(1));
    let is_part = |part: &Path| match part.file_name().and_then(OsStr::to_str) {
        Some("HEAD" | "objects" | "refs") => part == path && is_new,
        name => name.is_some_and(|name| RUN_BY_GIT.contains(&name)),
    };
    parts
        .filter(|(part, _)| is_part(part))
        .map(|(_, folder)| folder)
        .collect()
}

/// The folders of a tree as git would take them: what the first of these roots has goes before the second one's.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Repositories<'r>(pub(crate) &'r [&'r Path]);

impl Layout<'_> {
    /// What a difference is to a repository. Where git ignores it, only a repository that has hooks, or whose
    /// configuration names a file, is dangerous: package managers clone there.
    pub(super) fn role(self, one: &Difference) -> Role {
        let (path, is_new) = (&one.path, one.before.is_none());
        let folders = folders_of(path, is_new);
        if folders.is_empty() {
            return Role::None;
        }
        let is_ignored = self.is_ignored(path);
        let bases = self.bases();
        let repositories = Repositories(&bases);
        let is_dangerous = |folder: &&Path| {
            repositories.is_one(folder) && !(is_ignored && repositories.is_harmless(folder))
        };
        if one.after.is_some() && folders.iter().any(is_dangerous) {
            Role::Dangerous
        } else if is_ignored {
            Role::Harmless
        } else {
            Role::None
        }
    }

    /// Whether what is there stays because git ignores it, and what was there is set aside.
    pub(super) fn sets_aside(self, one: &Difference) -> bool {
        one.is_ignored() && self.role(one) != Role::Dangerous
    }

    pub(super) fn is_repository(self, folder: &Path) -> bool {
        Repositories(&self.bases()).is_one(folder)
    }

    fn bases(&self) -> [&Path; 2] {
        [self.now, self.guard.root()]
    }

    fn is_ignored(self, path: &Path) -> bool {
        let bases = self.bases();
        let is_folder = |path: &Path| {
            let found = Repositories(&bases).find(path);
            found.is_some_and(|found| found.is_dir())
        };
        path.ancestors()
            .any(|path| path != Path::new("") && self.guard.has_ignored(path, is_folder(path)))
    }
}

impl Repositories<'_> {
    /// Whether git takes a folder for a repository, with a work tree or without (gitrepository-layout(5)). What
    /// a layer hides counts as there.
    pub(crate) fn is_one(self, folder: &Path) -> bool {
        let has = |name: &str| self.find(&folder.join(name)).is_some();
        has("HEAD") && ((has("objects") && has("refs")) || has("commondir"))
    }

    /// Whether git runs nothing for it: it has no hooks, and its configuration names no file.
    pub(crate) fn is_harmless(self, folder: &Path) -> bool {
        let hooks = self
            .0
            .iter()
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
        let mut found = self
            .0
            .iter()
            .map(|base| base.join(config))
            .filter(|path| path.symlink_metadata().is_ok());
        let text = found.next().and_then(|path| {
            code_commit_dir::read(&path, MOST_READ, code_commit_dir::Links::Refused)
                .ok()
                .flatten()
        });
        text.is_some_and(|text| {
            code_commit_repo::config_names_nothing(&String::from_utf8_lossy(&text))
        })
    }

    fn find(self, path: &Path) -> Option<std::fs::Metadata> {
        self.0
            .iter()
            .find_map(|base| base.join(path).symlink_metadata().ok())
    }
}

/// Whether a path may be a part of a repository.
pub(super) fn is_of_repository(path: &Path) -> bool {
    const PARTS: [&str; 7] = [
        "HEAD",
        "config",
        "config.worktree",
        "commondir",
        "hooks",
        "objects",
        "refs",
    ];
    let is_part = |name: &OsStr| PARTS.iter().any(|part| name == *part);
    path.file_name().is_some_and(is_part) || path.iter().any(|name| name == "hooks")
}
