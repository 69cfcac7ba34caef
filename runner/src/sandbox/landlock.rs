//! The second rung, for machines where bubblewrap is not there or not allowed: Landlock for the
//! file system, seccomp for sockets and system calls.
//!
//! Landlock only ever adds rights, and a right to a folder is one to all that is in it. So each
//! entry of the tree is granted by itself but for the protected ones, and nothing new can be made
//! at the top (or in a folder that holds something protected).

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, RulesetError, Scope,
};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};
use seccompiler::BpfProgram;

use super::mounts;
use super::seccomp::{self, Sockets};
use super::{Aftercare, Launch, Walls, direct};
use crate::temporary::{self, temporary_folder};
use crate::{Command, RunError, Rung};

mod grants;

use grants::{WANTED, grants};

/// The oldest kernel interface whose file rules have no hole (`truncate` came with it).
const NEEDED: ABI = ABI::V3;
/// A folder for temporary files and the home, removed when dropped.
#[derive(Debug)]
pub(crate) struct Private {
    #[expect(dead_code, reason = "removed when dropped")]
    folder: tempfile::TempDir,
}

/// The home in it.
const HOME: &str = "home";

/// Whether a path lies in the home that a command has behind this wall.
pub(crate) fn is_in_private_home(path: &Path) -> bool {
    let is_ours = |name: &OsStr| name.as_encoded_bytes().starts_with(temporary::PREFIX.as_bytes());
    path.iter().zip(path.iter().skip(1)).any(|(folder, below)| is_ours(folder) && below == HOME)
}

/// What is put around the thread that starts the command.
pub(crate) struct Fence {
    rules: RulesetCreated,
    filter: BpfProgram,
}

pub(super) fn prepare(command: &Command, walls: &Walls) -> Result<Launch, String> {
    mounts::refuse(walls)?;
    mounts::make_writable(walls)?;
    let (private, folder) =
        private_folder(command).map_err(|error| format!("cannot make a folder: {error}"))?;
    link_what_is_open(walls, &folder.join(HOME)).map_err(|error| format!("cannot make a link: {error}"))?;
    let mut inner = command.clone();
    super::point_inside(&mut inner.env, walls);
    inner.env.set("TMPDIR", folder.join("tmp"));
    inner.env.set("HOME", folder.join(HOME));
    let rules = rules(walls, &folder).map_err(|error| error.to_string())?;
    let sockets = if walls.network { Sockets::Internet } else { Sockets::Denied };
    let mut launch = Launch::new(direct(&inner), Aftercare::Landlock(private));
    launch.fence = Some(Fence { rules, filter: seccomp::filter(sockets)? });
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

/// What is opened of the home is found in the new one, too, under the same name.
fn link_what_is_open(walls: &Walls, inside: &Path) -> io::Result<()> {
    let mut names = mounts::open_in_home(walls);
    // What lies in another one comes with it.
    names.sort();
    names.dedup_by(|inner, outer| inner.starts_with(outer));
    let Some(home) = &walls.home else { return Ok(()) };
    names.iter().try_for_each(|name| {
        let link = inside.join(name);
        link.parent().map_or(Ok(()), fs::create_dir_all)?;
        std::os::unix::fs::symlink(home.join(name), link)
    })
}

impl Fence {
    /// Starts the command from a thread that restricts itself first and ends at once: the walls
    /// are inherited by what it starts and by nothing else.
    pub(crate) fn spawn(
        self,
        command: &mut std::process::Command,
    ) -> Result<io::Result<std::process::Child>, RunError> {
        let fault = |message| RunError::Sandbox { rung: Rung::Landlock, message };
        let thread = || {
            self.rules.restrict_self().map_err(|error| fault(error.to_string()))?;
            drop_rights_of_root().map_err(|error| fault(error.to_string()))?;
            seccompiler::apply_filter(&self.filter).map_err(|error| fault(error.to_string()))?;
            Ok(command.spawn())
        };
        std::thread::scope(|scope| {
            let started = std::thread::Builder::new().spawn_scoped(scope, thread);
            let started = started.map_err(|error| fault(format!("cannot start a thread: {error}")))?;
            started.join().unwrap_or_else(|_| Err(fault("the starting thread broke".to_owned())))
        })
    }
}

/// Root may do more than files to every process of the machine, past Landlock. What is left is what
/// it takes to build in a tree that is another user's.
fn drop_rights_of_root() -> rustix::io::Result<()> {
    let files =
        CapabilitySet::CHOWN | CapabilitySet::DAC_OVERRIDE | CapabilitySet::FOWNER | CapabilitySet::FSETID;
    let kept = capabilities(None)?.permitted & files;
    let inheritable = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: kept, permitted: kept, inheritable })
}

fn rules(walls: &Walls, private: &Path) -> Result<RulesetCreated, RulesetError> {
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(NEEDED))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(WANTED))?
        .scope(Scope::from_all(WANTED))?
        .create()?;
    grants(walls, private, &mut |file, access| {
        (&mut rules).add_rule(PathBeneath::new(file, access)).map(drop)
    })?;
    Ok(rules)
}
