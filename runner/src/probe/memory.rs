//! That a sandbox works is remembered until anything changes that it may depend on: a trial costs more than a build that
//! has nothing to do.
//!
//! Whoever forges the file can make a command fail, which removes the file, and can make no sandbox weaker.

use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::Confinement;

/// What the kernel says of this boot, this process and this machine.
const FILES: [&str; 8] = [
    "/proc/sys/kernel/random/boot_id",
    "/proc/self/attr/current",
    "/proc/self/limits",
    "/proc/self/cgroup",
    "/proc/self/mountinfo",
    "/proc/sys/kernel/unprivileged_userns_clone",
    "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
    "/proc/sys/user/max_user_namespaces",
];
/// Lines of `/proc/self/status`.
const STATUS: [&str; 6] = ["Uid", "Gid", "Groups", "NoNewPrivs", "Seccomp", "Cap"];
const NAMESPACES: [&str; 7] = ["cgroup", "ipc", "mnt", "net", "pid", "user", "uts"];

/// Where it is remembered, and as what.
pub(super) struct Memory {
    file: PathBuf,
    circumstances: String,
}

impl Memory {
    /// `None` if there is no place for it.
    pub(super) fn of(confinement: &Confinement) -> Option<Self> {
        Some(Self {
            file: file(confinement)?,
            circumstances: circumstances(confinement),
        })
    }

    pub(super) fn holds(&self) -> bool {
        fs::read_to_string(&self.file).is_ok_and(|text| text == self.circumstances)
    }

    /// Without the file, the next command tries again.
    pub(super) fn keep(&self) {
        let _ = code_commit_dir::replace_with(&self.file, |file| {
            file.write_all(self.circumstances.as_bytes())
        });
    }
}

/// After a sandbox that could not be set up.
pub(crate) fn forget(confinement: &Confinement) {
    if let Some(file) = file(confinement) {
        let _ = fs::remove_file(file);
    }
}

fn file(confinement: &Confinement) -> Option<PathBuf> {
    Some(
        confinement
            .access
            .memory
            .as_ref()?
            .join(format!("{}-works", confinement.backend)),
    )
}

fn circumstances(confinement: &Confinement) -> String {
    let mut all = DefaultHasher::new();
    format!("{confinement:?}").hash(&mut all);
    FILES.map(|file| fs::read(file).ok()).hash(&mut all);
    NAMESPACES
        .map(|kind| fs::read_link(Path::new("/proc/self/ns").join(kind)).ok())
        .hash(&mut all);
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let counts = |line: &&str| STATUS.iter().any(|name| line.starts_with(name));
    status
        .lines()
        .filter(counts)
        .for_each(|line| line.hash(&mut all));
    let program = fs::metadata("/proc/self/exe").ok();
    let program = program.map(|found| {
        (
            found.dev(),
            found.ino(),
            found.size(),
            found.mtime(),
            found.mtime_nsec(),
        )
    });
    program.hash(&mut all);
    format!("{:016x}\n", all.finish())
}
