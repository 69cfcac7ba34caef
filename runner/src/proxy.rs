//! A proxy that lets a command without a network reach the hosts that the user named, and nothing else.
//!
//! The command's side of it is a socket that listens on the loopback of the sandbox. It was made there and sent
//! out to the harness, so that nothing has to run inside. The proxy speaks `CONNECT` and plain HTTP, and resolves
//! names itself: the command gets no answers of a name server. A name that leads into a network of the host's is
//! refused; whoever wants that names the address. TLS in a tunnel must name the host for which the tunnel was asked.

use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::net::{
    IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs as _,
};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use serde::{Deserialize, Serialize};

mod request;
mod tunnel;

use request::{Request, authority, head};
use tunnel::{Begun, begin};

/// A host that a command may reach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllowedHost {
    /// A name in lower case, or an address.
    pub name: String,
    /// `None` means those of HTTPS and HTTP.
    pub port: Option<u16>,
}

impl AllowedHost {
    /// `HOST`, `HOST:PORT`, or the same with an IPv6 address in brackets.
    pub fn parse(text: &str) -> Option<Self> {
        authority(text).map(|(name, port)| Self { name, port })
    }

    fn is(&self, name: &str, port: u16) -> bool {
        let is_port = self.port.map_or(matches!(port, 443 | 80), |own| own == port);
        is_port && self.name == name
    }
}

/// How long a connection and the head of a request may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// More connections at once are closed.
const MOST: usize = 256;
/// The answer of a TLS server that does not know the name: a fatal `unrecognized_name` (RFC 8446 §6).
const WRONG_NAME: [u8; 7] = [21, 3, 3, 0, 2, 2, 112];

/// A proxy that runs until it is dropped.
pub(crate) struct Proxy {
    #[expect(dead_code, reason = "closed when dropped, which ends the proxy")]
    stop: PipeWriter,
}

impl Proxy {
    /// Serves the listener that `wait` gives, unless the proxy is dropped first.
    pub(crate) fn start(
        hosts: Vec<AllowedHost>,
        wait: impl FnOnce(&dyn Fn(BorrowedFd<'_>) -> bool) -> Option<TcpListener> + Send + 'static,
    ) -> io::Result<Self> {
        let (end, stop) = io::pipe()?;
        let serve = move || {
            if let Some(listener) = wait(&|other| is_ready(other, &end)) {
                serve(&listener, &end, &Arc::new(hosts));
            }
        };
        thread::Builder::new().name("proxy".to_owned()).spawn(serve)?;
        Ok(Self { stop })
    }
}

/// Waits for `other`; false if the proxy is to end.
fn is_ready(other: BorrowedFd<'_>, end: &PipeReader) -> bool {
    let end = end.as_fd();
    let mut both = [PollFd::new(&other, PollFlags::IN), PollFd::new(&end, PollFlags::IN)];
    while poll(&mut both, None) == Err(rustix::io::Errno::INTR) {}
    let [other, end] = both;
    end.revents().is_empty() && !other.revents().is_empty()
}

fn serve(listener: &TcpListener, end: &PipeReader, hosts: &Arc<Vec<AllowedHost>>) {
    let open = Arc::new(AtomicUsize::new(0));
    while is_ready(listener.as_fd(), end) {
        let Ok((client, _)) = listener.accept() else { continue };
        if open.fetch_add(1, Ordering::Relaxed) >= MOST {
            open.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let (hosts, left) = (Arc::clone(hosts), Arc::clone(&open));
        let work = move || {
            // Whatever fails, both ends are closed, and the command sees that.
            let _ = connection(client, &hosts);
            left.fetch_sub(1, Ordering::Relaxed);
        };
        if thread::Builder::new().spawn(work).is_err() {
            open.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// One connection of the command, to its end.
fn connection(mut client: TcpStream, hosts: &[AllowedHost]) -> io::Result<()> {
    client.set_read_timeout(Some(PATIENCE))?;
    let (bytes, rest) = head(&mut client)?;
    let Some(request) = Request::parse(&bytes) else {
        return client.write_all(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
    };
    if !hosts.iter().any(|host| host.is(&request.host, request.port)) {
        return refuse(&mut client, &format!("{} is not an allowed host", request.place()));
    }
    let mut server = match reach(&request.host, request.port) {
        Ok(server) => server,
        Err(error) => return refuse(&mut client, &format!("{}: {error}", request.place())),
    };
    client.set_read_timeout(None)?;
    match &request.forward {
        Some(head) => server.write_all(head)?,
        None => client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?,
    }
    join(&client, &server, || {
        if request.forward.is_some() {
            return (&server).write_all(&rest);
        }
        match begin(&mut rest.chain(&client), &request)? {
            Begun::Passes(bytes) => return (&server).write_all(&bytes),
            Begun::OtherHost => (&client).write_all(&WRONG_NAME)?,
            Begun::NoTls => {
                refuse(&mut &client, &format!("a tunnel to {} is for TLS only", request.place()))?;
            }
        }
        Err(io::ErrorKind::PermissionDenied.into())
    })
}

fn refuse(client: &mut impl io::Write, why: &str) -> io::Result<()> {
    let body = format!("code-commit: {why}\n");
    let length = body.len();
    write!(
        client,
        "HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}

/// Connects to a host that is allowed. A name may not lead to an address that only the host reaches; an address
/// was named by the user.
fn reach(host: &str, port: u16) -> io::Result<TcpStream> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return TcpStream::connect_timeout(&SocketAddr::new(address, port), PATIENCE);
    }
    let mut failed = io::Error::other("the name leads to no address outside of this machine's networks");
    for address in (host, port).to_socket_addrs()?.filter(|address| is_public(address.ip())) {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            // An address of this machine's own.
            Ok(stream) if stream.local_addr()?.ip() == address.ip() => {}
            Ok(stream) => return Ok(stream),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

/// Copies in both directions until one of them ends: a command that is gone must leave no connection. `first` sends the
/// beginning to the server, unless it is refused; a server may speak before that.
fn join(
    mut client: &TcpStream,
    mut server: &TcpStream,
    first: impl FnOnce() -> io::Result<()>,
) -> io::Result<()> {
    let (mut from_server, mut to_client) = (server.try_clone()?, client.try_clone()?);
    let back = thread::Builder::new().spawn(move || {
        // An error is an end, too.
        let _ = io::copy(&mut from_server, &mut to_client);
        let _ = to_client.shutdown(Shutdown::Both);
    })?;
    let _ = first().and_then(|()| io::copy(&mut client, &mut server));
    let _ = server.shutdown(Shutdown::Both);
    let _ = back.join();
    Ok(())
}

/// Whether an address is one of the whole internet (the IANA special-purpose registries).
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let is_special = address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_documentation()
        || matches!((a, b, c), (0 | 240..=255, _, _) | (100, 64..=127, _) | (198, 18 | 19, _) | (192, 0, 0));
    !is_special
}

/// Only what the registries have given out for the internet, without the ways to reach IPv4 through it.
fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, ..] = address.segments();
    let is_tunnel = a == 0x2002 || (a, b) == (0x2001, 0);
    a & 0xe000 == 0x2000 && !is_tunnel && (a, b) != (0x2001, 0xdb8)
}

#[cfg(test)]
mod tests;
