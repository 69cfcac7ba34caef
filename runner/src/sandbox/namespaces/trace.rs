//! Records which paths and addresses a command cannot reach, by tracing it: the first process stops it at the
//! system calls that name one (a filter selects them, seccomp(2)) and records those that fail.
//!
//! A traced command is slower. Another of its threads may change a name in memory while it is read, so the record only
//! says what is worth trying.

use std::collections::{BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::FileExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Component, Path, PathBuf};
use std::process::{Child, ExitCode, ExitStatus};

use libc::c_long;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::Signal;
use nix::unistd::Pid;
use rustix::process::{WaitOptions, WaitStatus, getpid, kill_process, wait, waitpid};

mod calls;

use calls::Does::{Opens, Reads, Writes};
use calls::Names::{Address, Below, Whole};
use calls::{Call, calls};

use super::task::Report;
use crate::Denied;
use crate::program::program;
use crate::sandbox::helper;
use crate::sandbox::launch::plainly;
use crate::sandbox::seccomp::{self, Sockets};

/// What a path may have, with its zero (`PATH_MAX`).
const LONGEST_PATH: usize = 4096;
/// `struct sockaddr_in6`; others are shorter, or lead to no network.
const LONGEST_ADDRESS: usize = 28;
/// Further ones are not recorded.
const MOST: usize = 20_000;

/// A program that waits to be traced, and becomes the command.
pub(in crate::sandbox) fn traced(mut words: impl Iterator<Item = OsString>) -> ExitCode {
    let Some(name) = words.next() else {
        return ExitCode::FAILURE;
    };
    let ready = || {
        let filters = seccomp::filters(Sockets::Allowed)?;
        kill_process(getpid(), rustix::process::Signal::STOP).map_err(|error| error.to_string())?;
        seccomp::install(&[seccomp::tracing(calls().map(|(number, ..)| number))?])?;
        seccomp::install(&filters)
    };
    let code = match ready() {
        Ok(()) => program(name).args(words).exec().raw_os_error(),
        Err(_) => None,
    };
    // As a shell would say it.
    ExitCode::from(if code == Some(libc::ENOENT) { 127 } else { 126 })
}

/// The program that will become this one.
pub(super) fn around(name: &OsStr) -> std::process::Command {
    let mut traced = program("/proc/self/exe");
    traced.arg0(helper::TRACED).arg(name);
    traced
}

/// Follows the command to its end, and writes to the file of the task what it asked for in vain.
pub(super) fn follow(child: &Child, file: &File) -> Report {
    let mut trace = Trace::default();
    let report = trace.follow(child).and_then(|report| {
        let words = trace
            .denied
            .iter()
            .flat_map(|(mark, what)| [&[*mark], what.as_bytes(), &[0]].concat());
        file.set_len(0)?;
        file.write_all_at(&[MARK, &words.collect::<Vec<_>>()].concat(), 0)?;
        Ok(report)
    });
    report.unwrap_or_else(|error| Report::Failed(format!("cannot trace the command: {error}")))
}

/// Before that, the task is in the file.
const MARK: &[u8] = b"denied\0";

/// What the first process wrote.
pub(super) fn decode(bytes: &[u8]) -> Vec<Denied> {
    let denied = |word: &[u8]| {
        let (mark, what) = word.split_first()?;
        let path = || PathBuf::from(OsStr::from_bytes(what));
        Some(match mark {
            b'r' => Denied::Read(path()),
            b'w' => Denied::Write(path()),
            b'c' => Denied::Connection(str::from_utf8(what).ok()?.parse().ok()?),
            _ => return None,
        })
    };
    let words = bytes.strip_prefix(MARK).unwrap_or_default();
    words.split(|byte| *byte == 0).filter_map(denied).collect()
}

#[derive(Default)]
struct Trace {
    /// Calls that have begun, by thread.
    open: HashMap<i32, (Call, [u64; 6])>,
    denied: BTreeSet<(u8, OsString)>,
}

impl Trace {
    fn follow(&mut self, child: &Child) -> io::Result<Report> {
        let pid = Pid::from_raw(child.id().cast_signed());
        waitpid(
            rustix::process::Pid::from_raw(pid.as_raw()),
            WaitOptions::UNTRACED,
        )?;
        ptrace::seize(pid, Options::all() & following())?;
        nix::sys::signal::kill(pid, Signal::SIGCONT)?;
        // Threads are children, too.
        let all = WaitOptions::from_bits_retain(libc::__WALL.cast_unsigned());
        loop {
            let Some((thread, status)) = wait(all).or_else(again)? else {
                continue;
            };
            let thread = Pid::from_raw(thread.as_raw_pid());
            if !status.stopped() {
                self.open.remove(&thread.as_raw());
                if thread == pid {
                    return Ok(Report::Ended(plainly(ExitStatus::from_raw(
                        status.as_raw(),
                    ))));
                }
                continue;
            }
            // It may have been killed meanwhile.
            let _ = self.stopped(thread, status);
        }
    }

    fn stopped(&mut self, thread: Pid, status: WaitStatus) -> nix::Result<()> {
        let (event, signal) = (
            status.as_raw() >> 16,
            status.stopping_signal().unwrap_or_default(),
        );
        if event == libc::PTRACE_EVENT_SECCOMP {
            if let Some((number, arguments, _)) = registers(thread)
                && let Some(call) = calls().find(|(known, ..)| *known == number)
            {
                self.open.insert(thread.as_raw(), (call, arguments));
                return ptrace::syscall(thread, None);
            }
            return ptrace::cont(thread, None);
        }
        if signal == libc::SIGTRAP | CALL {
            if let Some((call, arguments)) = self.open.remove(&thread.as_raw())
                && self.denied.len() < MOST
            {
                self.denied.extend(
                    registers(thread)
                        .and_then(|(.., result)| denied(thread, call, arguments, result)),
                );
            }
            return ptrace::cont(thread, None);
        }
        // An event has no signal for the command, and a real-time signal none that can be named.
        ptrace::cont(thread, Signal::try_from(signal).ok().filter(|_| event == 0))
    }
}

/// Set in the signal of a stop at a system call.
const CALL: i32 = 0x80;

fn following() -> Options {
    Options::PTRACE_O_TRACESYSGOOD
        | Options::PTRACE_O_TRACESECCOMP
        | Options::PTRACE_O_TRACEFORK
        | Options::PTRACE_O_TRACEVFORK
        | Options::PTRACE_O_TRACECLONE
        | Options::PTRACE_O_TRACEEXEC
        | Options::PTRACE_O_EXITKILL
}

fn again<T>(error: rustix::io::Errno) -> rustix::io::Result<Option<T>> {
    if error == rustix::io::Errno::INTR {
        Ok(None)
    } else {
        Err(error)
    }
}

/// The number of the call, its arguments, and its result.
#[cfg(target_arch = "x86_64")]
fn registers(thread: Pid) -> Option<(c_long, [u64; 6], i64)> {
    let all = ptrace::getregs(thread).ok()?;
    let arguments = [all.rdi, all.rsi, all.rdx, all.r10, all.r8, all.r9];
    Some((all.orig_rax.cast_signed(), arguments, all.rax.cast_signed()))
}

#[cfg(target_arch = "aarch64")]
fn registers(thread: Pid) -> Option<(c_long, [u64; 6], i64)> {
    let all = ptrace::getregs(thread).ok()?.regs;
    Some((
        all[8].cast_signed(),
        [all[0], all[1], all[2], all[3], all[4], all[5]],
        all[0].cast_signed(),
    ))
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn registers(_: Pid) -> Option<(c_long, [u64; 6], i64)> {
    None
}

/// What the call named, if the sandbox may be why it failed.
fn denied(
    thread: Pid,
    (_, names, does): Call,
    arguments: [u64; 6],
    result: i64,
) -> Option<(u8, OsString)> {
    let error = i32::try_from(-result).ok()?;
    let argument = |at: usize| arguments.get(at).copied().unwrap_or_default();
    let of_address = |at| {
        let bytes = memory(thread, argument(at), LONGEST_ADDRESS)?;
        matches!(
            error,
            libc::ENETUNREACH | libc::ECONNREFUSED | libc::EPERM | libc::EACCES
        )
        .then_some(())?;
        Some((b'c', address(&bytes)?.into()))
    };
    let (at, folder) = match names {
        Address(at) => return of_address(at),
        Whole(at) => (at, None),
        Below(at) => (at, Some(argument(at - 1))),
    };
    let writes = match does {
        Reads => false,
        Writes => true,
        Opens(flags) => {
            argument(flags) & u64::from((libc::O_ACCMODE | libc::O_CREAT).cast_unsigned()) != 0
        }
    };
    let mark = match error {
        libc::ENOENT | libc::EACCES if !writes => b'r',
        // There is no file either for a new one in a folder that is hidden.
        libc::EROFS | libc::ENOENT => b'w',
        libc::EACCES | libc::EPERM if writes => b'w',
        _ => return None,
    };
    Some((
        mark,
        absolute(thread, &path(thread, argument(at))?, folder)?.into(),
    ))
}

/// What is in the memory of a stopped thread; less at the end of a mapping.
fn memory(thread: Pid, at: u64, most: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; most];
    let count = File::open(format!("/proc/{thread}/mem"))
        .ok()?
        .read_at(&mut bytes, at)
        .ok()?;
    bytes.truncate(count);
    Some(bytes)
}

fn path(thread: Pid, at: u64) -> Option<PathBuf> {
    let mut bytes = memory(thread, at, LONGEST_PATH)?;
    bytes.truncate(bytes.iter().position(|byte| *byte == 0)?);
    (!bytes.is_empty()).then(|| OsString::from_vec(bytes).into())
}

/// Without `..`, which may lead anywhere.
fn absolute(thread: Pid, path: &Path, folder: Option<u64>) -> Option<PathBuf> {
    // The current folder has a negative number.
    let here = match folder.and_then(|folder| i32::try_from(folder).ok()) {
        Some(folder) => format!("fd/{folder}"),
        None => "cwd".to_owned(),
    };
    let base = || std::fs::read_link(format!("/proc/{thread}/{here}"));
    let whole = if path.is_absolute() {
        path.to_owned()
    } else {
        base().ok()?.join(path)
    };
    let is_plain = !whole.components().any(|part| part == Component::ParentDir);
    (is_plain && whole.is_absolute()).then_some(whole)
}

/// `struct sockaddr_in` or `sockaddr_in6` (ip(7), ipv6(7)), as text.
fn address(bytes: &[u8]) -> Option<String> {
    let part = |from: usize, to: usize| bytes.get(from..to);
    let port = u16::from_be_bytes(part(2, 4)?.try_into().ok()?);
    match i32::from(u16::from_ne_bytes(part(0, 2)?.try_into().ok()?)) {
        libc::AF_INET => {
            let four: [u8; 4] = part(4, 8)?.try_into().ok()?;
            Some(std::net::SocketAddr::from((four, port)).to_string())
        }
        libc::AF_INET6 => {
            let sixteen: [u8; 16] = part(8, 24)?.try_into().ok()?;
            Some(std::net::SocketAddr::from((sixteen, port)).to_string())
        }
        _ => None,
    }
}
