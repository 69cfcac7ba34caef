//! The captured ignore rules, asked folder by folder: a walk of a whole tree need not match every path from the top.

use std::path::{Path, PathBuf};

use code_commit_dir::Folder;

use crate::Guard;
use crate::patterns::{Kind, folders};
use crate::rules::Way;

/// A folder below the root, with the captured rules for what is in it.
#[derive(Debug, Clone)]
pub struct Position {
    way: Way,
    /// From the top of the work tree; empty, or with a final slash.
    from_top: String,
}

impl Guard {
    /// The rules for what is in this folder, which is relative to the root.
    pub fn position(&self, folder: &Path) -> Position {
        let mut from_top = format!("{}{}/", self.work_tree.prefix, folder.to_string_lossy());
        if folder.as_os_str().is_empty() {
            from_top.pop();
        }
        let path = from_top.trim_end_matches('/');
        let above = [""].into_iter().chain(folders(path));
        let own = Some(path).filter(|path| !path.is_empty());
        let way = above
            .chain(own)
            .filter_map(|above| self.captured.of(above))
            .collect();
        Position { way, from_top }
    }

    /// Those for what is in a folder of that one.
    pub fn enter(&self, position: &Position, name: &str) -> Position {
        let path = format!("{}{name}", position.from_top);
        let own = self.captured.of(&path);
        Position {
            way: position.way.iter().cloned().chain(own).collect(),
            from_top: path + "/",
        }
    }

    /// Whether the captured rules ignore this entry of a folder itself; does not check the folders above it.
    pub fn ignores_in(&self, position: &Position, name: &str, is_folder: bool) -> bool {
        let kind = if is_folder { Kind::Folder } else { Kind::File };
        let path = format!("{}{name}", position.from_top);
        self.captured.matches(&position.way, &path, kind)
    }

    /// Whether the captured rules ignore this path itself; does not check the folders above it. A repository and ignore
    /// rules are never ignored: they decide about everything beside them.
    pub fn has_ignored(&self, path: &Path, is_folder: bool) -> bool {
        let name = path.file_name().unwrap_or_default();
        if name == ".git" || name == ".gitignore" {
            return false;
        }
        let position = self.position(path.parent().unwrap_or(path));
        self.ignores_in(&position, &name.to_string_lossy(), is_folder)
    }

    /// Whether the captured rules ignore the file at this path, tracked or not.
    pub fn ignores(&self, path: &Path) -> bool {
        let from_top = format!("{}{}", self.work_tree.prefix, path.to_string_lossy());
        self.captured.ignore(&from_top)
    }

    /// Whether the captured rules ignore a folder, or one above it, and with it whatever is inside.
    pub fn has_ignored_folder(&self, folder: &Path) -> bool {
        let mut so_far = PathBuf::new();
        folder.iter().any(|name| {
            so_far.push(name);
            self.has_ignored(&so_far, true)
        })
    }

    /// Whether a tool has marked a folder as its cache (<https://bford.info/cachedir/>).
    pub fn is_cache(folder: &Folder) -> bool {
        folder.stat("CACHEDIR.TAG").is_ok_and(|tag| tag.is_some())
    }
}
