//! The root folder of the sandbox.
//!
//! It is built in memory over the host's `/proc`, because nothing is shown of that; then it becomes the root,
//! and the host's is detached. At the end, every mount that the plan does not make writable becomes read-only:
//! what was forgotten, and what is mounted below something that is shown, cannot be written.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, fstat, mkdirat, openat, openat2, symlinkat};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags,
    fsconfig_create, fsconfig_set_string, fsmount, fsopen, move_mount, open_tree, unmount,
};
use rustix::process::{fchdir, pivot_root};

use super::mounts::{Rights, at, during, restrict};
use super::task::Task;
use crate::sandbox::mount::{DEVICES, Mount};

/// Where the new root is built.
const SITE: &str = "/proc";
/// What is private lies below this folder of the new root until it is mounted in its places; then the sandbox's own
/// `/proc` covers it, which costs less than to unmount it.
const SCRATCH: &str = "/proc";
const DEVICE_LINKS: [(&str, &str); 6] = [
    ("/proc/self/fd", "/dev/fd"),
    ("/proc/self/fd/0", "/dev/stdin"),
    ("/proc/self/fd/1", "/dev/stdout"),
    ("/proc/self/fd/2", "/dev/stderr"),
    ("/proc/kcore", "/dev/core"),
    ("pts/ptmx", "/dev/ptmx"),
];
const TERMINALS: &str = "/dev/pts";
const SHARED_MEMORY: &str = "/dev/shm";
/// The host's terminal, so that a program finds the name of its own.
const CONSOLE: &str = "/dev/console";

/// Builds the root folder and enters it.
pub(super) fn enter(task: &Task) -> io::Result<()> {
    let mut root = Root::new(task.temporary_bytes)?;
    // A project may be in it.
    root.private(Path::new(SHARED_MEMORY))?;
    let files: HashSet<&Path> = task.files.iter().map(|(path, _)| Path::new(path)).collect();
    let is_made = |mount: &&Mount| !files.contains(mount.place());
    task.mounts
        .iter()
        .filter(is_made)
        .try_for_each(|mount| root.add(mount))?;
    for (path, content) in &task.files {
        root.write(Path::new(path), content)?;
    }
    root.devices(task.has_terminal)?;
    root.folder(Path::new("/run"))?;
    root.attach(&in_memory("proc", &[])?, Path::new("/proc"))?;
    root.become_root()?;
    no_more_user_namespaces()?;
    let plan = task
        .mounts
        .iter()
        .map(|mount| (mount.place(), mount))
        .collect();
    restrict(|place| rights(&plan, place))
}

/// By what the mount was made for or, if it came along with another, by the innermost one above it.
fn rights(plan: &HashMap<&Path, &Mount>, place: &Path) -> Rights {
    if place == Path::new(TERMINALS) {
        return Rights::Same;
    }
    if DEVICES
        .iter()
        .chain(&[CONSOLE])
        .any(|device| Path::new(device) == place)
    {
        return Rights::Device;
    }
    match place.ancestors().find_map(|above| plan.get(above)) {
        _ if place == Path::new(SHARED_MEMORY) => Rights::Write,
        Some(Mount::Writable(_) | Mount::At(..) | Mount::Private(_)) => Rights::Write,
        Some(
            Mount::ReadOnly(_) | Mount::EmptyFolder(_) | Mount::EmptyFile(_) | Mount::Link(..),
        )
        | None => Rights::Read,
    }
}

/// The new root while it is built.
struct Root {
    folder: OwnedFd,
    /// What is private so far.
    count: usize,
    /// The terminal that is standard output, if it is one.
    terminal: Option<OwnedFd>,
}

impl Root {
    fn new(temporary_bytes: Option<u64>) -> io::Result<Self> {
        let stdout = fs::read_link("/proc/self/fd/1")
            .ok()
            .filter(|device| device.starts_with(TERMINALS));
        let terminal = stdout.and_then(|device| clone_of(CWD, &device).ok());
        let root = in_memory("tmpfs", &[("mode", "0755")])?;
        move_mount(
            &root,
            "",
            CWD,
            SITE,
            MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH,
        )
        .map_err(during("mount a new root"))?;
        let folder = rustix::fs::open(
            SITE,
            OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        let root = Self {
            folder,
            count: 0,
            terminal,
        };
        let size = temporary_bytes.map(|bytes| bytes.to_string());
        let size = size.iter().map(|size| ("size", size.as_str()));
        let options: Vec<(&str, &str)> = size.chain([("mode", "0755")]).collect();
        root.attach(&in_memory("tmpfs", &options)?, Path::new(SCRATCH))?;
        Ok(root)
    }

    fn add(&mut self, mount: &Mount) -> io::Result<()> {
        match mount {
            Mount::ReadOnly(path) | Mount::Writable(path) => self.bind(path, path),
            Mount::At(from, path) => self.bind(from, path),
            Mount::Private(path) | Mount::EmptyFolder(path) => self.private(path),
            Mount::EmptyFile(path) => self.write(path, OsStr::new("")),
            Mount::Link(to, path) => {
                let (parent, name) = self.parent(path)?;
                symlinkat(to, parent, name).map_err(at("link", path))
            }
        }
    }

    /// Shows a file or a folder of the host.
    fn bind(&self, from: &Path, path: &Path) -> io::Result<()> {
        self.attach(&clone_of(CWD, from)?, path)
    }

    /// A new folder, which is gone with the sandbox.
    fn private(&mut self, path: &Path) -> io::Result<()> {
        let name = self.next();
        self.make(&name, true)?;
        self.show(&name, path)
    }

    /// Into the root itself, which will be read-only, if nothing of the host is there: every mount costs time again when
    /// it is restricted, and when the sandbox ends.
    fn write(&mut self, path: &Path, content: &OsStr) -> io::Result<()> {
        let (parent, name) = self.parent(path)?;
        if fstat(&parent)?.st_dev == fstat(&self.folder)?.st_dev
            && let Ok(file) = new_file(&parent, name)
        {
            return io::Write::write_all(&mut fs::File::from(file), content.as_bytes());
        }
        let scratch = self.next();
        let (parent, name) = self.parent(&scratch)?;
        let file = new_file(parent, name).map_err(at("make", path))?;
        io::Write::write_all(&mut fs::File::from(file), content.as_bytes())?;
        self.show(&scratch, path)
    }

    fn next(&mut self) -> PathBuf {
        self.count += 1;
        Path::new(SCRATCH).join(self.count.to_string())
    }

    /// Mounts a private file or folder in its place.
    fn show(&self, name: &Path, path: &Path) -> io::Result<()> {
        let source = self.open(name).map_err(at("open", name))?;
        let source = open_tree(&source, "", CLONE | OpenTreeFlags::AT_EMPTY_PATH)
            .map_err(at("show", path))?;
        self.attach(&source, path)
    }

    fn devices(&mut self, has_terminal: bool) -> io::Result<()> {
        for device in DEVICES {
            self.bind(Path::new(device), Path::new(device))?;
        }
        if let Some(terminal) = self.terminal.take().filter(|_| has_terminal) {
            self.attach(&terminal, Path::new(CONSOLE))?;
        }
        for (to, link) in DEVICE_LINKS {
            self.add(&Mount::Link(to.into(), link.into()))?;
        }
        let terminals = in_memory("devpts", &[("ptmxmode", "0666"), ("mode", "0620")])?;
        self.attach(&terminals, Path::new(TERMINALS))
    }

    /// Opens a path of the new root. No symlink leads out of it.
    fn open(&self, path: &Path) -> rustix::io::Result<OwnedFd> {
        openat2(
            &self.folder,
            path,
            OFlags::PATH | OFlags::CLOEXEC,
            Mode::empty(),
            ResolveFlags::IN_ROOT,
        )
    }

    /// Opens a folder of the new root, which is created with its parents if it does not exist.
    fn folder(&self, path: &Path) -> io::Result<OwnedFd> {
        match self.open(path) {
            Err(Errno::NOENT) => self.make(path, true).and_then(|()| Ok(self.open(path)?)),
            opened => opened.map_err(at("open", path)),
        }
    }

    fn make(&self, path: &Path, is_folder: bool) -> io::Result<()> {
        let (parent, name) = self.parent(path)?;
        new(parent, name, is_folder).map_err(at("make", path))
    }

    /// Mounts something at a path, which is created with its parents if it does not exist.
    fn attach(&self, mount: &OwnedFd, path: &Path) -> io::Result<()> {
        let is_folder = fstat(mount)?.st_mode & libc::S_IFMT == libc::S_IFDIR;
        let (parent, name) = self.parent(path)?;
        let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
        let moved = match new(&parent, name, is_folder) {
            Ok(()) => move_mount(mount, "", parent, name, flags),
            Err(Errno::EXIST) => {
                let place = self.open(path).map_err(at("open", path))?;
                move_mount(
                    mount,
                    "",
                    place,
                    "",
                    flags | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH,
                )
            }
            Err(error) => Err(error),
        };
        moved.map_err(at("mount", path))
    }

    /// The folder of a path, and the name in it: `.` for a path without a name.
    fn parent<'p>(&self, path: &'p Path) -> io::Result<(OwnedFd, &'p OsStr)> {
        match (path.parent(), path.file_name()) {
            (Some(parent), Some(name)) => Ok((self.folder(parent)?, name)),
            _ => Ok((self.open(path).map_err(at("open", path))?, OsStr::new("."))),
        }
    }

    /// Only now is the host's root out of reach.
    fn become_root(self) -> io::Result<()> {
        fchdir(&self.folder)?;
        pivot_root(".", ".").map_err(during("enter the new root"))?;
        // Both roots are at the same place now; the upper one is the host's.
        unmount(".", UnmountFlags::DETACH).map_err(during("leave the old root"))?;
        std::env::set_current_dir("/")
    }
}

const CLONE: OpenTreeFlags = OpenTreeFlags::OPEN_TREE_CLONE.union(OpenTreeFlags::OPEN_TREE_CLOEXEC);

/// A mount of a host's path with everything mounted below it, not attached anywhere yet.
fn clone_of(folder: rustix::fd::BorrowedFd<'_>, path: &Path) -> io::Result<OwnedFd> {
    open_tree(folder, path, CLONE | OpenTreeFlags::AT_RECURSIVE).map_err(at("show", path))
}

/// A new file system, not attached anywhere yet.
fn in_memory(kind: &str, options: &[(&str, &str)]) -> io::Result<OwnedFd> {
    let make = || {
        let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
        options
            .iter()
            .try_for_each(|(key, value)| fsconfig_set_string(&context, *key, *value))?;
        fsconfig_create(&context)?;
        let flags = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
        // Terminals are devices.
        let flags = if kind == "devpts" {
            MountAttrFlags::MOUNT_ATTR_NOSUID
        } else {
            flags
        };
        fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, flags)
    };
    make().map_err(at("mount", Path::new(kind)))
}

fn new(parent: impl AsFd, name: &OsStr, is_folder: bool) -> rustix::io::Result<()> {
    if is_folder {
        return mkdirat(parent, name, Mode::from_raw_mode(0o755));
    }
    new_file(parent, name).map(drop)
}

fn new_file(parent: impl AsFd, name: &OsStr) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    openat(parent, name, flags, Mode::from_raw_mode(0o644))
}

/// In a namespace below ours a process would have all capabilities, and the kernel more to attack.
fn no_more_user_namespaces() -> io::Result<()> {
    let setting = "/proc/sys/user/max_user_namespaces";
    let mut file = fs::OpenOptions::new().write(true).open(setting)?;
    io::Write::write_all(&mut file, b"0")
}
