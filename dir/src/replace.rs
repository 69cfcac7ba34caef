//! Replaces or removes whole files of the harness, even if an agent put something else in their
//! place.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use rustix::fs::CWD;

use crate::reach;

/// Replaces a file's content completely or not at all, even in a power cut: half a state file would lose a
/// run. A symlink in its place is replaced, not followed; missing folders are created. When this returns, the
/// new content is on disk under its name. A kill leaves `.NAME.new` beside the file until the next call, or until
/// [`sweep`].
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let path = &std::path::absolute(path)?;
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let missing: Vec<&Path> = folder
        .ancestors()
        .take_while(|folder| !folder.exists())
        .collect();
    replace_with(path, |file| {
        file.write_all(bytes)?;
        // Before the rename: a name without its content would be neither the old file nor the new one.
        file.sync_all()
    })?;
    let folders_above = missing.iter().filter_map(|folder| folder.parent());
    folders_above
        .chain([folder])
        .try_for_each(|folder| File::open(folder)?.sync_all())
}

/// Replaces the file with what `fill` writes, which a power cut may lose unless `fill` syncs it.
pub fn replace_with(path: &Path, fill: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    fs::create_dir_all(folder)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let staged = folder.join(format!(".{name}.new"));
    // Left by an earlier, killed write. A symlink there must not be followed.
    remove(&staged)?;
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&staged)?;
    let replaced = fill(&mut file).and_then(|()| fs::rename(&staged, path));
    // Whoever named a folder, or filled the disk, must not find a file beside it that nobody asked for.
    replaced.inspect_err(|_| drop(fs::remove_file(&staged)))
}

/// Removes what killed calls of [`replace`] have left in a folder of the harness. The caller knows that none is under way.
pub fn sweep(folder: &Path) {
    for entry in crate::list(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.as_encoded_bytes();
        if name.starts_with(b".") && name.ends_with(b".new") {
            let _ = remove(&entry.path());
        }
    }
}

/// Removes a file or a folder with all its content, if it exists; never through a symlink.
///
/// Unlike `std::fs::remove_dir_all`, it does not panic if a folder cannot be closed, opens folders of ours whose mode
/// forbids that, and removes a tree of any depth.
pub fn remove(path: &Path) -> io::Result<()> {
    reach::remove(CWD, path.as_os_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_replacement_has_left_is_swept_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        for name in [".list.json.new", "mine.new", ".mine"] {
            replace(&folder.path().join(name), b"").unwrap();
        }
        sweep(folder.path());
        let left = crate::list(folder.path()).unwrap();
        let mut left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, [".mine", "mine.new"]);
    }

    #[test]
    fn a_file_is_replaced_whole_and_never_through_a_symlink() {
        let folder = tempfile::tempdir().unwrap();
        let (file, target) = (
            folder.path().join("state.json"),
            folder.path().join("target"),
        );
        replace(&target, b"mine").unwrap();
        std::os::unix::fs::symlink(&target, folder.path().join(".state.json.new")).unwrap();
        replace(&file, b"{}").unwrap();
        assert_eq!(
            (fs::read(&file).unwrap(), fs::read(&target).unwrap()),
            (b"{}".to_vec(), b"mine".to_vec())
        );
    }

    #[test]
    fn a_write_that_fails_leaves_no_file_behind() {
        let scratch = tempfile::tempdir().unwrap();
        fs::create_dir(scratch.path().join("folder")).unwrap();
        replace(&scratch.path().join("folder"), b"{}").unwrap_err();
        let cannot_fill = |_: &mut File| Err(io::ErrorKind::StorageFull.into());
        replace_with(&scratch.path().join("file"), cannot_fill).unwrap_err();
        let names: Vec<_> = fs::read_dir(scratch.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(names, ["folder"]);
    }

    #[test]
    fn whatever_is_at_a_path_is_removed_but_not_what_a_symlink_leads_to() {
        let scratch = tempfile::tempdir().unwrap();
        let at = |name: &str| scratch.path().join(name);
        replace(&at("target/file"), b"mine").unwrap();
        replace(&at("folder/below/file"), b"").unwrap();
        replace(&at("file"), b"").unwrap();
        for link in ["link", "folder/link", "folder/below/link"] {
            std::os::unix::fs::symlink(at("target"), at(link)).unwrap();
        }
        for name in ["none", "file", "link", "folder"] {
            remove(&at(name)).unwrap();
            assert!(at(name).symlink_metadata().is_err(), "{name}");
        }
        assert_eq!(fs::read(at("target/file")).unwrap(), b"mine");
        remove(&at("target/file/none")).unwrap_err();
    }
}
