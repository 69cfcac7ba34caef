//! Descriptors for a launcher: files in memory that it inherits, and whatever a socket brings.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{MemfdFlags, SeekFrom, memfd_create, seek};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};

/// A file with these bytes. Programs get it only after [`inherit`].
pub(crate) fn memory_file(name: &str, bytes: &[u8]) -> io::Result<OwnedFd> {
    let mut file = File::from(memfd_create(name, MemfdFlags::CLOEXEC)?);
    file.write_all(bytes)?;
    seek(&file, SeekFrom::Start(0))?;
    Ok(file.into())
}

/// From now on, every started program inherits these files. That includes programs that another
/// thread starts in the meantime, and keys in the files; this is acceptable, because such a program
/// runs outside the sandbox (only this crate sets up sandboxes, one command at a time) and could
/// read our memory anyway.
pub(super) fn inherit(files: &[OwnedFd]) -> io::Result<()> {
    files
        .iter()
        .try_for_each(|file| fcntl_setfd(file, FdFlags::empty()).map_err(io::Error::from))
}

/// The argument by which a launcher is told the descriptor.
pub(super) fn number(file: &OwnedFd) -> String {
    file.as_raw_fd().to_string()
}

pub(super) const MOST_DESCRIPTORS: usize = 3;

pub(super) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )?)
}

/// Sends descriptors to the other end of a socket.
pub(super) fn send_descriptors(
    socket: BorrowedFd<'_>,
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut message = SendAncillaryBuffer::new(&mut space);
    message.push(SendAncillaryMessage::ScmRights(descriptors));
    sendmsg(
        socket,
        &[IoSlice::new(b"+")],
        &mut message,
        SendFlags::NOSIGNAL,
    )?;
    Ok(())
}

/// Receives what [`send_descriptors`] sent.
pub(super) fn descriptors(socket: BorrowedFd<'_>) -> io::Result<Vec<OwnedFd>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut message = RecvAncillaryBuffer::new(&mut space);
    recvmsg(
        socket,
        &mut [IoSliceMut::new(&mut [0])],
        &mut message,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    let received = message.drain().filter_map(|part| match part {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        RecvAncillaryMessage::ScmCredentials(_) | _ => None,
    });
    Ok(received.flatten().collect())
}
