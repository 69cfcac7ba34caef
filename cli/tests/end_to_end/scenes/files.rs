//! What is on disk.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, mknodat};

/// What a folder holds, sorted; nothing where there is no such folder.
pub fn entries(folder: impl AsRef<Path>) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// The last part of a path.
pub fn name(path: impl AsRef<Path>) -> String {
    let name = path.as_ref().file_name().unwrap();
    name.to_str().unwrap().to_owned()
}

/// The names of what a folder holds, sorted.
pub fn names(folder: impl AsRef<Path>) -> Vec<String> {
    entries(folder).iter().map(name).collect()
}

/// Every file below a folder, sorted. Links are files.
pub fn below(folder: &Path) -> Vec<PathBuf> {
    let of = |path: PathBuf| {
        if path.is_dir() && !path.is_symlink() {
            below(&path)
        } else {
            vec![path]
        }
    };
    entries(folder).into_iter().flat_map(of).collect()
}

/// The text of a file, as far as it is text.
pub fn text(path: &Path) -> String {
    let bytes = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Writes a file and the folders that it needs.
pub fn write(path: &Path, content: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

/// Writes a program.
pub fn write_program(path: &Path, content: impl AsRef<[u8]>) {
    use std::os::unix::fs::PermissionsExt as _;
    write(path, content);
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Makes a pipe that has a name.
pub fn make_pipe(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::RWXU, 0).unwrap();
}

/// Name and text of every file below a folder.
pub fn named(folder: &Path) -> Vec<(String, String)> {
    let name = |path: &Path| path.strip_prefix(folder).unwrap().display().to_string();
    below(folder)
        .iter()
        .map(|path| (name(path), text(path)))
        .collect()
}

/// Copies a folder with all that is in it.
pub fn copy(from: &Path, to: &Path) {
    for path in below(from) {
        let target = to.join(path.strip_prefix(from).unwrap());
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::copy(&path, target).unwrap();
    }
}
