//! Accepts callers: a limited number at once, each for a limited time.

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use code_commit_runner::Cancel;

use super::ports::Ports;
use crate::phase::request::{Answer, Desk, Request};

/// Callers served at once; others wait in the socket's queue.
const CALLERS: usize = 32;
/// Longer requests are refused.
const LONGEST_REQUEST: u64 = 1 << 20;
/// A caller that neither sends nor receives for this long is disconnected.
const PATIENCE: Duration = Duration::from_secs(30);
/// Pause after a failed accept: there may be no file descriptor left, and retrying at once would be a busy
/// loop.
const PAUSE: Duration = Duration::from_millis(100);

/// The socket and the desk that it serves.
pub(super) struct Door {
    listener: UnixListener,
    desk: Desk,
    cancel: Cancel,
    patience: Duration,
    /// Opened before a caller gets its answer: it may use the server that its command has started.
    ports: Option<Arc<Ports>>,
}

impl Door {
    pub(super) fn new(desk: Desk, cancel: Cancel) -> io::Result<Self> {
        Ok(Self {
            listener: UnixListener::bind(&desk.socket)?,
            desk,
            cancel,
            patience: PATIENCE,
            ports: None,
        })
    }

    pub(super) fn with_ports(self, ports: Option<Arc<Ports>>) -> Self {
        Self { ports, ..self }
    }

    /// Serves callers from now on. All threads are started here, so none can fail to start later.
    pub(super) fn open(self) -> io::Result<()> {
        let door = Arc::new(self);
        for _ in 0..CALLERS {
            let door = Arc::clone(&door);
            thread::Builder::new().spawn(move || door.attend_to_all())?;
        }
        Ok(())
    }

    fn attend_to_all(&self) {
        loop {
            match self.listener.accept() {
                Ok((stream, _)) => self.attend(&stream),
                Err(_) if self.cancel.wait(PAUSE) => return,
                Err(_) => {}
            }
        }
    }

    /// Serves one caller. One that leaves early only loses its answer.
    fn attend(&self, mut stream: &UnixStream) {
        let mut answer = match self.request(stream) {
            Ok(request) => self.desk.answer(&request.argv, &self.cancel),
            Err(_) => Answer {
                code: 125,
                output: "abl-cmd: that was no request\n".to_owned(),
            },
        };
        if let Some(ports) = &self.ports {
            ports.follow();
            answer.output += &ports.unreachable();
        }
        let _ = serde_json::to_vec(&answer).map(|bytes| stream.write_all(&bytes));
    }

    fn request(&self, stream: &UnixStream) -> io::Result<Request> {
        stream.set_read_timeout(Some(self.patience))?;
        stream.set_write_timeout(Some(self.patience))?;
        let mut text = String::new();
        stream.take(LONGEST_REQUEST).read_to_string(&mut text)?;
        Ok(serde_json::from_str(&text)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Shutdown;
    use std::path::PathBuf;

    /// An open door with this timeout, and its path.
    fn door(patience: Duration) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("desk");
        let specs = [(1, "# Phase 1: A\n".to_owned())].into();
        let desk = Desk {
            socket: socket.clone(),
            specs,
            ..Desk::default()
        };
        Door {
            patience,
            ..Door::new(desk, Cancel::new().unwrap()).unwrap()
        }
        .open()
        .unwrap();
        (folder, socket)
    }

    /// A caller with a timeout.
    fn caller(socket: &PathBuf) -> UnixStream {
        let stream = UnixStream::connect(socket).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        stream
    }

    fn ask(mut stream: &UnixStream) {
        stream.write_all(br#"{"argv":["get-spec","1"]}"#).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
    }

    fn answer(mut stream: &UnixStream) -> (u8, String) {
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let Answer { code, output } = serde_json::from_str(&text).unwrap();
        (code, output)
    }

    #[test]
    fn a_caller_that_says_nothing_is_sent_away() {
        let (_folder, socket) = door(Duration::from_millis(50));
        assert_eq!(
            answer(&caller(&socket)),
            (125, "abl-cmd: that was no request\n".to_owned())
        );
    }

    #[test]
    fn a_caller_too_many_waits_until_another_has_gone() {
        let (_folder, socket) = door(PATIENCE);
        let mut silent: Vec<_> = (0..CALLERS).map(|_| caller(&socket)).collect();
        let last = caller(&socket);
        ask(&last);
        last.set_nonblocking(true).unwrap();
        let early = (&last).read(&mut [0]).map_err(|error| error.kind());
        assert_eq!(early, Err(io::ErrorKind::WouldBlock));
        last.set_nonblocking(false).unwrap();
        silent.pop();
        assert_eq!(answer(&last), (0, "# Phase 1: A\n".to_owned()));
    }

    #[test]
    fn where_the_system_gives_no_caller_the_desk_waits_until_it_is_closed() {
        let folder = tempfile::tempdir().unwrap();
        let desk = Desk {
            socket: folder.path().join("desk"),
            ..Desk::default()
        };
        let cancel = Cancel::new().unwrap();
        let door = Door::new(desk, cancel.clone()).unwrap();
        // Without a caller, each accept fails at once.
        door.listener.set_nonblocking(true).unwrap();
        let waits = thread::spawn(move || door.attend_to_all());
        cancel.set();
        waits.join().unwrap();
    }
}
