//! Moves a command's output to memory and to the caller, until the command is over.

use std::io::PipeReader;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::capture::Capture;
use crate::usage::Watch;
use crate::wait::now;
use crate::{Apart, Cancel, Captured, Ended, Limits, RunError, Stream};

/// The capacity of a pipe: the maximum that the system allows. Node.js programs write to a pipe
/// without waiting, and lose what has not been read when they exit.
pub(crate) const PIPE_BYTES: usize = 1 << 20;

/// Why the command is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    Exited,
    TimedOut,
    TooMuchOutput,
    Interrupted,
    /// It used more of the machine than it may.
    Exceeded(Ended),
}

/// The sources of output and their destinations.
pub(crate) struct Pump<'a> {
    sources: Vec<Source>,
    kept: Kept<'a>,
    /// The read buffer, reused for every read.
    buffer: Vec<u8>,
}

/// One stream: its pipe (until end of file) and the part kept in memory.
struct Source {
    stream: Stream,
    pipe: Option<PipeReader>,
    capture: Capture,
}

/// What all streams share.
struct Kept<'a> {
    all: Capture,
    room_bytes: u64,
    live: &'a mut dyn FnMut(Stream, &[u8]),
}

/// Whether more output may follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Room {
    Left,
    UsedUp,
}

impl<'a> Pump<'a> {
    pub(crate) fn new(limits: Limits, live: &'a mut dyn FnMut(Stream, &[u8])) -> Self {
        let all = Capture::new(limits.head_bytes, limits.tail_bytes);
        let kept = Kept {
            all,
            room_bytes: limits.output_bytes,
            live,
        };
        Self {
            sources: Vec::new(),
            kept,
            buffer: Vec::with_capacity(1 << 16),
        }
    }

    /// Adds a stream; the command has the other end of `pipe`.
    pub(crate) fn add(&mut self, stream: Stream, pipe: PipeReader, limits: Limits) {
        let capture = Capture::new(limits.head_bytes, limits.tail_bytes);
        self.sources.push(Source {
            stream,
            pipe: Some(pipe),
            capture,
        });
    }

    /// Moves output until the command is over; `handle` becomes readable when it has exited.
    pub(crate) fn run(
        &mut self,
        handle: BorrowedFd<'_>,
        cancel: &Cancel,
        end: Option<Instant>,
        mut watch: Watch<'_>,
    ) -> Result<Stop, RunError> {
        loop {
            let left = end.map(|end| end.saturating_duration_since(now()));
            if cancel.is_set() {
                return Ok(Stop::Interrupted);
            }
            if left == Some(Duration::ZERO) {
                return Ok(Stop::TimedOut);
            }
            if let Some(ended) = watch.look() {
                return Ok(Stop::Exceeded(ended));
            }
            let next = left.into_iter().chain(watch.left()).min();
            let ready = self.wait(&[handle, cancel.as_fd()], next)?;
            if ready.first() == Some(&true) {
                return Ok(Stop::Exited);
            }
            if self.take(ready.get(2..).unwrap_or_default())? == Room::UsedUp {
                return Ok(Stop::TooMuchOutput);
            }
        }
    }

    /// Reads what is still in the pipes of a command that has ended: at least as much as they can
    /// hold, however long that takes, then until all are closed or `end` has passed. Surviving
    /// processes may hold the pipes open and keep writing.
    pub(crate) fn drain(&mut self, end: Instant) -> Result<Room, RunError> {
        let (room, held) = (
            self.kept.room_bytes,
            (self.sources.len() * PIPE_BYTES) as u64,
        );
        while self.sources.iter().any(|source| source.pipe.is_some()) {
            let left = end.saturating_duration_since(now());
            let is_late = left == Duration::ZERO;
            if is_late && room.saturating_sub(self.kept.room_bytes) >= held {
                break;
            }
            let ready = self.wait(&[], Some(left))?;
            if is_late && !ready.contains(&true) {
                break;
            }
            if self.take(&ready)? == Room::UsedUp {
                return Ok(Room::UsedUp);
            }
        }
        Ok(Room::Left)
    }

    /// Keeps the remaining pipes open until nobody writes to them any more, and discards the
    /// output: a process that writes to a closed pipe would be killed.
    pub(crate) fn hear_out(&mut self) {
        for mut pipe in self
            .sources
            .iter_mut()
            .filter_map(|source| source.pipe.take())
        {
            // If no thread can be started, the pipe is closed now.
            let _ = std::thread::Builder::new()
                .spawn(move || std::io::copy(&mut pipe, &mut std::io::sink()));
        }
    }

    pub(crate) fn text(&self) -> String {
        self.kept.all.clone().finish().text()
    }

    /// What was kept: of all streams together, and of each stream if there is more than one.
    pub(crate) fn finish(self) -> (Captured, Option<Apart>) {
        let is_apart = self.sources.len() > 1;
        let mut apart = Apart::default();
        for source in self.sources {
            match source.stream {
                Stream::Out => apart.out = source.capture.finish(),
                Stream::Err => apart.err = source.capture.finish(),
            }
        }
        (self.kept.all.finish(), is_apart.then_some(apart))
    }

    /// Waits for any of `others` or of the open pipes; returns in order which are ready.
    fn wait(
        &self,
        others: &[BorrowedFd<'_>],
        left: Option<Duration>,
    ) -> Result<Vec<bool>, RunError> {
        let pipes = self
            .sources
            .iter()
            .filter_map(|source| source.pipe.as_ref());
        let mut all: Vec<_> = others
            .iter()
            .map(|other| PollFd::new(other, PollFlags::IN))
            .collect();
        all.extend(pipes.map(|pipe| PollFd::new(pipe, PollFlags::IN)));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut all, left.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(all.iter().map(|fd| !fd.revents().is_empty()).collect()),
            Err(error) => Err(RunError::wait(error)),
        }
    }

    /// Reads once from every open pipe that is ready.
    fn take(&mut self, ready: &[bool]) -> Result<Room, RunError> {
        let open = self
            .sources
            .iter_mut()
            .filter(|source| source.pipe.is_some());
        for (source, _) in open.zip(ready).filter(|(_, ready)| **ready) {
            if source.take(&mut self.buffer, &mut self.kept)? == Room::UsedUp {
                return Ok(Room::UsedUp);
            }
        }
        Ok(Room::Left)
    }
}

impl Source {
    fn take(&mut self, buffer: &mut Vec<u8>, kept: &mut Kept<'_>) -> Result<Room, RunError> {
        let Some(pipe) = &mut self.pipe else {
            return Ok(Room::Left);
        };
        buffer.clear();
        let count = match rustix::io::read(pipe, spare_capacity(buffer)) {
            Ok(count) => count,
            Err(Errno::INTR) => return Ok(Room::Left),
            Err(error) => return Err(RunError::wait(error)),
        };
        if count == 0 {
            self.pipe = None;
            return Ok(Room::Left);
        }
        let allowed = usize::try_from(kept.room_bytes)
            .unwrap_or(usize::MAX)
            .min(count);
        let bytes = buffer.get(..allowed).unwrap_or_default();
        self.keep(bytes, kept);
        Ok(if allowed < count {
            Room::UsedUp
        } else {
            Room::Left
        })
    }

    fn keep(&mut self, bytes: &[u8], kept: &mut Kept<'_>) {
        self.capture.push(bytes);
        kept.all.push(bytes);
        kept.room_bytes = kept.room_bytes.saturating_sub(bytes.len() as u64);
        (kept.live)(self.stream, bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// The number of bytes read from a pipe that holds `written`, if draining starts after the time
    /// is over.
    fn drained_late<W>(written: &[u8], then: impl FnOnce(std::io::PipeWriter) -> W) -> u64 {
        let (reader, mut writer) = std::io::pipe().unwrap();
        rustix::pipe::fcntl_setpipe_size(&writer, PIPE_BYTES).unwrap();
        writer.write_all(written).unwrap();
        let _writer = then(writer);
        let mut ignore = |_: Stream, _: &[u8]| {};
        let mut pump = Pump::new(Limits::default(), &mut ignore);
        pump.add(Stream::Out, reader, Limits::default());
        assert_eq!(pump.drain(now()).unwrap(), Room::Left);
        pump.finish().0.total_bytes
    }

    #[test]
    fn what_a_pipe_holds_when_its_command_ends_is_taken_however_late_it_is() {
        let all = vec![b'x'; PIPE_BYTES];
        assert_eq!(drained_late(&all, drop), PIPE_BYTES as u64);
    }

    #[test]
    fn a_pipe_that_is_held_open_is_not_waited_for_once_it_is_late() {
        assert_eq!(drained_late(b"said", |writer| writer), 4);
    }
}
