//! A proxy that lets a command without a network reach the hosts that the user named, and nothing else.
//!
//! The command's side of it is a socket that listens on the loopback of the sandbox. It was made there and sent
//! out to the harness, so that nothing has to run inside. The proxy speaks `CONNECT` and plain HTTP, and resolves
//! names itself: what the command asks a name server for does not exist, but is listed as well. A name that leads into a network of the host's is
//! refused, unless the user named the address with it. What was refused is listed for the user. TLS in a tunnel must name the host for which the tunnel was asked.

use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::net::{
    IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs as _,
    UdpSocket,
};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};

mod allowed;
mod request;
mod resolver;
mod tunnel;

pub use allowed::{AddressRange, AllowedHost, Refusal, RefusedHost};
use request::{Request, head};
use tunnel::{Begun, begin};

/// The name of the machine in a sandbox with namespaces; it resolves to the loopback.
pub(crate) const HOST_NAME: &str = "code-commit";
/// How long a connection and the head of a request may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// More connections at once are closed.
const MOST: usize = 256;
/// How many refused hosts are listed.
const MOST_REFUSED: usize = 32;
/// The answer of a TLS server that does not know the name: a fatal `unrecognized_name` (RFC 8446 §6).
const WRONG_NAME: [u8; 7] = [21, 3, 3, 0, 2, 2, 112];

/// A proxy that runs until it is dropped.
pub(crate) struct Proxy {
    #[expect(dead_code, reason = "closed when dropped, which ends the proxy")]
    stop: PipeWriter,
    rules: Arc<Rules>,
}

/// What is allowed, and what was refused.
struct Rules {
    hosts: Vec<AllowedHost>,
    refused: Mutex<Vec<RefusedHost>>,
}

impl Rules {
    /// Lists it, unless it is listed already, and tells the command.
    fn refuse(
        &self,
        client: &mut impl io::Write,
        request: &Request,
        why: Refusal,
    ) -> io::Result<()> {
        let body = format!("code-commit: {}: {why}\n", request.place());
        self.note(request, why);
        let length = body.len();
        write!(
            client,
            "HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        )
    }

    fn note(&self, request: &Request, why: Refusal) {
        let mut all = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let new = RefusedHost::new(request, why)
            .filter(|new| all.len() < MOST_REFUSED && !all.contains(new));
        all.extend(new);
    }
}

impl Proxy {
    /// Serves the sockets that `wait` gives, unless the proxy is dropped first: for queries for names, and the listener of
    /// the proxy if single hosts are allowed.
    pub(crate) fn start(
        hosts: Vec<AllowedHost>,
        wait: impl FnOnce(&dyn Fn(BorrowedFd<'_>) -> bool) -> Option<Vec<OwnedFd>> + Send + 'static,
    ) -> io::Result<Self> {
        let (end, stop) = io::pipe()?;
        let rules = Arc::new(Rules {
            hosts,
            refused: Mutex::default(),
        });
        let own = Arc::clone(&rules);
        let serve = move || {
            let sockets = wait(&|other| is_ready(other, &end)).unwrap_or_default();
            let mut sockets = sockets.into_iter();
            let names = sockets.next().map(UdpSocket::from);
            let listener = sockets.next().map(TcpListener::from);
            thread::scope(|scope| {
                if let Some(listener) = &listener {
                    // Without a thread, nothing is reached, and the command sees that.
                    let _ =
                        thread::Builder::new().spawn_scoped(scope, || serve(listener, &end, &own));
                }
                // A command that gets no answer goes on without.
                let _ = names.map(|names| resolver::serve(&names, &end, &own));
            });
        };
        thread::Builder::new()
            .name("proxy".to_owned())
            .spawn(serve)?;
        Ok(Self { stop, rules })
    }

    /// The hosts that were refused so far, in the order of the first time.
    pub(crate) fn refused(&self) -> Vec<RefusedHost> {
        self.rules
            .refused
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// Waits for `other`; false if the proxy is to end.
fn is_ready(other: BorrowedFd<'_>, end: &PipeReader) -> bool {
    let end = end.as_fd();
    let mut both = [
        PollFd::new(&other, PollFlags::IN),
        PollFd::new(&end, PollFlags::IN),
    ];
    while poll(&mut both, None) == Err(rustix::io::Errno::INTR) {}
    let [other, end] = both;
    end.revents().is_empty() && !other.revents().is_empty()
}

fn serve(listener: &TcpListener, end: &PipeReader, rules: &Arc<Rules>) {
    let open = Arc::new(AtomicUsize::new(0));
    while is_ready(listener.as_fd(), end) {
        let Ok((client, _)) = listener.accept() else {
            continue;
        };
        if open.fetch_add(1, Ordering::Relaxed) >= MOST {
            open.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let (rules, left) = (Arc::clone(rules), Arc::clone(&open));
        let work = move || {
            // Whatever fails, both ends are closed, and the command sees that.
            let _ = connection(client, &rules);
            left.fetch_sub(1, Ordering::Relaxed);
        };
        if thread::Builder::new().spawn(work).is_err() {
            open.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// One connection of the command, to its end.
fn connection(mut client: TcpStream, rules: &Rules) -> io::Result<()> {
    client.set_read_timeout(Some(PATIENCE))?;
    let (bytes, rest) = head(&mut client)?;
    let Some(request) = Request::parse(&bytes) else {
        return client.write_all(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
    };
    let mut server = match reach(&request, &rules.hosts) {
        Ok(server) => server,
        Err(why) => return rules.refuse(&mut client, &request, why),
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
            Begun::OtherHost => {
                rules.note(&request, Refusal::Tls);
                (&client).write_all(&WRONG_NAME)?;
            }
            Begun::NoTls => rules.refuse(&mut &client, &request, Refusal::Tls)?,
        }
        Err(io::ErrorKind::PermissionDenied.into())
    })
}

/// Connects to a host that is allowed. A name may lead to an address that only the host reaches if the user named that
/// as well; an address was named by the user.
fn reach(request: &Request, hosts: &[AllowedHost]) -> Result<TcpStream, Refusal> {
    let Request {
        host: name, port, ..
    } = request;
    let allowed: Vec<&AllowedHost> = hosts.iter().filter(|host| host.is(name, *port)).collect();
    if allowed.is_empty() {
        return Err(Refusal::NotAllowed);
    }
    let failed = |error: io::Error| Refusal::Unreachable(error.to_string());
    if let Ok(address) = name.parse::<IpAddr>() {
        return TcpStream::connect_timeout(&SocketAddr::new(address, *port), PATIENCE)
            .map_err(failed);
    }
    let is_named = |address| {
        allowed
            .iter()
            .any(|host| host.range.is_some_and(|range| range.has(address)))
    };
    let may_be_public = allowed.iter().any(|host| host.range.is_none());
    let mut why = Refusal::NotAllowed;
    for address in (name.as_str(), *port).to_socket_addrs().map_err(failed)? {
        let ip = address.ip();
        // Not an address of this machine's own.
        let is_apart = |stream: &TcpStream| stream.local_addr().is_ok_and(|own| own.ip() != ip);
        let is_open = is_named(ip) || (may_be_public && is_public(ip));
        why = match is_open.then(|| TcpStream::connect_timeout(&address, PATIENCE)) {
            Some(Ok(stream)) if is_named(ip) || is_apart(&stream) => return Ok(stream),
            None | Some(Ok(_)) => Refusal::Address(ip),
            Some(Err(error)) => failed(error),
        };
    }
    Err(why)
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
        || matches!(
            (a, b, c),
            (0 | 240..=255, _, _) | (100, 64..=127, _) | (198, 18 | 19, _) | (192, 0, 0)
        );
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
