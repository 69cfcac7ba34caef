//! Files of the sandbox's own: accounts, names of hosts, configurations of git without secrets.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Access, HOST_NAME, git_config, mounts};

/// Their places and contents.
pub(super) fn files(access: &Access) -> Vec<(PathBuf, String)> {
    let files = [("/etc/passwd", accounts(access)), ("/etc/group", groups()), ("/etc/hosts", hosts(access))];
    let files = files.into_iter().map(|(path, content)| (path.into(), content));
    files.chain(git_config::without_secrets(access)).collect()
}

/// Programs look up their own account: just that one, and `nobody`.
fn accounts(access: &Access) -> String {
    let (user, group) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    let home = mounts::home(access).unwrap_or_else(|| Path::new("/tmp").to_owned());
    format!("user:x:{user}:{group}::{}:/bin/sh\nnobody:x:65534:65534::/:/usr/sbin/nologin\n", home.display())
}

fn groups() -> String {
    format!("user:x:{}:\nnogroup:x:65534:\n", rustix::process::getgid().as_raw())
}

/// Tests of real projects connect to themselves by these names. With the network on, the names of the
/// host are known as well.
fn hosts(access: &Access) -> String {
    let own = format!("127.0.0.1 localhost {HOST_NAME}\n::1 localhost ip6-localhost ip6-loopback\n");
    let of_host =
        if access.network { fs::read_to_string("/etc/hosts").unwrap_or_default() } else { String::new() };
    own + &of_host
}
