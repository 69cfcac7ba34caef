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

impl Layout<'_> {
    /// What a difference is to a repository. Where git ignores it, only a repository that has hooks, or whose
    /// configuration names a file, is dangerous: package managers clone there.
    pub(super) fn role(self, one: &Difference) -> Role {
        let (path, is_new) = (&one.path, one.before.is_none());
        let parts = path.ancestors().zip(path.ancestors().skip(1));
        let parts =
            parts.filter(
                |(part, _)| match part.file_name().and_then(|name| name.to_str()) {
                    Some("config" | "config.worktree" | "commondir" | "hooks") => true,
                    Some("HEAD" | "objects" | "refs") => part == path && is_new,
                    _ => false,
                },
            );
        let folders: Vec<&Path> = parts.map(|(_, folder)| folder).collect();
        if folders.is_empty() {
            return Role::None;
        }
        let is_ignored = self.is_ignored(path);
        let is_dangerous = |folder: &&Path| {
            self.is_repository(folder) && !(is_ignored && self.is_harmless(folder))
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

    /// Whether git takes a folder for a repository, with a work tree or without (gitrepository-layout(5)). What
    /// a layer hides counts as there.
    pub(super) fn is_repository(self, folder: &Path) -> bool {
        let has = |name: &str| self.find(&folder.join(name)).is_some();
        has("HEAD") && ((has("objects") && has("refs")) || has("commondir"))
    }

    fn is_ignored(self, path: &Path) -> bool {
        let is_folder = |path: &Path| self.find(path).is_some_and(|found| found.is_dir());
        path.ancestors()
            .any(|path| path != Path::new("") && self.guard.has_ignored(path, is_folder(path)))
    }

    fn is_harmless(self, folder: &Path) -> bool {
        let bases = [self.now, self.guard.root()];
        let hooks = bases
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
        let bases = [self.now, self.guard.root()];
        let mut found = bases
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
        let bases = [self.now, self.guard.root()];
        bases
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
