//! What the programs of a toolchain need besides themselves, found from the folders in `PATH`.
//!
//! Version managers put links and shims into `PATH`; the programs behind them load libraries from beside their
//! own folder. All of this is only shown, and only in folders in which somebody has installed programs. Nothing is followed
//! that a command of the project can change: it would decide what the next command may read.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use code_commit_dir::FileType;
use code_commit_names::Kind;

use super::access::{Access, CARGO};
use super::mount::SYSTEM;
use crate::program::is_program;
use crate::trusted::Changeable;

/// Entries beside a folder of programs.
struct Beside {
    /// Shown only where this exists; empty for every toolchain.
    mark: &'static str,
    shown: &'static [&'static str],
}

/// `share` and `etc` may contain more than a toolchain needs.
const BESIDE: [Beside; 7] = [
    // Libraries; what shims start; the file in which pyenv, rbenv and nodenv store the selected version.
    Beside {
        mark: "",
        shown: &["lib", "lib64", "libexec", "versions", "version"],
    },
    // A virtual environment of Python is nothing without this.
    Beside {
        mark: "pyvenv.cfg",
        shown: &["pyvenv.cfg"],
    },
    // A Java development kit.
    Beside {
        mark: "lib/modules",
        shown: &["conf", "jmods", "release"],
    },
    Beside {
        mark: "conda-meta",
        shown: &["conda-meta", "include", "ssl"],
    },
    // Go.
    Beside {
        mark: "src/runtime",
        shown: &["src", "pkg", "VERSION", "go.env"],
    },
    // Maven.
    Beside {
        mark: "boot",
        shown: &["boot", "conf/logging"],
    },
    // volta and asdf.
    Beside {
        mark: "installs",
        shown: &["installs", "plugins"],
    },
];

/// Bounds for folders that nobody has written with this in mind.
const MOST_FOLDERS: usize = 100;
const MOST_ENTRIES: usize = 5000;
/// The kernel follows more, no toolchain has more.
const MOST_HOPS: usize = 8;

/// The folders in `PATH`, those that their links lead to, what the toolchains there need, rustup's, and the interpreters
/// that version managers keep: an environment in the project leads to one of them, and cannot be believed; and of cargo's
/// folder what a build needs. Only those that may be shown.
///
/// All but cargo's are looked up once in a process, which takes about a thousand disk accesses. No command that is shown them
/// can change them, and what a person installs during a run counts from the next one on.
pub(super) fn all(access: &Access) -> Vec<PathBuf> {
    // All that it depends on.
    let key = format!(
        "{:?}",
        (
            (&access.tree, &access.writable, &access.home),
            (&access.path, &access.cargo_home, &access.rustup_home)
        )
    );
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let look_up = || {
        let parts = parts(access).into_iter().chain(access.rustup_home.clone());
        with(access, Vec::new(), parts)
    };
    let tools = known.entry(key).or_insert_with(look_up).clone();
    with(
        access,
        tools,
        access.cargo_home.iter().flat_map(|home| cargo_parts(home)),
    )
}

static KNOWN: Mutex<BTreeMap<String, Vec<PathBuf>>> = Mutex::new(BTreeMap::new());

/// `tools`, and those of `more` that may be shown and are not yet: outside of the system's folders, and where no command can
/// have put a link to something else.
fn with(
    access: &Access,
    mut tools: Vec<PathBuf>,
    more: impl Iterator<Item = PathBuf>,
) -> Vec<PathBuf> {
    let changeable = Changeable::new(access.changeable());
    let home = access.hidden_home();
    for tool in more.filter(|tool| tool.exists() && !is_system(tool)) {
        // An entry in `PATH` that contains the home directory would reveal what must stay hidden.
        let hidden = home.iter().chain([&access.tree]).chain(&access.cargo_home);
        let is_shown = tools.iter().any(|shown| tool.starts_with(shown));
        let shows_more = |real: PathBuf| {
            hidden
                .clone()
                .any(|hidden| hidden.starts_with(&tool) || hidden.starts_with(&real))
        };
        if !is_shown
            && changeable
                .fixed(&tool)
                .is_some_and(|real| !shows_more(real))
        {
            tools.push(tool);
        }
    }
    tools
}

/// The parts of `CARGO_HOME` that a build needs; no file that holds a token.
fn cargo_parts(home: &Path) -> impl Iterator<Item = PathBuf> {
    let has_no_token = |file: &Path| {
        fs::read_to_string(file).is_ok_and(|text| !text.to_ascii_lowercase().contains("token"))
    };
    [Kind::Shown, Kind::Cache]
        .into_iter()
        .flat_map(|kind| code_commit_names::at_home(CARGO, kind))
        .map(|name| home.join(name))
        .filter(move |part| part.is_dir() || has_no_token(part))
}

fn parts(access: &Access) -> Vec<PathBuf> {
    let hidden = access.hidden_home();
    let changeable = Changeable::new(access.changeable());
    let mut folders: Vec<PathBuf> = access.path.clone();
    let mut parts: Vec<PathBuf> = hidden
        .iter()
        .flat_map(|home| code_commit_names::interpreters().map(|name| home.join(name)))
        .collect();
    let mut at = 0;
    while let Some(folder) = folders.get(at).filter(|_| at < MOST_FOLDERS).cloned() {
        at += 1;
        let is_own = is_system(&folder) && folder != Path::new("/usr/local/bin");
        if is_own || !folder.is_dir() || changeable.fixed(&folder).is_none() {
            continue;
        }
        for other in led_to(&folder, &changeable)
            .into_iter()
            .chain(base_of_environment(&folder, &changeable))
        {
            if !folders.contains(&other) {
                folders.push(other);
            }
        }
        parts.extend(beside(&folder, hidden.as_deref()));
        parts.push(folder);
    }
    parts
}

/// Programs directly in the home directory have nothing of their own beside them.
fn beside(programs: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    let is_toolchain = programs.ends_with("bin") || programs.ends_with("shims");
    let Some(prefix) = programs
        .parent()
        .filter(|prefix| is_toolchain && Some(*prefix) != home)
    else {
        return Vec::new();
    };
    let rows = BESIDE.iter().filter(|row| prefix.join(row.mark).exists());
    rows.flat_map(|row| row.shown)
        .map(|name| prefix.join(name))
        .filter(|part| part.exists())
        .collect()
}

/// The folders of programs that links in this folder lead to, at every hop: each is looked up by its name.
fn led_to(folder: &Path, changeable: &Changeable) -> Vec<PathBuf> {
    let entries = code_commit_dir::list(folder)
        .into_iter()
        .flatten()
        .flatten();
    let links = entries
        .take(MOST_ENTRIES)
        .filter(|entry| entry.file_type().is_ok_and(FileType::is_symlink))
        .map(|entry| entry.path())
        .filter(|link| is_program(link));
    let hops: BTreeSet<PathBuf> = links.flat_map(|link| hops(link, changeable)).collect();
    hops.into_iter()
        .filter(|hop| hop.ends_with("bin") && hop != folder && !is_system(hop))
        .collect()
}

/// The folder of each target, from link to link, as long as no command of the project can change the link.
fn hops(mut link: PathBuf, changeable: &Changeable) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for _ in 0..MOST_HOPS {
        let Some((above, target)) = link.parent().zip(link.read_link().ok()) else {
            break;
        };
        link = above.join(target);
        let Some((folder, real)) = link
            .parent()
            .and_then(|folder| Some((folder, changeable.fixed(folder)?)))
        else {
            break;
        };
        if !folder.components().any(|part| part == Component::ParentDir) {
            folders.push(folder.to_owned());
        }
        folders.push(real);
    }
    folders
}

/// Where `pyvenv.cfg` says that the Python of this environment is installed.
fn base_of_environment(programs: &Path, changeable: &Changeable) -> Option<PathBuf> {
    let file = programs.parent()?.join("pyvenv.cfg");
    changeable.fixed(&file)?;
    let text = code_commit_dir::read(&file, MOST_BYTES, code_commit_dir::Links::Followed)
        .ok()
        .flatten()?;
    let text = String::from_utf8(text).ok()?;
    let value = |line: &str| {
        let (key, value) = line.split_once('=')?;
        (key.trim() == "home").then(|| PathBuf::from(value.trim()))
    };
    text.lines()
        .find_map(value)
        .filter(|base| base.is_absolute() && base.ends_with("bin") && !is_system(base))
}

/// A longer `pyvenv.cfg` is none.
const MOST_BYTES: u64 = 1 << 16;

fn is_system(folder: &Path) -> bool {
    SYSTEM.iter().any(|system| folder.starts_with(system))
}
