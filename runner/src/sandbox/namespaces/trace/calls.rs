//! The system calls that name a path or an address.

use libc::c_long;

use Does::{Opens, Reads, Writes};
use Names::{Address, Below, Whole};

/// Which argument names what. Of a path relative to a folder, the argument before it is the folder's descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Names {
    Whole(usize),
    Below(usize),
    /// `struct sockaddr`, and its length behind it.
    Address(usize),
}

/// Whether a call changes what it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Does {
    Reads,
    Writes,
    /// By the flags in this argument.
    Opens(usize),
}

pub(super) type Call = (c_long, Names, Does);

const CALLS: [Call; 18] = [
    (libc::SYS_openat, Below(1), Opens(2)),
    (libc::SYS_newfstatat, Below(1), Reads),
    (libc::SYS_statx, Below(1), Reads),
    (libc::SYS_faccessat, Below(1), Reads),
    (libc::SYS_faccessat2, Below(1), Reads),
    (libc::SYS_readlinkat, Below(1), Reads),
    (libc::SYS_execve, Whole(0), Reads),
    (libc::SYS_execveat, Below(1), Reads),
    (libc::SYS_chdir, Whole(0), Reads),
    (libc::SYS_mkdirat, Below(1), Writes),
    (libc::SYS_unlinkat, Below(1), Writes),
    (libc::SYS_renameat, Below(1), Writes),
    (libc::SYS_renameat2, Below(1), Writes),
    (libc::SYS_linkat, Below(3), Writes),
    (libc::SYS_symlinkat, Below(2), Writes),
    (libc::SYS_truncate, Whole(0), Writes),
    (libc::SYS_utimensat, Below(1), Writes),
    (libc::SYS_connect, Address(1), Reads),
];

#[cfg(target_arch = "x86_64")]
const OLDER: [Call; 10] = [
    (libc::SYS_open, Whole(0), Opens(1)),
    (libc::SYS_stat, Whole(0), Reads),
    (libc::SYS_lstat, Whole(0), Reads),
    (libc::SYS_access, Whole(0), Reads),
    (libc::SYS_readlink, Whole(0), Reads),
    (libc::SYS_creat, Whole(0), Writes),
    (libc::SYS_mkdir, Whole(0), Writes),
    (libc::SYS_rmdir, Whole(0), Writes),
    (libc::SYS_unlink, Whole(0), Writes),
    (libc::SYS_rename, Whole(0), Writes),
];
#[cfg(not(target_arch = "x86_64"))]
const OLDER: [Call; 0] = [];

pub(super) fn calls() -> impl Iterator<Item = Call> {
    CALLS.into_iter().chain(OLDER)
}
