//! The built program in an environment made from nothing.

#![expect(clippy::disallowed_methods, reason = "this is where the tests start the program")]

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};

/// The program in the folder `root`: the caller's PATH, the toolchain that runs this test before it, a home of its own, nothing else of the
/// caller's environment, and the usual umask.
pub fn program(root: &Path, home: &Path, args: &[&str], environment: &[(&str, &str)]) -> Command {
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", "umask 022; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_code-commit")])
        .args(args)
        .current_dir(root)
        .env_clear()
        .env("PATH", search_path())
        .env("HOME", home)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .envs(environment.iter().copied())
        .stdin(Stdio::null());
    command
}

/// Cargo itself stands before the wrappers of rustup, which look for their toolchains below the user's home.
pub fn search_path() -> OsString {
    let toolchain = Path::new(env!("CARGO")).parent().unwrap_or(Path::new("/"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(toolchain.to_owned()).chain(std::env::split_paths(&path));
    std::env::join_paths(folders).unwrap_or(path)
}
