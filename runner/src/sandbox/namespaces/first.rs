//! The first process in the namespaces: builds the root folder, gives up its rights, starts the command, and
//! reaps what loses its parent. When it ends, the kernel ends everything in the process namespace.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _};
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::os::fd::{AsFd as _, OwnedFd};
use std::process::{Child, ExitCode};

use rustix::fs::{fstat, stat};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};
use rustix::process::{
    DumpableBehavior, Resource, Rlimit, Signal, WaitOptions, getrlimit, set_dumpable_behavior,
    set_parent_process_death_signal, setrlimit, setsid, wait,
};
use rustix::system::sethostname;
use rustix::thread::{
    CapabilitySet, clear_ambient_capability_set, remove_capability_from_bounding_set,
};

use super::mounts::{during, mount_all};
use super::root;
use super::task::{Report, Task};
use crate::procfs::Process;
use crate::program::program;
use crate::proxy::HOST_NAME;
use crate::sandbox::descriptors::{descriptors, send_descriptors};
use crate::sandbox::landlock::{keep_capabilities, leave_abstract_sockets};
use crate::sandbox::seccomp::{self, Sockets};

/// Runs as the first process, with the outer helper's process ID as argument.
pub(in crate::sandbox) fn first(mut words: impl Iterator<Item = OsString>) -> ExitCode {
    let outer = words.next().and_then(|word| word.to_str()?.parse().ok());
    let report = match set_up(outer) {
        Ok((task, stdin)) => match start(&task, stdin) {
            Ok(child) => follow(&child),
            Err(error) => Report::NotStarted(error.raw_os_error().unwrap_or(libc::EINVAL)),
        },
        Err(report) => report,
    };
    tell(&report);
    ExitCode::SUCCESS
}

/// Sends the report to the harness, whose socket is standard input. If it is gone, nobody needs it.
pub(super) fn tell(report: &Report) {
    let report = postcard::to_stdvec(report).unwrap_or_default();
    let _ = send(io::stdin(), &report, SendFlags::NOSIGNAL);
}

fn set_up(outer: Option<i32>) -> Result<(Task, OwnedFd), Report> {
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(during("stay with the helper"))?;
    // From here the parent has no number, but it has one in the `/proc` of its own namespace.
    if Process::parent_of_self() != outer {
        return Err(Report::Failed("the helper is gone".to_owned()));
    }
    let (mut task, stdin, proxy) = receive()?;
    mount_all(&task.overlays)?;
    root::enter(&task)?;
    if let Some(processes) = task.processes {
        limit_tasks(processes)?;
    }
    if task.has_network {
        leave_abstract_sockets().map_err(io::Error::other)?;
    } else {
        bring_up_loopback().map_err(|error| {
            io::Error::new(error.kind(), format!("cannot make a loopback: {error}"))
        })?;
    }
    if let Some(socket) = proxy {
        let names = UdpSocket::bind((Ipv4Addr::LOCALHOST, NAME_SERVER))?;
        let listener = task
            .has_proxy
            .then(|| listen_for_proxy(&mut task))
            .transpose()?;
        let both = [
            Some(names.as_fd()),
            listener.as_ref().map(|one| one.as_fd()),
        ];
        let sockets: Vec<_> = both.into_iter().flatten().collect();
        send_descriptors(socket.as_fd(), &sockets)?;
    }
    sethostname(HOST_NAME.as_bytes()).map_err(during("name the machine"))?;
    if !task.has_terminal {
        // No terminal, so that nothing can type into it from inside.
        setsid().map_err(during("leave the terminal"))?;
    }
    std::env::set_current_dir(&task.cwd).map_err(|error| {
        io::Error::other(format!("cannot work in {}: {error}", task.cwd.display()))
    })?;
    let stdin = if is_nothing(&stdin)? {
        File::open(NOTHING)?.into()
    } else {
        stdin
    };
    drop_rights()?;
    let filters = seccomp::filters(Sockets::Allowed).map_err(io::Error::other)?;
    seccomp::install(&filters).map_err(io::Error::other)?;
    Ok((task, stdin))
}

/// The port of a name server (RFC 1035 §4.2).
const NAME_SERVER: u16 = 53;
/// The loopback, which is down at first, is the first interface of every network namespace.
const LOOPBACK: u32 = 1;
const RTM_NEWLINK: u16 = 16;
/// `NLM_F_REQUEST | NLM_F_ACK`
const REQUEST: u16 = 1 | 4;
const UP: u32 = 1;

/// Asks the kernel to bring the loopback up, in 32 bytes: `nlmsghdr` and `ifinfomsg` (rtnetlink(7)).
fn bring_up_loopback() -> io::Result<()> {
    let socket = socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        None,
    )?;
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
    let code = answer
        .get(16..20)
        .and_then(|bytes| bytes.try_into().ok())
        .map_or(0, i32::from_ne_bytes);
    if code == 0 {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(-code))
    }
}

/// The device that is empty. The harness's descriptor of it is not on a read-only mount: through that, root could
/// change the mode of the host's.
const NOTHING: &str = "/dev/null";

fn is_nothing(file: &OwnedFd) -> io::Result<bool> {
    let (file, nothing) = (fstat(file)?, stat(NOTHING)?);
    Ok((file.st_mode, file.st_rdev) == (nothing.st_mode, nothing.st_rdev))
}

/// The task, and the command's standard input; and the socket of the proxy, if there is no network.
fn receive() -> io::Result<(Task, OwnedFd, Option<OwnedFd>)> {
    let mut received = descriptors(io::stdin().as_fd())?.into_iter();
    let (Some(task), Some(stdin)) = (received.next(), received.next()) else {
        return Err(io::Error::other("the harness sent no task"));
    };
    let mut bytes = Vec::new();
    File::from(task).read_to_end(&mut bytes)?;
    let task = Task::decode(&bytes)
        .ok_or_else(|| io::Error::other("the program was replaced while it ran"))?;
    Ok((task, stdin, received.next()))
}

/// Listens for the proxy, which is outside, and tells the command. By the names that programs look up: some know
/// only those in lower case.
fn listen_for_proxy(task: &mut Task) -> io::Result<TcpListener> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let proxy = format!("http://{}", listener.local_addr()?);
    for name in ["HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy"] {
        task.env.set(name, &proxy);
    }
    // Java and Maven read no such variables.
    let port = listener.local_addr()?.port();
    for scheme in ["http", "https"] {
        let options = format!("-D{scheme}.proxyHost=127.0.0.1 -D{scheme}.proxyPort={port}");
        task.env.add_option("JAVA_TOOL_OPTIONS", &options);
    }
    task.env.add_option(
        "JAVA_TOOL_OPTIONS",
        "-Daether.connector.http.useSystemProperties=true",
    );
    for name in ["NO_PROXY", "no_proxy"] {
        task.env.set(name, "localhost,127.0.0.1,::1");
    }
    Ok(listener)
}

/// The harness counts processes from time to time, and ends a command that has too many. This keeps a fork bomb
/// from filling the machine in between. The kernel counts threads as well, and by this limit only those of users
/// other than root.
fn limit_tasks(processes: u64) -> io::Result<()> {
    let most = processes.saturating_mul(8);
    let now = getrlimit(Resource::Nproc);
    let most = [Some(most), now.current, now.maximum]
        .into_iter()
        .flatten()
        .min();
    setrlimit(
        Resource::Nproc,
        Rlimit {
            current: most,
            maximum: most,
        },
    )
    .map_err(during("limit processes"))
}

/// As root, what a process may do depends on its capabilities and on its user ID. The first are all given up
/// here, for good; for the second, nothing that root owns is writable.
fn drop_rights() -> io::Result<()> {
    clear_ambient_capability_set().map_err(during("drop rights"))?;
    for one in CapabilitySet::all().iter() {
        match remove_capability_from_bounding_set(one) {
            // An older kernel does not know the newest.
            Ok(()) | Err(rustix::io::Errno::INVAL) => {}
            Err(error) => return Err(during("drop rights")(error)),
        }
    }
    let none = CapabilitySet::empty();
    keep_capabilities(none, none).map_err(during("drop rights"))?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(during("hide the helper"))
}

fn start(task: &Task, stdin: OwnedFd) -> io::Result<Child> {
    let (name, arguments) = task.argv.split_first().ok_or(io::ErrorKind::NotFound)?;
    program(name)
        .args(arguments)
        .env_clear()
        .envs(task.env.iter())
        .stdin(stdin)
        .spawn()
}

fn follow(child: &Child) -> Report {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid.as_raw_pid().cast_unsigned() == child.id() => {
                return Report::Ended(status.as_raw());
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Report::Failed(format!("cannot follow the command: {error}")),
        }
    }
}
