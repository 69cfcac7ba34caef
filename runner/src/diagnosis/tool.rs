//! Programs that are not there, in the words of shells and of tools that start others.

use std::path::Path;

use super::lack::{Failed, Kind, Lack, Machine, Presence, between};

/// With this code, a shell says that it found no program.
const NOT_FOUND: i32 = 127;
/// With this code, a shell says that it could not start one.
const NOT_STARTED: i32 = 126;
/// Runners of tasks (make, just, npm) name the code of a command in one of their last lines.
const LAST_LINES: usize = 6;

pub(super) fn missing(failed: &Failed<'_>, machine: &impl Machine) -> Option<Lack> {
    by_shell(failed, machine).or_else(|| {
        failed
            .output
            .lines()
            .find_map(|line| by_tool(line, machine))
    })
}

/// The last one: a script may try several names before it gives up.
fn by_shell(failed: &Failed<'_>, machine: &impl Machine) -> Option<Lack> {
    let says = |code: i32| {
        let named = format!(" {code}");
        let mut last = failed
            .output
            .lines()
            .rev()
            .filter(|line| !line.trim().is_empty())
            .take(LAST_LINES);
        failed.exit_code == code
            || last.any(|line| line.trim_end_matches([')', '.']).ends_with(&named))
    };
    if !says(NOT_FOUND) && !says(NOT_STARTED) {
        return None;
    }
    absent(failed.output.lines().rev().find_map(named)?, machine)
}

/// The program that a shell, `env` or `make` did not find.
fn named(line: &str) -> Option<&str> {
    let line = line.trim_end();
    if let Some((_, name)) = line.split_once(": command not found: ") {
        return Some(name);
    }
    let is_env = line.starts_with("env: ") || line.starts_with("/usr/bin/env: ");
    let is_make = line.starts_with("make: ") || line.starts_with("make[");
    let before =
        if let Some(before) = line.strip_suffix(": bad interpreter: No such file or directory") {
            before.rsplit_once(": ")?.0
        } else if is_env || is_make {
            line.strip_suffix(": No such file or directory")?
        } else {
            line.strip_suffix(": command not found")
                .or_else(|| line.strip_suffix(": not found"))
                .or_else(|| line.strip_suffix(": cannot execute: required file not found"))?
        };
    Some(
        before
            .rsplit_once(": ")?
            .1
            .trim_matches(['‘', '’', '\'', '"', '`']),
    )
}

fn absent(name: &str, machine: &impl Machine) -> Option<Lack> {
    if !is_plain(name) {
        return None;
    }
    if name.contains('/') {
        // A script that does not exist is a mistake in the project.
        return machine.is_file(Path::new(name)).then(|| {
            Lack::new(
                Kind::Tool,
                format!("`{name}` cannot be started: the interpreter in its first line is missing or hidden"),
                format!("see `head -1 {name}`, and show that folder with `--readable FOLDER` or `[sandbox] readable = [\"FOLDER\"]`"),
            )
        });
    }
    match machine.program(name) {
        Presence::Visible => None,
        Presence::Hidden(place) => {
            let folder = place.parent().unwrap_or(&place).display();
            Some(Lack::new(
                Kind::Tool,
                format!(
                    "the program `{name}` is {}, which the sandbox hides",
                    place.display()
                ),
                format!(
                    "show it with `--readable {folder}` or `[sandbox] readable = [\"{folder}\"]`"
                ),
            ))
        }
        Presence::Missing => Some(Lack::new(
            Kind::Tool,
            format!("the program `{name}` is not installed"),
            "install it, or add its folder to PATH",
        )),
    }
}

/// Whether a name can stand in a command that a user copies: it comes from the output of the build, so that
/// somebody may have chosen it for its meaning to a shell.
pub(super) fn is_plain(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "._/+@-".contains(c);
    !name.is_empty() && !name.starts_with('-') && name.chars().all(is_part)
}

/// The message of a tool about a program that it starts, or about a version of itself.
fn by_tool(line: &str, machine: &impl Machine) -> Option<Lack> {
    if let Some(name) = between(line, "error: no such command: `", "`") {
        return absent(&format!("cargo-{name}"), machine);
    }
    if let Some(name) = between(line, "error: linker `", "` not found") {
        return absent(name, machine);
    }
    let version = |what: String, help: &str| Some(Lack::new(Kind::Tool, what, help));
    if line.starts_with("error: rustup could not choose a version of ") {
        return version(
            "rustup has no default toolchain".to_owned(),
            "choose one: rustup default stable",
        );
    }
    if let Some(name) = between(line, "error: toolchain '", "' is not installed") {
        return version(
            format!("the Rust toolchain {name} is not installed"),
            "install it: rustup toolchain install",
        );
    }
    if let Some(name) = between(line, "pyenv: version `", "' is not installed") {
        return version(
            format!("Python {name} is not installed"),
            "install it: pyenv install",
        );
    }
    if line.contains("CMake was unable to find a build program corresponding to") {
        return version(
            "CMake finds no build program".to_owned(),
            "install make or ninja",
        );
    }
    if line.contains("_COMPILER not set, after EnableLanguage")
        || line.contains("_COMPILER could be found.")
    {
        return version(
            "CMake finds no compiler".to_owned(),
            "install one: gcc and g++, or clang",
        );
    }
    let is_java = line.contains("JAVA_HOME is set to an invalid directory")
        || line.contains("The JAVA_HOME environment variable is not defined correctly");
    is_java.then(|| {
        Lack::new(
            Kind::Tool,
            "JAVA_HOME names no Java installation that the sandbox shows",
            "pass the variable on with `--env JAVA_HOME` and show its folder with `--readable \"$JAVA_HOME\"`",
        )
    })
}
