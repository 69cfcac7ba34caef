//! Finds out by trying which sandbox works on this machine.

mod memory;

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::io;
use std::time::Duration;

use self::memory::Memory;
pub(crate) use self::memory::forget;
use crate::temporary::in_temporary;
use crate::{
    Access, Backend, Cancel, Command, Confinement, Ended, Env, Mode, TemporaryFolder, run,
    temporary_folder,
};

/// A trial that takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(20);

impl Backend {
    /// What it consists of, in words.
    pub fn parts(self) -> &'static str {
        match self {
            Self::Namespaces => "namespaces and seccomp",
            Self::Landlock => {
                "Landlock and seccomp; no loopback, no /tmp of its own, nothing new at the top of the tree"
            }
            Self::Docker => "Docker container",
            Self::Off => "OFF, commands run with all your rights",
        }
    }
}

/// The sandbox that will be in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probed {
    /// Which backend.
    pub backend: Backend,
    /// One line for the user: which sandbox is in force, and why.
    pub why: String,
    /// The address of the daemon that answered, if it is not the default.
    docker_host: Option<OsString>,
}

impl Probed {
    /// The backend that `mode` prefers, untried: [`works`] tries it with what commands can access. `None` for a container, for
    /// no sandbox, and if this process may open too few files for any.
    pub fn preferred(mode: Mode) -> Option<Self> {
        let backend = match mode {
            Mode::Auto | Mode::Namespaces => Backend::Namespaces,
            Mode::Landlock => Backend::Landlock,
            Mode::Docker | Mode::Off => return None,
        };
        has_descriptors().then(|| Self {
            backend,
            why: why(backend, mode, &[]),
            docker_host: None,
        })
    }

    /// A sandbox of this kind with this access. A container is always created by the daemon that
    /// answered.
    pub fn confine(&self, access: Access) -> Confinement {
        let docker_host = self.docker_host.clone();
        Confinement {
            backend: self.backend,
            access: Access {
                docker_host,
                ..access
            },
        }
    }
}

/// Why one backend does not work here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// Which backend.
    pub backend: Backend,
    /// What went wrong, in one line.
    pub why: String,
}

/// Why there is no sandbox.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoSandbox {
    /// Nothing that was requested works here, and nothing weaker is used instead.
    #[error("{}; {hint}", what_failed(reasons))]
    Nowhere {
        /// What was tried.
        reasons: Vec<Reason>,
        /// What the user can do.
        hint: String,
    },
    /// Cannot tell what works here: every sandbox needs more descriptors than this process has
    /// left.
    #[error("this process may open too few files at once to set up a sandbox")]
    TooFewFiles,
}

/// If one backend was requested by name, the others were not tried and are not mentioned.
fn what_failed(reasons: &[Reason]) -> String {
    match reasons {
        [Reason { backend, why }] => format!("the sandbox {backend} does not work here ({why})"),
        _ => format!("no sandbox works here: {}", list(reasons)),
    }
}

fn list(reasons: &[Reason]) -> String {
    let each: Vec<_> = reasons
        .iter()
        .map(|Reason { backend, why }| format!("{backend} ({why})"))
        .collect();
    each.join(", ")
}

/// Runs `true` in each backend that `mode` allows, the strongest first, and returns the first that
/// works. `docker_host` is the address of the daemon, if it is not the default.
pub fn probe(mode: Mode, docker_host: Option<&OsStr>) -> Result<Probed, NoSandbox> {
    let backends: &[Backend] = match mode {
        Mode::Auto => &[Backend::Namespaces, Backend::Landlock],
        Mode::Namespaces => &[Backend::Namespaces],
        Mode::Landlock => &[Backend::Landlock],
        Mode::Docker => &[Backend::Docker],
        Mode::Off => &[Backend::Off],
    };
    // Distinguished from a machine without sandboxes: otherwise a weaker one would be used, or the
    // user would be advised to use none.
    if mode != Mode::Off && !has_descriptors() {
        return Err(NoSandbox::TooFewFiles);
    }
    let mut reasons = Vec::new();
    for &backend in backends {
        match trial(backend, docker_host) {
            Ok(()) => {
                let why = why(backend, mode, &reasons);
                return Ok(Probed {
                    backend,
                    why,
                    docker_host: docker_host.map(OsStr::to_owned),
                });
            }
            Err(why) => reasons.push(Reason { backend, why }),
        }
    }
    Err(NoSandbox::Nowhere {
        reasons,
        hint: hint(mode),
    })
}

/// The number of descriptors for a sandbox and for ending its command.
const DESCRIPTORS: usize = 48;

fn has_descriptors() -> bool {
    (0..DESCRIPTORS)
        .map(|_| std::fs::File::open("/dev/null"))
        .collect::<Result<Vec<_>, _>>()
        .is_ok()
}

/// How to make namespaces, the strongest backend, work.
pub fn how_to_get_namespaces() -> String {
    better(|name| std::fs::read_to_string(format!("/proc/sys/{name}")).ok())
}

/// `setting` returns the value of a kernel setting.
fn better(setting: impl Fn(&str) -> Option<String>) -> String {
    // Settings that keep users from creating namespaces, with the value that allows it.
    let switches = [
        ("kernel/unprivileged_userns_clone", "0", "1"),
        ("user/max_user_namespaces", "0", "15000"),
        ("kernel/apparmor_restrict_unprivileged_userns", "1", "0"),
    ];
    let in_the_way =
        |(name, no, _): &(&str, &str, &str)| setting(name).is_some_and(|is| is.trim() == *no);
    match switches.into_iter().find(in_the_way) {
        Some((name, _, yes)) => {
            let profile = if name.contains("apparmor") {
                ": install the Debian package, whose AppArmor profile does that, or"
            } else {
                ","
            };
            format!("allow user namespaces{profile} as root: sysctl -w {}={yes}", name.replace('/', "."))
        }
        None => "allow user namespaces here; in a container: \
            docker run --security-opt seccomp=unconfined --security-opt systempaths=unconfined --security-opt apparmor=unconfined"
            .to_owned(),
    }
}

/// Tries every backend, for `doctor`.
pub fn survey(docker_host: Option<&OsStr>) -> Vec<(Backend, Result<(), String>)> {
    [Backend::Namespaces, Backend::Landlock, Backend::Docker]
        .map(|backend| (backend, trial(backend, docker_host)))
        .into()
}

fn trial(backend: Backend, docker_host: Option<&OsStr>) -> Result<(), String> {
    if backend == Backend::Off {
        return Ok(());
    }
    let folder = folder().map_err(|error| format!("cannot make a folder: {error}"))?;
    let mut access = Access {
        tree: folder.path().join("tree"),
        ..Access::default()
    };
    access.docker_host = docker_host.map(OsStr::to_owned);
    std::fs::create_dir(&access.tree).map_err(|error| format!("cannot make a folder: {error}"))?;
    run_true(&Confinement { backend, access })
}

/// The name contains the owner, because a user who does not wait for a trial leaves the folder
/// behind.
fn folder() -> io::Result<TemporaryFolder> {
    in_temporary(std::env::temp_dir(), |at| temporary_folder(&at))
}

/// Why no command can have this sandbox with its layers over the caches of tools ([`Access::caches`]): the kernel decides, by the
/// file systems, so it is tried. That it works is remembered in [`Access::memory`].
pub fn works(confinement: &Confinement) -> Result<(), String> {
    let memory = Memory::of(confinement);
    if memory.as_ref().is_some_and(Memory::holds) {
        return Ok(());
    }
    run_true(confinement)?;
    memory.iter().for_each(Memory::keep);
    Ok(())
}

fn run_true(confinement: &Confinement) -> Result<(), String> {
    let mut command = Command::new(["true"], &confinement.access.tree, Env::default());
    command.deadline = Some(PATIENCE);
    let cancel = Cancel::new().map_err(|error| error.to_string())?;
    match run(&command, confinement, &cancel, &mut |_, _| {}) {
        Ok(output) if output.success() => Ok(()),
        Ok(output) => Err(failed(output.ended, &output.text())),
        Err(crate::RunError::Sandbox { message, .. }) => Err(message),
        Err(error) => Err(error.to_string()),
    }
}

fn failed(ended: Ended, text: &str) -> String {
    let mut why = format!("`true` {ended}");
    if let Some(line) = text.lines().next() {
        let _ = write!(why, ": {line}");
    }
    why
}

fn why(backend: Backend, mode: Mode, reasons: &[Reason]) -> String {
    let what = backend.parts();
    match (mode, reasons.first()) {
        (Mode::Auto, None) => format!("{what} (the strongest on this machine)"),
        (Mode::Auto, Some(Reason { why, .. })) => {
            let better = how_to_get_namespaces();
            format!(
                "{what} (namespaces do not work here: {why}); for the strongest sandbox, {better}"
            )
        }
        (Mode::Namespaces | Mode::Landlock | Mode::Docker | Mode::Off, _) => {
            format!("{what} (asked for)")
        }
    }
}

fn hint(mode: Mode) -> String {
    let install = match mode {
        Mode::Auto | Mode::Namespaces => &how_to_get_namespaces(),
        Mode::Landlock => "use Linux 6.2 or newer with Landlock enabled",
        Mode::Docker => "start the Docker daemon",
        Mode::Off => "nothing is needed",
    };
    let other = if mode == Mode::Auto {
        ""
    } else {
        ", or use the strongest that works with `--sandbox auto`"
    };
    format!("{install}{other}, or run without protection with `--sandbox off`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_sandbox_that_was_asked_for_nothing_is_said_about_the_others() {
        let failed = |mode, backends: &[Backend]| {
            let reasons = backends
                .iter()
                .map(|&backend| Reason {
                    backend,
                    why: "why".to_owned(),
                })
                .collect();
            NoSandbox::Nowhere {
                reasons,
                hint: "do this".to_owned(),
            }
            .to_string()
                + "; "
                + &hint(mode)
        };
        insta::assert_snapshot!(failed(Mode::Docker, &[Backend::Docker]), @"the sandbox docker does not work here (why); do this; start the Docker daemon, or use the strongest that works with `--sandbox auto`, or run without protection with `--sandbox off`");
        insta::assert_snapshot!(failed(Mode::Landlock, &[Backend::Namespaces, Backend::Landlock]), @"no sandbox works here: namespaces (why), landlock (why); do this; use Linux 6.2 or newer with Landlock enabled, or use the strongest that works with `--sandbox auto`, or run without protection with `--sandbox off`");
    }

    #[test]
    fn a_weaker_sandbox_is_named_with_what_keeps_the_strongest_from_working() {
        let reason = |backend| Reason {
            backend,
            why: "why".to_owned(),
        };
        let failed = [reason(Backend::Namespaces)];
        let said = |backend, mode, reasons| {
            why(backend, mode, reasons).replace(&how_to_get_namespaces(), "HINT")
        };
        insta::assert_snapshot!(said(Backend::Namespaces, Mode::Auto, &[]), @"namespaces and seccomp (the strongest on this machine)");
        insta::assert_snapshot!(said(Backend::Landlock, Mode::Auto, &failed), @"Landlock and seccomp; no loopback, no /tmp of its own, nothing new at the top of the tree (namespaces do not work here: why); for the strongest sandbox, HINT");
        insta::assert_snapshot!(said(Backend::Landlock, Mode::Landlock, &[]), @"Landlock and seccomp; no loopback, no /tmp of its own, nothing new at the top of the tree (asked for)");
    }

    #[test]
    fn what_keeps_namespaces_from_working_is_named_with_its_command() {
        let with = |name: &'static str, value: &'static str| {
            better(move |asked| (asked == name).then(|| format!("{value}\n")))
        };
        insta::assert_snapshot!(with("kernel/apparmor_restrict_unprivileged_userns", "1"), @"allow user namespaces: install the Debian package, whose AppArmor profile does that, or as root: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0");
        insta::assert_snapshot!(with("user/max_user_namespaces", "15000"), @"allow user namespaces here; in a container: docker run --security-opt seccomp=unconfined --security-opt systempaths=unconfined --security-opt apparmor=unconfined");
    }

    #[test]
    fn the_daemon_that_answered_runs_the_commands() {
        let probed = Probed {
            backend: Backend::Docker,
            why: String::new(),
            docker_host: Some("unix:///a".into()),
        };
        let other = Access {
            docker_host: Some("unix:///b".into()),
            ..Access::default()
        };
        assert_eq!(
            probed.confine(other).access.docker_host,
            Some("unix:///a".into())
        );
    }

    #[test]
    fn a_trial_that_was_killed_can_be_cleaned_up() {
        let folder = folder().unwrap();
        let name = folder.path().file_name().unwrap().to_str().unwrap();
        assert!(name.starts_with(crate::temporary::PREFIX), "{name}");
    }
}
