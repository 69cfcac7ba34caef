//! The rung for machines where only bubblewrap may set up namespaces: an administrator can allow that to one
//! program. With a seccomp filter inside.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, PipeWriter, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt;
use std::process::ExitStatus;

use rustix::process::geteuid;

use super::access::Access;
use super::descriptors::{inherit, memory_file, number};
use super::launch::{Launch, NotStarted, by_shell_code, environment, plainly};
use super::mount::Mount;
use super::own_files::{self, HOST_NAME};
use super::plan::{self, overlays};
use super::seccomp::{self, Sockets};
use super::{caches, helper, view};
use crate::command::Group;
use crate::program::program;
use crate::trusted::system_program;
use crate::{Command, Ended, Env, RUN_MARKER};

/// Namespaces and rights. `--die-with-parent` refers to the thread that starts bubblewrap; the same
/// thread waits for it.
const ISOLATION: [&str; 10] = [
    "--unshare-user",
    "--unshare-pid",
    "--unshare-ipc",
    "--unshare-uts",
    "--unshare-cgroup-try",
    "--hostname",
    HOST_NAME,
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

pub(super) fn prepare(
    command: &Command,
    access: &Access,
    group: Group,
) -> Result<Launch<Report>, String> {
    plan::refuse(access)?;
    plan::make_writable(access)?;
    caches::make_layers(access)?;
    let fault = |error: io::Error| format!("cannot make a file in memory: {error}");
    let report = memory_file("report", &[]).map_err(fault)?;
    let filters = seccomp::filters(Sockets::Allowed)?;
    let filters = filters
        .each_ref()
        .map(|filter| memory_file("filter", &seccomp::bytes(filter)));
    let filters = filters
        .into_iter()
        .collect::<io::Result<Vec<_>>>()
        .map_err(fault)?;

    let mut bwrap = launcher(group)?;
    // Not the command's variables: the loader would obey them, and they may name files that a build wrote.
    let marker = command
        .env
        .get(RUN_MARKER)
        .map(|marker| (RUN_MARKER, marker));
    let variables = variables(&environment(command, access))?;
    let (arguments, to_arguments) = io::pipe().map_err(fault)?;
    let arguments = OwnedFd::from(arguments);
    bwrap
        .env_clear()
        .envs(marker)
        .args(ISOLATION)
        .args(["--args", &number(&arguments)]);
    for filter in &filters {
        bwrap.args(["--add-seccomp-fd", &number(filter)]);
    }
    bwrap.args(["--json-status-fd", &number(&report)]);
    if !access.network {
        bwrap.arg("--unshare-net");
    }
    if group == Group::Own {
        // No terminal, so that nothing can type into it from inside.
        bwrap.arg("--new-session");
    }
    let mut inherited = Vec::new();
    for (path, content) in own_files::files(access) {
        let file = memory_file("file", content.as_bytes()).map_err(fault)?;
        bwrap.args(["--ro-bind-data", &number(&file)]).arg(path);
        inherited.push(file);
    }
    // Otherwise the root is a writable file system in memory.
    bwrap.args(["--remount-ro", "/"]);
    bwrap.arg("--chdir").arg(&command.cwd).arg("--");
    if group == Group::Ours {
        bwrap.args(["/bin/sh", "-c", HEARS_KEYS]);
    }
    bwrap.args(&command.argv);

    // A clone to read from, because bubblewrap closes its own copy before the command starts.
    let (shown, temporary_bytes) = (access.clone(), command.limits.resources.temporary_bytes);
    let rest = move || {
        [
            variables,
            zero_ended(mount_arguments(&shown, temporary_bytes)),
        ]
        .concat()
    };
    let rest = Some((to_arguments, Box::new(rest) as Rest));
    let own = Report {
        file: report.try_clone().map_err(fault)?.into(),
        rest,
    };
    inherited.extend(filters.into_iter().chain([arguments, report]));
    inherit(&inherited).map_err(fault)?;
    let overlays = overlays(access);
    let is_root = geteuid().is_root();
    // The helper protects the host's devices from root, too.
    let has_helper = !overlays.is_empty() || (is_root && helper::program().is_some());
    let bwrap = if has_helper {
        view::around(&overlays, &bwrap)?
    } else {
        bwrap
    };
    let mut launch = Launch::new(bwrap, own);
    launch.inherited = inherited;
    if is_root && group == Group::Own && command.input.is_none() {
        // Through a descriptor of the host's `/dev/null`, root could change its mode.
        launch.stdin = Some(memory_file("input", &[]).map_err(fault)?);
    }
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

/// The arguments by which bubblewrap sets them, each ended by a zero.
fn variables(env: &Env) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    for (name, value) in env.iter() {
        let words = [OsStr::new("--setenv"), name, value];
        if words.iter().any(|word| word.as_bytes().contains(&0)) {
            return Err(format!("the variable {} contains a zero", name.display()));
        }
        bytes.extend(zero_ended(words));
    }
    Ok(bytes)
}

fn zero_ended(words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Vec<u8> {
    words
        .into_iter()
        .flat_map(|word| [word.as_ref().as_bytes(), &[0]].concat())
        .collect()
}

fn mount_arguments(access: &Access, temporary_bytes: Option<u64>) -> Vec<OsString> {
    let mut words: Vec<OsString> = Vec::new();
    let mut add = |parts: &[&OsStr]| words.extend(parts.iter().map(OsString::from));
    // Read-only, because even in a namespace of its own the kernel lets root write machine-wide
    // settings (`core_pattern`).
    add(["--proc", "/proc"].map(OsStr::new).as_slice());
    // The first process is bubblewrap: through `/proc/1/exe`, root could change the mode of the host's program.
    add([
        "--tmpfs",
        "/proc/1",
        "--remount-ro",
        "/proc/1",
        "--remount-ro",
        "/proc",
    ]
    .map(OsStr::new)
    .as_slice());
    add(["--dev", "/dev", "--dir", "/run"]
        .map(OsStr::new)
        .as_slice());
    for mount in plan::plan(access) {
        match &mount {
            Mount::ReadOnly(path) => add(&["--ro-bind".as_ref(), path.as_ref(), path.as_ref()]),
            Mount::Writable(path) => add(&["--bind".as_ref(), path.as_ref(), path.as_ref()]),
            Mount::At(from, path) => add(&["--bind".as_ref(), from.as_ref(), path.as_ref()]),
            Mount::Private(path) => {
                if let Some(bytes) = temporary_bytes {
                    add(&["--size".as_ref(), bytes.to_string().as_ref()]);
                }
                add(&["--tmpfs".as_ref(), path.as_ref()]);
            }
            Mount::EmptyFolder(path) => {
                add(&[
                    "--tmpfs".as_ref(),
                    path.as_ref(),
                    "--remount-ro".as_ref(),
                    path.as_ref(),
                ]);
            }
            Mount::EmptyFile(path) => {
                add(&["--ro-bind".as_ref(), "/dev/null".as_ref(), path.as_ref()])
            }
            Mount::Link(to, path) => add(&["--symlink".as_ref(), to.as_ref(), path.as_ref()]),
        }
    }
    words
}

type Rest = Box<dyn FnOnce() -> Vec<u8>>;

/// The file to which bubblewrap reports the result: one JSON document per line.
pub(crate) struct Report {
    file: File,
    /// Where bubblewrap waits for more arguments, and those: variables, and mounts, which are found out while it starts.
    rest: Option<(PipeWriter, Rest)>,
}

impl Report {
    /// Gives bubblewrap the rest of its arguments, and with them the permission to begin.
    pub(super) fn hand_over(&mut self) -> io::Result<()> {
        self.rest.take().map_or(Ok(()), |(mut to_arguments, rest)| {
            to_arguments.write_all(&rest())
        })
    }

    /// There is an exit code only if the command was actually started.
    pub(super) fn read(&self, status: ExitStatus, text: &str) -> Result<Ended, NotStarted> {
        let mut bytes = [0; 4096];
        let count = self.file.read_at(&mut bytes, 0).unwrap_or(0);
        let report = String::from_utf8_lossy(bytes.get(..count).unwrap_or_default()).into_owned();
        match (status.code(), report.contains("\"exit-code\"")) {
            (Some(code), true) => Ok(by_shell_code(code)),
            (Some(code), false) => match view::failure(text) {
                Some(failed) => Err(failed),
                None => why_not_started(code, text).map_err(NotStarted::Sandbox),
            },
            (None, _) => Ok(plainly(status)),
        }
    }
}

fn why_not_started(code: i32, text: &str) -> Result<Ended, String> {
    let line = text.lines().rev().find(|line| line.starts_with("bwrap: "));
    match line {
        Some(line)
            if line.starts_with("bwrap: execvp") && line.ends_with("No such file or directory") =>
        {
            Ok(Ended::NotFound)
        }
        Some(line) if line.starts_with("bwrap: execvp") => Ok(Ended::NotExecutable),
        Some(line) => Err(line.to_owned()),
        None => Err(format!(
            "bwrap ended with code {code} before the command was started"
        )),
    }
}
