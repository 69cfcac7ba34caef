//! What git ignores: all sources, captured whole at the start of a run or read as they are now.

use std::collections::HashMap;
use std::io::{self, Read};
use std::sync::Arc;

use gix::glob::pattern::Case;
use rustix::fs::FileType;

use crate::folder::Folder;
use crate::patterns::{Kind, Patterns, folders};

/// The ignore rules of one work tree.
#[derive(Debug)]
pub(crate) struct Rules {
    /// From the weakest: the user's excludes file, then `info/exclude`.
    pub(crate) global: Vec<Patterns>,
    /// The `.gitignore` of each folder, by its path from the top; the top's is empty.
    pub(crate) by_folder: HashMap<String, Patterns>,
    /// `core.ignoreCase`.
    pub(crate) case: Case,
}

impl Rules {
    /// Whether git ignores the file at `path`, given from the top of the work tree, tracked or not.
    ///
    /// Git's own order: a folder that is ignored hides all that lies in it; else the nearest `.gitignore` decides,
    /// its last pattern first, then `info/exclude`, then the user's file.
    pub(crate) fn ignore(&self, path: &str) -> bool {
        folders(path).any(|folder| self.matches(folder, Kind::Folder)) || self.matches(path, Kind::File)
    }

    /// Whether the rules name this one path; whether a folder above it is ignored is not asked.
    pub(crate) fn matches(&self, path: &str, kind: Kind) -> bool {
        let nearest_first = folders(path).rev().chain([""]);
        let local = nearest_first.filter_map(|folder| {
            let below = path.get(folder.len()..)?.trim_start_matches('/');
            self.by_folder.get(folder)?.verdict(below, kind, self.case)
        });
        let global = self.global.iter().rev().filter_map(|patterns| patterns.verdict(path, kind, self.case));
        local.chain(global).next().unwrap_or(false)
    }

    /// Reads the `.gitignore` of one folder, unless that was done before.
    pub(crate) fn read(&mut self, path: &str, folder: &Folder) -> io::Result<()> {
        if !self.by_folder.contains_key(path) {
            self.by_folder.insert(path.to_owned(), read_gitignore(folder)?);
        }
        Ok(())
    }

    /// Reads the `.gitignore` of every folder at or below `path` that is not ignored itself.
    ///
    /// Without recursion, since the depth of a tree is not ours to trust; a folder is opened when its turn comes,
    /// so that a wide tree does not use up the descriptors.
    pub(crate) fn read_below(&mut self, path: &str, folder: &Arc<Folder>) -> io::Result<()> {
        let mut todo = self.read_one(path, folder)?;
        while let Some((path, parent, name)) = todo.pop() {
            // What cannot be opened now is judged by the rules of then, when somebody wants to write there.
            if let Ok(folder) = parent.open_in(&name) {
                todo.extend(self.read_one(&path, &Arc::new(folder))?);
            }
        }
        Ok(())
    }

    /// Reads one folder's rules and returns the folders in it that they do not ignore.
    fn read_one(
        &mut self,
        path: &str,
        folder: &Arc<Folder>,
    ) -> io::Result<Vec<(String, Arc<Folder>, String)>> {
        let may_be_folder = |kind| matches!(kind, FileType::Directory | FileType::Unknown);
        let entries = folder
            .entries_if(|name, kind| name == b".gitignore" || (may_be_folder(kind) && name != b".git"))?;
        if entries.iter().any(|(name, _)| name == b".gitignore") {
            self.read(path, folder)?;
        }
        let folders = entries.into_iter().filter(|(_, kind)| may_be_folder(*kind)).filter_map(|(name, _)| {
            let name = String::from_utf8(name).ok()?;
            let below = if path.is_empty() { name.clone() } else { format!("{path}/{name}") };
            let ignored = self.matches(&below, Kind::Folder);
            (!ignored).then(|| (below, Arc::clone(folder), name))
        });
        Ok(folders.collect())
    }
}

/// A symlinked `.gitignore` is not followed, as git has it; one that is absent has no rules.
fn read_gitignore(folder: &Folder) -> io::Result<Patterns> {
    let is_file = folder
        .stat(".gitignore")?
        .is_some_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
    let mut content = Vec::new();
    if is_file {
        folder.open_file(".gitignore")?.read_to_end(&mut content)?;
    }
    Ok(Patterns::parse(&content))
}
