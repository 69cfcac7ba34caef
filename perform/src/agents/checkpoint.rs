//! Commits what agents changed, without the user's uncommitted changes.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use code_commit_engine::Uncommitted;
use code_commit_logging::{Redactor, name_as_text, sha256_hex};
use code_commit_repo::{Git, GitError};

use crate::agents::fault::{AgentFault, fault};
use crate::agents::role::{IDENTITY, Repository};
use crate::fault::with_sources;

/// In bytes. Linux limits one argument to 128 KiB.
const LONGEST_MESSAGE: usize = 64 << 10;

pub(super) fn survey(
    repository: &Repository,
) -> Result<(Option<String>, Vec<Uncommitted>), AgentFault> {
    let git = &repository.git;
    let head = git.commit_of("HEAD").map_err(AgentFault::Git)?;
    let mut uncommitted = Vec::new();
    let dirty = dirty(git).map_err(AgentFault::Git)?;
    for path in dirty.files.into_iter().chain(dirty.nested) {
        let place = git.folder().join(&path);
        let sha256 = fingerprint(&place).map_err(fault("read", &place))?;
        uncommitted.push(Uncommitted {
            path: shown(&path),
            sha256,
        });
    }
    Ok((head, uncommitted))
}

/// A commit, and the folders that were left out of it, which are repositories.
pub(super) struct Commit<C> {
    pub(super) commit: C,
    pub(super) left_out: Vec<String>,
}

impl<C> Commit<C> {
    fn new(commit: C, left_out: &[PathBuf]) -> Self {
        let left_out = left_out.iter().map(|folder| shown(folder)).collect();
        Self { commit, left_out }
    }
}

/// Commits the changes but those that are spared; none if there are no others.
pub(super) fn checkpoint(
    repository: &Repository,
    message: &str,
    spare: &[Uncommitted],
) -> Result<Commit<Option<String>>, GitError> {
    let git = &repository.git;
    let spare: BTreeMap<&str, &Option<String>> = spare
        .iter()
        .map(|one| (one.path.as_str(), &one.sha256))
        .collect();
    let is_spared = |path: &PathBuf| {
        let now = || fingerprint(&git.folder().join(path));
        let then = spare.get(shown(path).as_str());
        then.is_some_and(|then| now().is_ok_and(|now| now == **then))
    };
    let is_ours = |path: &PathBuf| !is_excluded(repository, path) && !is_spared(path);
    let mut dirty = dirty(git)?;
    dirty.files.retain(is_ours);
    dirty.nested.retain(is_ours);
    let commit = if dirty.files.is_empty() {
        None
    } else {
        Some(git.commit_paths(&dirty.files, message, Some(IDENTITY))?)
    };
    Ok(Commit::new(commit, &dirty.nested))
}

/// Commits everything except nested repositories, of which git would keep only a hash. A mark commits nothing: it is
/// another commit after the last one.
pub(super) fn commit(
    repository: &Repository,
    message: &str,
    is_mark: bool,
) -> Result<Commit<String>, GitError> {
    let git = &repository.git;
    if let Some(made) = made(repository, message, is_mark)? {
        return Ok(Commit::new(made, &[]));
    }
    if is_mark {
        let made = git.commit_nothing(message, Some(IDENTITY))?;
        return Ok(Commit::new(made, &[]));
    }
    let mut nested = dirty(git)?.nested;
    nested.retain(|path| !is_excluded(repository, path));
    let exclude = repository.exclude.iter().map(Path::new);
    let exclude: Vec<&Path> = exclude.chain(nested.iter().map(PathBuf::as_path)).collect();
    let made = git.commit_all(&exclude, message, Some(IDENTITY))?;
    Ok(Commit::new(made, &nested))
}

/// The current commit, if it has this message and nothing is left to commit: a run that was killed between
/// the commit and its fact has already made it. A mark is followed by whatever it leaves out.
fn made(repository: &Repository, message: &str, is_mark: bool) -> Result<Option<String>, GitError> {
    let git = &repository.git;
    let head = git.commit_of("HEAD")?;
    let same = git.commit_of(&format!("HEAD^{{/^{message}[[:space:]]}}"))?;
    if head.is_none() || head != same {
        return Ok(None);
    }
    if is_mark {
        return Ok(head);
    }
    let mut files = dirty(git)?.files;
    files.retain(|path| !is_excluded(repository, path));
    Ok(head.filter(|_| files.is_empty()))
}

fn is_excluded(repository: &Repository, path: &Path) -> bool {
    let mut exclude = repository.exclude.iter();
    exclude.any(|folder| path.starts_with(folder))
}

/// The form used in the record.
fn shown(path: &Path) -> String {
    name_as_text(path).into_owned()
}

/// Why there is no commit, without keys.
pub(super) fn failed(error: &GitError, redactor: &Redactor) -> String {
    redactor.redact(&with_sources(error)).into_owned()
}

/// A message that fits on a command line and holds no terminal control sequences: an agent may write
/// anything. The record has it in full.
pub(super) fn short(message: &str) -> String {
    let (head, rest) = message.split_at(message.floor_char_boundary(LONGEST_MESSAGE));
    let more = if rest.is_empty() { "" } else { "…" };
    let is_no_text = |c: char| c.is_control() && c != '\n' && c != '\t';
    format!("{head}{more}")
        .replace("\r\n", "\n")
        .replace(is_no_text, "\u{fffd}")
}

struct Dirty {
    files: Vec<PathBuf>,
    /// Nested repositories that are not submodules.
    nested: Vec<PathBuf>,
}

/// Uncommitted changes below the folder of `git`, relative to it; it need not be the top of the work tree.
fn dirty(git: &Git) -> Result<Dirty, GitError> {
    let tree = git.tree()?;
    let status = tree.status(git)?;
    let submodules = git.submodules()?;
    let is_nested =
        |path: &PathBuf| status.repositories.contains(path) && !submodules.contains(path);
    let (nested, files) = status.dirty.iter().cloned().partition(is_nested);
    Ok(Dirty { files, nested })
}

/// Identifies a file's content or a symlink's target; `None` if the path does not exist.
fn fingerprint(path: &Path) -> io::Result<Option<String>> {
    match code_commit_dir::open_regular(path).and_then(|file| {
        file.map(|mut file| code_commit_logging::sha256_of(&mut file))
            .transpose()
    }) {
        Ok(Some(sha256)) => Ok(Some(sha256)),
        // A symlink; or a nested repository, which counts as empty.
        Ok(None) => {
            let leads_to = fs::read_link(path).unwrap_or_default();
            Ok(Some(sha256_hex(leads_to.as_os_str().as_bytes())))
        }
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::io::Write as _;

    use code_commit_repo::OpenError;

    use super::*;

    #[test]
    fn a_message_holds_nothing_that_a_terminal_acts_on() {
        let message = "one\r\n\ttwo \u{1b}]0;title\u{7}\u{9b}2J\0";
        assert_eq!(
            short(message),
            "one\n\ttwo \u{fffd}]0;title\u{fffd}\u{fffd}2J\u{fffd}"
        );
    }

    #[test]
    fn what_keeps_a_tree_from_being_looked_at_comes_with_its_kind() {
        let folder = tempfile::tempdir().unwrap();
        let error = dirty(&Git::new(folder.path(), "git", [])).err().unwrap();
        assert!(
            matches!(error, GitError::Open(OpenError::NotARepository { .. })),
            "{error:?}"
        );
    }

    #[test]
    fn what_was_not_committed_is_spared_also_where_its_names_are_not_utf8() {
        let folder = tempfile::tempdir().unwrap();
        code_commit_repo::Git::new(folder.path(), "git", [])
            .init()
            .unwrap();
        for name in [&b"odd\xfe"[..], b"odd\xff"] {
            let path = folder.path().join(OsStr::from_bytes(name));
            fs::File::create(path).unwrap().write_all(name).unwrap();
        }
        let repository = Repository {
            git: Git::new(folder.path(), "git", []),
            exclude: Vec::new(),
        };
        let found = dirty(&repository.git).unwrap().files.into_iter();
        let sha256 = |path: &Path| fingerprint(&folder.path().join(path)).unwrap();
        let spare: Vec<_> = found
            .map(|path| Uncommitted {
                path: shown(&path),
                sha256: sha256(&path),
            })
            .collect();
        assert_eq!(
            (
                spare.len(),
                checkpoint(&repository, "message", &spare).unwrap().commit
            ),
            (2, None)
        );
    }

    #[test]
    fn why_there_is_no_commit_is_said_with_its_cause_and_without_keys() {
        let git = GitError::Start {
            folder: "/secret-key-77".into(),
            source: io::ErrorKind::NotFound.into(),
        };
        let error = failed(&git, &Redactor::new(["secret-key-77"]));
        assert_eq!(error, "cannot start git in /[key …77]: entity not found");
    }

    #[test]
    fn a_mark_holds_nothing_of_what_was_staged_or_changed_since() {
        let folder = tempfile::tempdir().unwrap();
        code_commit_repo::Git::new(folder.path(), "git", [])
            .init()
            .unwrap();
        let write = |name: &str| fs::File::create(folder.path().join(name)).unwrap();
        write("built");
        let repository = Repository {
            git: Git::new(folder.path(), "git", []),
            exclude: Vec::new(),
        };
        commit(&repository, "built", false).unwrap();
        write("later");
        let mark = commit(&repository, "passed", true).unwrap().commit;
        let files = repository.git.changed_in(&mark).unwrap();
        assert!(files.is_empty(), "{files:?}");
        assert_eq!(dirty(&repository.git).unwrap().files, [Path::new("later")]);
        let again = commit(&repository, "passed", true).unwrap();
        assert_eq!(again.commit, mark);
    }
}
