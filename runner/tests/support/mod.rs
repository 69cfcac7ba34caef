//! A scratch work tree, the C programs in it, and the backends that work here.

#![expect(
    clippy::disallowed_methods,
    reason = "tests set up files and processes of their own"
)]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot be set up fails"
)]
#![expect(clippy::print_stderr, reason = "a test that is skipped says so")]
#![allow(
    dead_code,
    clippy::allow_attributes,
    reason = "each test binary uses a part"
)]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use code_commit_runner::{
    Access, Backend, Cancel, Command, Confinement, Env, Mode, Output, RunError, helper_is, probe,
    run,
};

/// Files that nothing in a sandbox may change.
const SECRETS: [&str; 5] = [
    "home/.ssh/id",
    "tree/.git/config",
    "tree/.husky/pre-commit",
    "tree/agent-config/gemini-key.txt",
    "tree/build.sh",
];

/// The address of a Docker daemon for the tests, if it is not the default.
pub(crate) const DOCKER: &str = "CODE_COMMIT_TEST_DOCKER_HOST";

/// A folder with a home, a place outside the tree, and a work tree `tree` that looks like a project.
pub(crate) struct Scratch {
    folder: tempfile::TempDir,
}

impl Scratch {
    pub(crate) fn new() -> Self {
        let scratch = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        for folder in [
            "home/.ssh",
            "outside",
            "tree/src",
            "tree/.git/hooks",
            "tree/.husky",
            "tree/agent-config",
            "tree/target",
        ] {
            fs::create_dir_all(scratch.at(folder)).unwrap();
        }
        for file in SECRETS {
            scratch.write(file, "secret\n");
        }
        scratch
    }

    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.at(path)).unwrap()
    }

    /// Writes a file, and the folders above it.
    pub(crate) fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// A symlink at `to`, with the folders above it.
    pub(crate) fn link(&self, from: &str, to: &str) {
        fs::create_dir_all(self.at(to).parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(self.at(from), self.at(to)).unwrap();
    }

    /// Compiles `fixtures/evil/NAME.c` into the tree.
    pub(crate) fn compile(&self, name: &str) {
        let source = evil_programs().join(format!("{name}.c"));
        let mut cc = std::process::Command::new("cc");
        let status = cc
            .args(["-Wall", "-O1", "-o"])
            .arg(self.at("tree/src").join(name))
            .arg(source)
            .status();
        assert!(status.expect("a C compiler is needed").success());
    }

    pub(crate) fn env(&self) -> Env {
        let names = ["CARGO_HOME", "RUSTUP_HOME", "PATH"];
        let mut env = Env::allowed(
            names
                .iter()
                .filter_map(|n| Some(((*n).into(), std::env::var_os(n)?))),
            &[],
        );
        let home = std::env::home_dir().unwrap();
        for (name, folder) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
            if env.get(name).is_none() {
                env.set(name, home.join(folder));
            }
        }
        env.set("HOME", self.at("home"));
        env
    }

    /// The default of the crate.
    pub(crate) fn access(&self) -> Access {
        Access {
            docker_host: std::env::var_os(DOCKER),
            ..Access::new(self.at("tree"), &self.env())
        }
    }

    pub(crate) fn command(&self, argv: &[&str]) -> Command {
        let mut command = Command::new(argv, self.at("tree"), self.env());
        command.deadline = Some(Duration::from_mins(1));
        command
    }

    pub(crate) fn run(&self, backend: Backend, command: &Command) -> Output {
        attempt(command, backend, &self.access()).unwrap()
    }

    /// Nothing that must be safe has changed.
    pub(crate) fn assert_untouched(&self) {
        for file in SECRETS {
            assert_eq!(self.read(file), "secret\n", "{file}");
        }
        let names = fs::read_dir(self.at("outside"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name());
        assert!(
            names
                .into_iter()
                .all(|name| name == "note" || name == "socket")
        );
        assert_eq!(fs::read_dir(self.at("tree/.git/hooks")).unwrap().count(), 0);
    }

    pub(crate) fn sh(&self, backend: Backend, line: &str) -> Output {
        self.sh_with(backend, &self.access(), line)
    }

    pub(crate) fn sh_with(&self, backend: Backend, access: &Access, line: &str) -> Output {
        attempt(&self.command(&["sh", "-c", line]), backend, access).unwrap()
    }
}

/// Where the programs that misbehave are, if not in `fixtures/evil`.
pub(crate) const EVIL_PROGRAMS: &str = "CODE_COMMIT_TEST_EVIL_PROGRAMS";

/// The folder with the programs that misbehave.
pub(crate) fn evil_programs() -> PathBuf {
    let usual = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/evil");
    std::env::var_os(EVIL_PROGRAMS).map_or_else(usual, PathBuf::from)
}

/// Where the program is that is started as a helper, if not in `examples`.
pub(crate) const HELPER: &str = "CODE_COMMIT_TEST_HELPER";

/// `examples/hold.rs`, which cargo builds for the tests.
pub(crate) fn helper() -> PathBuf {
    std::env::var_os(HELPER).map_or_else(
        || {
            let tests = std::env::current_exe().unwrap();
            let hold = tests.ancestors().nth(2).unwrap().join("examples/hold");
            assert!(
                hold.exists(),
                "`cargo build -p code-commit-runner --examples` makes {}",
                hold.display()
            );
            hold
        },
        PathBuf::from,
    )
}

/// Whether a backend works here; reports prominently if not.
pub(crate) fn works(backend: Backend) -> bool {
    let mode = match backend {
        Backend::Namespaces => Mode::Namespaces,
        Backend::Landlock => Mode::Landlock,
        Backend::Docker => Mode::Docker,
        Backend::Off => Mode::Off,
    };
    helper_is(helper());
    let probed = probe(mode, std::env::var_os(DOCKER).as_deref());
    if let Err(reason) = &probed {
        eprintln!("SKIPPED: {backend} because {reason}");
    }
    probed.is_ok()
}

/// Runs the command, which nobody listens to or cancels.
pub(crate) fn attempt(
    command: &Command,
    backend: Backend,
    access: &Access,
) -> Result<Output, RunError> {
    let (access, cancel) = (access.clone(), Cancel::new().unwrap());
    run(
        command,
        &Confinement { backend, access },
        &cancel,
        &mut |_, _| {},
    )
}

/// The command ended well.
#[track_caller]
pub(crate) fn assert_ok(backend: Backend, output: &Output) {
    let text = output.text();
    assert!(output.success(), "{backend}: {} {text}", output.ended);
}

/// The backends that work here and are a sandbox.
pub(crate) fn sandboxes() -> impl Iterator<Item = Backend> {
    let is_sandbox = |backend: &Backend| *backend != Backend::Off;
    backends().into_iter().filter(is_sandbox)
}

/// Every backend that works here, including off.
pub(crate) fn backends() -> Vec<Backend> {
    [
        Backend::Off,
        Backend::Landlock,
        Backend::Namespaces,
        Backend::Docker,
    ]
    .into_iter()
    .filter(|backend| works(*backend))
    .collect()
}

/// The processes of this machine with `token` as an argument.
pub(crate) fn processes_with(token: &str) -> Vec<String> {
    processes(|word| word == token.as_bytes())
}

/// The processes with `token` anywhere in an argument.
pub(crate) fn processes_whose_arguments_hold(token: &str) -> Vec<String> {
    processes(|word| {
        word.windows(token.len())
            .any(|part| part == token.as_bytes())
    })
}

fn processes(is_meant: impl Fn(&[u8]) -> bool) -> Vec<String> {
    let all = fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .map(|entry| entry.path());
    let named = all.filter(|path| {
        let words = fs::read(path.join("cmdline")).unwrap_or_default();
        words.split(|byte| *byte == 0).any(&is_meant)
    });
    named.map(|path| path.display().to_string()).collect()
}

/// Runs these tests of the calling program once more, as a user who is not root; gives what they print.
pub(crate) fn run_as_another_user(names: &[&str]) -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        eprintln!(
            "SKIPPED: the other user, because only root can become one; this user is tested anyway"
        );
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    // That user may not be able to reach the folders in which these are. Copied by another process: a program
    // that this one has open for writing, or a child of another test, could not be started.
    let copy = |from: &Path, to: &str| {
        let done = std::process::Command::new("cp")
            .arg("-rT")
            .args([from, &folder.path().join(to)])
            .status();
        assert!(done.unwrap().success());
    };
    copy(&std::env::current_exe().unwrap(), "tests");
    copy(&helper(), "hold");
    copy(&evil_programs(), "evil");
    let mut tests = std::process::Command::new(folder.path().join("tests"));
    tests
        .args(names)
        .args(["--exact", "--show-output", "--test-threads", "1"])
        .current_dir("/")
        .env_clear();
    tests.envs([
        ("PATH", "/usr/bin:/bin"),
        ("HOME", "/nonexistent"),
        ("INSTA_UPDATE", "no"),
    ]);
    tests.env(HELPER, folder.path().join("hold"));
    tests
        .env(EVIL_PROGRAMS, folder.path().join("evil"))
        .uid(65534)
        .gid(65534);
    let output = tests.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    assert!(text.contains(&format!("{} passed", names.len())), "{text}");
    // Whoever may start containers has the rights of root: that backend is not for such a user.
    let skipped = |line: &&str| line.starts_with("SKIPPED") && !line.starts_with("SKIPPED: docker");
    text.lines()
        .filter(skipped)
        .for_each(|line| eprintln!("{line} (uid 65534)"));
    Some(text.into_owned())
}
