//! The ports of servers that commands leave running: reachable on the machine's loopback, where the role is, although
//! the commands have a network of their own.
//!
//! Connections are only made into the sandbox. What runs there can listen, and nothing else: the desk outside
//! decides which ports it opens, and believes nothing about them.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use std::{fs, thread};

use super::inside;

/// The name of the socket beside that of the desk inside.
pub(super) const SOCKET: &str = "ports";
/// How often the desk outside looks for new servers while no command ends.
pub(super) const PAUSE: Duration = Duration::from_millis(100);
/// Asks for a list instead of a connection.
const LIST: u16 = 0;
/// Others belong to the system.
const LOWEST: u16 = 1024;
const MOST_PORTS: usize = 64;
/// Connections at once, so that descriptors never run out.
const MOST_CONNECTIONS: usize = 100;
/// The desk inside may be in the hands of what it runs.
const PATIENCE: Duration = Duration::from_secs(5);

/// Serves the desk outside, from inside, as long as this process lives.
pub(super) fn serve(listener: UnixListener) -> io::Result<()> {
    thread::Builder::new().spawn(move || {
        for stream in listener.incoming() {
            // Without a thread for it, the connection is closed.
            let _ = stream.and_then(|stream| thread::Builder::new().spawn(move || attend(stream)));
        }
    })?;
    Ok(())
}

fn attend(mut stream: UnixStream) -> io::Result<()> {
    let mut port = [0; 2];
    stream.read_exact(&mut port)?;
    match u16::from_be_bytes(port) {
        LIST => listening()
            .iter()
            .try_for_each(|port| stream.write_all(&port.to_be_bytes())),
        port => {
            let server = TcpStream::connect((Ipv4Addr::LOCALHOST, port))
                .or_else(|_| TcpStream::connect((Ipv6Addr::LOCALHOST, port)))?;
            relay(stream, server)
        }
    }
}

/// The ports on which somebody in this network listens (`proc_net_tcp(5)`).
fn listening() -> BTreeSet<u16> {
    let tables = ["tcp", "tcp6"].map(|name| fs::read_to_string(format!("/proc/self/net/{name}")));
    tables
        .iter()
        .flatten()
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

/// The desk outside, which opens on the machine's loopback what is open inside.
pub(super) struct Ports {
    socket: PathBuf,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    open: BTreeMap<u16, Vec<Open>>,
    /// Held by each connection.
    connections: Arc<()>,
    /// Ports that another program of the machine has, and whether the role was told.
    taken: BTreeMap<u16, bool>,
}

impl Ports {
    pub(super) fn new(socket: PathBuf) -> Self {
        Self {
            socket,
            state: Mutex::default(),
        }
    }

    /// Opens the ports of new servers and closes those of servers that have ended.
    pub(super) fn follow(&self) {
        let Ok(ports) = self.list() else { return };
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.open.retain(|port, _| ports.contains(port));
        state.taken.retain(|port, _| ports.contains(port));
        for port in ports {
            if state.open.contains_key(&port) {
                continue;
            }
            match self.open(port, &Arc::downgrade(&state.connections)) {
                Ok(open) => {
                    state.taken.remove(&port);
                    state.open.insert(port, open);
                }
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                    state.taken.entry(port).or_insert(false);
                }
                // The next look may have more luck.
                Err(_) => {}
            }
        }
    }

    /// The servers that cannot be reached, once each.
    pub(super) fn unreachable(&self) -> String {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let new = state.taken.iter_mut().filter_map(|(port, is_told)| {
            let was_told = std::mem::replace(is_told, true);
            (!was_told).then(|| {
                format!("abl-cmd: another program of this machine uses port {port}: the server of a command there cannot be reached\n")
            })
        });
        new.collect()
    }

    fn list(&self) -> io::Result<BTreeSet<u16>> {
        let mut stream = inside::connect(&self.socket)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(&LIST.to_be_bytes())?;
        let mut bytes = Vec::new();
        stream.take(1 << 17).read_to_end(&mut bytes)?;
        let ports = bytes
            .as_chunks()
            .0
            .iter()
            .map(|bytes| u16::from_be_bytes(*bytes));
        Ok(ports
            .filter(|port| *port >= LOWEST)
            .take(MOST_PORTS)
            .collect())
    }

    fn open(&self, port: u16, connections: &Weak<()>) -> io::Result<Vec<Open>> {
        let open =
            |ip: IpAddr| Open::new((ip, port).into(), self.socket.clone(), connections.clone());
        let first = open(Ipv4Addr::LOCALHOST.into())?;
        // A machine need not have IPv6.
        Ok([first]
            .into_iter()
            .chain(open(Ipv6Addr::LOCALHOST.into()))
            .collect())
    }
}

/// A port of the machine; closed when dropped.
struct Open(Arc<TcpListener>);

impl Open {
    fn new(address: SocketAddr, socket: PathBuf, connections: Weak<()>) -> io::Result<Self> {
        let listener = Arc::new(TcpListener::bind(address)?);
        let accepts = Arc::clone(&listener);
        let pass_on = move |caller: TcpStream, _held: Arc<()>| -> io::Result<()> {
            let mut inside = inside::connect(&socket)?;
            inside.write_all(&address.port().to_be_bytes())?;
            relay(inside, caller)
        };
        let pass_on = Arc::new(pass_on);
        thread::Builder::new().spawn(move || {
            loop {
                match accepts.accept() {
                    Ok((caller, _)) => {
                        let Some(held) = connections.upgrade() else {
                            return;
                        };
                        let pass_on = Arc::clone(&pass_on);
                        // At the limit, the connection is closed.
                        if Arc::strong_count(&held) <= MOST_CONNECTIONS {
                            let _ = thread::Builder::new().spawn(move || pass_on(caller, held));
                        }
                    }
                    Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                    Err(_) => return,
                }
            }
        })?;
        Ok(Self(listener))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        // Ends the thread that accepts.
        let _ = rustix::net::shutdown(&*self.0, rustix::net::Shutdown::Both);
    }
}

/// Passes bytes on, both ways, until both sides have ended.
fn relay(local: UnixStream, tcp: TcpStream) -> io::Result<()> {
    let (mut from_local, mut to_local) = (local.try_clone()?, local);
    let (mut from_tcp, mut to_tcp) = (tcp.try_clone()?, tcp);
    let there = thread::Builder::new().spawn(move || {
        let _ = io::copy(&mut from_local, &mut to_tcp);
        let _ = to_tcp.shutdown(Shutdown::Write);
    })?;
    let _ = io::copy(&mut from_tcp, &mut to_local);
    let _ = to_local.shutdown(Shutdown::Write);
    let _ = there.join();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

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

    /// A desk inside that lists these ports, and says its name to whoever wants a connection.
    fn inside(ports: &'static [u16]) -> (tempfile::TempDir, Ports) {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join(SOCKET);
        let listener = UnixListener::bind(&socket).unwrap();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (mut stream, mut port) = (stream.unwrap(), [0; 2]);
                stream.read_exact(&mut port).unwrap();
                let bytes: Vec<u8> = ports.iter().flat_map(|port| port.to_be_bytes()).collect();
                let answer = if port == [0; 2] {
                    bytes
                } else {
                    b"inside".to_vec()
                };
                stream.write_all(&answer).unwrap();
            }
        });
        (folder, Ports::new(socket))
    }

    fn said(port: u16) -> io::Result<String> {
        let mut said = String::new();
        TcpStream::connect((Ipv4Addr::LOCALHOST, port))?
            .read_to_string(&mut said)
            .map(|_| said)
    }

    /// A port that is free for now.
    fn free() -> TcpListener {
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap()
    }

    #[test]
    fn a_port_is_open_as_long_as_its_server_listens_and_no_port_of_the_system_ever_is() {
        let taken = free();
        let port = free().local_addr().unwrap().port();
        let ports: &'static [u16] =
            Box::leak(Box::new([22, taken.local_addr().unwrap().port(), port]));
        let (folder, outside) = inside(ports);
        outside.follow();
        outside.follow();
        assert_eq!(said(port).unwrap(), "inside");
        let expected = format!(
            "abl-cmd: another program of this machine uses port {}: the server of a command there cannot be reached\n",
            ports[1]
        );
        assert_eq!(
            (outside.unreachable(), outside.unreachable()),
            (expected, String::new())
        );
        assert_eq!(
            outside
                .state
                .lock()
                .unwrap()
                .open
                .keys()
                .copied()
                .collect::<Vec<_>>(),
            [port]
        );
        // The desk inside answers no more: what was open stays.
        fs::remove_file(folder.path().join(SOCKET)).unwrap();
        outside.follow();
        assert_eq!(outside.state.lock().unwrap().open.len(), 1);
        drop(outside);
        said(port).unwrap_err();
    }

    #[test]
    fn however_many_ports_are_said_to_be_open_a_few_are_believed() {
        let ports: &'static [u16] = (1..=u16::MAX).collect::<Vec<_>>().leak();
        let (_folder, outside) = inside(ports);
        assert_eq!(outside.list().unwrap().len(), MOST_PORTS);
    }
}
