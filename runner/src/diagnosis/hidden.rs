//! Which paths the sandbox hides that a command asked for and may be shown.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::sandbox::{Visible, is_for_all};
use crate::{Access, Denied};

/// Never offered: the kernel's files, state of this boot, accounts, and what identifies the host. No build needs them.
const NEVER: [&str; 14] = [
    "/dev",
    "/etc/gai.conf",
    "/etc/gitconfig",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/inputrc",
    "/etc/machine-id",
    "/etc/resolv.conf",
    "/home",
    "/proc",
    "/root",
    "/run",
    "/sys",
    "/var/run",
];
/// Further ones are not tried.
const MOST: usize = 16;

/// The files and folders of the host that the command asked for in vain, that exist and that every user of the machine
/// may read, for [`Access::readable`]: each as far up as it has a name of its own, such as `/etc/php` and `/var/lib/ghc`.
pub fn hidden(denied: &[Denied], access: &Access) -> Vec<PathBuf> {
    let seen = Visible::behind(access);
    let is_apart = |path: &Path| {
        let never = NEVER
            .iter()
            .map(Path::new)
            .chain(access.home.as_deref())
            .chain([access.tree.as_path()]);
        !never
            .chain(["/tmp", "/var/tmp"].map(Path::new))
            .any(|other| path.starts_with(other) || other.starts_with(path))
    };
    let asked = denied.iter().filter_map(|denied| match denied {
        Denied::Read(path) => Some(path),
        Denied::Write(_) | Denied::Connection(_) => None,
    });
    let hidden = asked
        .filter(|path| path.symlink_metadata().is_ok() && !seen.has(path))
        .filter_map(|path| {
            let depth = if path.starts_with("/var") || path.starts_with("/usr") {
                3
            } else {
                2
            };
            let top: PathBuf = path.components().take(depth + 1).collect();
            (is_apart(&top) && !seen.shows_part_of(&top) && is_for_all(&top)).then_some(top)
        });
    hidden
        .collect::<BTreeSet<_>>()
        .into_iter()
        .take(MOST)
        .collect()
}
