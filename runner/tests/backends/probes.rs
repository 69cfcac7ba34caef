//! What a hostile program can do in each sandbox, as reported by one that tries (`fixtures/evil/probe.c`).
//!
//! `cargo test -p code-commit-runner -- attempt --nocapture` prints the tables.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::{IpAddr, Ipv4Addr, TcpListener, UdpSocket};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::Stdio;

use crate::support::{Scratch, assert_ok, attempt, works};
use code_commit_runner::{Access, Backend, Confinement, Ended};

/// What every build must be able to do.
const NEEDED: [&str; 5] = [
    "write in the tree",
    "write a temporary file",
    "run a program of the system",
    "use the devices that are only a source or a sink",
    "make a pair of sockets",
];

/// Each attempt with whether it got through.
type Table = Vec<(String, bool)>;

fn table(backend: Backend) -> Table {
    table_with(backend, |_| {})
}

/// Runs the probe. What it reports as blocked must not have happened.
fn table_with(backend: Backend, open: impl FnOnce(&mut Access)) -> Table {
    let scratch = Scratch::new();
    scratch.compile("probe");
    scratch.write("outside/note", "secret\n");
    let mut access = scratch.access();
    open(&mut access);
    let confinement = Confinement { backend, access };
    let (tcp, udp) = (
        TcpListener::bind("0.0.0.0:0").unwrap(),
        UdpSocket::bind("127.0.0.1:0").unwrap(),
    );
    let sockets = ["outside/socket", "tree/src/socket"].map(|path| scratch.at(path));
    let _listeners = sockets
        .each_ref()
        .map(|path| UnixListener::bind(path).unwrap());
    let mut bystander = std::process::Command::new(scratch.at("tree/src/probe"))
        .arg("bystander")
        .current_dir(scratch.at("tree/src"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut its = String::new();
    BufReader::new(bystander.stdout.take().unwrap())
        .read_line(&mut its)
        .unwrap();
    let mut command = scratch.command(&["./src/probe"]);
    command
        .argv
        .extend([scratch.at("outside"), scratch.at("home/.ssh/id")].map(Into::into));
    let ports = [
        tcp.local_addr().unwrap().port(),
        udp.local_addr().unwrap().port(),
    ];
    command
        .argv
        .extend(ports.map(|port| port.to_string().into()));
    command.argv.push(own_address().to_string().into());
    command.argv.extend(sockets.map(Into::into));
    let devices = fs::metadata("/dev/null").unwrap().dev();
    command
        .argv
        .extend([u64::from(std::process::id()), devices].map(|number| number.to_string().into()));
    command.argv.extend(its.split_whitespace().map(Into::into));
    let output = attempt(&command, confinement.backend, &confinement.access).unwrap();
    // At the end of its input it exits, and what it shares disappears.
    drop(bystander.stdin.take());
    bystander.wait().unwrap();
    assert_ok(backend, &output);
    let text = output.text();
    let mut table: Table = text
        .lines()
        .map(|line| line.rsplit_once(' ').unwrap())
        .map(|(name, verdict)| (name.trim_end().to_owned(), verdict == "allowed"))
        .collect();
    if backend != Backend::Off {
        scratch.assert_untouched();
        table.extend(planted(&scratch, &confinement));
    }
    table
}

/// The machine's own address that is not its loopback, if it has one. Sends nothing.
fn own_address() -> IpAddr {
    let asked = UdpSocket::bind("0.0.0.0:0").and_then(|socket| {
        socket.connect("192.0.2.1:9")?;
        socket.local_addr()
    });
    asked.map_or(Ipv4Addr::LOCALHOST.into(), |address| address.ip())
}

/// In which folders at the root of the file system, and in which that everybody may write, a file appears that
/// the command creates: what it reports itself may be about a folder of its own.
fn planted(scratch: &Scratch, confinement: &Confinement) -> Table {
    let top = fs::read_dir("/")
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let folders: Vec<PathBuf> = top
        .chain(["/", "/dev/shm", "/var/tmp", "/usr/bin", "/run/lock"].map(PathBuf::from))
        .chain([scratch.at("")])
        .collect();
    let name = format!("code-commit-probe-{}", std::process::id());
    let mut command = scratch.command(&["./src/probe", "plant", &name]);
    command.argv.extend(folders.iter().map(Into::into));
    let output = attempt(&command, confinement.backend, &confinement.access).unwrap();
    assert_eq!(output.ended, Ended::Exited(0), "{}", output.text());
    let is_there = |folder: &PathBuf| fs::remove_file(folder.join(&name)).is_ok();
    let reached: Vec<String> = folders
        .iter()
        .filter(|folder| is_there(folder))
        .map(|folder| folder.display().to_string())
        .collect();
    if !reached.is_empty() {
        println!("written: {reached:?}");
    }
    vec![(
        "write in a folder of the system".to_owned(),
        !reached.is_empty(),
    )]
}

/// What the README says of the attempts.
struct Documented {
    /// All, in order, and whether only root gets through without a sandbox, or not every kernel has it.
    attempts: Vec<(String, bool)>,
    /// An attempt, and the sandboxes that let it through.
    exceptions: Vec<(String, String)>,
}

impl Documented {
    fn read() -> Self {
        let readme = include_str!("../../README.md");
        let (_, rest) = readme.split_once("<!-- attempts -->\n").unwrap();
        let (attempts, rest) = rest.split_once("\n\n| attempt | ").unwrap();
        let attempts = attempts.split_whitespace().collect::<Vec<_>>().join(" ");
        let attempts = attempts.split("- **").skip(1).flat_map(|group| {
            let (_, names) = group.trim_end().split_once(":** ").unwrap();
            names.trim_end_matches('.').split("; ").map(str::to_owned)
        });
        let exceptions = rest
            .split("\n\n")
            .next()
            .unwrap()
            .lines()
            .skip(2)
            .map(|row| {
                let mut cells = row.split('|').skip(1).map(|cell| cell.trim().to_owned());
                (cells.next().unwrap(), cells.next().unwrap())
            });
        let italic = |name: String| {
            (
                name.trim_matches('*').to_owned(),
                name.starts_with('*') && name.ends_with('*'),
            )
        };
        Self {
            attempts: attempts.map(italic).collect(),
            exceptions: exceptions.collect(),
        }
    }

    /// Whether a sandbox lets an attempt through by design.
    fn is_exception(&self, name: &str, backend: Backend) -> bool {
        let is_root = rustix::process::geteuid().is_root();
        let applies = |sandboxes: &str| match sandboxes {
            "all" => true,
            "landlock, not as root" => backend == Backend::Landlock && !is_root,
            "landlock, as root" => backend == Backend::Landlock && is_root,
            one => one == backend.to_string(),
        };
        self.exceptions
            .iter()
            .any(|(attempt, sandboxes)| attempt == name && applies(sandboxes))
    }
}

/// In every sandbox, as whoever runs the tests.
#[test]
fn every_attempt_is_blocked_but_those_that_the_readme_names() {
    let documented = Documented::read();
    let names: Vec<&String> = documented.attempts.iter().map(|(name, _)| name).collect();
    let unknown: Vec<_> = documented
        .exceptions
        .iter()
        .filter(|(name, _)| !names.contains(&name))
        .collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    let mut faults = Vec::new();
    for backend in [Backend::Landlock, Backend::Namespaces, Backend::Docker]
        .into_iter()
        .filter(|backend| works(*backend))
    {
        let table = table(backend);
        let (needed, attempts) = table.split_at(NEEDED.len());
        assert_eq!(
            needed,
            NEEDED.map(|name| (name.to_owned(), true)),
            "{backend}"
        );
        assert_eq!(
            attempts.iter().map(|(name, _)| name).collect::<Vec<_>>(),
            names
        );
        let through: Vec<&str> = attempts
            .iter()
            .filter(|(_, is_through)| *is_through)
            .map(|(name, _)| name.as_str())
            .collect();
        println!(
            "{backend}, uid {}: {} of {} attempts got through{}",
            rustix::process::geteuid().as_raw(),
            through.len(),
            attempts.len(),
            through
                .iter()
                .map(|name| format!("\n    {name}"))
                .collect::<String>()
        );
        for (name, is_through) in attempts {
            if *is_through != documented.is_exception(name, backend) {
                faults.push(format!("{backend}: {name}: {is_through}"));
            }
        }
    }
    assert!(
        faults.is_empty(),
        "not as the README says: {}",
        faults.join("; ")
    );
}

/// Namespaces of a user who is not root are set up in another way, and other checks of the kernel apply.
#[test]
fn every_attempt_of_another_user_is_blocked_too() {
    let names = [
        "probes::every_attempt_is_blocked_but_those_that_the_readme_names",
        "probes::with_the_network_on_the_host_is_reached_over_it_and_not_otherwise",
        "probes::without_a_sandbox_every_attempt_gets_through_that_is_open_to_all",
    ];
    if let Some(text) = crate::support::run_as_another_user(&names) {
        let is_of_table = |line: &&str| {
            line.contains("got through") || (line.starts_with("    ") && !line.contains('_'))
        };
        text.lines()
            .filter(is_of_table)
            .for_each(|line| println!("{line}"));
    }
}

/// Otherwise an attempt could be reported as blocked because it is wrong.
#[test]
fn without_a_sandbox_every_attempt_gets_through_that_is_open_to_all() {
    let documented = Documented::read();
    let table = table(Backend::Off);
    let blocked: Vec<&str> = table
        .iter()
        .filter(|(_, is_through)| !is_through)
        .map(|(name, _)| name.as_str())
        .collect();
    let is_open = |name: &&&str| {
        documented
            .attempts
            .iter()
            .any(|(other, closed)| other == *name && !closed)
    };
    assert_eq!(blocked.iter().filter(is_open).collect::<Vec<_>>(), [&""; 0]);
}

/// Whether Landlock can keep a process from the abstract sockets of others here.
fn has_scopes() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let numbers: Vec<u32> = release
        .split(['.', '-'])
        .map_while(|part| part.parse().ok())
        .collect();
    works(Backend::Landlock) && numbers >= vec![6, 12]
}

#[test]
fn with_the_network_on_the_host_is_reached_over_it_and_not_otherwise() {
    let open = table(Backend::Off);
    for backend in [Backend::Landlock, Backend::Namespaces, Backend::Docker]
        .into_iter()
        .filter(|backend| works(*backend))
    {
        let (off, on) = (
            table(backend),
            table_with(backend, |access| access.network = true),
        );
        let more: Vec<_> = on
            .iter()
            .filter(|row| !off.contains(row))
            .map(|(name, is_through)| (name.as_str(), *is_through))
            .collect();
        let mut expected = vec![
            ("connect to loopback", true),
            ("send to loopback", true),
            ("connect to the machine's own address", true),
            ("find a route to the internet", true),
        ];
        // Where unix sockets are not forbidden altogether, those that are visible are the host's servers, too.
        if backend != Backend::Landlock {
            let has_abstract = backend != Backend::Namespaces || !has_scopes();
            let sockets = [
                ("connect to a unix socket in the tree", true),
                (
                    "connect to a unix socket that was bound by a relative path",
                    true,
                ),
                ("connect to a unix socket of a container", true),
                ("connect to an abstract unix socket", has_abstract),
            ];
            let sockets = sockets.into_iter().filter(|(_, is_reached)| *is_reached);
            expected
                .extend(sockets.filter(|row| open.iter().any(|(n, is)| (n.as_str(), *is) == *row)));
        }
        assert_eq!(more, expected, "{backend}");
    }
}
