//! Where a file goes: an existing folder, and the folders that do not exist yet.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use code_commit_dir::Folder;
use code_commit_guard::Admitted;
use rustix::io::Errno;

/// A file's location below the root.
#[derive(Debug)]
pub(crate) struct Place {
    /// Relative to the root.
    pub(crate) path: String,
    folder: Arc<Folder>,
    folder_path: String,
    missing: Vec<String>,
}

impl Place {
    pub(crate) fn of(admitted: &Admitted) -> Self {
        Place {
            path: admitted.path().to_owned(),
            folder: Arc::clone(admitted.folder()),
            folder_path: admitted.folder_path().to_owned(),
            missing: admitted.missing_folders().map(str::to_owned).collect(),
        }
    }

    /// Walks down from the root, one name at a time, as long as folders exist.
    pub(crate) fn find(root: &Arc<Folder>, path: &str) -> io::Result<Self> {
        Finder::new(root).find(path)
    }

    /// Like [`Place::find`], but a symlink or a file on the way counts as a missing folder.
    pub(crate) fn find_unless_blocked(root: &Arc<Folder>, path: &str) -> io::Result<Self> {
        match Place::find(root, path) {
            Err(error) if is_blocked(&error) => Ok(Place {
                path: path.to_owned(),
                folder: Arc::clone(root),
                folder_path: String::new(),
                missing: folders_above(path).map(str::to_owned).collect(),
            }),
            found => found,
        }
    }

    pub(crate) fn name(&self) -> &str {
        name_of(&self.path)
    }

    /// The nearest existing folder.
    pub(crate) fn nearest(&self) -> &Folder {
        &self.folder
    }

    /// The folder of the file, if it exists.
    pub(crate) fn parent(&self) -> Option<&Arc<Folder>> {
        self.missing.is_empty().then_some(&self.folder)
    }

    pub(crate) fn missing(&self) -> &[String] {
        &self.missing
    }
}

/// Finds the places of many files and opens each folder only once, so that the number of
/// descriptors depends on folders, not on files.
pub(crate) struct Finder {
    root: Arc<Folder>,
    known: HashMap<String, Arc<Folder>>,
}

impl Finder {
    pub(crate) fn new(root: &Arc<Folder>) -> Self {
        Finder {
            root: Arc::clone(root),
            known: HashMap::new(),
        }
    }

    pub(crate) fn root(&self) -> &Arc<Folder> {
        &self.root
    }

    /// Walks down from the root, one name at a time, as long as folders exist.
    pub(crate) fn find(&mut self, path: &str) -> io::Result<Place> {
        let mut place = Place {
            path: path.to_owned(),
            folder: Arc::clone(&self.root),
            folder_path: String::new(),
            missing: Vec::new(),
        };
        for (slash, _) in path.match_indices('/') {
            let below = path.get(..slash).unwrap_or_default();
            let opened = if place.missing.is_empty() {
                self.open(&place.folder, below)
            } else {
                absent()
            };
            match opened {
                Ok(folder) => (place.folder, place.folder_path) = (folder, below.to_owned()),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    place.missing.push(below.to_owned());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(place)
    }

    fn open(&mut self, parent: &Folder, path: &str) -> io::Result<Arc<Folder>> {
        if let Some(folder) = self.known.get(path) {
            return Ok(Arc::clone(folder));
        }
        let folder = Arc::new(parent.open_in(name_of(path))?);
        self.known.insert(path.to_owned(), Arc::clone(&folder));
        Ok(folder)
    }
}

/// The folders of one transaction. Each is opened, checked or created only once.
pub(crate) struct Folders {
    root: Arc<Folder>,
    known: HashMap<String, Arc<Folder>>,
    made: Vec<String>,
}

impl Folders {
    pub(crate) fn new(root: &Arc<Folder>) -> Self {
        let known = HashMap::from([(String::new(), Arc::clone(root))]);
        Folders {
            root: Arc::clone(root),
            known,
            made: Vec::new(),
        }
    }

    /// The folder of `place`. Fails with `ESTALE` if the folder that was judged is no longer at its
    /// path.
    pub(crate) fn existing(&mut self, place: &Place) -> io::Result<Arc<Folder>> {
        if let Some(folder) = self.known.get(&place.folder_path) {
            return Ok(Arc::clone(folder));
        }
        let now = Place::find(&self.root, &format!("{}/x", place.folder_path))?;
        if now.parent().map(|folder| folder.id()) != Some(place.folder.id()) {
            return Err(Errno::STALE.into());
        }
        self.known
            .insert(place.folder_path.clone(), Arc::clone(&place.folder));
        Ok(Arc::clone(&place.folder))
    }

    /// A folder that existed or that this transaction created, if it is already open.
    pub(crate) fn known(&self, path: &str) -> Option<Arc<Folder>> {
        self.known.get(path).map(Arc::clone)
    }

    /// The folders that this transaction created, outermost first, including those that could not
    /// be opened afterwards.
    pub(crate) fn into_made(self) -> Vec<String> {
        self.made
    }

    /// Creates one folder. If it has appeared in the meantime, that is an error, because nobody has
    /// judged it.
    pub(crate) fn make(&mut self, path: &str, parent: &Folder) -> io::Result<Arc<Folder>> {
        parent.make_folder(name_of(path), 0o777)?;
        self.made.push(path.to_owned());
        let folder = Arc::new(parent.open_in(name_of(path))?);
        self.known.insert(path.to_owned(), Arc::clone(&folder));
        Ok(folder)
    }
}

pub(crate) fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// The parent folders, outermost first.
pub(crate) fn folders_above(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/')
        .filter_map(|(slash, _)| path.get(..slash))
}

/// Whether the error means that a symlink or a file is in the place of a folder.
pub(crate) fn is_blocked(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::LOOP | Errno::NOTDIR | Errno::XDEV)
    )
}

fn absent() -> io::Result<Arc<Folder>> {
    Err(Errno::NOENT.into())
}
