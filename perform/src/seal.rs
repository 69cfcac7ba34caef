//! The seal: what decides whether the work is done must not be changed by the work.
//!
//! The build script, the configuration and the protected files are compared before and after each build. What
//! a build changed is restored, and the build has failed, whatever its exit code.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use code_commit_dir::{Folder, Found};

use crate::attic::Attic;
use crate::fault::Fault;
use crate::paths::last;
use crate::restore::{Restore, Was};
use content::{Contents, Place};

pub(crate) use content::are_equal;

mod content;

/// The sealed files as they were before a build.
#[derive(Debug)]
pub(crate) struct Seal {
    root: Folder,
    files: Vec<Sealed>,
    contents: Contents,
    /// The modes of their parent folders.
    folders: BTreeMap<PathBuf, u32>,
}

#[derive(Debug)]
struct Sealed {
    path: PathBuf,
    state: Found<Place>,
}

/// The sealed files that had changed.
#[derive(Debug, Default)]
pub(crate) struct Restored {
    /// Restored.
    pub(crate) changed: Vec<String>,
    /// It could not be restored.
    pub(crate) lost: Vec<String>,
    /// Could not be inspected because of a disk error, so left alone.
    pub(crate) unseen: Vec<(PathBuf, io::Error)>,
}

impl Seal {
    /// Records these files; paths are relative to the root.
    pub(crate) fn take(root: &Path, paths: &[PathBuf]) -> io::Result<Self> {
        let (folder, contents) = (Folder::open(root)?, Contents::default());
        let mut seal = Self {
            root: folder,
            files: Vec::new(),
            contents,
            folders: BTreeMap::new(),
        };
        for path in paths {
            seal.note_folders(path)?;
            let found = seal.root.look(path)?;
            let state =
                found.keep(|content, inode| seal.contents.keep(content, inode.len, root))?;
            seal.files.push(Sealed {
                path: path.clone(),
                state,
            });
        }
        Ok(seal)
    }

    /// The files that have changed.
    pub(crate) fn differing(&self) -> impl Iterator<Item = &Path> {
        let differs = |file: &&Sealed| !self.is_as_it_was(file).unwrap_or(false);
        self.files
            .iter()
            .filter(differs)
            .map(|file| file.path.as_path())
    }

    /// Restores what was changed, parent folders included, and gives its paths. What was there goes to the
    /// attic.
    ///
    /// Fails if something could not be restored: nothing may be built in such a tree. A file that cannot be
    /// inspected counts as unchanged by the build: it stays, and the error is the disk's.
    pub(crate) fn restore(&self, attic: &mut Attic<'_>) -> Result<Vec<String>, Fault> {
        let Restored {
            changed,
            lost,
            unseen,
        } = self.put_all_back(attic);
        if !lost.is_empty() {
            return Err(Fault::Seal {
                paths: lost.join(", "),
            });
        }
        match unseen.into_iter().next() {
            Some((path, source)) => Err(Fault::File {
                doing: "look at",
                path,
                source,
            }),
            None => Ok(changed),
        }
    }

    /// Restores what it can, where a file may also stay changed.
    pub(crate) fn put_all_back(&self, attic: &mut Attic<'_>) -> Restored {
        let mut restored = Restored::default();
        for file in &self.files {
            let mut put_back = || {
                self.put_back(file, attic)?;
                self.is_as_it_was(file)
            };
            let name = file.path.display().to_string();
            match self.is_as_it_was(file) {
                Ok(true) => {}
                Ok(false) if put_back().unwrap_or(false) => restored.changed.push(name),
                Ok(false) => restored.lost.push(name),
                Err(error) => restored.unseen.push((file.path.clone(), error)),
            }
        }
        restored
    }

    /// Reads a file only if it can be the original: a build may have left one of any size.
    fn is_as_it_was(&self, file: &Sealed) -> io::Result<bool> {
        let now = match self.root.look(&file.path) {
            // The build has closed a folder above it.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(false),
            now => now?,
        };
        Ok(match (&file.state, now) {
            (Found::Absent, Found::Absent) => true,
            (
                Found::File { content, inode },
                Found::File {
                    content: now,
                    inode: is,
                },
            ) => {
                (is.mode, is.len) == (inode.mode, inode.len)
                    && self.contents.are_in(content, now)?
            }
            (Found::Link(target), Found::Link(now)) => *target == now,
            (Found::Other(mode), Found::Other(now)) => *mode == now,
            (Found::Absent | Found::File { .. } | Found::Link(_) | Found::Other(_), _) => false,
        })
    }

    fn note_folders(&mut self, path: &Path) -> io::Result<()> {
        let above = path
            .ancestors()
            .skip(1)
            .filter(|above| *above != Path::new(""));
        for folder in above.collect::<Vec<_>>().into_iter().rev() {
            if self.folders.contains_key(folder) {
                continue;
            }
            let Ok(above) = self.root.folder_of(folder) else {
                break;
            };
            let Some(stat) = above.stat(last(folder)?)? else {
                break;
            };
            self.folders
                .insert(folder.to_owned(), stat.st_mode & 0o7777);
        }
        Ok(())
    }

    fn put_back(&self, sealed: &Sealed, attic: &mut Attic<'_>) -> io::Result<()> {
        let mut content;
        let was = match &sealed.state {
            Found::File {
                content: place,
                inode,
            } => {
                content = self.contents.read(place)?;
                Was::File(&mut *content, inode)
            }
            Found::Link(target) => Was::Link(target),
            Found::Absent | Found::Other(_) => Was::Nothing,
        };
        let mode_of = |folder: &Path| self.folders.get(folder).copied();
        Restore {
            root: &self.root,
            mode_of: &mode_of,
            attic,
        }
        .restore(&sealed.path, was)
    }
}

#[cfg(test)]
mod tests;
