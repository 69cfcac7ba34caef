//! A network that can be cut.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

/// Passes connections on to an address, until it is cut. The threads end with the test's process.
#[derive(Debug)]
pub struct Cable {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    is_cut: bool,
    open: Vec<TcpStream>,
}

impl Cable {
    /// A cable to `host:port`.
    pub fn to(target: String) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let (address, state) = (listener.local_addr()?, Arc::<Mutex<State>>::default());
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for near in listener.incoming().flatten() {
                // A peer that cannot be reached looks to the other like one that hangs up.
                let _ = pass(&near, &target, &shared);
            }
        });
        Ok(Self { address, state })
    }

    /// This end of it.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends all connections and lets no new ones through, or lets them through again.
    pub fn cut(&self, is_cut: bool) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.is_cut = is_cut;
        for stream in state.open.drain(..) {
            // It may have ended by itself.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

fn pass(near: &TcpStream, target: &str, state: &Mutex<State>) -> io::Result<()> {
    let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
    if state.is_cut {
        return Ok(());
    }
    let far = TcpStream::connect(target)?;
    for (from, to) in [(near, &far), (&far, near)] {
        let (mut from, mut to) = (from.try_clone()?, to.try_clone()?);
        state.open.push(from.try_clone()?);
        std::thread::spawn(move || {
            let _ = io::copy(&mut from, &mut to);
            let _ = to.shutdown(Shutdown::Write);
        });
    }
    Ok(())
}
