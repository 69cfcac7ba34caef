//! Where a file goes: a folder that is there and the folders that are not yet.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use dir::Folder;
use guard::Admitted;
use rustix::io::Errno;

/// A file's place below the root.
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

    /// Goes down from the root, one name at a time, as far as there are folders.
    pub(crate) fn find(root: &Arc<Folder>, path: &str) -> io::Result<Self> {
        Finder::new(root).find(path)
    }

    /// Like [`Place::find`], but what blocks the way, a symlink or a file, counts as a folder that is not there.
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

    /// The nearest folder that is there.
    pub(crate) fn nearest(&self) -> &Folder {
        &self.folder
    }

    /// The folder that the file is in, if it is there.
    pub(crate) fn parent(&self) -> Option<&Arc<Folder>> {
        self.missing.is_empty().then_some(&self.folder)
    }

    pub(crate) fn missing(&self) -> &[String] {
        &self.missing
    }
}

/// Finds the places of many files. Each folder is opened once, so that as many descriptors are held as there are folders, not files.
pub(crate) struct Finder {
    root: Arc<Folder>,
    known: HashMap<String, Arc<Folder>>,
}

impl Finder {
    pub(crate) fn new(root: &Arc<Folder>) -> Self {
        Finder { root: Arc::clone(root), known: HashMap::new() }
    }

    pub(crate) fn root(&self) -> &Arc<Folder> {
        &self.root
    }

    /// Goes down from the root, one name at a time, as far as there are folders.
    pub(crate) fn find(&mut self, path: &str) -> io::Result<Place> {
        let mut place = Place {
            path: path.to_owned(),
            folder: Arc::clone(&self.root),
            folder_path: String::new(),
            missing: Vec::new(),
        };
        for (slash, _) in path.match_indices('/') {
            let below = path.get(..slash).unwrap_or_default();
            let opened = if place.missing.is_empty() { self.open(&place.folder, below) } else { absent() };
            match opened {
                Ok(folder) => (place.folder, place.folder_path) = (folder, below.to_owned()),
                Err(error) if error.kind() == io::ErrorKind::NotFound => place.missing.push(below.to_owned()),
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

/// The folders of one transaction, each opened, checked or made once.
pub(crate) struct Folders {
    root: Arc<Folder>,
    known: HashMap<String, Arc<Folder>>,
    made: Vec<String>,
}

impl Folders {
    pub(crate) fn new(root: &Arc<Folder>) -> Self {
        let known = HashMap::from([(String::new(), Arc::clone(root))]);
        Folders { root: Arc::clone(root), known, made: Vec::new() }
    }

    /// The folder of `place`. Fails with `ESTALE` if the folder that was judged is no longer at its path.
    pub(crate) fn existing(&mut self, place: &Place) -> io::Result<Arc<Folder>> {
        if let Some(folder) = self.known.get(&place.folder_path) {
            return Ok(Arc::clone(folder));
        }
        let now = Place::find(&self.root, &format!("{}/x", place.folder_path))?;
        if now.parent().map(|folder| folder.id()) != Some(place.folder.id()) {
            return Err(Errno::STALE.into());
        }
        self.known.insert(place.folder_path.clone(), Arc::clone(&place.folder));
        Ok(Arc::clone(&place.folder))
    }

    /// A folder that was there, or that this transaction has made, if it is open already.
    pub(crate) fn known(&self, path: &str) -> Option<Arc<Folder>> {
        self.known.get(path).map(Arc::clone)
    }

    /// The folders that this transaction has made, the outermost first, also one that could not be opened then.
    pub(crate) fn into_made(self) -> Vec<String> {
        self.made
    }

    /// Makes one folder. One that has appeared in the meantime is an error: nobody judged it.
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

/// The folders on the way to it, the outermost first.
pub(crate) fn folders_above(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').filter_map(|(slash, _)| path.get(..slash))
}

/// Whether a symlink or a file stands where a folder would have to be.
pub(crate) fn is_blocked(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::LOOP | Errno::NOTDIR | Errno::XDEV))
}

fn absent() -> io::Result<Arc<Folder>> {
    Err(Errno::NOENT.into())
}
