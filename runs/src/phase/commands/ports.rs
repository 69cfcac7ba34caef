//! The ports of servers that commands leave running: reachable on the machine's loopback, where the role is, although
//! the commands have a network of their own.
//!
//! Connections are only made into the sandbox. What runs there can listen, and nothing else: the harness decides which
//! ports it opens, and believes nothing about them.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use super::inside::{Ask, connect, relay};
use super::{exchange, send};

/// Others belong to the system.
const LOWEST: u16 = 1024;
const MOST_PORTS: usize = 64;
/// Connections at once, so that descriptors never run out.
const MOST_CONNECTIONS: usize = 100;
/// The process in the sandbox may be in the hands of what it runs.
const PATIENCE: Duration = Duration::from_secs(5);

/// The ports of one turn.
pub(super) struct Ports {
    /// Of the process in the sandbox.
    inside: PathBuf,
    /// Held by each connection.
    connections: Arc<()>,
    /// `None` once they are closed for good.
    by_number: Mutex<Option<BTreeMap<u16, Port>>>,
}

#[derive(Default)]
struct Port {
    /// None if another program of the machine has the port.
    listeners: Vec<Listener>,
    /// Whether the role knows that.
    is_told: bool,
}

impl Ports {
    pub(super) fn new(inside: PathBuf) -> Self {
        Self {
            inside,
            connections: Arc::default(),
            by_number: Mutex::new(Some(BTreeMap::new())),
        }
    }

    fn ports(&self) -> MutexGuard<'_, Option<BTreeMap<u16, Port>>> {
        self.by_number
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the ports of new servers and closes those of servers that have ended.
    pub(super) fn follow(&self) {
        let Ok(listed) = self.list() else { return };
        let mut ports = self.ports();
        let Some(ports) = &mut *ports else { return };
        ports.retain(|port, _| listed.contains(port));
        for port in listed {
            let is_open = |port: &Port| !port.listeners.is_empty();
            if ports.get(&port).is_some_and(is_open) {
                continue;
            }
            match self.open(port) {
                Ok(listeners) => ports.entry(port).or_default().listeners = listeners,
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                    ports.entry(port).or_default();
                }
                // The next look may have more luck.
                Err(_) => {}
            }
        }
    }

    /// The servers that cannot be reached, once each.
    pub(super) fn unreachable(&self) -> String {
        let mut text = String::new();
        for (port, state) in self.ports().iter_mut().flatten() {
            if state.listeners.is_empty() && !std::mem::replace(&mut state.is_told, true) {
                text += &format!(
                    "abl-cmd: another program of this machine uses port {port}: the server of a command there cannot be reached\n"
                );
            }
        }
        text
    }

    /// For good: the turn is over.
    pub(super) fn close(&self) {
        *self.ports() = None;
    }

    fn list(&self) -> io::Result<Vec<u16>> {
        let stream = connect(&self.inside)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut listed: Vec<u16> = exchange(&stream, &Ask::Ports)?;
        listed.retain(|port| *port >= LOWEST);
        listed.truncate(MOST_PORTS);
        Ok(listed)
    }

    fn open(&self, port: u16) -> io::Result<Vec<Listener>> {
        let first = self.listen(Ipv4Addr::LOCALHOST.into(), port)?;
        // A machine need not have IPv6.
        let second = self.listen(Ipv6Addr::LOCALHOST.into(), port);
        Ok([first].into_iter().chain(second).collect())
    }

    fn listen(&self, ip: IpAddr, port: u16) -> io::Result<Listener> {
        let listener = Arc::new(TcpListener::bind((ip, port))?);
        let (accepts, inside) = (Arc::clone(&listener), self.inside.clone());
        let connections = Arc::downgrade(&self.connections);
        thread::Builder::new().spawn(move || {
            loop {
                let caller = match accepts.accept() {
                    Ok((caller, _)) => caller,
                    Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                    Err(_) => return,
                };
                let (inside, held) = (inside.clone(), connections.upgrade());
                // At the limit, or without a thread for it, the connection is closed.
                if connections.strong_count() <= MOST_CONNECTIONS + 1 {
                    let _ = thread::Builder::new().spawn(move || {
                        let passed = pass_on(port, &inside, &caller);
                        drop(held);
                        passed
                    });
                }
            }
        })?;
        Ok(Listener(listener))
    }
}

fn pass_on(port: u16, inside: &std::path::Path, caller: &TcpStream) -> io::Result<()> {
    let stream = connect(inside)?;
    send(&stream, &Ask::Connect { port })?;
    relay(&stream, caller)
}

/// A port of the machine; closed when dropped.
struct Listener(Arc<TcpListener>);

impl Drop for Listener {
    fn drop(&mut self) {
        // Ends the thread that accepts.
        let _ = rustix::net::shutdown(&*self.0, rustix::net::Shutdown::Both);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::UnixListener;

    use super::*;

    /// A process in the sandbox that lists these ports, and says `inside` to whoever wants a connection.
    fn inside(listed: BTreeSet<u16>) -> (tempfile::TempDir, Ports) {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("socket");
        let listener = UnixListener::bind(&socket).unwrap();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let stream = stream.unwrap();
                let mut asked = serde_json::Deserializer::from_reader(&stream).into_iter();
                match asked.next().unwrap().unwrap() {
                    Ask::Ports => send(&stream, &listed).unwrap(),
                    Ask::Connect { .. } => (&stream).write_all(b"inside").unwrap(),
                    Ask::Run { .. } => panic!("nobody runs anything"),
                }
            }
        });
        (folder, Ports::new(socket))
    }

    fn said(port: u16) -> io::Result<String> {
        let mut said = String::new();
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.read_to_string(&mut said).map(|_| said)
    }

    /// A port that is free for now.
    fn free() -> TcpListener {
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap()
    }

    fn open(ports: &Ports) -> Vec<u16> {
        let ports = ports.ports();
        let all = ports.iter().flatten();
        let open = all.filter(|(_, state)| !state.listeners.is_empty());
        open.map(|(port, _)| *port).collect()
    }

    #[test]
    fn a_port_is_open_as_long_as_its_server_listens_and_no_port_of_the_system_ever_is() {
        let other = free();
        let taken = other.local_addr().unwrap().port();
        let port = free().local_addr().unwrap().port();
        let (folder, ports) = inside([22, taken, port].into());
        ports.follow();
        ports.follow();
        assert_eq!(said(port).unwrap(), "inside");
        let expected = format!(
            "abl-cmd: another program of this machine uses port {taken}: the server of a command there cannot be reached\n"
        );
        assert_eq!(ports.unreachable(), expected);
        assert_eq!(ports.unreachable(), "", "it is said once");
        assert_eq!(open(&ports), [port]);
        // The process in the sandbox answers no more: what was open stays.
        std::fs::remove_file(folder.path().join("socket")).unwrap();
        ports.follow();
        assert_eq!(open(&ports), [port]);
        let accepting = Arc::downgrade(&ports.ports().as_ref().unwrap()[&port].listeners[0].0);
        ports.close();
        said(port).unwrap_err();
        while accepting.strong_count() > 0 {
            thread::yield_now();
        }
    }

    #[test]
    fn however_many_ports_are_said_to_be_open_a_few_are_believed() {
        let (_folder, ports) = inside((1..=u16::MAX).collect());
        assert_eq!(ports.list().unwrap().len(), MOST_PORTS);
    }
}
