//! Objects of a repository, read by a git that answers until its input ends.

use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::process::{ChildStdin, ChildStdout, Stdio};
use std::sync::{Mutex, PoisonError};

use code_commit_dir::OwnChild;

use crate::Git;

/// Starts git when it is first asked.
pub(crate) struct Objects {
    git: Git,
    flag: &'static str,
    reader: Mutex<Option<Reader>>,
}

struct Reader {
    child: Option<OwnChild>,
    pipes: Option<(ChildStdin, BufReader<ChildStdout>)>,
}

impl Objects {
    /// For [`len`](Self::len).
    pub(crate) fn lengths(git: &Git) -> Self {
        Self::asked_by(git, "--batch-check")
    }

    /// For [`content`](Self::content).
    pub(crate) fn contents(git: &Git) -> Self {
        Self::asked_by(git, "--batch")
    }

    fn asked_by(git: &Git, flag: &'static str) -> Self {
        Self {
            git: git.clone(),
            flag,
            reader: Mutex::default(),
        }
    }

    /// How long an object is; `None` if it is not there.
    pub(crate) fn len(&self, id: &str) -> io::Result<Option<u64>> {
        self.ask(id, |_, len| Ok(len))
    }

    /// An object of at most this length; `None` if it is longer or not there.
    pub(crate) fn content(&self, id: &str, most: u64) -> io::Result<Option<Vec<u8>>> {
        let content = self.ask(id, |output, len| {
            let mut content = Vec::new();
            // A line feed follows.
            let mut rest = output.take(len + 1);
            if len > most {
                io::copy(&mut rest, &mut io::sink())?;
                return Ok(None);
            }
            rest.read_to_end(&mut content)?;
            let is_whole = content.pop() == Some(b'\n') && content.len() as u64 == len;
            is_whole
                .then_some(Some(content))
                .ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
        });
        content.map(Option::flatten)
    }

    /// Asks git, which answers `ID TYPE LENGTH` or `ID missing`.
    fn ask<T>(
        &self,
        id: &str,
        answer: impl FnOnce(&mut BufReader<ChildStdout>, u64) -> io::Result<T>,
    ) -> io::Result<Option<T>> {
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        // A reader that failed is not asked again: its next answer could be for another object.
        let mut asked = match reader.take() {
            Some(asked) => asked,
            None => Reader::start(&self.git, self.flag)?,
        };
        let Some((input, output)) = &mut asked.pipes else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        writeln!(input, "{id}")?;
        let mut line = String::new();
        output.read_line(&mut line)?;
        let len = match line.trim_end().rsplit_once(' ') {
            Some((_, "missing")) => None,
            Some((_, len)) => Some(len.parse().map_err(io::Error::other)?),
            None => return Err(io::ErrorKind::UnexpectedEof.into()),
        };
        let answered = len.map(|len| answer(output, len)).transpose()?;
        *reader = Some(asked);
        Ok(answered)
    }
}

impl Reader {
    fn start(git: &Git, flag: &str) -> io::Result<Self> {
        let mut command = git.command(&["cat-file", flag]).map_err(io::Error::other)?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = OwnChild::start(command.stderr(Stdio::null()))?;
        let pipes = child.pipes();
        Ok(Self {
            pipes: pipes.map(|(input, output)| (input, BufReader::new(output))),
            child: Some(child),
        })
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // Git ends with its input.
        self.pipes = None;
        if let Some(child) = self.child.take() {
            let _ = child.wait();
        }
    }
}
