//! The second rung, for machines where bubblewrap is missing or not allowed: Landlock for the file
//! system, seccomp for sockets and system calls.
//!
//! Landlock can only add rights, and a right to a folder covers everything in it. Therefore each
//! entry of the tree is granted separately, except for protected ones, and nothing new can be
//! created at the top of the tree or in a folder that contains a protected file.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, RulesetError, Scope,
};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};
use seccompiler::BpfProgram;

use super::mounts;
use super::seccomp::{self, Sockets};
use super::{Access, Aftercare, Launch, direct};
use crate::temporary::{self, TemporaryFolder, temporary_folder};
use crate::{Command, RunError, Rung};

mod grants;

use grants::{WANTED, grants};

/// The oldest version of the interface without a hole in its file rules: it added `truncate`.
const NEEDED: ABI = ABI::V3;
/// A folder for temporary files and the home directory, removed when dropped.
#[derive(Debug)]
pub(crate) struct Private {
    #[expect(dead_code, reason = "removed when dropped")]
    folder: TemporaryFolder,
}

/// The home directory in it.
const HOME: &str = "home";

/// Whether a path is in the private home directory of a command in this sandbox.
pub(crate) fn is_in_private_home(path: &Path) -> bool {
    let is_ours = |name: &OsStr| name.as_encoded_bytes().starts_with(temporary::PREFIX.as_bytes());
    path.iter().zip(path.iter().skip(1)).any(|(folder, below)| is_ours(folder) && below == HOME)
}

/// Restrictions for the thread that starts the command.
pub(crate) struct Fence {
    rules: RulesetCreated,
    filters: [BpfProgram; 2],
}

pub(super) fn prepare(command: &Command, access: &Access) -> Result<Launch, String> {
    mounts::refuse(access)?;
    mounts::make_writable(access)?;
    let (private, folder) =
        private_folder(command).map_err(|error| format!("cannot make a folder: {error}"))?;
    link_what_is_open(access, &folder.join(HOME)).map_err(|error| format!("cannot make a link: {error}"))?;
    let mut inner = command.clone();
    super::point_inside(&mut inner.env, access);
    inner.env.set("TMPDIR", folder.join("tmp"));
    inner.env.set("HOME", folder.join(HOME));
    let rules = rules(access, &folder).map_err(|error| error.to_string())?;
    let sockets = if access.network { Sockets::Internet } else { Sockets::Denied };
    let mut launch = Launch::new(direct(&inner), Aftercare::Landlock(private));
    launch.fence = Some(Fence { rules, filters: seccomp::filters(sockets)? });
    Ok(launch)
}

fn private_folder(command: &Command) -> io::Result<(Private, PathBuf)> {
    let parent = command.env.get("TMPDIR").map_or(Path::new("/tmp"), Path::new);
    let folder = super::in_temporary(parent.to_owned(), |at| temporary_folder(&at))?;
    let path = folder.path().canonicalize()?;
    fs::create_dir(path.join("tmp"))?;
    fs::create_dir(path.join(HOME))?;
    Ok((Private { folder }, path))
}

/// Links the opened entries of the user's home directory into the new one, under the same names.
fn link_what_is_open(access: &Access, inside: &Path) -> io::Result<()> {
    let mut names = mounts::open_in_home(access);
    // An entry inside another one comes with it.
    names.sort();
    names.dedup_by(|inner, outer| inner.starts_with(outer));
    let Some(home) = &access.home else { return Ok(()) };
    names.iter().try_for_each(|name| {
        let link = inside.join(name);
        link.parent().map_or(Ok(()), fs::create_dir_all)?;
        std::os::unix::fs::symlink(home.join(name), link)
    })
}

impl Fence {
    /// Starts the command from a thread that first restricts itself and then ends: the restrictions
    /// are inherited by the command and by nothing else.
    pub(crate) fn spawn(
        self,
        start: impl FnOnce() -> io::Result<std::process::Child> + Send,
    ) -> Result<io::Result<std::process::Child>, RunError> {
        let fault = |message| RunError::Sandbox { rung: Rung::Landlock, message };
        let thread = || {
            self.rules.restrict_self().map_err(|error| fault(error.to_string()))?;
            drop_rights_of_root().map_err(|error| fault(error.to_string()))?;
            seccomp::install(&self.filters).map_err(fault)?;
            Ok(start())
        };
        std::thread::scope(|scope| {
            let started = std::thread::Builder::new().spawn_scoped(scope, thread);
            let started = started.map_err(|error| fault(format!("cannot start a thread: {error}")))?;
            started.join().unwrap_or_else(|_| Err(fault("the starting thread broke".to_owned())))
        })
    }
}

/// As root, a process can affect every other process of the machine in ways that Landlock does not
/// cover. Keeps only the capabilities needed to build in a tree that belongs to another user.
fn drop_rights_of_root() -> rustix::io::Result<()> {
    let files =
        CapabilitySet::CHOWN | CapabilitySet::DAC_OVERRIDE | CapabilitySet::FOWNER | CapabilitySet::FSETID;
    let kept = capabilities(None)?.permitted & files;
    let inheritable = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: kept, permitted: kept, inheritable })
}

/// Keeps this thread and all that it starts from the abstract unix sockets of other processes, such as the
/// X server's: only a network namespace of its own would hide them. Has no effect before Linux 6.12.
pub(super) fn leave_abstract_sockets() -> Result<(), RulesetError> {
    Ruleset::default().scope(Scope::AbstractUnixSocket)?.create()?.restrict_self().map(drop)
}

fn rules(access: &Access, private: &Path) -> Result<RulesetCreated, RulesetError> {
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(NEEDED))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(WANTED))?
        .scope(Scope::from_all(WANTED))?
        .create()?;
    grants(access, private, &mut |file, access| {
        (&mut rules).add_rule(PathBeneath::new(file, access)).map(drop)
    })?;
    Ok(rules)
}
