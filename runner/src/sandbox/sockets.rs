//! Unix sockets of the host that a command would see. No mount keeps a program from connecting to one, not even
//! if it is read-only, so each is covered by an empty file.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use super::Access;
use super::mounts::{Mount, held};

/// Where the kernel lists the sockets of this network namespace. Those of another, such as of servers that run in
/// a sandbox, are not the host's.
const TABLE: &str = "/proc/net/unix";

/// Covers the sockets below something that `plan` shows. With the network on, the host's servers are reachable on
/// purpose.
pub(super) fn cover(access: &Access, plan: &mut Vec<Mount>) {
    if access.network {
        return;
    }
    let table = fs::read(TABLE).unwrap_or_default();
    let sockets: Vec<PathBuf> = table.split(|byte| *byte == b'\n').filter_map(path).collect();
    let is_shown = |path: &Path| {
        plan.iter().any(|mount| {
            matches!(mount, Mount::ReadOnly(shown) | Mount::Writable(shown) if path.starts_with(shown))
        })
    };
    let is_socket = |path: &Path| fs::metadata(path).is_ok_and(|data| data.file_type().is_socket());
    let mut sockets = held(access, &sockets);
    sockets.retain(|path| is_shown(path) && is_socket(path));
    plan.extend(sockets.into_iter().map(Mount::EmptyFile));
}

/// The absolute path at the end of a line; no field before it contains a slash.
fn path(line: &[u8]) -> Option<PathBuf> {
    let start = line.windows(2).position(|two| two == b" /")?;
    Some(OsStr::from_bytes(line.get(start + 1..)?).into())
}
