//! The mounts of the sandbox: a view of the tree, so that a command's changes go to a layer of their own, the caches of
//! tools, and what each mount allows.

use std::fmt::Display;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change, mount_remount};
use rustix::thread::UnshareFlags;

use super::task::Report;
use crate::sandbox::caches::{EMPTY, SITE};
use crate::sandbox::mount::Overlay;
use crate::sandbox::mount_table;

impl Overlay {
    fn mount(&self) -> io::Result<()> {
        // Opened in the new mount namespace: the kernel takes no folder of another one.
        let [place, lower, upper, work] =
            [&self.place, &self.lower, &self.upper, &self.work].map(|path| handle(path));
        let (place, lower, upper, work) = (place?, lower?, upper?, work?);
        // The kernel leaves this where a volatile layer was mounted, and mounts none a second time. What makes it safe
        // is `durability`.
        code_commit_dir::remove(&self.work.join("work/incompat/volatile"))?;
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
pub(super) fn mount_all(overlays: &[Overlay]) -> Result<(), Report> {
    if overlays.iter().any(|overlay| !overlay.is_view()) {
        make_site(overlays)?;
    }
    overlays.iter().try_for_each(|overlay| {
        let failed = if overlay.is_view() {
            Report::NoView
        } else {
            Report::Failed
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
