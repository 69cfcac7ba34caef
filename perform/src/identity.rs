//! The identity of a tree: a verdict holds for it, and for no other.

mod hashes;

use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use code_commit_changes::{Seen, Snapshot};
use code_commit_dir::{Folder, Interrupt, Interruptible};
use code_commit_engine::{HoldsFor, Outcome};
use code_commit_guard::{Configuration, Policy, Surroundings};
use code_commit_logging::{sha256_hex, sha256_of};
use code_commit_names::ours::STATE;
use rustix::fs::fstat;

/// What the end of a run holds for, as the tree is now.
pub type HoldsNow<'w> = Box<dyn Fn(&Outcome, Interrupt<'_>) -> HoldsFor + 'w>;

/// SHA-256 in hex over the files and symlinks below `root` that the `.gitignore` files of now do not ignore, sorted by
/// path: path, executable bit, content. Git's configuration and the user's excludes are those of `around`, if it was
/// read before. Leaves out repositories' own files, the harness's state, and the paths
/// `left_out`, relative to `root`. `None` if there is no such folder.
///
/// A file that looks as it did when it was read is not read again: `known`, a file of the harness's own, keeps hashes of large
/// trees from run to run.
///
/// # Errors
///
/// Fails if something cannot be read.
pub fn identity(
    root: &Path,
    around: Option<&Surroundings>,
    left_out: &[String],
    known: Option<&Path>,
    interrupt: Interrupt<'_>,
) -> io::Result<Option<String>> {
    if !root.is_dir() {
        return Ok(None);
    }
    let found = || Surroundings::find(root, Configuration::All);
    let around = around
        .cloned()
        .map_or_else(found, Ok)
        .map_err(io::Error::other)?;
    // Without git nothing says what a tool has made.
    let is_git = around.is_git();
    let is_made =
        |path: &Path| !is_git && path.file_name().is_some_and(code_commit_repo::is_left_out);
    let is_git_own = |path: &Path| path.file_name().is_some_and(|name| name == ".git");
    let is_left_out = |path: &Path| left_out.iter().any(|out| path.starts_with(out));
    let skipped = |path: &Path, _| {
        path.starts_with(STATE) || is_git_own(path) || is_made(path) || is_left_out(path)
    };
    let guard = around.guard(Policy::new()).map_err(io::Error::other)?;
    let snapshot = Snapshot::of(&guard, &skipped).map_err(io::Error::other)?;
    let top = Folder::open(root)?;
    known.inspect(|file| hashes::load(file));
    let (mut text, mut were_read) = (Vec::new(), 0);
    let mut all: Vec<_> = snapshot
        .iter()
        .filter(|(_, seen)| !seen.is_ignored)
        .collect();
    all.sort_unstable_by_key(|(path, _)| path.as_os_str());
    for (path, seen) in &all {
        let (kind, content) = if seen.kind().is_symlink() {
            ('l', target(&top, path)?)
        } else if seen.kind().is_file() {
            let kind = if seen.mode & 0o100 == 0 { 'f' } else { 'x' };
            let kept = hashes::get(seen);
            were_read += usize::from(kept.is_none());
            let read = || content(&top, path, seen, interrupt);
            (kind, kept.map_or_else(read, |hash| Ok(Some(hash)))?)
        } else {
            continue;
        };
        // What was removed meanwhile is not there.
        let Some(content) = content else { continue };
        text.extend_from_slice(format!("{kind} {content} ").as_bytes());
        text.extend_from_slice(path.as_os_str().as_bytes());
        text.push(0);
    }
    if let Some(file) = known {
        hashes::store(file, all.iter().map(|(_, seen)| seen), were_read);
    }
    Ok(Some(sha256_hex(&text)))
}

/// The hash of a file, which is kept unless it changes meanwhile.
fn content(
    top: &Folder,
    path: &Path,
    listed: &Seen,
    interrupt: Interrupt<'_>,
) -> io::Result<Option<String>> {
    let mut file = match top.open_file_below(path) {
        Ok(Some(file)) => file,
        Ok(None) => return Ok(None),
        // Another user's, as a database leaves them: known by its times.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            return Ok(Some(sha256_hex(
                format!("{:?}", (listed.len, listed.mtime, listed.ctime)).as_bytes(),
            )));
        }
        Err(error) => return Err(error),
    };
    let seen = Seen::of(&fstat(&file)?);
    let hash = sha256_of(&mut Interruptible::new(&mut file, interrupt))?;
    if Seen::of(&fstat(&file)?) == seen {
        hashes::add(&seen, &hash);
    }
    Ok(Some(hash))
}

fn target(top: &Folder, path: &Path) -> io::Result<Option<String>> {
    let Some(name) = path.file_name() else {
        return Ok(None);
    };
    let target = top
        .folder_of(path)
        .and_then(|folder| folder.read_link(name));
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
        let write = |name: &str, text: &str| {
            code_commit_dir::replace(&root.join(name), text.as_bytes()).unwrap();
        };
        code_commit_repo::Git::new(root, "git", []).init().unwrap();
        for folder in ["src", "target", "own", STATE, "src/nested/.git"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        write(".gitignore", "target/\n");
        write("src/a", "a");
        symlink("a", root.join("src/link")).unwrap();
        let now = || {
            identity(
                root,
                None,
                &["own".to_owned()],
                None,
                code_commit_dir::NEVER,
            )
            .unwrap()
            .unwrap()
        };
        let first = now();
        for name in [
            "target/made",
            "own/log",
            ".git/description",
            "src/nested/.git/config",
            &format!("{STATE}/lock"),
        ] {
            write(name, "other");
            assert_eq!(now(), first, "{name}");
        }
        let mut known = vec![first];
        let mut check = |what: &str| {
            let now = now();
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
        assert_eq!(
            identity(
                &root.join("nowhere"),
                None,
                &[],
                None,
                code_commit_dir::NEVER
            )
            .unwrap(),
            None
        );
    }
}
