//! Commits. Paths are passed to git on standard input, as bytes, because there may be more than fit
//! on a command line.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::{Git, GitError, Identity};

/// Reads pathspecs from standard input, each terminated by NUL.
const FROM_INPUT: [&str; 2] = ["--pathspec-from-file=-", "--pathspec-file-nul"];
/// Keeps the message verbatim: otherwise a setting could strip lines that begin with `#`, such as
/// headings, and then refuse an empty message.
const COMMIT: [&str; 5] = [
    "commit",
    "--quiet",
    "--no-verify",
    "--no-gpg-sign",
    "--cleanup=whitespace",
];

impl Git {
    /// Commits exactly these paths, relative to the folder, as they are on disk, including
    /// deletions; returns the commit.
    pub fn commit_paths(
        &self,
        paths: &[impl AsRef<Path>],
        message: &str,
        fallback: Option<Identity<'_>>,
    ) -> Result<String, GitError> {
        let submodules: BTreeSet<PathBuf> = self.submodules()?.into_iter().collect();
        let paths = paths.iter().map(AsRef::as_ref);
        let (links, files): (Vec<&Path>, Vec<&Path>) =
            paths.partition(|path| submodules.contains(*path));
        if !files.is_empty() {
            // A build may leave a file outside of a sparse checkout.
            let add = ["--literal-pathspecs", "add", "--all", "--force", "--sparse"];
            self.run_on(&[&add[..], &FROM_INPUT].concat(), &files)?;
        }
        self.note_submodules(&links)?;
        let commit = [
            &["--literal-pathspecs"][..],
            &COMMIT,
            &["-m", message],
            &FROM_INPUT,
        ]
        .concat();
        self.committed(&commit, &[files, links].concat(), fallback)
    }

    /// Takes back the commit that was made last; index and files stay. Fails if another one was made since.
    pub fn take_back(&self, commit: &str) -> Result<(), GitError> {
        let parent = self.commit_of(&format!("{commit}^"))?;
        let words = match &parent {
            Some(parent) => ["update-ref", "HEAD", parent, commit],
            None => ["update-ref", "-d", "HEAD", commit],
        };
        self.run(&words).map(drop)
    }

    /// A commit that changes nothing, whatever the index and the files are.
    pub fn commit_nothing(
        &self,
        message: &str,
        fallback: Option<Identity<'_>>,
    ) -> Result<String, GitError> {
        let commit = [&COMMIT[..], &["--allow-empty", "--only", "-m", message]].concat();
        self.committed(&commit, &[], fallback)
    }

    /// The newest commit of `HEAD` since `base`, or since the first one, whose message has this last line. Others may have
    /// been made in between. Uses plumbing, which does not show signatures: to verify them, git would run a program that
    /// the repository's configuration names.
    pub fn commit_since(
        &self,
        base: Option<&str>,
        last_line: &str,
    ) -> Result<Option<String>, GitError> {
        if self.commit_of("HEAD")?.is_none() {
            return Ok(None);
        }
        let base = base.map(|base| self.commit_of(base)).transpose()?.flatten();
        let range = base.map_or_else(|| "HEAD".to_owned(), |base| format!("{base}..HEAD"));
        let grep = format!("--grep={last_line}");
        let listed = self.run(&[
            "rev-list",
            "--first-parent",
            "--fixed-strings",
            &grep,
            &range,
        ])?;
        for commit in listed.lines() {
            if self.ends_in(commit, last_line)? {
                return Ok(Some(commit.to_owned()));
            }
        }
        Ok(None)
    }

    fn ends_in(&self, commit: &str, last_line: &str) -> Result<bool, GitError> {
        let message = self.run(&["cat-file", "commit", commit])?;
        Ok(message.trim_end().lines().next_back() == Some(last_line))
    }

    /// Commits everything that is not ignored, except below the `exclude`d paths; returns the
    /// commit, which may be empty.
    pub fn commit_all(
        &self,
        exclude: &[impl AsRef<Path>],
        message: &str,
        fallback: Option<Identity<'_>>,
    ) -> Result<String, GitError> {
        let exclude: Vec<&Path> = exclude.iter().map(AsRef::as_ref).collect();
        let submodules = self.submodules()?;
        let mut specs = vec![PathBuf::from(":/")];
        // Git refuses a path that is excluded twice, here and by its own rules.
        let ignored = self.ignored_of(&exclude)?;
        let left_out = exclude.into_iter().filter(|path| !ignored.contains(*path));
        specs.extend(
            left_out
                .chain(submodules.iter().map(PathBuf::as_path))
                .map(without),
        );
        let add = ["add", "--all", "--sparse"];
        self.run_on(&[&add[..], &FROM_INPUT].concat(), &specs)?;
        self.note_submodules(&submodules)?;
        let commit = [&COMMIT[..], &["--allow-empty", "-m", message]].concat();
        self.committed(&commit, &[], fallback)
    }

    /// Those of the paths that a pattern ignores.
    fn ignored_of(&self, paths: &[&Path]) -> Result<BTreeSet<PathBuf>, GitError> {
        if paths.is_empty() {
            return Ok(BTreeSet::new());
        }
        let listed = self
            .asked_of(&["check-ignore", "-z", "--stdin"], paths)?
            .unwrap_or_default();
        let ignored = listed
            .split(|byte| *byte == 0)
            .filter(|path| !path.is_empty());
        Ok(ignored
            .map(|path| PathBuf::from(OsStr::from_bytes(path)))
            .collect())
    }

    /// Commits as the fallback if git knows nobody else.
    fn committed(
        &self,
        commit: &[&str],
        paths: &[&Path],
        fallback: Option<Identity<'_>>,
    ) -> Result<String, GitError> {
        let known = self.knows_identity()?;
        let settings = fallback
            .filter(|_| !known)
            .map_or_else(Vec::new, |identity| {
                vec![
                    format!("user.name={}", identity.name),
                    format!("user.email={}", identity.email),
                ]
            });
        let mut words: Vec<&str> = settings
            .iter()
            .flat_map(|set| ["-c", set.as_str()])
            .collect();
        words.extend(commit);
        self.run_on(&words, paths)?;
        let made = self.commit_of("HEAD")?;
        made.ok_or_else(|| self.failed("commit", "there is no commit".to_owned()))
    }
}

/// A pathspec for everything except this path.
fn without(path: &Path) -> PathBuf {
    let mut spec = std::ffi::OsString::from(":(top,exclude,literal)");
    spec.push(path);
    PathBuf::from(spec)
}
