//! `openat(2)` and `openat2(2)`, called again if a signal interrupts them, as the kernel lets one do on network file
//! systems and FUSE. Both shadow the functions of `rustix`, which return `EINTR`.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::{Result, retry_on_intr};
use rustix::path::Arg;

pub(crate) fn openat(at: impl AsFd, path: impl Arg, flags: OFlags, mode: Mode) -> Result<OwnedFd> {
    path.into_with_c_str(|path| retry_on_intr(|| rustix::fs::openat(at.as_fd(), path, flags, mode)))
}

pub(crate) fn openat2(
    at: impl AsFd,
    path: impl Arg,
    flags: OFlags,
    mode: Mode,
    resolve: ResolveFlags,
) -> Result<OwnedFd> {
    path.into_with_c_str(|path| {
        retry_on_intr(|| rustix::fs::openat2(at.as_fd(), path, flags, mode, resolve))
    })
}
