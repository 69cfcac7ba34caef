//! What exists on disk on the way to a path, inspected through descriptors, each folder once per
//! reply.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::FileType;
use rustix::io::Errno;

use crate::admitted::{Admitted, Before, Op};
use crate::batch::Batch;
use crate::fold::fold;
use crate::patterns::folders;
use crate::refusal::{Code, Refusal};
use crate::rules::Rules;
use code_commit_dir::Folder;

/// An I/O error that does not concern a single path: the run stops.
#[derive(Debug, thiserror::Error)]
#[error("cannot inspect {}", shown_from_root(path))]
#[non_exhaustive]
pub struct JudgeError {
    /// Relative to the root, empty for the root itself; absolute if it is above the root.
    pub path: String,
    /// Why.
    #[source]
    pub source: io::Error,
}

/// A path relative to the root, for error messages.
pub(crate) fn shown_from_root(path: &str) -> &str {
    if path.is_empty() { "the root" } else { path }
}

/// The folders that the paths of one reply share.
pub(crate) struct Tree<'a> {
    root: Arc<Folder>,
    submodules: &'a BTreeSet<String>,
    prefix: &'a str,
    folders: HashMap<String, Result<Arc<Folder>, Obstacle>>,
    names: HashMap<String, HashMap<String, String>>,
    /// The current rules, read for each folder on the way.
    pub(crate) rules: Rules,
}

/// Why a folder cannot be entered.
#[derive(Debug, Clone)]
enum Obstacle {
    Absent,
    Refused(Code, String),
}

/// Either a refusal for the model, or an error that stops the run.
pub(crate) enum Halt {
    Refused(Refusal),
    Failed(JudgeError),
}

impl<'a> Tree<'a> {
    pub(crate) fn new(
        root: Arc<Folder>,
        rules: Rules,
        submodules: &'a BTreeSet<String>,
        prefix: &'a str,
    ) -> Self {
        Tree {
            root,
            submodules,
            prefix,
            folders: HashMap::new(),
            names: HashMap::new(),
            rules,
        }
    }

    /// Walks down to `path` and inspects what exists there.
    pub(crate) fn admit(
        &mut self,
        path: &str,
        op: Op,
        batch: &Batch<'_>,
    ) -> Result<Admitted, Halt> {
        let mut folder = Arc::clone(&self.root);
        let mut folder_names = 0;
        if !self.folders.contains_key("") {
            self.read_rules("", &folder)?;
            self.folders.insert(String::new(), Ok(Arc::clone(&folder)));
        }
        for below in folders(path) {
            match self.folder(below, &folder)? {
                Ok(inner) => folder = inner,
                Err(Obstacle::Absent) => break,
                Err(Obstacle::Refused(code, detail)) => return Err(refuse(code, path, &detail)),
            }
            folder_names += 1;
        }
        let mut admitted = Admitted {
            path: path.to_owned(),
            op,
            root: self.root.id(),
            folder,
            folder_names,
            before: None,
        };
        self.check_spelling(&admitted, batch)?;
        if self.submodules.contains(&format!("{}{path}", self.prefix)) {
            return Err(refuse(Code::NestedRepository, path, ""));
        }
        if admitted.missing_folders().next().is_none() {
            admitted.before = look_at(&admitted.folder, admitted.name(), path)?;
        }
        Ok(admitted)
    }

    /// Opens the folder at `path` in its parent, unless an earlier path of the reply already did.
    fn folder(
        &mut self,
        path: &str,
        parent: &Folder,
    ) -> Result<Result<Arc<Folder>, Obstacle>, Halt> {
        if let Some(known) = self.folders.get(path) {
            return Ok(known.clone());
        }
        let found = self.open(path, parent)?;
        if let Ok(folder) = &found {
            self.read_rules(path, folder)?;
        }
        self.folders.insert(path.to_owned(), found.clone());
        Ok(found)
    }

    fn open(&self, path: &str, parent: &Folder) -> Result<Result<Arc<Folder>, Obstacle>, Halt> {
        let name = path.rsplit('/').next().unwrap_or_default();
        if self.submodules.contains(&format!("{}{path}", self.prefix)) {
            return Ok(Err(Obstacle::Refused(
                Code::NestedRepository,
                String::new(),
            )));
        }
        let folder = match parent.open_in(name) {
            Ok(folder) => folder,
            Err(error) => {
                return obstacle(parent, name, &error)
                    .map(Err)
                    .ok_or_else(|| fail(path, error));
            }
        };
        let is_repository = holds(&folder, ".git").map_err(|error| fail(path, error))?;
        if is_repository {
            return Ok(Err(Obstacle::Refused(
                Code::NestedRepository,
                String::new(),
            )));
        }
        Ok(Ok(Arc::new(folder)))
    }

    fn read_rules(&mut self, path: &str, folder: &Folder) -> Result<(), Halt> {
        let from_top = format!("{}{path}", self.prefix);
        self.rules
            .read(from_top.trim_end_matches('/'), folder)
            .map_err(|error| fail(path, error))
    }

    /// The first component that does not exist must not differ from an existing one only in case or
    /// Unicode form: on many systems the two are the same file. Unless the reply names the existing one, too, as a
    /// rename does.
    fn check_spelling(&mut self, admitted: &Admitted, batch: &Batch<'_>) -> Result<(), Halt> {
        let missing = admitted.missing_folders().next().unwrap_or(&admitted.path);
        let name = missing.rsplit('/').next().unwrap_or_default();
        let found = admitted
            .folder
            .stat(name)
            .map_err(|error| fail(missing, error))?;
        if found.is_some() {
            return Ok(());
        }
        let names = self
            .names_in(admitted.folder_path(), &admitted.folder)
            .map_err(|error| fail(missing, error))?;
        let known = missing.strip_suffix(name).unwrap_or_default();
        match names.get(&fold(name)) {
            Some(other) if other != name && !batch.has(&format!("{known}{other}")) => {
                Err(refuse(Code::SpelledDifferently, &admitted.path, other))
            }
            _ => Ok(()),
        }
    }

    /// The names in a folder, by their folded form.
    fn names_in(&mut self, path: &str, folder: &Folder) -> io::Result<&HashMap<String, String>> {
        if !self.names.contains_key(path) {
            let entries = folder.entries()?.into_iter();
            let names = entries.filter_map(|(name, _)| String::from_utf8(name).ok());
            self.names.insert(
                path.to_owned(),
                names.map(|name| (fold(&name), name)).collect(),
            );
        }
        Ok(self.names.entry(path.to_owned()).or_default())
    }

    /// Whether the file system keeps these two paths apart, which differ only in spelling. Nothing tells if neither
    /// exists: then they count as one.
    pub(crate) fn tells_apart(&self, one: &str, other: &str) -> bool {
        let inode = |path: &str| {
            let path = Path::new(path);
            let folder = self.root.folder_of(path).ok()?;
            let found = folder.stat(path.file_name()?).ok()??;
            Some((found.st_dev, found.st_ino))
        };
        inode(one) != inode(other)
    }

    /// Whether the folder at `path` contains `name`, one of the names that make a folder a
    /// repository.
    pub(crate) fn has_in(&self, path: &str, name: &str) -> bool {
        match self.folders.get(path) {
            Some(Ok(folder)) => holds(folder, name).unwrap_or(true),
            _ => false,
        }
    }
}

fn holds(folder: &Folder, name: &str) -> io::Result<bool> {
    Ok(folder.stat(name)?.is_some())
}

/// Why `name` could not be opened as a folder; `None` if the reason does not concern the path.
fn obstacle(parent: &Folder, name: &str, error: &io::Error) -> Option<Obstacle> {
    let refused = |code| Some(Obstacle::Refused(code, String::new()));
    match Errno::from_io_error(error)? {
        Errno::NOENT => Some(Obstacle::Absent),
        Errno::XDEV => refused(Code::OtherFileSystem),
        Errno::ACCESS => Some(Obstacle::Refused(
            Code::CannotJudge,
            "no permission to look inside".to_owned(),
        )),
        Errno::LOOP => refused(Code::Symlink),
        Errno::NOTDIR => refused(match kind_of(parent, name) {
            kind if kind.is_symlink() => Code::Symlink,
            kind if kind.is_file() => Code::NotAFolder,
            _ => Code::NotARegularFile,
        }),
        _ => None,
    }
}

fn kind_of(parent: &Folder, name: &str) -> FileType {
    let stat = parent.stat(name).ok().flatten();
    stat.map_or(FileType::Unknown, |stat| {
        FileType::from_raw_mode(stat.st_mode)
    })
}

/// The regular file at `name` with the hash of its content; `None` if it does not exist.
fn look_at(folder: &Folder, name: &str, path: &str) -> Result<Option<Before>, Halt> {
    let Some(stat) = folder
        .stat(OsStr::from_bytes(name.as_bytes()))
        .map_err(|error| fail(path, error))?
    else {
        return Ok(None);
    };
    let kind = FileType::from_raw_mode(stat.st_mode);
    let obstacle = match () {
        () if kind.is_symlink() => Code::Symlink,
        () if kind.is_dir() => Code::IsAFolder,
        () if !kind.is_file() => Code::NotARegularFile,
        () if stat.st_dev != folder.id().0 || folder.is_mount(name) => Code::OtherFileSystem,
        () => return read(folder, name, path, (stat.st_dev, stat.st_ino)).map(Some),
    };
    Err(refuse(obstacle, path, ""))
}

/// `id` detects that the file was swapped for another between the two steps.
fn read(folder: &Folder, name: &str, path: &str, id: (u64, u64)) -> Result<Before, Halt> {
    let before = folder
        .open_file(name)
        .and_then(|mut file| Before::of(&mut file));
    match before {
        Ok(before) if before.id == id => Ok(before),
        Ok(_) => Err(refuse(
            Code::CannotJudge,
            path,
            "it is being changed right now",
        )),
        Err(error) => match Errno::from_io_error(&error) {
            Some(Errno::ACCESS) => Err(refuse(Code::CannotJudge, path, "no permission to read it")),
            // `None` if it is no longer a regular file.
            Some(Errno::LOOP | Errno::NOENT) | None => Err(refuse(
                Code::CannotJudge,
                path,
                "it is being changed right now",
            )),
            _ => Err(fail(path, error)),
        },
    }
}

fn refuse(code: Code, path: &str, detail: &str) -> Halt {
    Halt::Refused(Refusal::with(code, path.as_bytes(), detail))
}

fn fail(path: &str, source: io::Error) -> Halt {
    Halt::Failed(JudgeError {
        path: path.to_owned(),
        source,
    })
}
