//! Objects of a repository, read by a git that answers until its input ends.

use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::path::PathBuf;
use std::process::{ChildStdin, ChildStdout, Stdio};

use code_commit_dir::OwnChild;
use gix_hash::Kind;
use tempfile::TempDir;

use crate::{Git, WorkTree};

/// Where they are.
#[derive(Debug, Clone)]
pub(crate) struct Store(PathBuf, Kind);

/// Dropped in this order: git ends with its input.
pub(crate) struct Objects {
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    _git: OwnChild,
    _repository: TempDir,
}

impl WorkTree {
    pub(crate) fn store(&self) -> Store {
        Store(self.common_dir.join("objects"), self.hash)
    }
}

impl Objects {
    /// Git reads them through a repository of their own: a command may have changed the other files of theirs.
    pub(crate) fn of(git: &Git, Store(objects, hash): &Store) -> io::Result<Self> {
        let repository = tempfile::tempdir()?;
        let write = |name, text: String| {
            let path = repository.path().join(name);
            code_commit_dir::replace_with(&path, |file| file.write_all(text.as_bytes()))
        };
        write("HEAD", "ref: refs/heads/none\n".to_owned())?;
        let format = "[core]\nrepositoryFormatVersion = 1\n[extensions]\nobjectFormat";
        write("config", format!("{format} = {hash}\n"))?;
        std::fs::create_dir(repository.path().join("refs"))?;
        let mut command = git.bare();
        command
            .args(["cat-file", "--batch"])
            .env("GIT_DIR", repository.path())
            .env("GIT_OBJECT_DIRECTORY", objects)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_NO_LAZY_FETCH", "1");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut git = OwnChild::start(command.stderr(Stdio::null()))?;
        let (input, output) = git.pipes().ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Self {
            input,
            output: BufReader::new(output),
            _git: git,
            _repository: repository,
        })
    }

    /// The content of an object; `None` if it is not there, or longer than `most`. After an error, it is not asked again:
    /// the next answer could be for this object.
    pub(crate) fn content(&mut self, id: &str, most: u64) -> io::Result<Option<Vec<u8>>> {
        writeln!(self.input, "{id}")?;
        // `ID TYPE LENGTH`, a line feed, the content and a line feed; or `ID missing`.
        let (mut line, mut content) = (String::new(), Vec::new());
        self.output.read_line(&mut line)?;
        let (_, len) = line.trim_end().rsplit_once(' ').unwrap_or_default();
        if len == "missing" {
            return Ok(None);
        }
        let len: u64 = len.parse().map_err(io::Error::other)?;
        let mut rest = (&mut self.output).take(len + 1);
        if len > most {
            return io::copy(&mut rest, &mut io::sink()).map(|_| None);
        }
        rest.read_to_end(&mut content)?;
        content.pop();
        let is_whole = rest.limit() == 0;
        is_whole
            .then_some(Some(content))
            .ok_or(io::ErrorKind::UnexpectedEof.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::scratch::{self, Scratch};

    #[test]
    fn one_git_answers_for_one_object_after_the_other() {
        let files = [("a", "two\nlines\n"), ("b", ""), ("c", "longer than most")];
        let scratch = Scratch::with(&files);
        let id = |name: &str| scratch.git(&["rev-parse", &format!("HEAD:{name}")]);
        let [a, b, c] = ["a", "b", "c"].map(id);
        let store = scratch.tree().store();
        let git = scratch::git(scratch.path());
        // Its configuration may be whatever a command has left.
        scratch.write(".git/config", "[");
        let mut objects = Objects::of(&git, &store).unwrap();
        let mut content = |id: &str| objects.content(id.trim(), 10).unwrap();
        assert_eq!(content(&a).as_deref(), Some(&b"two\nlines\n"[..]));
        assert_eq!(content(&c), None);
        assert_eq!(content(&"1".repeat(40)), None);
        assert_eq!(content(&b).as_deref(), Some(&b""[..]));
        assert_eq!(content(&a).as_deref(), Some(&b"two\nlines\n"[..]));
    }
}
