//! The second rung, for machines where bubblewrap is not there or not allowed: Landlock for the
//! file system, seccomp for sockets and system calls.
//!
//! Landlock only ever adds rights, and a right to a folder is one to all that is in it. So each
//! entry of the tree is granted by itself but for the protected ones, and nothing new can be made
//! at the top (or in a folder that holds something protected).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, Scope,
};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};
use seccompiler::BpfProgram;

use super::mounts::{self, SYSTEM};
use super::seccomp::{self, Sockets};
use super::{Aftercare, Launch, Walls, direct};
use crate::{Command, RunError, Rung};

/// The oldest kernel interface whose file rules have no hole (`truncate` came with it).
const NEEDED: ABI = ABI::V3;
/// With it no signal and no abstract socket leaves the domain.
const WANTED: ABI = ABI::V6;

/// Programs look up accounts and themselves; there is no smaller list of accounts to show them.
const OTHERS: [&str; 3] = ["/proc", "/etc/passwd", "/etc/group"];

/// Devices that are no more than a source or a sink.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// A folder for temporary files and the home, removed when dropped.
#[derive(Debug)]
pub(crate) struct Private {
    #[expect(dead_code, reason = "removed when dropped")]
    folder: tempfile::TempDir,
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
    link_what_is_open(walls, &folder.join("home")).map_err(|error| format!("cannot make a link: {error}"))?;
    let mut inner = command.clone();
    super::point_inside(&mut inner.env, walls);
    inner.env.set("TMPDIR", folder.join("tmp"));
    inner.env.set("HOME", folder.join("home"));
    let rules = rules(walls, &folder).map_err(|error| error.to_string())?;
    let sockets = if walls.network { Sockets::Internet } else { Sockets::Denied };
    let mut launch = Launch::new(direct(&inner), Aftercare::Landlock(private));
    launch.fence = Some(Fence { rules, filter: seccomp::filter(sockets)? });
    Ok(launch)
}

fn private_folder(command: &Command) -> io::Result<(Private, PathBuf)> {
    let parent = command.env.get("TMPDIR").map_or(Path::new("/tmp"), Path::new);
    let folder = tempfile::Builder::new().prefix("code-commit-").tempdir_in(parent)?;
    let path = folder.path().canonicalize()?;
    fs::create_dir(path.join("tmp"))?;
    fs::create_dir(path.join("home"))?;
    Ok((Private { folder }, path))
}

/// What is opened of the home is found in the new one, too, under the same name.
fn link_what_is_open(walls: &Walls, inside: &Path) -> io::Result<()> {
    let mut names = mounts::open_in_home(walls);
    // What lies in another one comes with it.
    names.sort();
    names.dedup_by(|inner, outer| inner.starts_with(outer));
    names.iter().zip(walls.home.iter().cycle()).try_for_each(|(name, home)| {
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
        std::thread::scope(|scope| scope.spawn(thread).join())
            .unwrap_or_else(|_| Err(fault("the starting thread broke".to_owned())))
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
    let rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(NEEDED))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(WANTED))?
        .scope(Scope::from_all(WANTED))?
        .create()?;
    grants(walls, private).into_iter().try_fold(rules, |rules, (path, access)| {
        // What has vanished since it was listed needs no right.
        let Ok(file) = PathFd::new(&path) else { return Ok(rules) };
        let access = if path.is_dir() { access } else { access & AccessFs::from_file(WANTED) };
        rules.add_rule(PathBeneath::new(file, access))
    })
}

type Grant = (PathBuf, BitFlags<AccessFs>);

/// Every right that the command has.
fn grants(walls: &Walls, private: &Path) -> Vec<Grant> {
    let read = AccessFs::from_read(WANTED);
    let change =
        AccessFs::from_all(WANTED) & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev);
    let system =
        SYSTEM.iter().map(PathBuf::from).chain(OTHERS.map(PathBuf::from)).filter(|path| path.exists());
    let seen = system.chain(mounts::etc(walls)).chain(mounts::tools(walls));
    let mut grants: Vec<Grant> = seen.map(|path| (path, read)).collect();
    grants.extend(DEVICES.map(|device| (device.into(), AccessFs::ReadFile | AccessFs::WriteFile)));
    grants.push((private.to_owned(), change));

    let (held, hidden) = (mounts::read_only(walls), mounts::masked(walls));
    let mut walk = Walk { held, hidden, grants };
    mounts::outside_the_tree(walls, &walls.readable).for_each(|path| walk.grant(&path, read));
    mounts::outside_the_tree(walls, &walls.writable).for_each(|path| walk.grant(&path, change));
    mounts::open_in_read_only(walls).for_each(|path| walk.grant(&path, change));
    walk.grant(&walls.tree, change);
    walk.grants
}

struct Walk {
    held: Vec<PathBuf>,
    hidden: Vec<PathBuf>,
    grants: Vec<Grant>,
}

impl Walk {
    /// Grants `access` to a folder and all in it, or, where something in it is protected, to each
    /// of its entries.
    fn grant(&mut self, path: &Path, access: BitFlags<AccessFs>) {
        if self.hidden.iter().any(|hidden| hidden == path) {
            return;
        }
        let is_held = self.held.iter().any(|held| held == path);
        let access = if is_held { access & AccessFs::from_read(WANTED) } else { access };
        let mut protected = self.held.iter().chain(&self.hidden);
        if !protected.any(|inner| inner != path && inner.starts_with(path)) {
            self.grants.push((path.to_owned(), access));
            return;
        }
        self.grants.push((path.to_owned(), AccessFs::ReadDir.into()));
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            // A link planted by an earlier build would carry the right to where it points.
            if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
                self.grant(&entry.path(), access);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_that_is_a_link_carries_no_right_to_where_it_points() {
        let tree = tempfile::tempdir().unwrap();
        for folder in ["src", ".git", "agent-config"] {
            fs::create_dir(tree.path().join(folder)).unwrap();
        }
        std::os::unix::fs::symlink("/root", tree.path().join("planted")).unwrap();
        let at = |name: &str| tree.path().join(name);
        let walls = Walls {
            tree: tree.path().to_owned(),
            read_only: vec![at(".git"), at("no-such-file")],
            masked: vec![at("agent-config")],
            ..Walls::default()
        };
        let below: Vec<_> = grants(&walls, Path::new("/private"))
            .into_iter()
            .filter_map(|(path, access)| {
                let name = path.strip_prefix(tree.path()).ok()?.display().to_string();
                Some(format!("{name:5}|{}", access.contains(AccessFs::WriteFile)))
            })
            .collect();
        let mut below = below;
        below.sort();
        assert_eq!(below, ["     |false", ".git |false", "src  |true"]);
    }
}
