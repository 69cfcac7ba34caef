//! The sandbox around the commands: what they start lives as long as the role's turn, and no longer.
//!
//! Two desks serve, both of this program. The one outside has the socket that the role sees; it ends when its
//! harness closes it or dies, and with it the sandbox and everything in it. The one inside runs the commands. What
//! they run is the builder's code, which may do what it likes to the desk beside it: so it is the desk outside
//! that prints specs, and nothing that the role uses is in the sandbox.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::{fs, thread};

use code_commit_runner::{Cancel, Command, Confinement, Output, RunError, run};
use rustix::fs::{FileType, Mode, OFlags, fstat};

use super::door::Door;
use super::ports::{self, Ports};
use crate::phase::request::{Answer, DESK, Desk, FAILED, READY, Request, Side, WITHOUT_VIEW};

/// Longer answers of the desk inside are refused.
const LONGEST_ANSWER: u64 = 1 << 20;

/// Serves outside, and keeps a desk in the sandbox, until `input` ends. Where the system allows no view of the
/// source, the source is read-only.
pub(super) fn serve_around(
    desk: Desk,
    mut confinement: Confinement,
    mut input: impl Read + Send,
    mut answer: impl Write,
) -> io::Result<()> {
    let cancel = Cancel::new()?;
    let folder = code_commit_runner::temporary_folder(Path::new("/tmp"))?;
    let [bin, own, orders] = ["bin", "own", "desk.json"].map(|name| folder.path().join(name));
    fs::create_dir(&bin)?;
    fs::create_dir(&own)?;
    symlink(std::env::current_exe()?, bin.join(DESK))?;
    confinement.access.readable.push(bin.clone());
    confinement.access.writable.push(own.clone());
    let inner = Desk {
        socket: own.join("desk"),
        side: Side::Inside,
        ..desk.clone()
    };
    code_commit_dir::replace(&orders, &serde_json::to_vec(&inner)?)?;
    let command = Command {
        input: Some(orders),
        ..Command::new([bin.join(DESK)], &desk.cwd, desk.env())
    };
    // With the machine's network, the role finds servers without help.
    let ports =
        (!confinement.access.network).then(|| Arc::new(Ports::new(own.join(ports::SOCKET))));
    let outside = Desk {
        side: Side::Outside(inner.socket),
        ..desk
    };
    Door::new(outside, cancel.clone())?
        .with_ports(ports.clone())
        .open()?;
    thread::scope(|scope| {
        if let Some(ports) = &ports {
            scope.spawn(|| {
                while !cancel.wait(ports::PAUSE) {
                    ports.follow();
                }
            });
        }
        scope.spawn(|| {
            let _ = io::copy(&mut input, &mut io::sink());
            cancel.set();
        });
        let mut served = serve(&command, &confinement, &cancel, &mut answer);
        if matches!(served, Err(RunError::View { .. })) {
            confinement.access.view = None;
            confinement
                .access
                .read_only
                .push(confinement.access.tree.clone());
            writeln!(answer, "{WITHOUT_VIEW}")?;
            served = serve(&command, &confinement, &cancel, &mut answer);
        }
        let why = match served {
            Ok(_) if cancel.is_set() => return Ok(()),
            Ok(output) => format!("it {}: {}", output.ended, output.text()),
            Err(error) => error.to_string(),
        };
        // The harness waits for a word.
        writeln!(answer, "{FAILED}{}", why.replace('\n', " "))?;
        answer.flush()
    })
}

fn serve(
    command: &Command,
    confinement: &Confinement,
    cancel: &Cancel,
    answer: &mut impl Write,
) -> Result<Output, RunError> {
    run(command, confinement, cancel, &mut |_, bytes| {
        if bytes.trim_ascii() == READY.as_bytes() {
            let _ = answer.write_all(bytes).and_then(|()| answer.flush());
        }
    })
}

/// Has the desk inside run a command.
pub(super) fn ask(socket: &Path, argv: &[String]) -> Answer {
    try_ask(socket, argv).unwrap_or_else(|error| Answer {
        code: 125,
        output: format!("abl-cmd: no answer: {error}\n"),
    })
}

/// Commands may have put anything in the place of the socket: a symlink would lead to a daemon of the machine.
pub(super) fn connect(socket: &Path) -> io::Result<UnixStream> {
    let handle = rustix::fs::open(
        socket,
        OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    if FileType::from_raw_mode(fstat(&handle)?.st_mode) != FileType::Socket {
        return Err(io::Error::other("its socket is gone"));
    }
    UnixStream::connect(format!("/proc/self/fd/{}", handle.as_raw_fd()))
}

fn try_ask(socket: &Path, argv: &[String]) -> io::Result<Answer> {
    let mut stream = connect(socket)?;
    serde_json::to_writer(
        &mut stream,
        &Request {
            argv: argv.to_vec(),
        },
    )?;
    stream.shutdown(Shutdown::Write)?;
    let mut text = Vec::new();
    stream.take(LONGEST_ANSWER).read_to_end(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn nothing_but_a_socket_is_asked() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let daemon = UnixListener::bind(at("daemon")).unwrap();
        daemon.set_nonblocking(true).unwrap();
        symlink(at("daemon"), at("link")).unwrap();
        code_commit_dir::replace(&at("file"), b"").unwrap();
        for name in ["link", "file", "missing"] {
            assert_eq!(ask(&at(name), &["x".to_owned()]).code, 125, "{name}");
        }
        assert!(daemon.accept().is_err(), "nobody has called");
    }
}
