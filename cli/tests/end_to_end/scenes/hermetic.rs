//! The built program in an environment made from nothing.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The program in the folder `root`: the caller's PATH with the toolchain that runs this test before it, the folders of rustup and cargo, a
/// home of its own, the usual umask, and nothing else of the caller's.
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
        .envs(rust_homes())
        .envs(environment.iter().copied())
        .stdin(Stdio::null());
    command
}

/// Cargo itself and the system's programs stand before the wrappers of version managers, which look for the real ones in places that a
/// wall hides.
pub fn search_path() -> OsString {
    let toolchain = Path::new(env!("CARGO")).parent().unwrap_or(Path::new("/"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = [toolchain, Path::new("/usr/bin"), Path::new("/bin")].map(Path::to_owned).into_iter();
    let folders = folders.chain(std::env::split_paths(&path));
    std::env::join_paths(folders).unwrap_or(path)
}

/// Where rustup and cargo keep what they need, also when HOME is another.
fn rust_homes() -> impl Iterator<Item = (&'static str, PathBuf)> {
    [("RUSTUP_HOME", ".rustup"), ("CARGO_HOME", ".cargo")].into_iter().filter_map(|(name, folder)| {
        let set = std::env::var_os(name).map(PathBuf::from);
        let usual = std::env::var_os("HOME").map(|home| Path::new(&home).join(folder));
        set.or(usual).filter(|path| path.is_dir()).map(|path| (name, path))
    })
}
