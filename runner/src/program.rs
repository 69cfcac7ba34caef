//! Finds the program that a command names, before anything starts.
//!
//! Doing this first distinguishes "not found" from "not executable" in the same way for every backend:
//! a sandbox that cannot start its command only exits with some code.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The search path if the environment has no `PATH`.
pub(crate) const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Whether this is a file, or a symlink to one, that may be executed.
pub fn is_program(file: &Path) -> bool {
    file.metadata()
        .is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

/// The programs with this name in the folders of a `PATH`, in their order; relative folders start at `cwd`.
pub fn programs_in(path: Option<&OsStr>, cwd: &Path, name: &str) -> Vec<PathBuf> {
    let places =
        std::env::split_paths(path.unwrap_or_default()).map(|folder| cwd.join(folder).join(name));
    places.filter(|place| is_program(place)).collect()
}

/// What a program name resolves to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// The words that replace the name: a program, or a shell and a script without a `#!` line.
    Program(Vec<OsString>),
    Missing,
    NotExecutable,
}

/// Resolves `name` like `execvp`: with a `/` relative to `cwd`, otherwise in the folders of `path`.
pub(crate) fn find(name: &OsStr, cwd: &Path, path: Option<&OsStr>) -> Found {
    if name.is_empty() {
        return Found::Missing;
    }
    if name.as_bytes().contains(&b'/') {
        return judge(&cwd.join(name), name);
    }
    let mut best = Found::Missing;
    for folder in std::env::split_paths(path.unwrap_or(OsStr::new(DEFAULT_PATH))) {
        let file: PathBuf = cwd.join(folder).join(name);
        match judge(&file, file.as_os_str()) {
            Found::Missing => {}
            Found::NotExecutable => best = Found::NotExecutable,
            program @ Found::Program(_) => return program,
        }
    }
    best
}

fn judge(file: &Path, name: &OsStr) -> Found {
    match file.metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => Found::NotExecutable,
        Err(_) => Found::Missing,
        Ok(_) if !is_program(file) => Found::NotExecutable,
        Ok(_) => by_first_bytes(file, name),
    }
}

fn by_first_bytes(file: &Path, name: &OsStr) -> Found {
    let program = || Found::Program(vec![name.to_owned()]);
    let Some(start) = first_bytes(file) else {
        return program();
    };
    if let Some(line) = start.strip_prefix(b"#!") {
        return if interpreter_is_missing(line) {
            Found::NotExecutable
        } else {
            program()
        };
    }
    // POSIX: a text file that the kernel does not recognize is a shell script.
    if start.contains(&0) {
        program()
    } else {
        Found::Program(vec!["/bin/sh".into(), name.to_owned()])
    }
}

/// `None` for a program that we may execute but not read.
fn first_bytes(file: &Path) -> Option<Vec<u8>> {
    let mut start = Vec::new();
    File::open(file)
        .ok()?
        .take(256)
        .read_to_end(&mut start)
        .ok()?;
    Some(start)
}

fn interpreter_is_missing(line: &[u8]) -> bool {
    let word = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
    // The kernel splits words at blanks and tabs, so a carriage return is part of the name.
    let mut words = word
        .split(|byte| matches!(byte, b' ' | b'\t'))
        .filter(|word| !word.is_empty());
    let word = words.next().unwrap_or_default();
    !Path::new(OsStr::from_bytes(word)).exists()
}

/// The only place where this crate creates something that starts a process.
#[expect(
    clippy::disallowed_methods,
    reason = "this crate owns the starting of commands"
)]
pub(crate) fn program(path: impl AsRef<std::ffi::OsStr>) -> std::process::Command {
    std::process::Command::new(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn folder(files: &[(&str, &[u8], u32)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, bytes, mode) in files {
            let file = folder.path().join(name);
            fs::File::create(&file)
                .and_then(|mut open| std::io::Write::write_all(&mut open, bytes))
                .unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(*mode)).unwrap();
        }
        folder
    }

    #[test]
    fn each_kind_of_file_is_told_apart() {
        let dir = folder(&[
            ("script", b"#!/bin/sh\n", 0o755),
            ("bare", b"echo hi\n", 0o755),
            ("plain", b"#!/bin/sh\n", 0o644),
            ("lost", b"#!/no/such/shell -e\n", 0o755),
            ("crlf", b"#!/bin/sh\r\n", 0o755),
            ("binary", b"\x7fELF\0", 0o755),
        ]);
        let look = |name: &str| match find(name.as_ref(), dir.path(), None) {
            Found::Program(words) => words.join(OsStr::new(" ")).into_string().unwrap(),
            other @ (Found::Missing | Found::NotExecutable) => format!("{other:?}"),
        };
        let names = [
            "./script", "./bare", "./plain", "./lost", "./crlf", "./binary", "./none", ".", "none",
            "",
        ];
        let table: String = names
            .map(|name| format!("{name:9}{}\n", look(name)))
            .concat();
        insta::assert_snapshot!(table, @r"
        ./script ./script
        ./bare   /bin/sh ./bare
        ./plain  NotExecutable
        ./lost   NotExecutable
        ./crlf   NotExecutable
        ./binary ./binary
        ./none   Missing
        .        NotExecutable
        none     Missing
                 Missing
        ");
    }

    #[test]
    fn a_later_folder_of_the_path_wins_over_an_earlier_file_that_cannot_run() {
        let (first, second) = (
            folder(&[("tool", b"\0", 0o644)]),
            folder(&[("tool", b"\0", 0o755)]),
        );
        let path = std::env::join_paths([first.path(), second.path()]).unwrap();
        let found = find("tool".as_ref(), Path::new("/"), Some(&path));
        assert_eq!(
            found,
            Found::Program(vec![second.path().join("tool").into()])
        );
        let found = find(
            "tool".as_ref(),
            Path::new("/"),
            Some(first.path().as_os_str()),
        );
        assert_eq!(found, Found::NotExecutable);
    }
}
