//! Says when the walls are the likely reason for a failure, and how to open them.
//!
//! For the person who runs the harness, never for a model: whoever wrote the failing program chose the words that are read here, and some
//! answers depend on what lies outside the walls.

use std::path::{Component, Path, PathBuf};

use crate::sandbox::{Visible, is_in_private_home};
use crate::{Access, Confinement, Output, Rung};

/// What programs say when they miss the network.
const NETWORK: [&str; 16] = [
    "Could not resolve host",
    "could not resolve",
    "Couldn't resolve host",
    "Temporary failure in name resolution",
    "Name or service not known",
    "Network is unreachable",
    "network is unreachable",
    "ENOTFOUND",
    "EAI_AGAIN",
    "ENETUNREACH",
    "Could not resolve proxy",
    "failed to lookup address",
    "no such host",
    "--offline was specified",
    "you're using offline mode",
    "without --offline",
];

/// What they say where the filter has refused them a socket.
const NO_SOCKET: [&str; 4] =
    ["socket: Operation not permitted", "socket: operation not permitted", "connect EPERM", "listen EPERM"];
/// Python says it in the last line of a trace, whose lines before name the module.
const PYTHON_SAYS_NO: &str = "PermissionError: [Errno 1]";
/// So many lines of the trace: a place and its source for the caller, and again for the module.
const PYTHON_TRACE: usize = 4;

/// What programs say when they miss the network, but also where the walls have no part in it.
const REFUSED: [&str; 4] =
    ["Connection refused", "connection refused", "ECONNREFUSED", "Couldn't connect to server"];

const NO_NETWORK: &str =
    "the sandbox has no network: allow it with `--network` or `[sandbox] network = true`";

const NO_HOME: &str = "the sandbox hides your home folder from every build: \
    a toolchain in it is seen if its `bin` is on PATH; show a folder of it with `--readable ~/FOLDER` or \
    `[sandbox] readable = [\"~/FOLDER\"]`, or put into the work tree what the build needs";

const NO_WRITING: &str = "the sandbox lets a build write in the work tree only: allow more with \
    `--writable FOLDER` or `[sandbox] writable = [\"FOLDER\"]`";

/// With the home, the places that no advice opens: accounts, keys, sockets and other people's files.
const SECRET: [&str; 5] = ["/etc", "/home", "/root", "/run", "/var/run"];

/// What the system says when something may not be written.
const READ_ONLY: [&str; 3] = ["Read-only file system", "EROFS", "os error 30"];
/// What Landlock makes of the same, and also of what may not be read.
const DENIED: [&str; 4] = ["Permission denied", "EACCES", "permission denied", "os error 13"];
/// What a program says besides that was about to write: to see the file would not help it.
const WRITES: [&str; 7] = [
    "cannot create",
    "cannot touch",
    "for writing",
    "could not create",
    "failed to create",
    "unable to create",
    "cannot open output file",
];
/// What it says besides that was about to take away: for that, as for something new, the folder counts.
const REMOVES: [&str; 4] = ["cannot remove", "cannot move", "rename", "unlink"];
/// What the system says of a file that is not there.
const MISSING: [&str; 4] = ["No such file or directory", "ENOENT", "not found", "cannot open"];

/// For a command that failed: the one sentence that names the likely cause, if it is the walls, and
/// the flag or configuration line that opens them. A guess by what the command wrote.
pub fn explain(output: &Output, confinement: &Confinement) -> Option<String> {
    if output.success() || confinement.rung == Rung::Off {
        return None;
    }
    let (text, access) = (output.text(), &confinement.access);
    // The filter alone says so; other lines may name files that the build can do without.
    if !access.network && is_refused_a_socket(&text) {
        return Some(NO_NETWORK.to_owned());
    }
    let seen = Visible::behind(access);
    let perhaps = || !access.network && REFUSED.iter().any(|phrase| text.contains(phrase));
    text.lines()
        .find_map(|line| of_line(line, confinement, &seen))
        .or_else(|| perhaps().then(|| NO_NETWORK.to_owned()))
        .or_else(|| {
            text.lines().any(|line| misses_home(line, confinement, &seen)).then(|| NO_HOME.to_owned())
        })
}

/// Whether commands behind these walls see a file of the host, named by its canonical path.
pub fn shows(confinement: &Confinement, file: &Path) -> bool {
    confinement.rung == Rung::Off || Visible::behind(&confinement.access).has(file)
}

fn is_refused_a_socket(text: &str) -> bool {
    let lines: Vec<&str> = text.lines().collect();
    lines.iter().enumerate().any(|(at, line)| {
        let trace = lines.iter().take(at + 1).skip(at.saturating_sub(PYTHON_TRACE));
        says(line, &NO_SOCKET)
            || (line.contains(PYTHON_SAYS_NO) && trace.into_iter().any(|line| line.contains("socket")))
    })
}

fn of_line(line: &str, confinement: &Confinement, seen: &Visible) -> Option<String> {
    let access = &confinement.access;
    if !access.network && says(line, &NETWORK) {
        return Some(NO_NETWORK.to_owned());
    }
    // The last one: the first is often the program that speaks.
    let path = paths(line, access).last();
    if confinement.rung == Rung::Landlock && says(line, &DENIED) {
        let object = object(line).map(|name| access.tree.join(name.trim_start_matches("./")));
        return about_rights(line, object.or(path).as_deref(), confinement, seen);
    }
    if says(line, &READ_ONLY) {
        return about_rights(line, path.as_deref(), confinement, seen);
    }
    let path = path.filter(|path| says(line, &MISSING) && !seen.has(path))?;
    if is_there_to_show(&path, access) {
        return Some(about_hiding(&path));
    }
    if !is_hidden_folder(path.parent()?, access, seen) {
        return None;
    }
    about_rights(line, Some(&path), confinement, seen)
}

/// What a line says that it may not touch, however short its name is: in quotes behind the refusal (Python, Node.js); or a word by itself
/// before it, behind whoever speaks (`./build.sh: line 2: report.xml: Permission denied`) or behind what was tried.
fn object(line: &str) -> Option<&str> {
    let (at, phrase) = DENIED.iter().filter_map(|phrase| Some((line.find(phrase)?, phrase))).min()?;
    let behind = line.get(at + phrase.len()..)?;
    if let Some((_, quoted)) = behind.split_once('\'') {
        return quoted.split('\'').next().filter(|name| !name.is_empty());
    }
    let (speaker, tried) = line.get(..at)?.trim_end_matches([' ', ':']).rsplit_once(": ")?;
    let name = WRITES.iter().find_map(|words| tried.strip_prefix(words)).unwrap_or(tried);
    let name = name.trim_matches([' ', '\'', '"', '`', '‘', '’']);
    let is_name = !speaker.is_empty() && !name.contains(char::is_whitespace) && name.parse::<u32>().is_err();
    is_name.then_some(name).filter(|name| !name.is_empty())
}

fn says(line: &str, phrases: &[&str]) -> bool {
    phrases.iter().any(|phrase| line.contains(phrase))
}

/// Said of the whole home, so that it tells nothing about a single file in it.
fn misses_home(line: &str, confinement: &Confinement, seen: &Visible) -> bool {
    let access = &confinement.access;
    let is_home = |path: PathBuf| {
        is_hidden_home(&path, access, seen)
            || (confinement.rung == Rung::Landlock && is_in_private_home(&path))
    };
    says(line, &MISSING) && paths(line, access).last().is_some_and(is_home)
}

fn is_hidden_home(path: &Path, access: &Access, seen: &Visible) -> bool {
    access.home.as_ref().is_some_and(|home| path.starts_with(home)) && !seen.has(path)
}

/// Whether opening this path would show what is to stay hidden.
fn is_secret(path: &Path, access: &Access) -> bool {
    let mut secret = SECRET.iter().map(Path::new).chain(access.home.as_deref());
    secret.any(|secret| path.starts_with(secret) || secret.starts_with(path))
}

/// Whether it is on the host, and neither it nor what it leads to is secret.
fn is_there_to_show(path: &Path, access: &Access) -> bool {
    !is_secret(path, access) && path.canonicalize().is_ok_and(|real| !is_secret(&real, access))
}

/// Whether a folder of the host is missing inside, rather than being another one there.
fn is_hidden_folder(folder: &Path, access: &Access, seen: &Visible) -> bool {
    let replaced = [Some(Path::new("/tmp")), Some(Path::new("/var/tmp")), access.home.as_deref()];
    folder.is_dir()
        && !replaced.contains(&Some(folder))
        && !is_secret(folder, access)
        && !access.tree.starts_with(folder)
        && !seen.has(folder)
}

/// None where it is not the sandbox that forbids it.
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
        Some(path) if access.masked.iter().any(|hidden| path.starts_with(hidden)) => {
            format!("the sandbox hides {} from every build (`--sandbox off` shows it)", path.display())
        }
        Some(path) if path.starts_with(&access.tree) && !is_new_beside_protected(line, path, access) => {
            return None;
        }
        Some(path) if path.starts_with(&access.tree) => format!(
            "the sandbox (Landlock) lets a build make nothing new at the top of the tree: \
             make it first, or write into a folder that is there; a folder can be named with `--writable {0}` or \
             `[sandbox] writable = [\"{0}\"]`",
            path.display()
        ),
        Some(path) if confinement.rung == Rung::Landlock && is_hidden_home(path, access, seen) => {
            NO_HOME.to_owned()
        }
        Some(path)
            if confinement.rung == Rung::Landlock
                && !says(line, &WRITES)
                && !seen.has(path)
                && is_there_to_show(path, access) =>
        {
            about_hiding(path)
        }
        Some(path) => match path.parent().filter(|folder| !is_secret(folder, access)) {
            Some(folder) => NO_WRITING.replace("FOLDER", &folder.display().to_string()),
            None => NO_WRITING.to_owned(),
        },
        None => NO_WRITING.to_owned(),
    })
}

/// Whether something is to be made, or taken away, in a folder that holds something protected: Landlock can allow that in none of them.
fn is_new_beside_protected(line: &str, path: &Path, access: &Access) -> bool {
    let mut protected = access.read_only.iter().chain(&access.masked);
    protected.any(|held| held.parent().is_some_and(|folder| path.parent() == Some(folder)))
        && (!path.exists() || says(line, &REMOVES))
}

fn about_hiding(path: &Path) -> String {
    format!(
        "the sandbox hides {0}: show it with `--readable {0}` or `[sandbox] readable = [\"{0}\"]`",
        path.display()
    )
}

/// What looks like a path in a line of output, without quotes and colons: words with a `/`, and the
/// bare names of protected files. Relative ones are taken to lie in the tree; one with `..` may lie anywhere.
fn paths(line: &str, access: &Access) -> impl Iterator<Item = PathBuf> {
    let is_edge = |letter: char| letter.is_whitespace() || "'\"`‘’()[]:,;".contains(letter);
    line.split(is_edge).filter(|word| !word.is_empty()).filter_map(|word| {
        let path = access.tree.join(word.trim_start_matches("./"));
        let is_path = word.contains('/') || access.read_only.contains(&path) || access.masked.contains(&path);
        (is_path && !path.components().any(|part| part == Component::ParentDir)).then_some(path)
    })
}

#[cfg(test)]
mod tests;
