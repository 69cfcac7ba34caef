//! The strongest rung: namespaces set up by bubblewrap, and a seccomp filter inside.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::ExitStatus;

use super::memory::{inherit, memory_file, number};
use super::mounts::{self, Mount};
use super::seccomp::{self, Sockets};
use super::{Access, Aftercare, Launch, by_shell_code, environment, plainly, system_program, view};
use crate::spawn::{Group, program};
use crate::{Command, Ended};

/// Namespaces and rights. `--die-with-parent` refers to the thread that starts bubblewrap; the same
/// thread waits for it.
const ISOLATION: [&str; 10] = [
    "--unshare-user",
    "--unshare-pid",
    "--unshare-ipc",
    "--unshare-uts",
    "--unshare-cgroup-try",
    "--hostname",
    "code-commit",
    "--die-with-parent",
    "--cap-drop",
    "ALL",
];

/// Ctrl-C reaches every process of the terminal, including bubblewrap itself, which would die and
/// take the command with it.
const DEAF_TO_KEYS: &str = "trap '' INT QUIT; exec \"$0\" \"$@\"";
/// Ignored signals stay ignored in child processes, and a shell cannot undo that. If `env` cannot
/// either, a command that reads the terminal key by key still notices Ctrl-C.
const HEARS_KEYS: &str = "env --default-signal=INT,QUIT true 2>/dev/null || exec \"$0\" \"$@\"
exec env --default-signal=INT,QUIT \"$0\" \"$@\"";

pub(super) fn prepare(command: &Command, access: &Access, group: Group) -> Result<Launch, String> {
    mounts::refuse(access)?;
    mounts::make_writable(access)?;
    let fault = |error: io::Error| format!("cannot make a file in memory: {error}");
    let report = memory_file("report", &[]).map_err(fault)?;
    let filter =
        memory_file("filter", &seccomp::bytes(&seccomp::filter(Sockets::Allowed)?)).map_err(fault)?;
    let passwd = memory_file("passwd", accounts(access).as_bytes()).map_err(fault)?;
    let groups = memory_file("group", groups().as_bytes()).map_err(fault)?;

    let mut bwrap = launcher(group)?;
    bwrap.env_clear().envs(environment(command, access).iter()).args(ISOLATION);
    bwrap.args(["--seccomp", &number(&filter), "--json-status-fd", &number(&report)]);
    if !access.network {
        bwrap.arg("--unshare-net");
    }
    if group == Group::Own {
        // No terminal, so that nothing can type into it from inside.
        bwrap.arg("--new-session");
    }
    bwrap.args(["--ro-bind-data", &number(&passwd), "/etc/passwd"]);
    bwrap.args(["--ro-bind-data", &number(&groups), "/etc/group"]);
    bwrap.args(mount_arguments(access));
    bwrap.arg("--chdir").arg(&command.cwd).arg("--");
    if group == Group::Ours {
        bwrap.args(["/bin/sh", "-c", HEARS_KEYS]);
    }
    bwrap.args(&command.argv);

    // A clone to read from, because bubblewrap closes its own copy before the command starts.
    let own = Report { file: report.try_clone().map_err(fault)?.into() };
    let inherited = vec![filter, passwd, groups, report];
    inherit(&inherited).map_err(fault)?;
    let bwrap = match &access.view {
        Some(view) => view::around(view, access, &bwrap),
        None => bwrap,
    };
    let mut launch = Launch::new(bwrap, Aftercare::Bwrap(own));
    launch.inherited = inherited;
    Ok(launch)
}

fn launcher(group: Group) -> Result<std::process::Command, String> {
    let bwrap = system_program("bwrap")?;
    match group {
        Group::Own => Ok(program(bwrap)),
        Group::Ours => {
            let mut shell = program("/bin/sh");
            shell.args(["-c", DEAF_TO_KEYS]).arg(bwrap);
            Ok(shell)
        }
    }
}

fn mount_arguments(access: &Access) -> Vec<OsString> {
    let mut words: Vec<OsString> = Vec::new();
    let mut add = |parts: &[&OsStr]| words.extend(parts.iter().map(OsString::from));
    // Read-only, because even in a namespace of its own the kernel lets root write machine-wide
    // settings (`core_pattern`).
    add(["--proc", "/proc", "--remount-ro", "/proc"].map(OsStr::new).as_slice());
    add(["--dev", "/dev", "--dir", "/run"].map(OsStr::new).as_slice());
    for mount in mounts::plan(access) {
        match &mount {
            Mount::ReadOnly(path) => add(&["--ro-bind".as_ref(), path.as_ref(), path.as_ref()]),
            Mount::Writable(path) => add(&["--bind".as_ref(), path.as_ref(), path.as_ref()]),
            Mount::Private(path) => add(&["--tmpfs".as_ref(), path.as_ref()]),
            Mount::EmptyFolder(path) => {
                add(&["--tmpfs".as_ref(), path.as_ref(), "--remount-ro".as_ref(), path.as_ref()]);
            }
            Mount::EmptyFile(path) => add(&["--ro-bind".as_ref(), "/dev/null".as_ref(), path.as_ref()]),
            Mount::Link(to, path) => add(&["--symlink".as_ref(), to.as_ref(), path.as_ref()]),
        }
    }
    // Otherwise the root is a writable file system in memory.
    add(["--remount-ro", "/"].map(OsStr::new).as_slice());
    words
}

/// Programs look up their own account: just that one, and `nobody`.
fn accounts(access: &Access) -> String {
    let (user, group) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    let home = mounts::home(access).unwrap_or_else(|| Path::new("/tmp").to_owned());
    format!("user:x:{user}:{group}::{}:/bin/sh\nnobody:x:65534:65534::/:/usr/sbin/nologin\n", home.display())
}

fn groups() -> String {
    format!("user:x:{}:\nnogroup:x:65534:\n", rustix::process::getgid().as_raw())
}

/// The file to which bubblewrap reports the result: one JSON document per line.
pub(crate) struct Report {
    file: File,
}

/// Why the command was not started, in one line.
pub(super) enum NotStarted {
    View(String),
    Sandbox(String),
}

impl Report {
    /// There is an exit code only if the command was actually started.
    pub(super) fn read(&self, status: ExitStatus, text: &str) -> Result<Ended, NotStarted> {
        let mut bytes = [0; 4096];
        let count = self.file.read_at(&mut bytes, 0).unwrap_or(0);
        let report = String::from_utf8_lossy(bytes.get(..count).unwrap_or_default()).into_owned();
        match (status.code(), report.contains("\"exit-code\"")) {
            (Some(code), true) => Ok(by_shell_code(code)),
            (Some(code), false) => match view::failure(text) {
                Some(message) => Err(NotStarted::View(message)),
                None => why_not_started(code, text).map_err(NotStarted::Sandbox),
            },
            (None, _) => Ok(plainly(status)),
        }
    }
}

fn why_not_started(code: i32, text: &str) -> Result<Ended, String> {
    let line = text.lines().rev().find(|line| line.starts_with("bwrap: "));
    match line {
        Some(line) if line.starts_with("bwrap: execvp") && line.ends_with("No such file or directory") => {
            Ok(Ended::NotFound)
        }
        Some(line) if line.starts_with("bwrap: execvp") => Ok(Ended::NotExecutable),
        Some(line) => Err(line.to_owned()),
        None => Err(format!("bwrap ended with code {code} before the command was started")),
    }
}
