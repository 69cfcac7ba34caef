//! The identity of a tree: a verdict holds for it, and for no other.

use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use dir::Folder;
use guard::{Guard, Policy};
use logging::{sha256_hex, sha256_of};
use names::ours::STATE;

/// SHA-256 in hex over the files and symlinks below `root` that the ignore rules of now do not ignore, sorted by
/// path: path, executable bit, content. Leaves out repositories' own files, the harness's state, and the paths
/// `left_out`, relative to `root`. `None` if there is no such folder.
///
/// # Errors
///
/// Fails if something cannot be read.
pub fn identity(root: &Path, left_out: &[String]) -> io::Result<Option<String>> {
    if !root.is_dir() {
        return Ok(None);
    }
    // Without git nothing says what a tool has made.
    let is_git = repo::WorkTree::at(root).is_ok();
    let is_made = |path: &Path| !is_git && path.file_name().is_some_and(repo::is_left_out);
    let skipped = |path: &Path| {
        path.starts_with(STATE) || is_made(path) || left_out.iter().any(|out| path.starts_with(out))
    };
    let guard = Guard::open(root, Policy::new()).map_err(io::Error::other)?;
    let survey = guard.survey(&skipped).map_err(io::Error::other)?;
    let top = Folder::open(root)?;
    let mut text = Vec::new();
    for (path, seen) in survey.iter().filter(|(path, _)| path.file_name().is_none_or(|name| name != ".git")) {
        let (kind, content) = if seen.kind().is_symlink() {
            ('l', target(&top, path)?)
        } else if seen.kind().is_file() {
            let kind = if seen.mode & 0o100 == 0 { 'f' } else { 'x' };
            (kind, top.open_file_below(path)?.map(|mut file| sha256_of(&mut file)).transpose()?)
        } else {
            continue;
        };
        // What was removed meanwhile is not there.
        let Some(content) = content else { continue };
        text.extend_from_slice(format!("{kind} {content} ").as_bytes());
        text.extend_from_slice(path.as_os_str().as_bytes());
        text.push(0);
    }
    Ok(Some(sha256_hex(&text)))
}

fn target(top: &Folder, path: &Path) -> io::Result<Option<String>> {
    let Some(name) = path.file_name() else { return Ok(None) };
    let target = top.folder_of(path).and_then(|folder| folder.read_link(name));
    target.map(|target| Some(sha256_hex(target.as_bytes())))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn a_tree_is_another_one_after_any_change_that_git_would_see_and_no_other() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path();
        let write = |name: &str, text: &str| dir::replace(&root.join(name), text.as_bytes()).unwrap();
        repo::init(root).unwrap();
        for folder in ["src", "target", "own", STATE] {
            fs::create_dir(root.join(folder)).unwrap();
        }
        write(".gitignore", "target/\n");
        write("src/a", "a");
        symlink("a", root.join("src/link")).unwrap();
        let now = || identity(root, &["own".to_owned()]).unwrap().unwrap();
        let first = now();
        for name in ["target/made", "own/log", ".git/description", &format!("{STATE}/lock")] {
            write(name, "other");
            assert_eq!(now(), first, "{name}");
        }
        let mut known = vec![first];
        let mut check = |what: &str| {
            let now = identity(root, &["own".to_owned()]).unwrap().unwrap();
            assert!(!known.contains(&now), "{what}");
            known.push(now);
        };
        write("src/a", "b");
        check("content");
        fs::set_permissions(root.join("src/a"), Permissions::from_mode(0o755)).unwrap();
        check("executable bit");
        fs::rename(root.join("src/a"), root.join("src/b")).unwrap();
        check("name");
        fs::remove_file(root.join("src/link")).unwrap();
        symlink("b", root.join("src/link")).unwrap();
        check("target");
        write("new", "");
        check("new file");
        write(".gitignore", "target/\nnew\n");
        check("ignore rules");
        assert_eq!(identity(&root.join("nowhere"), &[]).unwrap(), None);
    }
}
