//! The second backend, for machines where namespaces are not allowed: Landlock for the file
//! system, seccomp for sockets and system calls.
//!
//! Landlock can only add rights, and a right to a folder covers everything in it. Therefore each
//! entry of the tree is granted separately, except for protected ones, and nothing new can be
//! created at the top of the tree or in a folder that contains a protected file.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, Scope,
};

use super::access::Access;
use super::launch::{Launch, direct, point_inside};
use super::plan;
use super::seccomp::{self, Sockets};
use crate::Command;
use crate::temporary::{TemporaryFolder, in_temporary, temporary_folder};

mod fence;
mod grants;

pub(crate) use fence::Fence;
pub(super) use fence::{keep_capabilities, leave_abstract_sockets};

use grants::{WANTED, grants};

/// The oldest version of the interface without a hole in its file rules: it added `truncate`.
const NEEDED: ABI = ABI::V3;

/// The home directory in it.
const HOME: &str = "home";

pub(super) fn prepare(
    command: &Command,
    access: &Access,
) -> Result<(Launch, TemporaryFolder), String> {
    plan::make_ready(access)?;
    let (private, folder) =
        private_folder(command).map_err(|error| format!("cannot make a folder: {error}"))?;
    link_what_is_open(access, &folder.join(HOME))
        .map_err(|error| format!("cannot make a link: {error}"))?;
    let mut inner = command.clone();
    point_inside(&mut inner.env, access);
    inner.env.set("TMPDIR", folder.join("tmp"));
    inner.env.set("HOME", folder.join(HOME));
    // Git stops at a configuration that is there and cannot be read. In the other sandboxes there is none.
    inner.env.set("GIT_CONFIG_NOSYSTEM", "1");
    // These do not look at TMPDIR, or make a folder of their own at the top of the tree.
    inner.env.add_option(
        "JAVA_TOOL_OPTIONS",
        &format!("'-Djava.io.tmpdir={}'", folder.join("tmp").display()),
    );
    inner.env.add_option(
        "PYTEST_ADDOPTS",
        &format!("-o 'cache_dir={}'", folder.join("tmp/pytest").display()),
    );
    let rules = rules(access, &folder).map_err(|error| error.to_string())?;
    let sockets = if access.network {
        Sockets::Internet
    } else {
        Sockets::Denied
    };
    let mut launch = Launch::new(direct(&inner));
    launch.fence = Some(Fence {
        rules,
        filters: seccomp::filters(sockets)?,
    });
    Ok((launch, private))
}

/// For temporary files and the home directory.
fn private_folder(command: &Command) -> io::Result<(TemporaryFolder, PathBuf)> {
    let parent = command
        .env
        .get("TMPDIR")
        .map_or(Path::new("/tmp"), Path::new);
    let folder = in_temporary(parent.to_owned(), |at| temporary_folder(&at))?;
    let path = folder.path().canonicalize()?;
    fs::create_dir(path.join("tmp"))?;
    fs::create_dir(path.join(HOME))?;
    Ok((folder, path))
}

/// Links the opened entries of the user's home directory into the new one, under the same names.
fn link_what_is_open(access: &Access, inside: &Path) -> io::Result<()> {
    let mut names = plan::open_in_home(access);
    // An entry inside another one comes with it.
    names.sort();
    names.dedup_by(|inner, outer| inner.starts_with(outer));
    let Some(home) = &access.home else {
        return Ok(());
    };
    names.iter().try_for_each(|name| {
        let link = inside.join(name);
        link.parent().map_or(Ok(()), fs::create_dir_all)?;
        std::os::unix::fs::symlink(home.join(name), link)
    })
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
        (&mut rules)
            .add_rule(PathBeneath::new(file, access))
            .map(drop)
    })?;
    Ok(rules)
}
