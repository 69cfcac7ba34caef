//! What the system says: variables, signals, folders.

use std::fs::File;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use tokio::signal::unix::{SignalKind, signal};

/// An environment variable, if it is set, not empty, and text.
#[expect(
    clippy::disallowed_methods,
    reason = "this module reads the environment"
)]
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// A folder of ours, in the one that a variable of the XDG names, or else `usual` in the home folder.
pub(crate) fn folder(xdg: &str, usual: &str) -> Option<PathBuf> {
    let home = || variable("HOME").map(|home| PathBuf::from(home).join(usual));
    let all = variable(xdg).map(PathBuf::from).or_else(home);
    all.map(|all| all.join("code-commit-gateway"))
}

/// Opens a file for reading where somebody else may have put a FIFO, which would wait for its writer, or a symlink.
pub(crate) fn open(path: &Path) -> std::io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?.into())
}

/// Waits for SIGTERM, SIGINT or SIGHUP.
pub(crate) async fn stopped() {
    let kinds = [
        SignalKind::terminate(),
        SignalKind::interrupt(),
        SignalKind::hangup(),
    ];
    // A signal that cannot be caught ends the program at once, which is safe.
    let [Ok(mut terminate), Ok(mut interrupt), Ok(mut hangup)] = kinds.map(signal) else {
        return std::future::pending().await;
    };
    tokio::select! { _ = terminate.recv() => {} _ = interrupt.recv() => {} _ = hangup.recv() => {} }
}
