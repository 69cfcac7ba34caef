//! What the harness tells the first process, and what that reports.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use crate::sandbox::View;
use crate::sandbox::mounts::Mount;
use crate::{Ended, Env};

/// Everything that the first process needs. It travels in memory: arguments and names of mounts would be visible
/// to every user of the machine, and an argument list has a limit.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Task {
    /// The tree, and where its changes go.
    pub(super) view: Option<(PathBuf, View)>,
    pub(super) mounts: Vec<Mount>,
    /// Files of the sandbox's own, with their content.
    pub(super) files: Vec<(PathBuf, String)>,
    pub(super) has_network: bool,
    pub(super) has_terminal: bool,
    pub(super) cwd: PathBuf,
    pub(super) env: Env,
    pub(super) argv: Vec<OsString>,
}

impl Task {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut words = Writer::default();
        words.flag(self.view.is_some());
        if let Some((tree, view)) = &self.view {
            words.paths([tree, &view.upper, &view.work]);
        }
        words.count(self.mounts.len());
        self.mounts.iter().for_each(|mount| words.mount(mount));
        words.count(self.files.len());
        for (path, content) in &self.files {
            words.word(path);
            words.word(content);
        }
        words.flag(self.has_network);
        words.flag(self.has_terminal);
        words.word(&self.cwd);
        words.count(self.env.iter().count());
        self.env.iter().for_each(|(name, value)| {
            words.word(name);
            words.word(value);
        });
        words.count(self.argv.len());
        self.argv.iter().for_each(|word| words.word(word));
        words.bytes
    }

    /// `None` if it was written by another version: a program that is replaced while it runs.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut words = Reader { bytes };
        let view = if words.flag()? {
            let tree = words.path()?;
            Some((tree, View { upper: words.path()?, work: words.path()? }))
        } else {
            None
        };
        let mounts = words.list(Reader::mount)?;
        let files = words.list(|words| Some((words.path()?, words.word()?.into_string().ok()?)))?;
        let (has_network, has_terminal) = (words.flag()?, words.flag()?);
        let cwd = words.path()?;
        let mut env = Env::default();
        for (name, value) in words.list(|words| Some((words.word()?, words.word()?)))? {
            env.set(name, value);
        }
        let argv = words.list(Reader::word)?;
        let is_all = words.bytes.is_empty();
        is_all.then_some(Self { view, mounts, files, has_network, has_terminal, cwd, env, argv })
    }
}

/// Words with their lengths: no content can be taken for the end of a word.
#[derive(Default)]
struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    fn word(&mut self, word: impl AsRef<OsStr>) {
        let word = word.as_ref().as_bytes();
        self.count(word.len());
        self.bytes.extend(word);
    }

    fn count(&mut self, count: usize) {
        self.bytes.extend((count as u64).to_ne_bytes());
    }

    fn flag(&mut self, flag: bool) {
        self.bytes.push(u8::from(flag));
    }

    fn paths<'p>(&mut self, paths: impl IntoIterator<Item = &'p PathBuf>) {
        paths.into_iter().for_each(|path| self.word(path));
    }

    fn mount(&mut self, mount: &Mount) {
        let mut tagged = |tag: u8, path: &Path| {
            self.bytes.push(tag);
            self.word(path);
        };
        match mount {
            Mount::ReadOnly(path) => tagged(0, path),
            Mount::Writable(path) => tagged(1, path),
            Mount::Private(path) => tagged(2, path),
            Mount::EmptyFolder(path) => tagged(3, path),
            Mount::EmptyFile(path) => tagged(4, path),
            Mount::Link(to, path) => {
                tagged(5, path);
                self.word(to);
            }
        }
    }
}

struct Reader<'b> {
    bytes: &'b [u8],
}

impl Reader<'_> {
    fn word(&mut self) -> Option<OsString> {
        let length = self.count()?;
        let (word, rest) = self.bytes.split_at_checked(length)?;
        self.bytes = rest;
        Some(OsString::from_vec(word.to_vec()))
    }

    fn path(&mut self) -> Option<PathBuf> {
        self.word().map(PathBuf::from)
    }

    fn count(&mut self) -> Option<usize> {
        let (count, rest) = self.bytes.split_first_chunk()?;
        self.bytes = rest;
        u64::from_ne_bytes(*count).try_into().ok()
    }

    fn tag(&mut self) -> Option<u8> {
        let (tag, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(*tag)
    }

    fn flag(&mut self) -> Option<bool> {
        self.tag().map(|tag| tag == 1)
    }

    fn list<T>(&mut self, item: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        (0..self.count()?).map(|_| item(self)).collect()
    }

    fn mount(&mut self) -> Option<Mount> {
        let (tag, path) = (self.tag()?, self.path()?);
        Some(match tag {
            0 => Mount::ReadOnly(path),
            1 => Mount::Writable(path),
            2 => Mount::Private(path),
            3 => Mount::EmptyFolder(path),
            4 => Mount::EmptyFile(path),
            5 => Mount::Link(self.path()?, path),
            _ => return None,
        })
    }
}

/// The last word of the helpers.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Report {
    /// How the command ended.
    Ended(Ended),
    /// The system's error when it was to be started.
    NotStarted(i32),
    /// Why there is no view of the tree.
    NoView(String),
    /// Why there is no sandbox.
    Failed(String),
}

impl Report {
    pub(super) fn encode(&self) -> String {
        match self {
            Self::Ended(Ended::Exited(code)) => format!("exited {code}"),
            Self::Ended(Ended::Signaled(signal)) => format!("signaled {signal}"),
            Self::Ended(other) => format!("failed the command {other}"),
            Self::NotStarted(error) => format!("not-started {error}"),
            Self::NoView(message) => format!("no-view {message}"),
            Self::Failed(message) => format!("failed {message}"),
        }
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (how, what) = str::from_utf8(bytes).ok()?.split_once(' ')?;
        Some(match how {
            "exited" => Self::Ended(Ended::Exited(what.parse().ok()?)),
            "signaled" => Self::Ended(Ended::Signaled(what.parse().ok()?)),
            "not-started" => Self::NotStarted(what.parse().ok()?),
            "no-view" => Self::NoView(what.to_owned()),
            "failed" => Self::Failed(what.to_owned()),
            _ => return None,
        })
    }
}

impl From<std::io::Error> for Report {
    fn from(error: std::io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task() -> Task {
        let mut env = Env::default();
        env.set("A", "line\nbreak \0 and nul");
        let path = |name: &str| PathBuf::from(name);
        Task {
            view: Some((path("/t"), View { upper: path("/u"), work: path("/w") })),
            mounts: vec![
                Mount::ReadOnly(path("/usr")),
                Mount::Writable(path("/t")),
                Mount::Private(path("/tmp")),
                Mount::EmptyFolder(path("/t/a")),
                Mount::EmptyFile(path("/t/b")),
                Mount::Link(path("usr/bin"), path("/bin")),
            ],
            files: vec![(path("/etc/hosts"), "127.0.0.1 localhost\n".to_owned())],
            has_network: true,
            has_terminal: false,
            cwd: OsStr::from_bytes(b"/t/\xff").into(),
            env,
            argv: vec!["sh".into(), "-c".into(), "".into()],
        }
    }

    #[test]
    fn a_task_arrives_as_it_was_sent() {
        let sent = task();
        assert_eq!(Task::decode(&sent.encode()), Some(sent));
        let sent = Task { view: None, mounts: Vec::new(), ..task() };
        assert_eq!(Task::decode(&sent.encode()), Some(sent));
    }

    #[test]
    fn a_task_that_is_cut_off_or_longer_is_none() {
        let whole = task().encode();
        for end in 0..whole.len() {
            assert_eq!(Task::decode(&whole[..end]), None, "{end}");
        }
        assert_eq!(Task::decode(&[whole, vec![0]].concat()), None);
    }

    #[test]
    fn a_report_arrives_as_it_was_sent() {
        for report in [
            Report::Ended(Ended::Exited(7)),
            Report::Ended(Ended::Signaled(11)),
            Report::NotStarted(2),
            Report::NoView("of what".to_owned()),
            Report::Failed("cannot mount /a b: no".to_owned()),
        ] {
            assert_eq!(Report::decode(report.encode().as_bytes()), Some(report));
        }
        assert_eq!(Report::decode(b""), None);
    }
}
