//! Finds the files of a tree that a list of patterns protects, and searches only folders that can
//! contain one.

use std::io;
use std::sync::Arc;

use rustix::fs::FileType;

use crate::Guard;
use crate::fold::{Folded, fold};
use crate::patterns::{Kind, Within};
use crate::rules::{Rules, is_closed};
use crate::tree::shown_from_root;
use code_commit_dir::Folder;

/// A folder that cannot be read, so it is unknown what is protected in it.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {}", shown_from_root(path))]
#[non_exhaustive]
pub struct ExistingError {
    /// Relative to the root; empty for the root itself.
    pub path: String,
    /// Why.
    #[source]
    pub source: io::Error,
}

impl Guard {
    /// The files below the root, as of when the guard was opened, whose names are protected in every folder
    /// ([`is_protected_anywhere`](code_commit_names::is_protected_anywhere)), except ignored ones.
    pub fn protected_anywhere(&self) -> impl Iterator<Item = &str> {
        let prefix = &self.work_tree.prefix;
        self.captured
            .protected
            .iter()
            .filter_map(|path| path.strip_prefix(prefix.as_str()))
    }

    /// The regular files and symlinks below the root that these lists of gitignore patterns match as in
    /// [`Policy::protect`](crate::Policy::protect), tracked or not, sorted.
    ///
    /// Includes paths that git ignored when the guard was opened only if a pattern names them, or a parent
    /// folder, without a wildcard: a `**` should not search build products. Leaves out names that are not
    /// UTF-8, and what cannot be opened.
    pub fn existing<S: AsRef<str>>(
        &self,
        lists: impl IntoIterator<Item = S>,
    ) -> Result<Vec<String>, ExistingError> {
        let lists = lists
            .into_iter()
            .map(|list| Folded::new(list.as_ref(), ""))
            .collect();
        let walk = Walk {
            lists,
            rules: &self.captured,
            prefix: &self.work_tree.prefix,
        };
        let mut found = Vec::new();
        let mut todo = walk.look_into("", &self.root, Within::Known, &mut found)?;
        while let Some(Todo {
            path,
            above,
            name,
            within,
        }) = todo.pop()
        {
            match above.open_in(&name) {
                Ok(folder) => {
                    todo.extend(walk.look_into(&path, &Arc::new(folder), within, &mut found)?);
                }
                Err(closed) if is_closed(&closed) => {}
                Err(source) => return Err(ExistingError { path, source }),
            }
        }
        found.sort_unstable();
        Ok(found)
    }
}

struct Walk<'g> {
    lists: Vec<Folded>,
    rules: &'g Rules,
    prefix: &'g str,
}

/// A folder that still has to be searched.
struct Todo {
    /// Relative to the root.
    path: String,
    above: Arc<Folder>,
    name: String,
    /// Whether git ignores the folder.
    within: Within,
}

impl Walk<'_> {
    /// Adds what is protected in one folder, and returns the subfolders that can contain more.
    fn look_into(
        &self,
        path: &str,
        folder: &Arc<Folder>,
        within: Within,
        found: &mut Vec<String>,
    ) -> Result<Vec<Todo>, ExistingError> {
        let failed = |source| ExistingError {
            path: path.to_owned(),
            source,
        };
        let mut todo = Vec::new();
        for (name, kind) in folder.entries().map_err(failed)? {
            let Ok(name) = String::from_utf8(name) else {
                continue;
            };
            let path = if path.is_empty() {
                name.clone()
            } else {
                format!("{path}/{name}")
            };
            let kind = if kind == FileType::Unknown {
                kind_of(folder, &name).map_err(failed)?
            } else {
                kind
            };
            let folded = fold(&path);
            if kind.is_dir()
                && name != ".git"
                && self
                    .lists
                    .iter()
                    .any(|list| list.may_cover_below(&path, &folded))
            {
                let within = self.enter(&path, &folded, Kind::Folder, within);
                todo.extend(within.map(|within| Todo {
                    path,
                    above: Arc::clone(folder),
                    name,
                    within,
                }));
            } else if (kind.is_file() || kind.is_symlink())
                && self.lists.iter().any(|list| list.covers(&path, &folded))
                && self.enter(&path, &folded, Kind::File, within).is_some()
            {
                found.push(path);
            }
        }
        Ok(todo)
    }

    /// Whether git ignores this path, directly or with its folder. `None` if it does and no pattern
    /// names the path, so it is not searched.
    fn enter(&self, path: &str, folded: &str, kind: Kind, within: Within) -> Option<Within> {
        let is_ignored =
            within == Within::Ignored || self.rules.name(&format!("{}{path}", self.prefix), kind);
        if !is_ignored {
            return Some(Within::Known);
        }
        self.lists
            .iter()
            .any(|list| list.names(folded, within))
            .then_some(Within::Ignored)
    }
}

fn kind_of(folder: &Folder, name: &str) -> io::Result<FileType> {
    Ok(folder.stat(name)?.map_or(FileType::Unknown, |stat| {
        FileType::from_raw_mode(stat.st_mode)
    }))
}
