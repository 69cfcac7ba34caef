//! A view of the tree: an overlay over it, so that a command's changes go to a layer of their own.
//!
//! Mounting takes a user namespace, which only a process with a single thread can enter. So the program that
//! uses this crate starts itself again as a helper, which mounts the overlay and then becomes bubblewrap.

use std::ffi::OsString;
use std::fmt::Display;
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use rustix::fs::{Mode, OFlags};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::thread::UnshareFlags;
use serde::{Deserialize, Serialize};

use super::{Access, helper};
use crate::spawn::program;

/// Where the changes of one command go instead of the tree. Both folders must be new and empty, in a folder of
/// their own, which is hidden from the command, and on one file system. Nobody else may use them meanwhile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    /// Receives the changes, in the format of overlayfs with `userxattr`.
    pub upper: PathBuf,
    /// For the kernel's own use.
    pub work: PathBuf,
}

/// The name by which the program knows that it was started as the helper.
pub(super) const HELPER: &str = "code-commit-view";
/// How the helper begins its message if it fails.
const FAILED: &str = "code-commit-view: ";
const FAILURE: u8 = 125;

/// Does the helper's work, and returns only if something fails.
pub(super) fn run_helper(words: impl Iterator<Item = OsString>) -> ExitCode {
    let error = become_command(words).err().unwrap_or_else(|| io::Error::from(io::ErrorKind::Other));
    // If nobody listens, the exit code remains.
    let _ = writeln!(io::stderr(), "{FAILED}{error}");
    ExitCode::from(FAILURE)
}

/// The helper, which will become `inner`.
pub(super) fn around(
    view: &View,
    access: &Access,
    inner: &std::process::Command,
) -> Result<std::process::Command, String> {
    let mut helper = program(helper::program().ok_or(helper::NONE)?);
    helper.arg0(HELPER).args([&access.tree, &view.upper, &view.work]);
    helper.arg(inner.get_program()).args(inner.get_args());
    helper.env_clear();
    helper.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    Ok(helper)
}

/// Why the helper could not make the view, given what was printed.
pub(super) fn failure(text: &str) -> Option<String> {
    text.lines().rev().find_map(|line| line.strip_prefix(FAILED)).map(str::to_owned)
}

/// Mounts the view and executes the command; only returns if something fails.
fn become_command(mut words: impl Iterator<Item = OsString>) -> io::Result<()> {
    let missing = || io::Error::from(io::ErrorKind::InvalidInput);
    let mut next = || words.next().map(PathBuf::from).ok_or_else(missing);
    let (tree, upper, work, inner) = (next()?, next()?, next()?, next()?);
    own_namespaces(UnshareFlags::empty())?;
    overlay(&tree, &upper, &work)?;
    Err(program(inner).args(words).exec())
}

/// Mounts the view over the tree.
pub(super) fn overlay(tree: &Path, upper: &Path, work: &Path) -> io::Result<()> {
    // Opened in the new mount namespace: the kernel takes no folder of another one.
    let (tree, upper, work) = (handle(tree)?, handle(upper)?, handle(work)?);
    // Descriptors instead of paths: a path may contain the characters that separate options.
    let options = format!(
        "lowerdir={},upperdir={},workdir={},userxattr,volatile,metacopy=off,index=off",
        place(&tree),
        place(&upper),
        place(&work)
    );
    let options = std::ffi::CString::new(options)?;
    mount("overlay", place(&tree), "overlay", MountFlags::NODEV | MountFlags::NOSUID, &*options)
        .map_err(during("mount a view of the tree"))
}

/// Enters a user namespace in which this user has the rights to mount, and a mount namespace that nobody else
/// sees; and `more` namespaces.
pub(super) fn own_namespaces(more: UnshareFlags) -> io::Result<()> {
    let (user, group) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    #[expect(deprecated, reason = "only sharing file descriptors is unsafe, which this does not change")]
    rustix::thread::unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNS | more)
        .map_err(during("make a user namespace"))?;
    let write = |file: &str, text: String| {
        let file = Path::new("/proc/self").join(file);
        io::Write::write_all(&mut std::fs::OpenOptions::new().write(true).open(file)?, text.as_bytes())
    };
    write("setgroups", "deny".to_owned())?;
    write("uid_map", format!("{user} {user} 1"))?;
    write("gid_map", format!("{group} {group} 1"))?;
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private).map_err(during("keep mounts private"))
}

pub(super) fn during(doing: impl Display) -> impl FnOnce(rustix::io::Errno) -> io::Error {
    move |error| io::Error::other(format!("cannot {doing}: {}", io::Error::from(error)))
}

fn handle(path: &Path) -> io::Result<OwnedFd> {
    let opened = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW, Mode::empty());
    opened.map_err(|error| io::Error::other(format!("{}: {}", path.display(), io::Error::from(error))))
}

fn place(folder: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", folder.as_raw_fd())
}
