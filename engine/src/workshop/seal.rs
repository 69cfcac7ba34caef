//! The seal: what decides whether the work is done must not be changed by the work.
//!
//! The build script, the configuration and the protected files are looked at before and after each build. What a build changed is put back,
//! and the build is run once more; its exit code counts, unless it breaks the seal again. Everything is looked up from the root's descriptor
//! and through no link, since a build may leave a link where a folder was.

use std::ffi::OsStr;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use guard::Folder;
use rustix::fs::{AtFlags, FileType, Mode, OFlags};

/// The sealed files as they were before a build.
#[derive(Debug)]
pub(crate) struct Seal {
    root: Folder,
    files: Vec<Sealed>,
}

/// What a build did to the sealed files.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Broken {
    /// Changed, and put back.
    pub(crate) put_back: Vec<String>,
    /// Changed, and out of reach: a folder on the way is none any more.
    pub(crate) lost: Vec<String>,
}

#[derive(Debug)]
struct Sealed {
    path: PathBuf,
    state: State,
}

#[derive(Debug, PartialEq, Eq)]
enum State {
    /// Nothing is there, or no folder leads to it.
    Absent,
    /// A regular file.
    File { content: Vec<u8>, mode: u32 },
    /// Anything else.
    Other,
}

impl Seal {
    /// Remembers these files; paths are relative to the root.
    pub(crate) fn take(root: &Path, paths: &[PathBuf]) -> io::Result<Self> {
        let root = Folder::open(root)?;
        let files =
            paths.iter().map(|path| Sealed { path: path.clone(), state: look(&root, path) }).collect();
        Ok(Self { root, files })
    }

    /// Puts back what was changed, as far as it can be reached, and names it.
    pub(crate) fn restore(&self) -> Broken {
        let mut broken = Broken::default();
        for file in &self.files {
            if look(&self.root, &file.path) == file.state {
                continue;
            }
            let name = file.path.display().to_string();
            match put_back(&self.root, file) {
                Ok(()) => broken.put_back.push(name),
                Err(_) => broken.lost.push(name),
            }
        }
        broken
    }
}

impl Broken {
    /// Whether the build left everything alone.
    pub(crate) fn is_nothing(&self) -> bool {
        self.put_back.is_empty() && self.lost.is_empty()
    }

    /// Every path.
    pub(crate) fn names(&self) -> String {
        let all: Vec<&str> = self.put_back.iter().chain(&self.lost).map(String::as_str).collect();
        all.join(", ")
    }
}

/// The folder that holds `path`, reached through no link, and the last name.
fn parent<'p>(root: &Folder, path: &'p Path) -> io::Result<(Option<Folder>, &'p OsStr)> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let mut folder: Option<Folder> = None;
    for component in path.parent().into_iter().flat_map(Path::iter) {
        folder = Some(folder.as_ref().unwrap_or(root).open_in(component)?);
    }
    Ok((folder, name))
}

fn look(root: &Folder, path: &Path) -> State {
    let Ok((folder, name)) = parent(root, path) else { return State::Absent };
    let folder = folder.as_ref().unwrap_or(root);
    match folder.stat(name) {
        Ok(None) => State::Absent,
        Ok(Some(stat)) if FileType::from_raw_mode(stat.st_mode).is_file() => {
            let mut content = Vec::new();
            match folder.open_file(name).and_then(|mut file| file.read_to_end(&mut content)) {
                Ok(_) => State::File { content, mode: stat.st_mode & 0o7777 },
                Err(_) => State::Other,
            }
        }
        Ok(Some(_)) | Err(_) => State::Other,
    }
}

fn put_back(root: &Folder, sealed: &Sealed) -> io::Result<()> {
    let (folder, name) = parent(root, &sealed.path)?;
    let folder = folder.as_ref().unwrap_or(root);
    if let Some(stat) = folder.stat(name)? {
        let is_folder = FileType::from_raw_mode(stat.st_mode).is_dir();
        let flags = if is_folder { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        rustix::fs::unlinkat(folder, name, flags)?;
    }
    let State::File { content, mode } = &sealed.state else { return Ok(()) };
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file =
        std::fs::File::from(rustix::fs::openat(folder, name, flags, Mode::from_raw_mode(mode & 0o777))?);
    file.write_all(content)?;
    file.set_permissions(std::fs::Permissions::from_mode(*mode))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::unix::fs::symlink;

    use super::*;

    fn tree() -> tempfile::TempDir {
        let tree = tempfile::tempdir().unwrap();
        fs::create_dir(tree.path().join("tests")).unwrap();
        let mut file = File::create_new(tree.path().join("build.sh")).unwrap();
        file.write_all(b"exit 1\n").unwrap();
        file.set_permissions(fs::Permissions::from_mode(0o755)).unwrap();
        tree
    }

    fn seal(tree: &tempfile::TempDir) -> Seal {
        Seal::take(tree.path(), &["build.sh".into(), "tests/new".into()]).unwrap()
    }

    #[test]
    fn an_untouched_tree_is_left_alone() {
        let tree = tree();
        assert!(seal(&tree).restore().is_nothing());
    }

    #[test]
    fn a_changed_a_deleted_and_a_new_file_are_put_back_with_their_modes() {
        let tree = tree();
        let path = tree.path().join("build.sh");
        let seal = seal(&tree);
        fs::remove_file(&path).unwrap();
        symlink("/bin/true", &path).unwrap();
        File::create_new(tree.path().join("tests/new")).unwrap();
        assert_eq!(seal.restore().put_back, ["build.sh", "tests/new"]);
        assert_eq!(fs::read(&path).unwrap(), b"exit 1\n");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o755);
        assert!(!tree.path().join("tests/new").exists());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(seal.restore().put_back, ["build.sh"]);
    }

    #[test]
    fn nothing_is_written_or_deleted_through_a_folder_that_became_a_link() {
        let tree = tree();
        let outside = tempfile::tempdir().unwrap();
        for name in ["kept", "new"] {
            File::create_new(outside.path().join(name)).unwrap().write_all(b"theirs").unwrap();
        }
        File::create_new(tree.path().join("tests/kept")).unwrap();
        let seal = Seal::take(tree.path(), &["tests/kept".into(), "tests/new".into()]).unwrap();
        fs::remove_dir_all(tree.path().join("tests")).unwrap();
        symlink(outside.path(), tree.path().join("tests")).unwrap();
        let broken = seal.restore();
        assert_eq!((broken.put_back.len(), broken.lost), (0, vec!["tests/kept".to_owned()]));
        assert_eq!(fs::read(outside.path().join("kept")).unwrap(), b"theirs");
        assert_eq!(fs::read(outside.path().join("new")).unwrap(), b"theirs");
    }

    #[test]
    fn a_link_inside_of_the_project_is_not_written_through_either() {
        let tree = tree();
        fs::create_dir(tree.path().join(".git")).unwrap();
        File::create_new(tree.path().join(".git/config")).unwrap().write_all(b"[core]").unwrap();
        File::create_new(tree.path().join("tests/config")).unwrap();
        let seal = Seal::take(tree.path(), &["tests/config".into()]).unwrap();
        fs::rename(tree.path().join("tests"), tree.path().join("tests.old")).unwrap();
        symlink(".git", tree.path().join("tests")).unwrap();
        assert_eq!(seal.restore().lost, ["tests/config"]);
        assert_eq!(fs::read(tree.path().join(".git/config")).unwrap(), b"[core]");
    }
}
