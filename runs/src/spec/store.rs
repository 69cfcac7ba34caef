//! The folders of a project of the spec loop, and what waits in them.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::Context as _;
use code_commit_dir::Entry;
use code_commit_logging::sha256_hex;
use code_commit_loop_spec::watch::{Item, Listing, is_parked};
use code_commit_loop_spec::{BACKLOG, Files, ISSUES, MEMORY, STORE, TBD, WIP};
use jiff::Timestamp;
use rustix::fs::{Mode, OFlags, mkdirat, openat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::exit::Failure;
use crate::project::Project;

/// Run folders, in the harness's own state.
pub const RUNS: &str = "spec";
/// The state of the watch.
const WATCH: &str = "spec-watch";

/// The store of a project, and the harness's own state beside it.
#[derive(Debug, Clone)]
pub struct Store {
    pub(crate) root: PathBuf,
    /// Run folders.
    pub(crate) runs: PathBuf,
    /// The lock of the watch, and how often tasks have failed: a watch is ended and started again meanwhile.
    pub(crate) watch: PathBuf,
}

/// A file of the backlog that has failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failed {
    /// The file as it was.
    pub item: Item,
    /// How often.
    pub times: u32,
    /// What was wrong the last time.
    pub why: String,
}

/// Files of the store that are a person's, each with what tells it from another version of it.
pub(crate) type Mailboxes = BTreeMap<String, (u64, Option<SystemTime>)>;

/// What lies in the backlog and is not a task as it is, and why not; names as they are shown.
pub(crate) type PassedOver = Vec<(String, &'static str)>;

impl Store {
    /// The store of this project.
    pub fn of(project: &Project<'_>) -> Result<Self, Failure> {
        let (state, of_root) = match project.trusted.tree() {
            Some(tree) => (tree.state_dir()?, tree.state_of_root()?),
            None => {
                let state = code_commit_repo::state_dir_in_tree(&project.root)?;
                (state.clone(), state)
            }
        };
        let runs = of_root.join(RUNS);
        // In a folder without a repository nothing says who made it; a link would lead elsewhere.
        if runs.symlink_metadata().is_ok_and(|found| !found.is_dir()) {
            return Err(code_commit_repo::RepoError::NotMadeHere { path: runs }.into());
        }
        Ok(Self {
            root: project.root.clone(),
            runs,
            watch: state.join(WATCH),
        })
    }

    /// A folder of the store.
    pub fn folder(&self, name: &str) -> PathBuf {
        self.root.join(STORE).join(name)
    }

    /// Makes the folders that are not there.
    pub fn make_folders(&self) -> Result<(), Failure> {
        self.mend_folders()
            .with_context(|| format!("cannot make the folders of {}", self.folder("").display()))
            .map_err(|error| Failure::refused(error, "check who may write there"))
    }

    /// Makes the folders again. A symlink or a file that an agent has put in the place of one is removed, so that what the harness writes, reads and deletes
    /// there does not lie elsewhere. Only while no agent runs.
    pub(crate) fn mend_folders(&self) -> io::Result<()> {
        let store = self.root.join(STORE);
        let folders = [WIP, ISSUES, BACKLOG, TBD].map(|name| self.folder(name));
        for folder in [store].iter().chain(&folders) {
            match fs::symlink_metadata(folder) {
                Ok(found) if found.is_dir() => continue,
                Ok(_) => fs::remove_file(folder)?,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
            fs::create_dir(folder)?;
        }
        Ok(())
    }

    /// Appends to a file of a folder, through no link, whatever an agent does there at the same time.
    pub(crate) fn append(&self, folder: &str, file: &str, text: &str) -> io::Result<()> {
        // An agent that removes the store meanwhile has to win as often in a row.
        let mut tries = (0..16).map(|_| self.open(folder, file));
        let is_lasting = |opened: &io::Result<fs::File>| !matches!(opened, Err(error) if error.kind() == io::ErrorKind::NotFound);
        let opened = tries.find(is_lasting);
        opened
            .unwrap_or(Err(io::ErrorKind::NotFound.into()))?
            .write_all(text.as_bytes())
    }

    fn open(&self, folder: &str, file: &str) -> io::Result<fs::File> {
        let mut at = OwnedFd::from(fs::File::open(&self.root)?);
        for name in [STORE, folder] {
            // An agent that cleans the work tree may have removed it.
            match mkdirat(&at, name, Mode::from_raw_mode(0o755)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            at = openat(&at, name, flags, Mode::empty())?;
        }
        // A pipe in its place must not hold us up.
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::CLOEXEC;
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = fs::File::from(openat(&at, file, flags, Mode::from_raw_mode(0o644))?);
        if file.metadata()?.is_file() {
            Ok(file)
        } else {
            Err(io::ErrorKind::InvalidInput.into())
        }
    }

    /// The files of a folder whose names are UTF-8, sorted; hidden ones are not there yet.
    pub fn names(&self, folder: &str) -> Vec<String> {
        let is_file = |entry: &Entry| {
            let kind = entry.file_type();
            kind.is_ok_and(code_commit_dir::FileType::is_file)
        };
        let files = visible(self.folder(folder)).into_iter().filter(is_file);
        files
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect()
    }

    /// Whatever lies in the folder of spec issues stops runs and the backlog (S4 §Spec Issue Handling): links and odd names too; as they are
    /// shown, sorted.
    pub fn issues(&self) -> Vec<String> {
        let all = visible(self.folder(ISSUES)).into_iter();
        let files = all.filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_dir()));
        files.map(|entry| shown(&entry)).collect()
    }

    /// The files that are a person's: backlog, spec issues, findings and what was dismissed.
    pub(crate) fn mailboxes(&self) -> Mailboxes {
        let below = |folder| {
            let names = self.names(folder).into_iter();
            names.map(move |name| format!("{folder}/{name}"))
        };
        let files = [BACKLOG, ISSUES, TBD].into_iter().flat_map(below);
        let look = |name: String| {
            let found = fs::symlink_metadata(self.folder(&name)).ok()?;
            Some((name, (found.len(), found.modified().ok())))
        };
        files.chain([MEMORY.to_owned()]).filter_map(look).collect()
    }

    /// What waits, and what is passed over.
    pub(crate) fn scan(&self) -> (Listing, PassedOver) {
        let (parked, mut passed_over) = (self.parked(), PassedOver::new());
        let mut backlog = Vec::new();
        for entry in visible(self.folder(BACKLOG)) {
            match task(&entry, &parked) {
                Some(Ok(item)) => backlog.push(item),
                Some(Err(why)) => passed_over.push((shown(&entry), why)),
                // It is gone, or cannot be read.
                None => {}
            }
        }
        let issues = self.issues();
        (Listing { issues, backlog }, passed_over)
    }

    /// The hash of a file of the backlog; none if it is gone.
    pub(crate) fn hash(&self, name: &str) -> Option<String> {
        let bytes = fs::read(self.folder(BACKLOG).join(name)).ok()?;
        Some(sha256_hex(&bytes))
    }

    /// Deletes a file of the backlog if it still holds what it did, and says whether it is gone. It is taken out of the way first, so that an
    /// edit between the look and the deletion is not lost: then it is put back.
    pub(crate) fn delete_unchanged(&self, item: &Item) -> io::Result<bool> {
        let [path, aside] = [BACKLOG, WIP].map(|place| self.folder(place).join(&item.name));
        match fs::rename(&path, &aside) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
            moved => moved?,
        }
        if sha256_hex(&fs::read(&aside)?) == item.sha256 {
            return fs::remove_file(&aside).map(|()| true);
        }
        put_back(&aside, &path).map(|()| false)
    }

    /// Removes what a session has left that is not gone on with.
    pub(crate) fn forget_session(&self, files: &Files) {
        for place in files.all() {
            // It is a left-over: nobody waits for it.
            let _ = fs::remove_file(self.folder(WIP).join(&place.file));
        }
    }

    /// Copies of the tree that a run which was killed has left, of which nothing has to be put back any more. The caller holds the lock.
    pub(crate) fn forget_copies(&self) -> io::Result<()> {
        for entry in code_commit_dir::list(&self.runs)? {
            let run = entry?;
            if run.file_type()?.is_dir() {
                code_commit_changes::forget_copies(&run.path()).map_err(io::Error::other)?;
            }
        }
        Ok(())
    }

    /// The folders of audits or talks, which are named for what they are; the newest first.
    pub(crate) fn folders_of(&self, what: &str) -> Vec<PathBuf> {
        let is_named = |path: &PathBuf| {
            let name = crate::records::name(path);
            // A second one in the same second has a number.
            let stem = name.trim_end_matches(|c: char| c == '-' || c.is_ascii_digit());
            stem.ends_with(&format!("-{what}"))
        };
        let all = visible(&self.runs).into_iter().rev();
        all.map(|entry| entry.path()).filter(is_named).collect()
    }

    /// Tasks that have failed too often, until they are edited.
    pub fn parked(&self) -> Vec<Failed> {
        let mut all = self.failures();
        all.retain(|failed| is_parked(failed.times));
        all
    }

    /// Notes that a task has failed once more, or with no reason that it has come to an end; how often it has failed.
    pub(crate) fn note_failure(&self, item: &Item, why: Option<&str>) -> io::Result<u32> {
        let (earlier, mut all): (Vec<_>, Vec<_>) = self
            .failures()
            .into_iter()
            .partition(|failed| failed.item == *item);
        let earlier = earlier.first().map_or(0, |failed| failed.times);
        if why.is_none() && earlier == 0 {
            return Ok(0);
        }
        let times = why.map_or(0, |_| earlier.saturating_add(1));
        all.extend(why.map(|why| Failed {
            item: item.clone(),
            times,
            why: why.to_owned(),
        }));
        code_commit_dir::replace(&self.failures_file(), &serde_json::to_vec(&all)?)?;
        Ok(times)
    }

    /// Those of files that are as they were. A list that cannot be read counts nothing: files are tried again.
    fn failures(&self) -> Vec<Failed> {
        let text = fs::read(self.failures_file()).unwrap_or_default();
        let mut all: Vec<Failed> = serde_json::from_slice(&text).unwrap_or_default();
        all.retain(|Failed { item, .. }| self.hash(&item.name).as_ref() == Some(&item.sha256));
        all
    }

    fn failures_file(&self) -> PathBuf {
        self.watch.join("failures.json")
    }
}

/// What a folder holds, sorted by name; hidden entries are not there yet, and a folder that cannot be read is empty.
pub(crate) fn visible(folder: impl AsRef<Path>) -> Vec<Entry> {
    let entries = code_commit_dir::list(folder).into_iter().flatten();
    let mut entries: Vec<Entry> = entries.flatten().collect();
    entries.retain(|entry| !entry.file_name().as_encoded_bytes().starts_with(b"."));
    entries.sort_unstable_by_key(Entry::file_name);
    entries
}

fn shown(entry: &Entry) -> String {
    entry.file_name().to_string_lossy().into_owned()
}

/// An entry of the backlog as a task, or why it is not one.
fn task(entry: &Entry, parked: &[Failed]) -> Option<Result<Item, &'static str>> {
    if !entry.file_type().ok()?.is_file() {
        return Some(Err("is not a file"));
    }
    let Ok(name) = entry.file_name().into_string() else {
        return Some(Err("has a name that is not UTF-8"));
    };
    let bytes = fs::read(entry.path()).ok()?;
    let sha256 = sha256_hex(&bytes);
    let item = Item { name, sha256 };
    Some(match std::str::from_utf8(&bytes) {
        Err(_) => Err("is not UTF-8"),
        Ok(text) if text.trim().is_empty() => Err("is empty"),
        Ok(_) if parked.iter().any(|failed| failed.item == item) => {
            Err("has failed three times and waits to be edited")
        }
        Ok(_) => Ok(item),
    })
}

/// A newer file of that name goes before: it was saved over this one.
fn put_back(aside: &Path, path: &Path) -> io::Result<()> {
    match fs::hard_link(aside, path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        linked => linked?,
    }
    fs::remove_file(aside)
}

/// A name that sorts by time: a `UUIDv7` (RFC 9562 §5.7), 48 bits of time and 74 random ones.
pub(crate) fn uuid_v7() -> String {
    let random = || RandomState::new().hash_one(());
    let millis = Timestamp::now().as_millisecond() & 0xffff_ffff_ffff;
    let (first, last) = (random(), random());
    format!(
        "{:08x}-{:04x}-7{:03x}-{:04x}-{:012x}",
        millis >> 16,
        millis & 0xffff,
        first & 0xfff,
        0x8000 | (first >> 12) & 0x3fff,
        last & 0xffff_ffff_ffff,
    )
}

#[cfg(test)]
mod tests;
