//! Objects of a repository, read by a git that answers until its input ends.

use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::process::{ChildStdin, ChildStdout, Stdio};
use std::sync::{Mutex, PoisonError};

use code_commit_dir::OwnChild;

use crate::Git;

/// Starts git when it is first asked.
pub(crate) struct Objects {
    git: Git,
    reader: Mutex<Option<Reader>>,
}

/// Dropped in this order: git ends with its input.
struct Reader {
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    _git: OwnChild,
}

impl Objects {
    pub(crate) fn of(git: &Git) -> Self {
        Self {
            git: git.clone(),
            reader: Mutex::default(),
        }
    }

    /// The content of an object; `None` if it is not there, or longer than `most`.
    pub(crate) fn content(&self, id: &str, most: u64) -> io::Result<Option<Vec<u8>>> {
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        // A reader that fails is not asked again: its next answer could be for this object.
        let mut asked = match reader.take() {
            Some(asked) => asked,
            None => Reader::start(&self.git)?,
        };
        let content = asked.content(id, most)?;
        *reader = Some(asked);
        Ok(content)
    }
}

impl Reader {
    fn start(git: &Git) -> io::Result<Self> {
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

    /// Git answers `ID TYPE LENGTH`, a line feed, the content and a line feed, or `ID missing`.
    fn content(&mut self, id: &str, most: u64) -> io::Result<Option<Vec<u8>>> {
        writeln!(self.input, "{id}")?;
        let (mut line, mut content) = (String::new(), Vec::new());
        self.output.read_line(&mut line)?;
        if line.ends_with(" missing\n") {
            return Ok(None);
        }
        let len = line.trim_end().rsplit(' ').next().unwrap_or_default();
        let len: u64 = len.parse().map_err(io::Error::other)?;
        let mut rest = (&mut self.output).take(len + 1);
        if len > most {
            io::copy(&mut rest, &mut io::sink())?;
            return Ok(None);
        }
        rest.read_to_end(&mut content)?;
        content.pop();
        let is_whole = content.len() as u64 == len;
        is_whole
            .then_some(Some(content))
            .ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }
}
