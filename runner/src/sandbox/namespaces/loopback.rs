//! The loopback of a new network namespace, which is down at first.

use std::io;

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with};

/// The loopback is the first interface of every network namespace.
const LOOPBACK: u32 = 1;
const RTM_NEWLINK: u16 = 16;
/// `NLM_F_REQUEST | NLM_F_ACK`
const REQUEST: u16 = 1 | 4;
const UP: u32 = 1;

/// Asks the kernel to bring it up, in 32 bytes: `nlmsghdr` and `ifinfomsg` (rtnetlink(7)).
pub(super) fn up() -> io::Result<()> {
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    let mut message = Vec::with_capacity(32);
    message.extend(32_u32.to_ne_bytes());
    message.extend(RTM_NEWLINK.to_ne_bytes());
    message.extend(REQUEST.to_ne_bytes());
    // Number and sender; family and type of the interface.
    message.extend([0; 12]);
    message.extend(LOOPBACK.to_ne_bytes());
    // The flags, and which of them change.
    message.extend([UP.to_ne_bytes(), UP.to_ne_bytes()].concat());
    send(&socket, &message, SendFlags::empty())?;
    let mut answer = [0; 64];
    recv(&socket, &mut answer, RecvFlags::empty())?;
    // Behind the header: zero, or the error as a negative number.
    let code = answer.get(16..20).and_then(|bytes| bytes.try_into().ok()).map_or(0, i32::from_ne_bytes);
    if code == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(-code)) }
}
