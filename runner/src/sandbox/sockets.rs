//! Unix sockets of the host that a command would see. No mount keeps a program from connecting to one, not even
//! if it is read-only, and no network namespace, so each is covered by an empty file.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::fmt::Display;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use super::access::Access;
use super::mount::Mount;
use super::mount_table::{self, Mounted};
use crate::procfs;

/// Where the kernel lists the sockets of a process's network namespace.
const TABLE: &str = "net/unix";

/// Covers the sockets below something that `plan` shows. With the network on, the host's servers are reachable on
/// purpose.
pub(super) fn cover(access: &Access, plan: &mut Vec<Mount>) {
    if access.network {
        return;
    }
    let is_shown = |path: &Path| {
        plan.iter().any(|mount| {
            matches!(mount, Mount::ReadOnly(shown) | Mount::Writable(shown) if path.starts_with(shown))
        })
    };
    let is_socket = |path: &Path| fs::metadata(path).is_ok_and(|data| data.file_type().is_socket());
    // By the path as it was used, and without links and dots.
    let bound = bound()
        .into_iter()
        .flat_map(|path| [path.canonicalize().ok(), Some(path)]);
    let mut sockets = access.held(&bound.flatten().collect::<Vec<_>>());
    sockets.retain(|path| is_shown(path) && is_socket(path));
    plan.extend(sockets.into_iter().map(Mount::EmptyFile));
}

/// Where sockets may be that some process has bound, by any name that it may have used.
fn bound() -> BTreeSet<PathBuf> {
    let ours = mount_table::read(mount_table::OWN).unwrap_or_default();
    let own = number(&of("self", TABLE));
    let mut tables: HashMap<u64, Vec<PathBuf>> = HashMap::new();
    let mut bound = BTreeSet::new();
    for process in procfs::numbers() {
        let table = of(process, TABLE);
        let Some(namespace) = number(&table) else {
            continue;
        };
        let names = tables.entry(namespace).or_insert_with(|| {
            let mut names = names(&fs::read(table).unwrap_or_default());
            if Some(namespace) == own {
                bound.extend(names.extract_if(.., |name| name.is_absolute()));
            }
            names
        });
        if names.is_empty() {
            continue;
        }
        // Which of its processes has bound a socket is not listed.
        let folder = fs::read_link(of(process, "cwd")).unwrap_or_default();
        let paths = names.iter().map(|name| folder.join(name));
        if Some(namespace) == own {
            bound.extend(paths);
        } else {
            let theirs = mount_table::read(of(process, "mountinfo")).unwrap_or_default();
            bound.extend(paths.flat_map(|path| translated(&path, &theirs, &ours)));
        }
    }
    bound
}

fn of(process: impl Display, file: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{process}/{file}"))
}

/// The number of a file, which tells the tables of two namespaces apart.
fn number(table: &Path) -> Option<u64> {
    fs::metadata(table).map(|data| data.ino()).ok()
}

/// The paths of a table: absolute, or relative to a folder that it does not name.
fn names(table: &[u8]) -> Vec<PathBuf> {
    table
        .split(|byte| *byte == b'\n')
        .skip(1)
        .filter_map(name)
        .collect()
}

/// The rest of a line after seven fields. Abstract names begin with `@`.
fn name(mut line: &[u8]) -> Option<PathBuf> {
    for _ in 0..7 {
        line = line.trim_ascii_start();
        line = line.get(line.iter().position(|byte| *byte == b' ')?..)?;
    }
    let name = line
        .strip_prefix(b" ")
        .filter(|name| !name.is_empty() && !name.starts_with(b"@"))?;
    Some(OsStr::from_bytes(name).into())
}

/// The paths in our mounts of what has this path in theirs.
fn translated(path: &Path, theirs: &[Mounted], ours: &[Mounted]) -> Vec<PathBuf> {
    let above = theirs.iter().filter(|mount| path.starts_with(&mount.place));
    let Some(mount) = above.max_by_key(|mount| mount.place.components().count()) else {
        return Vec::new();
    };
    let Ok(below) = path.strip_prefix(&mount.place) else {
        return Vec::new();
    };
    let part = mount.part.join(below);
    let ours = ours.iter().filter(|our| our.device == mount.device);
    ours.filter_map(|our| Some(our.place.join(part.strip_prefix(&our.part).ok()?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_of_a_table_is_read_whole() {
        let table = b"Num       RefCount Protocol Flags    Type St Inode Path
0000000001790073: 00000003 00000000 00000000 0001 03 1327004
0000000035fb4730: 00000002 00000000 00010000 0001 01   639 /run/a b
0000000035fb4731: 00000002 00000000 00010000 0001 01   640 @/run/abstract
0000000035fb4732: 00000002 00000000 00010000 0005 01 13270 ./ c
";
        assert_eq!(names(table), [Path::new("/run/a b"), Path::new("./ c")]);
    }

    #[test]
    fn a_path_in_a_container_is_found_where_we_have_it() {
        let mount = |device: &str, part: &str, place: &str| Mounted {
            device: device.into(),
            part: part.into(),
            place: place.into(),
            options: Vec::new(),
        };
        let ours = [
            mount("8:1", "/", "/"),
            mount("8:2", "/", "/home"),
            mount("8:2", "/me/src", "/srv/src"),
        ];
        let theirs = [mount("0:50", "/", "/"), mount("8:2", "/me/src/app", "/app")];
        let found = |path: &str| translated(Path::new(path), &theirs, &ours);
        assert_eq!(
            found("/app/run/s"),
            ["/home/me/src/app/run/s", "/srv/src/app/run/s"].map(PathBuf::from)
        );
        assert_eq!(found("/run/s"), [""; 0].map(PathBuf::from));
    }
}
