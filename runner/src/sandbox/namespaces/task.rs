//! What the harness tells the first process, and what that reports.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use crate::sandbox::access::View;
use crate::sandbox::mount::{Mount, Overlay};
use crate::{Ended, Env};

/// Everything that the first process needs. It travels in memory: arguments and names of mounts would be visible
/// to every user of the machine, and an argument list has a limit.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Task {
    /// To be mounted first.
    pub(super) overlays: Vec<Overlay>,
    pub(super) mounts: Vec<Mount>,
    /// Files of the sandbox's own, and copies of the host's, with their content.
    pub(super) files: Vec<(PathBuf, OsString)>,
    /// The size of all private folders together.
    pub(super) temporary_bytes: Option<u64>,
    pub(super) processes: Option<u64>,
    pub(super) has_network: bool,
    /// Whether the command gets a proxy, because single hosts are open.
    pub(super) has_proxy: bool,
    pub(super) has_terminal: bool,
    pub(super) cwd: PathBuf,
    pub(super) env: Env,
    pub(super) argv: Vec<OsString>,
}

impl Task {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut words = Writer::default();
        words.count(self.overlays.len());
        for Overlay {
            place,
            lower,
            layer,
        } in &self.overlays
        {
            words.paths([place, lower, &layer.upper, &layer.work]);
        }
        words.count(self.mounts.len());
        self.mounts.iter().for_each(|mount| words.mount(mount));
        words.count(self.files.len());
        for (path, content) in &self.files {
            words.word(path);
            words.word(content);
        }
        words.limit(self.temporary_bytes);
        words.limit(self.processes);
        words.flag(self.has_network);
        words.flag(self.has_proxy);
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
        let overlays = words.list(Reader::overlay)?;
        let mounts = words.list(Reader::mount)?;
        let files = words.list(|words| Some((words.path()?, words.word()?)))?;
        let limit = |number| (number != NO_LIMIT).then_some(number);
        let (temporary_bytes, processes) = (limit(words.number()?), limit(words.number()?));
        let (has_network, has_proxy) = (words.flag()?, words.flag()?);
        let has_terminal = words.flag()?;
        let cwd = words.path()?;
        let mut env = Env::default();
        for (name, value) in words.list(|words| Some((words.word()?, words.word()?)))? {
            env.set(name, value);
        }
        let argv = words.list(Reader::word)?;
        let is_all = words.bytes.is_empty();
        is_all.then_some(Self {
            overlays,
            mounts,
            files,
            temporary_bytes,
            processes,
            has_network,
            has_proxy,
            has_terminal,
            cwd,
            env,
            argv,
        })
    }
}

/// How the absence of a limit is written.
const NO_LIMIT: u64 = u64::MAX;

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

    fn limit(&mut self, limit: Option<u64>) {
        self.bytes.extend(limit.unwrap_or(NO_LIMIT).to_ne_bytes());
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
            Mount::At(from, path) => {
                tagged(6, path);
                self.word(from);
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

    fn number(&mut self) -> Option<u64> {
        let (number, rest) = self.bytes.split_first_chunk()?;
        self.bytes = rest;
        Some(u64::from_ne_bytes(*number))
    }

    fn count(&mut self) -> Option<usize> {
        self.number()?.try_into().ok()
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

    fn overlay(&mut self) -> Option<Overlay> {
        let (place, lower) = (self.path()?, self.path()?);
        Some(Overlay {
            place,
            lower,
            layer: View {
                upper: self.path()?,
                work: self.path()?,
            },
        })
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
            6 => Mount::At(self.path()?, path),
            _ => return None,
        })
    }
}

/// The last word of the helpers.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Report {
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
            overlays: vec![Overlay {
                place: path("/t"),
                lower: path("/l"),
                layer: View {
                    upper: path("/u"),
                    work: path("/w"),
                },
            }],
            mounts: vec![
                Mount::ReadOnly(path("/usr")),
                Mount::Writable(path("/t")),
                Mount::Private(path("/tmp")),
                Mount::EmptyFolder(path("/t/a")),
                Mount::EmptyFile(path("/t/b")),
                Mount::Link(path("usr/bin"), path("/bin")),
                Mount::At(path("/sys/c"), path("/c")),
            ],
            files: vec![(path("/etc/hosts"), "127.0.0.1 localhost\n".into())],
            temporary_bytes: Some(1 << 40),
            processes: None,
            has_network: true,
            has_proxy: false,
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
        let sent = Task {
            overlays: Vec::new(),
            mounts: Vec::new(),
            ..task()
        };
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
