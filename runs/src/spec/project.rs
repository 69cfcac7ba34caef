//! The folders of a project of the spec loop.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::Context as _;
use code_commit_loop_spec::watch::{Item, Listing};
use code_commit_loop_spec::{BACKLOG, Files, ISSUES, MEMORY, STORE, TBD, WIP};
use code_commit_repo::WorkTree;
use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};
use rustix::io::Errno;

use crate::exit::Failure;
use crate::spec::failures;

/// The folders of the store.
pub(crate) const FOLDERS: [&str; 4] = [WIP, ISSUES, BACKLOG, TBD];
/// Run folders, in the harness's own state.
pub const RUNS: &str = "spec";

/// A folder of the store.
pub fn folder(root: &Path, name: &str) -> PathBuf {
    root.join(STORE).join(name)
}

/// Makes the folders of the store that are not there.
pub fn make_folders(root: &Path) -> Result<(), Failure> {
    mend_folders(root)
        .with_context(|| format!("cannot make the folders of {}", root.join(STORE).display()))
        .map_err(|error| Failure::refused(error, "see who may write there"))
}

/// Makes the folders of the store again. A symlink or a file that an agent has put in the place of a folder is removed, so that what the harness writes, reads and deletes
/// there does not lie elsewhere. Only while no agent runs.
pub(crate) fn mend_folders(root: &Path) -> io::Result<()> {
    let store = root.join(STORE);
    let folders = FOLDERS.map(|name| store.join(name));
    [&store].into_iter().chain(&folders).try_for_each(|folder| {
        match fs::symlink_metadata(folder) {
            Ok(data) if data.is_dir() => return Ok(()),
            Ok(_) => fs::remove_file(folder)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        fs::create_dir(folder)
    })
}

/// Writes a file, whole or not at all, through no link.
pub fn write(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file()
        .set_permissions(fs::Permissions::from_mode(0o644))?;
    file.persist(path).map(drop).map_err(|error| error.error)
}

/// An agent that removes the store while a file in it is opened has to win so often in a row.
const TRIES: u32 = 16;

/// A file of the store, opened through no link, whatever an agent does there at the same time.
pub(crate) fn open_below(
    root: &Path,
    folder: &str,
    file: &str,
    flags: OFlags,
) -> io::Result<fs::File> {
    let mut again = 1..TRIES;
    loop {
        match open_once(root, folder, file, flags) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && again.next().is_some() => {}
            opened => return opened,
        }
    }
}

fn open_once(root: &Path, folder: &str, file: &str, flags: OFlags) -> io::Result<fs::File> {
    let way = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let root = openat(
        CWD,
        root,
        OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    let below = |at: &OwnedFd, name: &str| {
        // An agent that cleans the work tree may have removed it.
        match mkdirat(at, name, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => openat(at, name, way, Mode::empty()),
            Err(error) => Err(error),
        }
    };
    let folder = below(&below(&root, STORE)?, folder)?;
    // A pipe in its place must not hold us up.
    let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = fs::File::from(openat(&folder, file, flags, Mode::from_raw_mode(0o644))?);
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::ErrorKind::InvalidInput.into())
    }
}

/// The files of a folder of the store whose names are UTF-8, sorted; hidden ones are not there yet.
pub fn names(root: &Path, name: &str) -> Vec<String> {
    let entries = code_commit_dir::list(folder(root, name))
        .into_iter()
        .flatten()
        .flatten();
    let files = entries.filter(|entry| {
        entry
            .file_type()
            .is_ok_and(code_commit_dir::FileType::is_file)
    });
    let mut names: Vec<String> = files
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.retain(|name| !name.starts_with('.'));
    names.sort_unstable();
    names
}

/// Files of the store, each with what tells it from another.
pub(crate) type Mailboxes = BTreeMap<String, Option<(u64, SystemTime)>>;

/// The files that are a person's: backlog, spec issues, findings and what was dismissed.
pub(crate) fn mailboxes(root: &Path) -> Mailboxes {
    let all = [BACKLOG, ISSUES, TBD]
        .into_iter()
        .flat_map(|folder| of_folder(root, folder));
    all.chain([MEMORY.to_owned()])
        .filter_map(|name| looks(root, name))
        .collect()
}

fn of_folder(root: &Path, folder: &str) -> Vec<String> {
    names(root, folder)
        .into_iter()
        .map(|name| format!("{folder}/{name}"))
        .collect()
}

/// As a listing of its folder shows it.
fn looks(root: &Path, name: String) -> Option<(String, Option<(u64, SystemTime)>)> {
    let data = fs::symlink_metadata(root.join(STORE).join(&name)).ok()?;
    Some((
        name,
        data.modified().ok().map(|modified| (data.len(), modified)),
    ))
}

/// Whether work has arrived, for those who ask many times a second: a backlog that looks as it did is not read again.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    /// The backlog when it was last read; it held no work.
    idle: Option<Mailboxes>,
}

impl Arrivals {
    pub(crate) fn look(&mut self, root: &Path) -> bool {
        if !issues(root).is_empty() {
            return true;
        }
        let now = of_folder(root, BACKLOG)
            .into_iter()
            .filter_map(|name| looks(root, name))
            .collect();
        if self.idle.as_ref() == Some(&now) {
            return false;
        }
        self.idle = Some(now);
        listing(root).is_work()
    }
}

/// What waits; what is parked does not.
pub(crate) fn listing(root: &Path) -> Listing {
    let parked = failures::parked(root);
    let item = |name: String| {
        let bytes = fs::read(folder(root, BACKLOG).join(&name)).ok()?;
        let item = Item {
            sha256: code_commit_logging::sha256_hex(&bytes),
            name,
        };
        let is_parked = parked.iter().any(|failed| failed.item == item);
        (why_no_task(&bytes).is_none() && !is_parked).then_some(item)
    };
    Listing {
        issues: issues(root),
        backlog: names(root, BACKLOG).into_iter().filter_map(item).collect(),
    }
}

/// Whatever lies in the folder of spec issues stops runs and the backlog (S4 §Spec Issue Handling): links and odd names too; as they are
/// shown, sorted.
pub fn issues(root: &Path) -> Vec<String> {
    let entries = code_commit_dir::list(folder(root, ISSUES))
        .into_iter()
        .flatten()
        .flatten();
    let files = entries.filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_dir()));
    let mut names: Vec<String> = files
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.retain(|name| !name.starts_with('.'));
    names.sort_unstable();
    names
}

/// Removes what a session has left that is not gone on with.
pub(crate) fn forget_session(root: &Path, files: &Files) {
    for place in files.all() {
        // It is a left-over: nobody waits for it.
        let _ = fs::remove_file(folder(root, WIP).join(&place.file));
    }
}

/// The hash of a file of the backlog; none if it is gone.
pub fn hash(root: &Path, name: &str) -> Option<String> {
    fs::read(folder(root, BACKLOG).join(name))
        .ok()
        .map(|bytes| code_commit_logging::sha256_hex(&bytes))
}

/// What lies in the backlog and cannot be a task as it is, and why; names as they are shown.
pub(crate) fn no_tasks(root: &Path) -> Vec<(String, &'static str)> {
    let why = |entry: &code_commit_dir::Entry| {
        if !entry.file_type().ok()?.is_file() {
            Some("is no file")
        } else if entry.file_name().to_str().is_none() {
            Some("has a name that is not UTF-8")
        } else {
            why_no_task(&fs::read(entry.path()).ok()?)
        }
    };
    let entries = code_commit_dir::list(folder(root, BACKLOG))
        .into_iter()
        .flatten()
        .flatten();
    let all = entries.filter_map(|entry| {
        Some((
            entry.file_name().to_string_lossy().into_owned(),
            why(&entry)?,
        ))
    });
    let parked = failures::parked(root).into_iter();
    let parked = parked.map(|failed| {
        (
            failed.item.name,
            "has failed three times and waits to be edited",
        )
    });
    let mut all: Vec<_> = all
        .chain(parked)
        .filter(|(name, _)| !name.starts_with('.'))
        .collect();
    all.sort_unstable();
    all
}

fn why_no_task(bytes: &[u8]) -> Option<&'static str> {
    match std::str::from_utf8(bytes) {
        Err(_) => Some("is not UTF-8"),
        Ok(text) if text.trim().is_empty() => Some("is empty"),
        Ok(_) => None,
    }
}

/// Deletes a file of the backlog if it still holds what it did, and says whether it is gone. It is taken out of the way first, so that an
/// edit between the look and the deletion is not lost: then it is put back.
pub(crate) fn delete_unchanged(root: &Path, item: &Item) -> io::Result<bool> {
    let (path, aside) = (
        folder(root, BACKLOG).join(&item.name),
        folder(root, WIP).join(&item.name),
    );
    match fs::rename(&path, &aside) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        other => other?,
    }
    if code_commit_logging::sha256_hex(&fs::read(&aside)?) == item.sha256 {
        return fs::remove_file(&aside).map(|()| true);
    }
    put_back(&aside, &path).map(|()| false)
}

/// A newer file of that name goes before: it was saved over this one.
fn put_back(aside: &Path, path: &Path) -> io::Result<()> {
    match fs::hard_link(aside, path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        linked => linked?,
    }
    fs::remove_file(aside)
}

/// The harness's own state, and where its runs are kept.
pub fn state(root: &Path, tree: Option<&WorkTree>) -> Result<(PathBuf, PathBuf), Failure> {
    let state = match tree {
        Some(tree) => tree
            .state_dir()
            .and_then(|state| Ok((state, tree.state_of_root()?))),
        None => code_commit_repo::state_dir_in_tree(root).map(|state| (state.clone(), state)),
    };
    let (state, of_root) = state?;
    let runs = of_root.join(RUNS);
    // In a folder without a repository nothing says who made it; a link would lead elsewhere.
    if runs.symlink_metadata().is_ok_and(|found| !found.is_dir()) {
        return Err(code_commit_repo::RepoError::NotMadeHere { path: runs }.into());
    }
    Ok((state, runs))
}

/// Copies of the tree that a run which was killed has left, of which nothing has to be put back any more. The caller holds the lock.
pub(crate) fn forget_copies(runs: &Path) -> io::Result<()> {
    for entry in code_commit_dir::list(runs)? {
        let run = entry?;
        if run.file_type()?.is_dir() {
            code_commit_changes::forget_copies(&run.path()).map_err(io::Error::other)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
