//! A Docker container that shows the host's own programs; used only on request.
//!
//! The image is empty and created here, so that no registry is needed; everything visible is
//! mounted.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal, PipeWriter};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use super::access::Access;
use super::descriptors::{inherit, memory_file, number};
use super::launch::{Launch, by_shell_code, environment, plainly};
use super::mount::Mount;
use super::mount_table::{self, Mounted};
use super::{plan, seccomp};
use crate::command::Group;
use crate::proxy::HOST_NAME;
use crate::temporary::in_temporary;
use crate::{Command, Ended, RUN_MARKER};

mod daemon;
mod variables;

pub use daemon::Containers;
pub(crate) use daemon::{Container, remove_orphans};

use daemon::{ask, client};

const IMAGE: &str = "code-commit-empty:1";
/// An empty archive: two blocks of zeros.
const EMPTY_ARCHIVE: [u8; 1024] = [0; 1024];
/// The first process of a container for an interactive session: signals do not end the first
/// process, so the command must be its child.
const FIRST: &str = r#""$@"; exit $?"#;
/// The first process of any other container. Its standard input is a pipe that the harness holds
/// open and never writes to: when the harness dies, for whatever reason, everything inside is
/// killed. `$0` is the file that the command reads.
const FIRST_ON_A_LINE: &str =
    r#"exec 3<&0; { read -r end; kill -9 -1; } <&3 & "$@" <"$0" 3<&-; exit $?"#;
/// The command's input file inside the container, if any.
const INPUT: &str = "/code-commit-input";

/// The pipe that a container lives by: closed when dropped, or when this process dies.
type Line = Option<PipeWriter>;

pub(super) fn prepare(
    command: &Command,
    access: &Access,
    marker: &str,
    group: Group,
) -> Result<(Launch, Line), String> {
    plan::make_ready(access)?;
    let host = access.docker_host.clone();
    make_image(host.as_deref())?;
    let container = Container {
        name: format!("code-commit-{marker}"),
        host,
    };
    let mut docker = client(container.host.as_deref())?;
    docker.args([
        "run",
        "--rm",
        "--name",
        &container.name,
        "--label",
        &format!("{RUN_MARKER}={marker}"),
    ]);
    docker.args([
        "--read-only",
        "--cap-drop",
        "ALL",
        "--security-opt",
        "no-new-privileges",
        "--interactive",
    ]);
    docker.args(network(access)).arg("--user").arg(user());
    let resources = command.limits.resources;
    let limits = [
        ("--memory", resources.memory_bytes),
        ("--pids-limit", resources.processes),
        ("--ulimit=fsize", resources.file_bytes),
        ("--ulimit=nofile", resources.open_files),
    ];
    docker.args(
        limits
            .iter()
            .filter_map(|(option, most)| Some(format!("{option}={}", (*most)?))),
    );
    let table = mount_table::read(mount_table::OWN).unwrap_or_default();
    for mount in with_what_is_below(plan::plan(access), &table) {
        docker.args(mount_arguments(&mount, resources.temporary_bytes));
    }
    let fault = |error: io::Error| format!("cannot make a file in memory: {error}");
    let (arguments, file) = variables::variables(&environment(command, access)).map_err(fault)?;
    let profile = memory_file("profile", seccomp::docker_profile().as_bytes()).map_err(fault)?;
    docker.args([
        "--security-opt",
        &format!("seccomp=/proc/self/fd/{}", number(&profile)),
    ]);
    docker.args(arguments).arg("--workdir").arg(&command.cwd);
    let (mut launch, line) = match group {
        Group::Ours => (attended(docker, command), None),
        Group::Own => on_a_line(docker, command)?,
    };
    launch.container = Some(container);
    launch.inherited.extend([file, profile]);
    inherit(&launch.inherited).map_err(fault)?;
    Ok((launch, line))
}

/// For an interactive session, with the terminal as input.
fn attended(mut docker: std::process::Command, command: &Command) -> Launch {
    if std::io::stdin().is_terminal() {
        docker.arg("--tty");
    }
    docker
        .args([IMAGE, "/bin/sh", "-c", FIRST, "sh"])
        .args(&command.argv);
    Launch::new(docker)
}

/// For everything else: the container lives as long as this process holds the pipe.
fn on_a_line(
    mut docker: std::process::Command,
    command: &Command,
) -> Result<(Launch, Line), String> {
    let input = match &command.input {
        Some(file) => {
            docker.args(bind(file, Path::new(INPUT), &["readonly"]));
            INPUT
        }
        None => "/dev/null",
    };
    docker
        .args([IMAGE, "/bin/sh", "-c", FIRST_ON_A_LINE, input])
        .args(&command.argv);
    let (end, line) = std::io::pipe().map_err(|error| format!("cannot make a pipe: {error}"))?;
    let mut launch = Launch::new(docker);
    launch.stdin = Some(end.into());
    Ok((launch, Some(line)))
}

/// Without the host's network, the container's own name resolves as it would on a machine of its own.
fn network(access: &Access) -> Vec<String> {
    if access.network {
        return vec!["--network=host".to_owned()];
    }
    vec![
        "--network=none".to_owned(),
        format!("--hostname={HOST_NAME}"),
        format!("--add-host={HOST_NAME}:127.0.0.1"),
    ]
}

/// The caller's user ID, so that no file is owned by root.
fn user() -> String {
    format!(
        "{}:{}",
        rustix::process::getuid().as_raw(),
        rustix::process::getgid().as_raw()
    )
}

fn mount_arguments(mount: &Mount, temporary_bytes: Option<u64>) -> Vec<OsString> {
    let private = |path: &Path, options: &str| {
        vec![
            "--tmpfs".into(),
            [path.as_os_str(), options.as_ref()].join(OsStr::new(":")),
        ]
    };
    match mount {
        Mount::ReadOnly(path) | Mount::Link(_, path) => bind(path, path, &["readonly"]),
        Mount::Writable(path) => bind(path, path, &[]),
        Mount::At(from, path) => bind(from, path, &[]),
        Mount::Private(path) => {
            let size = temporary_bytes
                .map(|bytes| format!(",size={bytes}"))
                .unwrap_or_default();
            private(path, &format!("rw,exec,mode=1777{size}"))
        }
        Mount::EmptyFolder(path) => private(path, "ro,size=4k,mode=0555"),
        Mount::EmptyFile(path) => bind(Path::new("/dev/null"), path, &["readonly"]),
    }
}

/// Before version 25, a read-only mount is not read-only for what is mounted below it, so that is mounted by itself.
fn with_what_is_below(mut plan: Vec<Mount>, table: &[Mounted]) -> Vec<Mount> {
    let innermost = |place: &Path| {
        let above = plan.iter().filter(|mount| place.starts_with(mount.place()));
        above.max_by_key(|mount| mount.place().components().count())
    };
    let is_below = |place: &Path| {
        matches!(innermost(place), Some(Mount::ReadOnly(above)) if above != place) && place.exists()
    };
    let below = table
        .iter()
        .map(|mounted| mounted.place.clone())
        .filter(|place| is_below(place));
    let below: BTreeSet<PathBuf> = below.collect();
    plan.extend(below.into_iter().map(Mount::ReadOnly));
    plan
}

/// One line of comma-separated values, quoted because a path may contain commas.
fn bind(from: &Path, to: &Path, options: &[&str]) -> Vec<OsString> {
    let field = |key: &str, path: &Path| {
        let mut field = OsString::from(format!("\"{key}="));
        field.push(quoted(path));
        field.push("\"");
        field
    };
    let mut fields = vec![
        "type=bind".into(),
        field("source", from),
        field("target", to),
    ];
    fields.extend(options.iter().map(OsString::from));
    vec!["--mount".into(), fields.join(OsStr::new(","))]
}

fn quoted(path: &Path) -> OsString {
    let doubled: Vec<&[u8]> = path
        .as_os_str()
        .as_bytes()
        .split(|byte| *byte == b'"')
        .collect();
    OsStr::from_bytes(&doubled.join(b"\"\"".as_slice())).to_owned()
}

/// Creates the empty image if it does not exist.
fn make_image(host: Option<&OsStr>) -> Result<(), String> {
    if ask(host, &["image", "inspect", "--format", "ok", IMAGE]).is_ok() {
        return Ok(());
    }
    let archive = in_temporary(std::env::temp_dir(), |at| {
        let mut file = tempfile::NamedTempFile::new_in(at)?;
        std::io::Write::write_all(&mut file, &EMPTY_ARCHIVE)?;
        Ok(file)
    });
    let archive = archive.map_err(|error| format!("cannot make an empty archive: {error}"))?;
    let path = archive
        .path()
        .to_str()
        .ok_or("the folder for temporary files has an odd name")?;
    ask(host, &["import", path, IMAGE]).map(drop)
}

/// The client fails with these codes if the daemon refuses or cannot start the first process, so
/// the command did not run. Its own message distinguishes that from a build that exits with the
/// same code.
pub(super) fn read(status: ExitStatus, text: &str) -> Result<Ended, String> {
    let refusal = text.lines().find(|line| line.starts_with("docker: "));
    match (status.code(), refusal) {
        (Some(125..=127), Some(line)) => Err(line.to_owned()),
        (Some(code), _) => Ok(by_shell_code(code)),
        (None, _) => Ok(plainly(status)),
    }
}

/// Whether the daemon itself failed, as a busy one sometimes does, and not the container's first program. Its wording differs
/// between versions. A retry is safe, since nothing has run, and a permanent failure repeats at once.
pub(crate) fn may_start_again(refusal: &str) -> bool {
    refusal.starts_with("docker: Error response from daemon: ") && !refusal.contains("exec: ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_that_the_daemon_failed_to_start_is_started_again() {
        let refused =
            |why: &str| may_start_again(&format!("docker: Error response from daemon: {why}"));
        assert!(
            refused("failed to create shim: ttrpc: closed: unknown."),
            "version 20"
        );
        assert!(
            refused("failed to create task for container: context deadline exceeded: unknown"),
            "25"
        );
        assert!(!refused(
            "OCI runtime create failed: exec: \"x\": not found in $PATH: unknown"
        ));
        assert!(!may_start_again("docker: invalid reference format."));
    }

    #[test]
    fn what_is_mounted_below_a_read_only_folder_is_read_only_as_well() {
        let table = b"1 0 8:1 / / rw - ext4 a rw
2 1 8:2 / /usr rw - ext4 b rw
3 2 8:3 / /usr/local rw - ext4 c rw
4 1 8:4 / /home/me/tree/data rw - ext4 d rw
5 1 8:5 / /usr/hidden rw - ext4 e rw
";
        let mounts = [
            Mount::ReadOnly("/usr".into()),
            Mount::Writable("/home/me/tree".into()),
            Mount::EmptyFolder("/usr/hidden".into()),
        ];
        let all = with_what_is_below(mounts.to_vec(), &mount_table::parse(table));
        let read_only = |mount: &&Mount| matches!(mount, Mount::ReadOnly(_));
        let places: Vec<_> = all.iter().filter(read_only).map(Mount::place).collect();
        assert_eq!(places, ["/usr", "/usr/local"].map(Path::new));
    }
}
