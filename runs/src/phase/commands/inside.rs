//! The process in the sandbox of the commands. What it runs is the builder's code, which may do what it likes to this
//! process and to its socket: the harness believes nothing that it says.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::net::{Ipv4Addr, Ipv6Addr, Shutdown, TcpStream};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use code_commit_runner::{Cancel, Command, Confinement, Env, Leftovers, Limits, run};
use code_commit_settings::Environment;
use rustix::fs::{FileType, Mode, OFlags, fstat};
use serde::{Deserialize, Serialize};

use super::{Answer, READY, send};

/// Bytes to pass on from each end of a command's output.
const SHOWN_BYTES: usize = 32 << 10;

/// What the harness asks for, on a connection each.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Ask {
    /// Run a command: an [`Answer`].
    Run {
        argv: Vec<String>,
        cwd: PathBuf,
        timeout: Duration,
    },
    /// Which ports have a listener: a list.
    Ports,
    /// Connect to a port: its bytes, both ways.
    Connect { port: u16 },
}

/// Runs commands for the first caller, the harness, until it is gone; then ends what they left running. Says when it is
/// ready. Commands get the whole environment. Gives the exit code of its process.
pub fn serve(socket: &Path, environment: &Environment, ready: impl Write) -> u8 {
    let mut env = Env::default();
    let variables = environment.all().iter();
    variables.for_each(|(name, value)| env.set(name, value));
    u8::from(try_serve(socket, &env, ready).is_err())
}

fn try_serve(socket: &Path, env: &Env, mut ready: impl Write) -> io::Result<()> {
    let listener = UnixListener::bind(socket)?;
    writeln!(ready, "{READY}")?;
    ready.flush()?;
    let (mut harness, _) = listener.accept()?;
    let cancel = Cancel::new()?;
    let (env, for_commands) = (env.clone(), cancel.clone());
    thread::Builder::new().spawn(move || {
        for stream in listener.incoming().flatten() {
            let (env, cancel) = (env.clone(), for_commands.clone());
            // Without a thread for it, the connection is closed.
            let _ = thread::Builder::new().spawn(move || attend(&stream, env, &cancel));
        }
    })?;
    io::copy(&mut harness, &mut io::sink())?;
    cancel.set();
    // By now running commands have been ended, and waiting ones are no longer started.
    let _none_at_work = at_work();
    code_commit_runner::sweep();
    Ok(())
}

/// Held while a command is started and runs: one at a time.
fn at_work() -> MutexGuard<'static, ()> {
    static AT_WORK: Mutex<()> = Mutex::new(());
    AT_WORK.lock().unwrap_or_else(PoisonError::into_inner)
}

fn attend(stream: &UnixStream, env: Env, cancel: &Cancel) -> io::Result<()> {
    let mut asked = serde_json::Deserializer::from_reader(stream).into_iter();
    match asked.next().ok_or(io::ErrorKind::UnexpectedEof)?? {
        Ask::Run { argv, cwd, timeout } => {
            let command = Command {
                deadline: Some(timeout),
                ..Command::new(argv, cwd, env)
            };
            send(stream, &run_command(command, cancel))
        }
        Ask::Ports => send(stream, &listening()),
        Ask::Connect { port } => {
            let server = TcpStream::connect((Ipv4Addr::LOCALHOST, port))
                .or_else(|_| TcpStream::connect((Ipv6Addr::LOCALHOST, port)))?;
            relay(stream, &server)
        }
    }
}

pub(super) fn run_command(command: Command, cancel: &Cancel) -> Answer {
    let command = Command {
        limits: Limits {
            head_bytes: SHOWN_BYTES,
            tail_bytes: SHOWN_BYTES,
            ..Limits::default()
        },
        leftovers: Leftovers::Keep,
        ..command
    };
    let _at_work = at_work();
    match run(&command, &Confinement::off(), cancel, &mut |_, _| {}) {
        Ok(output) => {
            let (mut text, ended) = (output.text(), output.ended);
            if ended.exit_code().is_none() {
                text += &format!("\nabl-cmd: the command {ended}\n");
            }
            Answer::new(ended.shell_code(), text)
        }
        Err(error) => Answer::new(125, format!("abl-cmd: {error}\n")),
    }
}

/// The ports on which somebody in this network listens (`proc_net_tcp(5)`).
fn listening() -> BTreeSet<u16> {
    let tables = ["tcp", "tcp6"].map(|name| fs::read_to_string(format!("/proc/self/net/{name}")));
    let tables = tables.iter().flatten();
    tables
        .flat_map(|table| table.lines().skip(1).filter_map(listener))
        .collect()
}

/// `  0: 0100007F:1F90 00000000:0000 0A …`: number, own address, the other's, state.
fn listener(line: &str) -> Option<u16> {
    let mut fields = line.split_ascii_whitespace().skip(1);
    let (address, state) = (fields.next()?, fields.nth(1)?);
    let (_, port) = address.rsplit_once(':')?;
    u16::from_str_radix(port, 16).ok().filter(|_| state == "0A")
}

/// Passes bytes on, both ways, until both sides have ended.
pub(super) fn relay(mut local: &UnixStream, mut tcp: &TcpStream) -> io::Result<()> {
    thread::scope(|scope| {
        thread::Builder::new().spawn_scoped(scope, || {
            let _ = io::copy(&mut &*local, &mut &*tcp);
            let _ = tcp.shutdown(Shutdown::Write);
        })?;
        let _ = io::copy(&mut tcp, &mut local);
        local.shutdown(Shutdown::Write)
    })
}

/// Connects to the process in the sandbox. Commands may have put anything in the place of its socket: a symlink would
/// lead to a daemon of the machine.
pub(super) fn connect(socket: &Path) -> io::Result<UnixStream> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let handle = rustix::fs::open(socket, flags, Mode::empty())?;
    if FileType::from_raw_mode(fstat(&handle)?.st_mode) != FileType::Socket {
        return Err(io::Error::other("its socket no longer exists"));
    }
    UnixStream::connect(format!("/proc/self/fd/{}", handle.as_raw_fd()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

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
            assert!(connect(&at(name)).is_err(), "{name}");
        }
        assert!(daemon.accept().is_err(), "nobody has called");
    }

    #[test]
    fn a_port_is_read_from_the_line_of_a_listener_only() {
        let table = [
            "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 1 1 0 100 0 0 10 0",
            "   1: 0100007F:1F91 0100007F:D431 01 00000000:00000000 00:00000000 00000000  1000        0 1 1 0 100 0 0 10 0",
            "   2: 00000000000000000000000001000000:0050 00000000000000000000000000000000:0000 0A 0:0 0:0 0 0 0 1",
            "",
        ];
        assert_eq!(table.map(listener), [Some(8080), None, Some(80), None]);
    }

    #[test]
    fn a_port_on_which_somebody_listens_is_found() {
        let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = server.local_addr().unwrap().port();
        assert!(listening().contains(&port));
    }
}
