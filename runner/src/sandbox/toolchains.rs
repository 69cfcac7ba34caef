//! What the programs of a toolchain need besides themselves, found from the folders in `PATH`.
//!
//! Version managers put links and shims into `PATH`; the programs behind them load libraries from beside their
//! own folder. All of this is only shown, and only in folders in which somebody has installed programs. Nothing is followed
//! that a command of the project can change: it would decide what the next command may read.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::{fs, slice};

use super::access::Access;
use super::mount::SYSTEM;
use super::plan::add_tools;
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

/// What the development kits of Debian have in `/etc`, without which Java has no cryptography. Only `management`
/// may contain passwords.
pub(super) fn java_settings(etc: &Path) -> Vec<PathBuf> {
    let entries = |folder: &Path| {
        code_commit_dir::list(folder)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
    };
    let is_kit = |folder: &PathBuf| {
        let name = folder.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with("java-") && name.ends_with("-openjdk"))
    };
    let kits = entries(etc).filter(is_kit);
    kits.flat_map(|kit| entries(&kit))
        .filter(|path| !path.ends_with("management"))
        .collect()
}

/// The folders in `PATH`, those that their links lead to, what the toolchains there need, rustup's, and the interpreters
/// that version managers keep: an environment in the project leads to one of them, and cannot be believed. Only those that
/// may be shown.
///
/// Looked up once in a process, which takes about a thousand disk accesses. No command that is shown them can change them,
/// and what a person installs during a run counts from the next one on.
pub(super) fn all(access: &Access) -> Vec<PathBuf> {
    let Access {
        tree,
        writable,
        home,
        path,
        cargo_home,
        rustup_home,
        ..
    } = access;
    let [home, cargo_home, rustup] = [home, cargo_home, rustup_home].map(Option::as_slice);
    let key = [
        slice::from_ref(tree),
        writable,
        home,
        path,
        cargo_home,
        rustup,
    ]
    .map(<[PathBuf]>::to_vec);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let look_up = || {
        let mut tools = Vec::new();
        add_tools(
            access,
            parts(access).into_iter().chain(access.rustup_home.clone()),
            &mut tools,
        );
        tools
    };
    known.entry(key).or_insert_with(look_up).clone()
}

/// By tree, other writable places, home, `PATH` and rustup's and cargo's folders: all that it depends on.
static KNOWN: Mutex<BTreeMap<[Vec<PathBuf>; 6], Vec<PathBuf>>> = Mutex::new(BTreeMap::new());

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
        .flatten()
        .take(MOST_ENTRIES);
    let links = entries.filter(|entry| {
        entry
            .file_type()
            .is_ok_and(code_commit_dir::FileType::is_symlink)
    });
    let mut found = Vec::new();
    for link in links
        .map(|entry| entry.path())
        .filter(|link| is_program(link))
    {
        for hop in hops(link, changeable) {
            if hop.ends_with("bin") && hop != folder && !is_system(&hop) && !found.contains(&hop) {
                found.push(hop);
            }
        }
    }
    found
}

/// The folder of each target, from link to link, as long as no command of the project can change the link.
fn hops(mut link: PathBuf, changeable: &Changeable) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for _ in 0..MOST_HOPS {
        let Ok(target) = fs::read_link(&link) else {
            break;
        };
        let target = link
            .parent()
            .map_or(target.clone(), |folder| folder.join(&target));
        let Some(folder) = target.parent() else { break };
        let Some(real) = changeable.fixed(folder) else {
            break;
        };
        let is_plain = !folder.components().any(|part| part == Component::ParentDir);
        folders.extend(Some(folder.to_owned()).filter(|_| is_plain));
        folders.push(real);
        link = target;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_the_settings_of_java_only_those_are_shown_that_hold_no_password() {
        let etc = tempfile::tempdir().unwrap();
        for folder in [
            "java-17-openjdk/security",
            "java-17-openjdk/management",
            "java-wrappers",
            "ssh",
        ] {
            fs::create_dir_all(etc.path().join(folder)).unwrap();
        }
        assert_eq!(
            java_settings(etc.path()),
            [etc.path().join("java-17-openjdk/security")]
        );
    }
}
