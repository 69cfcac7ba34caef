//! Objects of a repository, read by a git that answers until its input ends.

use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::process::{ChildStdin, ChildStdout, Stdio};

use code_commit_dir::OwnChild;

use crate::Git;

/// Dropped in this order: git ends with its input.
pub(crate) struct Objects {
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    _git: OwnChild,
}

impl Objects {
    pub(crate) fn of(git: &Git) -> io::Result<Self> {
        let command = git.command(&["cat-file", "--batch"]);
        let mut command = command.map_err(io::Error::other)?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut git = OwnChild::start(command.stderr(Stdio::null()))?;
        let (input, output) = git.pipes().ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Self {
            input,
            output: BufReader::new(output),
            _git: git,
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
        let scratch = Scratch::new();
        for (name, text) in [("a", "two\nlines\n"), ("b", ""), ("c", "longer than most")] {
            scratch.write(name, text);
        }
        scratch.commit();
        let id = |name: &str| scratch.git(&["rev-parse", &format!("HEAD:{name}")]);
        let mut objects = Objects::of(&scratch::git(scratch.path())).unwrap();
        let mut content = |id: &str| objects.content(id.trim(), 10).unwrap();
        assert_eq!(content(&id("a")).as_deref(), Some(&b"two\nlines\n"[..]));
        assert_eq!(content(&id("c")), None);
        assert_eq!(content(&"1".repeat(40)), None);
        assert_eq!(content(&id("b")).as_deref(), Some(&b""[..]));
        assert_eq!(content(&id("a")).as_deref(), Some(&b"two\nlines\n"[..]));
    }
}
