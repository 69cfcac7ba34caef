//! Recognizes failures that the sandbox probably caused, and says how to open it.
//!
//! The text is for the user of the harness, never for a model: the failing program, which a model
//! wrote, chose the words that are read here, and some answers depend on files outside the sandbox.

use std::path::{Component, Path, PathBuf};

use super::hosts;
use crate::sandbox::{Visible, cache_places, is_in_private_home};
use crate::{Access, Confinement, Output, Rung};

mod limits;

use limits::of_a_limit;

/// Messages of programs to which the seccomp filter refused a socket.
const NO_SOCKET: [&str; 4] = [
    "socket: Operation not permitted",
    "socket: operation not permitted",
    "connect EPERM",
    "listen EPERM",
];
/// The last line of a Python traceback; earlier lines name the module.
const PYTHON_SAYS_NO: &str = "PermissionError: [Errno 1]";
/// The number of lines of the traceback: location and source of the caller, and the same for the
/// module.
const PYTHON_TRACE: usize = 4;

/// Messages of programs without a network that can also have other causes.
const REFUSED: [&str; 4] = [
    "Connection refused",
    "connection refused",
    "ECONNREFUSED",
    "Couldn't connect to server",
];

const NO_HOME: &str = "the sandbox hides your home directory from every build: \
    a toolchain in it is visible if its `bin` is in PATH; show a folder with `--readable ~/FOLDER` or \
    `[sandbox] readable = [\"~/FOLDER\"]`, or put the files that the build needs into the work tree";

const NO_LAYER: &str = "the sandbox shows the caches of tools to a build but cannot give it a layer over them: \
    use `--sandbox namespaces`, or fetch what the build needs outside of the sandbox";

const NO_WRITING: &str = "the sandbox lets a build write only in the work tree: allow more with \
    `--writable FOLDER` or `[sandbox] writable = [\"FOLDER\"]`";

/// Together with the home directory, places that no hint suggests opening: accounts, keys, sockets
/// and other people's files.
const SECRET: [&str; 5] = ["/etc", "/home", "/root", "/run", "/var/run"];

/// The system's messages if a file may not be written.
const READ_ONLY: [&str; 3] = ["Read-only file system", "EROFS", "os error 30"];
/// Landlock's messages for the same; it uses them for reading, too.
const DENIED: [&str; 4] = [
    "Permission denied",
    "EACCES",
    "permission denied",
    "os error 13",
];
/// Further words of a program that tried to write. Making the file readable would not help it.
const WRITES: [&str; 7] = [
    "cannot create",
    "cannot touch",
    "for writing",
    "could not create",
    "failed to create",
    "unable to create",
    "cannot open output file",
];
/// Further words of a program that tried to remove something. As for new files, the folder matters
/// then.
const REMOVES: [&str; 4] = ["cannot remove", "cannot move", "rename", "unlink"];
/// The system's messages if a file does not exist.
const MISSING: [&str; 4] = [
    "No such file or directory",
    "ENOENT",
    "not found",
    "cannot open",
];

/// For a failed command: one sentence with the likely cause, if that is the sandbox, and the flag
/// or setting that opens it. This is a guess based on the command's output.
pub fn explain(output: &Output, confinement: &Confinement) -> Option<String> {
    if output.success() || confinement.rung == Rung::Off {
        return None;
    }
    let (text, access) = (output.text(), &confinement.access);
    if let Some((what, help)) = hosts::of_log(&output.refused) {
        return Some(format!("{what}: {help}"));
    }
    let no_network = || {
        format!(
            "the sandbox has no network: {}",
            hosts::allow(&hosts::asked_for(&text), confinement.rung)
        )
    };
    // Only the filter's message counts here; other lines may name files that the build does not
    // need.
    if !access.network && is_refused_a_socket(&text) {
        return Some(no_network());
    }
    if let Some(limit) = of_a_limit(&text, confinement.rung) {
        return Some(limit.to_owned());
    }
    let seen = Visible::behind(access);
    let perhaps = || !access.network && REFUSED.iter().any(|phrase| text.contains(phrase));
    text.lines()
        .find_map(|line| {
            let is_of_network = !access.network && hosts::is_of_network(line);
            if is_of_network {
                Some(no_network())
            } else {
                of_line(line, confinement, &seen)
            }
        })
        .or_else(|| perhaps().then(no_network))
        .or_else(|| {
            text.lines()
                .any(|line| misses_home(line, confinement, &seen))
                .then(|| NO_HOME.to_owned())
        })
}

fn is_refused_a_socket(text: &str) -> bool {
    let lines: Vec<&str> = text.lines().collect();
    lines.iter().enumerate().any(|(at, line)| {
        let trace = lines
            .iter()
            .take(at + 1)
            .skip(at.saturating_sub(PYTHON_TRACE));
        says(line, &NO_SOCKET)
            || (line.contains(PYTHON_SAYS_NO)
                && trace.into_iter().any(|line| line.contains("socket")))
    })
}

fn of_line(line: &str, confinement: &Confinement, seen: &Visible) -> Option<String> {
    let access = &confinement.access;
    // The last path: the first one is often the program that prints the message.
    let path = paths(line, access).last();
    if confinement.rung == Rung::Landlock && says(line, &DENIED) {
        let object = object(line).map(|name| access.tree.join(name.trim_start_matches("./")));
        return about_rights(line, object.or(path).as_deref(), confinement, seen);
    }
    if says(line, &READ_ONLY) {
        return about_rights(line, path.as_deref(), confinement, seen);
    }
    let path = path.filter(|path| says(line, &MISSING) && !seen.has(path))?;
    if is_masked(&path, access) {
        return about_rights(line, Some(&path), confinement, seen);
    }
    if is_there_to_show(&path, access) {
        return Some(about_hiding(&path));
    }
    if is_secret(&path, access) || !is_hidden_folder(path.parent()?, access, seen) {
        return None;
    }
    about_rights(line, Some(&path), confinement, seen)
}

/// The file that a message refers to, however short its name is: in quotes after the message
/// (Python, Node.js); or as a single word before it, after the name of the program
/// (`./build.sh: line 2: report.xml: Permission denied`) or after the operation.
fn object(line: &str) -> Option<&str> {
    let (at, phrase) = DENIED
        .iter()
        .filter_map(|phrase| Some((line.find(phrase)?, phrase)))
        .min()?;
    let behind = line.get(at + phrase.len()..)?;
    if let Some((_, quoted)) = behind.split_once('\'') {
        return quoted.split('\'').next().filter(|name| !name.is_empty());
    }
    let (speaker, tried) = line
        .get(..at)?
        .trim_end_matches([' ', ':'])
        .rsplit_once(": ")?;
    let name = WRITES
        .iter()
        .find_map(|words| tried.strip_prefix(words))
        .unwrap_or(tried);
    let name = name.trim_matches([' ', '\'', '"', '`', '‘', '’']);
    let is_name =
        !speaker.is_empty() && !name.contains(char::is_whitespace) && name.parse::<u32>().is_err();
    is_name.then_some(name).filter(|name| !name.is_empty())
}

fn says(line: &str, phrases: &[&str]) -> bool {
    phrases.iter().any(|phrase| line.contains(phrase))
}

/// Refers to the home directory as a whole, so that it reveals nothing about single files in it.
fn misses_home(line: &str, confinement: &Confinement, seen: &Visible) -> bool {
    let access = &confinement.access;
    let is_home = |path: PathBuf| {
        is_hidden_home(&path, access, seen)
            || (confinement.rung == Rung::Landlock && is_in_private_home(&path))
    };
    says(line, &MISSING) && paths(line, access).last().is_some_and(is_home)
}

fn is_hidden_home(path: &Path, access: &Access, seen: &Visible) -> bool {
    access
        .home
        .as_ref()
        .is_some_and(|home| path.starts_with(home))
        && !seen.has(path)
}

/// Whether opening this path would reveal something that must stay hidden: of the tree only that is not visible.
fn is_secret(path: &Path, access: &Access) -> bool {
    let mut secret = SECRET
        .iter()
        .map(Path::new)
        .chain(access.home.as_deref())
        .chain([access.tree.as_path()]);
    path.iter()
        .any(|name| code_commit_names::is_secret(&name.to_string_lossy()))
        || secret.any(|secret| path.starts_with(secret) || secret.starts_with(path))
}

fn is_masked(path: &Path, access: &Access) -> bool {
    access.masked.iter().any(|hidden| path.starts_with(hidden))
}

/// Whether the path exists on the host, and neither it nor its target is secret.
fn is_there_to_show(path: &Path, access: &Access) -> bool {
    !is_secret(path, access)
        && path
            .canonicalize()
            .is_ok_and(|real| !is_secret(&real, access))
}

/// Whether a folder of the host is missing in the sandbox. (Some folders exist there with other
/// content.)
fn is_hidden_folder(folder: &Path, access: &Access, seen: &Visible) -> bool {
    let replaced = [
        Some(Path::new("/tmp")),
        Some(Path::new("/var/tmp")),
        access.home.as_deref(),
    ];
    folder.is_dir()
        && !replaced.contains(&Some(folder))
        && !is_secret(folder, access)
        && !access.tree.starts_with(folder)
        && !seen.has(folder)
}

/// `None` if the sandbox is not the cause.
fn about_rights(
    line: &str,
    path: Option<&Path>,
    confinement: &Confinement,
    seen: &Visible,
) -> Option<String> {
    let access = &confinement.access;
    Some(match path {
        Some(path) if access.read_only.iter().any(|held| path.starts_with(held)) => {
            format!(
                "the sandbox protects {}: no build may change it (`--sandbox off` lets it)",
                path.display()
            )
        }
        Some(path) if is_masked(path, access) => {
            format!("the sandbox hides {} from every build", path.display())
        }
        Some(path)
            if path.starts_with(&access.tree) && !is_new_beside_protected(line, path, access) =>
        {
            return None;
        }
        Some(path) if path.starts_with(&access.tree) => about_the_top(line, path),
        Some(path) if is_cache(path, confinement) => NO_LAYER.to_owned(),
        Some(path) if confinement.rung == Rung::Landlock && is_hidden_home(path, access, seen) => {
            NO_HOME.to_owned()
        }
        Some(path)
            if confinement.rung == Rung::Landlock && !says(line, &WRITES) && hides(path, seen) =>
        {
            // What a link in a visible folder leads to may be hidden.
            let real = path.canonicalize().ok()?;
            return is_there_to_show(&real, access).then(|| about_hiding(&real));
        }
        Some(path) => {
            let is_worth_naming = |folder: &&Path| {
                folder.is_dir() && ![folder, path].iter().any(|path| is_secret(path, access))
            };
            match path.parent().filter(is_worth_naming) {
                Some(folder) => NO_WRITING.replace("FOLDER", &folder.display().to_string()),
                None => NO_WRITING.to_owned(),
            }
        }
        None => NO_WRITING.to_owned(),
    })
}

fn hides(path: &Path, seen: &Visible) -> bool {
    path.canonicalize().is_ok_and(|real| !seen.has(&real))
}

/// A folder can be made beforehand, by its name; a file that the build makes itself cannot.
fn about_the_top(line: &str, path: &Path) -> String {
    let what = "the sandbox (Landlock) lets a build make nothing new at the top of the tree";
    if line.contains("directory") && !path.exists() {
        return format!(
            "{what}: name the folder with `--writable {0}` or `[sandbox] writable = [\"{0}\"]`",
            path.display()
        );
    }
    format!("{what}: let it write into a folder that is there, or use `--sandbox namespaces`")
}

/// Whether a path is in a cache that is shown without a layer.
fn is_cache(path: &Path, confinement: &Confinement) -> bool {
    let access = &confinement.access;
    let has_layers = confinement.rung.has_views() && access.caches.is_some();
    !has_layers && cache_places(access).any(|place| path.starts_with(place))
}

/// Whether something is created or removed in a folder that contains a protected file: Landlock
/// cannot allow that.
fn is_new_beside_protected(line: &str, path: &Path, access: &Access) -> bool {
    let mut protected = access.read_only.iter().chain(&access.masked);
    protected.any(|held| {
        held.parent()
            .is_some_and(|folder| path.parent() == Some(folder))
    }) && (!path.exists() || says(line, &REMOVES))
}

fn about_hiding(path: &Path) -> String {
    format!(
        "the sandbox hides {0}: show it with `--readable {0}` or `[sandbox] readable = [\"{0}\"]`",
        path.display()
    )
}

/// Everything in a line of output that looks like a path, without quotes and colons: words with a
/// `/`, and the bare names of protected files. Relative paths are assumed to be in the tree; a path
/// with `..` may be anywhere.
fn paths(line: &str, access: &Access) -> impl Iterator<Item = PathBuf> {
    let is_edge = |letter: char| letter.is_whitespace() || "'\"`‘’()[]:,;".contains(letter);
    line.split(is_edge)
        .filter(|word| !word.is_empty())
        .filter_map(|word| {
            let path = access.tree.join(word.trim_start_matches("./"));
            let is_path = word.contains('/')
                || access.read_only.contains(&path)
                || access.masked.contains(&path);
            (is_path && !path.components().any(|part| part == Component::ParentDir)).then_some(path)
        })
}

#[cfg(test)]
mod tests;
