//! Overlays: a view of the tree, so that a command's changes go to a layer of their own, and the caches of tools.
//!
//! Mounting takes a user namespace, which only a process with a single thread can enter. So the program that
//! uses this crate starts itself again as a helper, which mounts the overlays and then becomes bubblewrap.

use std::ffi::OsString;
use std::fmt::Display;
use std::fs;
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, mount, mount_bind, mount_change, mount_remount,
};
use rustix::process::geteuid;
use rustix::thread::UnshareFlags;

use super::access::View;
use super::caches::{EMPTY, SITE};
use super::launch::NotStarted;
use super::mount::{DEVICES, Overlay};
use super::{helper, mount_table};
use crate::program::program;

/// How the helper begins its message if it fails.
const FAILED: &str = "code-commit-view: ";
const FAILED_ELSEWHERE: &str = "code-commit-sandbox: ";
const FAILURE: u8 = 125;

/// Does the helper's work, and returns only if something fails.
pub(super) fn run_helper(words: impl Iterator<Item = OsString>) -> ExitCode {
    let (mark, message) = match become_command(words) {
        NotStarted::View(message) => (FAILED, message),
        NotStarted::Sandbox(message) => (FAILED_ELSEWHERE, message),
    };
    // If nobody listens, the exit code remains.
    let _ = writeln!(io::stderr(), "{mark}{message}");
    ExitCode::from(FAILURE)
}

/// The helper, which will mount these and become `inner`.
pub(super) fn around(
    overlays: &[Overlay],
    inner: &std::process::Command,
) -> Result<std::process::Command, String> {
    let mut helper = program(helper::program().ok_or(helper::NONE)?);
    helper.arg0(helper::VIEW).arg(overlays.len().to_string());
    for Overlay {
        place,
        lower,
        layer,
    } in overlays
    {
        helper.args([place, lower, &layer.upper, &layer.work]);
    }
    helper.arg(inner.get_program()).args(inner.get_args());
    helper.env_clear();
    helper.envs(
        inner
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    Ok(helper)
}

/// Why the helper did not start the command, given what was printed.
pub(super) fn failure(text: &str) -> Option<NotStarted> {
    text.lines()
        .rev()
        .find_map(|line| match line.strip_prefix(FAILED) {
            Some(message) => Some(NotStarted::View(message.to_owned())),
            None => line
                .strip_prefix(FAILED_ELSEWHERE)
                .map(|message| NotStarted::Sandbox(message.to_owned())),
        })
}

/// Mounts the overlays and executes the command; only returns if something fails.
fn become_command(mut words: impl Iterator<Item = OsString>) -> NotStarted {
    let Some((overlays, inner)) = read(&mut words) else {
        return NotStarted::Sandbox("the program was replaced while it ran".to_owned());
    };
    let failed = if overlays.iter().any(Overlay::is_view) {
        NotStarted::View
    } else {
        NotStarted::Sandbox
    };
    let entered = own_namespaces(UnshareFlags::empty()).and_then(|()| hold_devices());
    match entered
        .map_err(|error| failed(error.to_string()))
        .and_then(|()| mount_all(&overlays))
    {
        Ok(()) => NotStarted::Sandbox(program(inner).args(words).exec().to_string()),
        Err(failed) => failed,
    }
}

/// As root, a command could change the modes of the host's devices. bubblewrap shows them as they are here, and it has
/// no read-only mount of a device that can be used.
fn hold_devices() -> io::Result<()> {
    if !geteuid().is_root() {
        return Ok(());
    }
    DEVICES
        .iter()
        .try_for_each(|device| mount_bind(*device, *device))
        .map_err(during("mount devices"))?;
    let is_device = |place: &Path| DEVICES.iter().any(|device| Path::new(device) == place);
    restrict(|place| {
        if is_device(place) {
            Rights::Device
        } else {
            Rights::Same
        }
    })
}

/// The overlays, and the program to become.
fn read(words: &mut impl Iterator<Item = OsString>) -> Option<(Vec<Overlay>, OsString)> {
    let count: usize = words.next()?.to_str()?.parse().ok()?;
    let mut path = || words.next().map(PathBuf::from);
    let mut overlay = || {
        let (place, lower) = (path()?, path()?);
        Some(Overlay {
            place,
            lower,
            layer: View {
                upper: path()?,
                work: path()?,
            },
        })
    };
    let overlays = (0..count).map(|_| overlay()).collect::<Option<_>>()?;
    Some((overlays, words.next()?))
}

impl Overlay {
    fn mount(&self) -> io::Result<()> {
        // Opened in the new mount namespace: the kernel takes no folder of another one.
        let [place, lower, upper, work] = [
            &self.place,
            &self.lower,
            &self.layer.upper,
            &self.layer.work,
        ]
        .map(|path| handle(path));
        let (place, lower, upper, work) = (place?, lower?, upper?, work?);
        // The kernel leaves this where a volatile layer was mounted, and mounts none a second time. What makes it safe
        // is `durability`.
        code_commit_dir::remove(&self.layer.work.join("work/incompat/volatile"))?;
        // A volatile layer costs no sync when it is unmounted. Descriptors instead of paths: a path may contain the
        // characters that separate options.
        let options = format!(
            "lowerdir={},upperdir={},workdir={},userxattr,metacopy=off,index=off,volatile",
            by_number(&lower),
            by_number(&upper),
            by_number(&work)
        );
        let options = std::ffi::CString::new(options)?;
        let what = if self.is_view() {
            "a view of the tree"
        } else {
            "a layer over a cache"
        };
        mount(
            "overlay",
            by_number(&place),
            "overlay",
            MountFlags::NODEV | MountFlags::NOSUID,
            &*options,
        )
        .map_err(during(format!("mount {what}")))
    }
}

/// Mounts them in this order. A view comes last: it covers the layers of the others if they are in the tree.
pub(super) fn mount_all(overlays: &[Overlay]) -> Result<(), NotStarted> {
    if overlays.iter().any(|overlay| !overlay.is_view()) {
        make_site(overlays).map_err(|error| NotStarted::Sandbox(error.to_string()))?;
    }
    overlays.iter().try_for_each(|overlay| {
        let failed = if overlay.is_view() {
            NotStarted::View
        } else {
            NotStarted::Sandbox
        };
        overlay.mount().map_err(|error| failed(error.to_string()))
    })
}

/// Makes the places where the overlays are mounted, in memory.
fn make_site(overlays: &[Overlay]) -> io::Result<()> {
    mount(
        "tmpfs",
        SITE,
        "tmpfs",
        MountFlags::NODEV | MountFlags::NOSUID,
        c"mode=0755",
    )
    .map_err(during("make room for the layers of caches"))?;
    let places = overlays.iter().map(|overlay| overlay.place.as_path());
    places
        .filter(|place| place.starts_with(SITE))
        .chain([Path::new(EMPTY)])
        .try_for_each(fs::create_dir_all)
}

/// Enters a user namespace in which this user has the rights to mount, and a mount namespace that nobody else
/// sees; and `more` namespaces.
pub(super) fn own_namespaces(more: UnshareFlags) -> io::Result<()> {
    let (user, group) = (
        rustix::process::getuid().as_raw(),
        rustix::process::getgid().as_raw(),
    );
    #[expect(
        deprecated,
        reason = "only sharing file descriptors is unsafe, which this does not change"
    )]
    rustix::thread::unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNS | more)
        .map_err(during("make a user namespace"))?;
    let write = |file: &str, text: String| {
        let file = Path::new("/proc/self").join(file);
        io::Write::write_all(
            &mut fs::OpenOptions::new().write(true).open(file)?,
            text.as_bytes(),
        )
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
    let opened = rustix::fs::open(
        path,
        OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW,
        Mode::empty(),
    );
    opened.map_err(|error| {
        io::Error::other(format!("{}: {}", path.display(), io::Error::from(error)))
    })
}

fn by_number(folder: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", folder.as_raw_fd())
}

/// What a mount of the sandbox allows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Rights {
    Read,
    Write,
    /// To use it as a device, which may belong to the host: data passes through a read-only mount, and nothing else.
    Device,
    /// What it allows already.
    Same,
}

/// Takes from every mount what it must not allow.
pub(super) fn restrict(rights: impl Fn(&Path) -> Rights) -> io::Result<()> {
    for mounted in mount_table::read(mount_table::OWN)? {
        let mut flags = MountFlags::BIND | MountFlags::NOSUID;
        flags |= match rights(&mounted.place) {
            Rights::Read => MountFlags::RDONLY | MountFlags::NODEV,
            Rights::Write => MountFlags::NODEV,
            Rights::Device => MountFlags::RDONLY,
            Rights::Same => continue,
        };
        // A user namespace may not lift the host's restrictions.
        for (option, flag) in [("ro", MountFlags::RDONLY), ("noexec", MountFlags::NOEXEC)] {
            flags.set(flag, flags.contains(flag) || mounted.has(option));
        }
        match mount_remount(&mounted.place, flags, "") {
            // Something else is mounted above it, so nobody can reach it; or somebody else's folder is above it that this
            // user may not enter, so the command cannot, either.
            Ok(()) | Err(Errno::INVAL | Errno::NOENT | Errno::ACCESS) => {}
            Err(error) => return Err(at("restrict", &mounted.place)(error)),
        }
    }
    Ok(())
}

pub(super) fn at(doing: &str, path: &Path) -> impl FnOnce(Errno) -> io::Error {
    during(format!("{doing} {}", path.display()))
}
