//! What the harness tells the first process, and what that reports.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::Env;
use crate::sandbox::mount::{Mount, Overlay, as_bytes};

/// Everything that the first process needs. It travels in memory: arguments and names of mounts would be visible
/// to every user of the machine, and an argument list has a limit.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Task {
    /// To be mounted first.
    pub(super) overlays: Vec<Overlay>,
    pub(super) mounts: Vec<Mount>,
    /// Files of the sandbox's own, and copies of the host's, with their content.
    pub(super) files: Vec<(OsString, OsString)>,
    /// The size of all private folders together.
    pub(super) temporary_bytes: Option<u64>,
    pub(super) processes: Option<u64>,
    pub(super) has_network: bool,
    /// Whether the command gets a proxy, because single hosts are open.
    pub(super) has_proxy: bool,
    pub(super) has_terminal: bool,
    #[serde(with = "as_bytes")]
    pub(super) cwd: PathBuf,
    pub(super) env: Env,
    pub(super) argv: Vec<OsString>,
}

impl Task {
    /// Fails only if memory is used up.
    pub(super) fn encode(&self) -> io::Result<Vec<u8>> {
        postcard::to_stdvec(self).map_err(io::Error::other)
    }

    /// `None` if it was written by another version: a program that is replaced while it runs.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (task, rest) = postcard::take_from_bytes(bytes).ok()?;
        rest.is_empty().then_some(task)
    }
}

/// The last word of the helpers.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Report {
    /// The command's status, as `wait` gives it.
    Ended(i32),
    /// The system's error when it was to be started.
    NotStarted(i32),
    /// Why there is no view of the tree.
    NoView(String),
    /// Why there is no sandbox.
    Failed(String),
}

impl From<io::Error> for Report {
    fn from(error: io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    use super::*;

    fn task() -> Task {
        let mut env = Env::default();
        env.set("A", "line\nbreak \0 and nul");
        let path = |name: &str| PathBuf::from(name);
        Task {
            overlays: vec![Overlay {
                place: path("/t"),
                lower: path("/l"),
                upper: path("/u"),
                work: path("/w"),
            }],
            mounts: vec![
                Mount::ReadOnly(path("/usr")),
                Mount::Writable(OsStr::from_bytes(b"/t/\xff").into()),
                Mount::Private(path("/tmp")),
                Mount::EmptyFolder(path("/t/a")),
                Mount::EmptyFile(path("/t/b")),
                Mount::Link(path("usr/bin"), path("/bin")),
                Mount::At(path("/sys/c"), path("/c")),
            ],
            files: vec![("/etc/hosts".into(), "127.0.0.1 localhost\n".into())],
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
        assert_eq!(Task::decode(&sent.encode().unwrap()), Some(sent));
        let sent = Task {
            overlays: Vec::new(),
            mounts: Vec::new(),
            ..task()
        };
        assert_eq!(Task::decode(&sent.encode().unwrap()), Some(sent));
    }

    #[test]
    fn a_task_that_is_cut_off_or_longer_is_none() {
        let whole = task().encode().unwrap();
        for end in 0..whole.len() {
            assert_eq!(Task::decode(&whole[..end]), None, "{end}");
        }
        assert_eq!(Task::decode(&[whole, vec![0]].concat()), None);
    }
}
