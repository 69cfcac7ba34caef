//! The sandbox around the build, and what the build can access.

mod choose;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use code_commit_changes::ChangeEngine;
use code_commit_guard::{Guard, Policy};
use code_commit_names::ours::AGENT_CONFIG;
use code_commit_names::{Binds, Name, Writer};
use code_commit_repo::{Kind, WorkTree};
use code_commit_runner::{
    Access, AllowedHost, Backend, Confinement, Differs, Env, Limits, Mode, NoSandbox, Resources,
};
use code_commit_settings::{Environment, Sandbox, Settings, keys};

pub(crate) use self::choose::{choose, say};
use crate::commit::plan::Plan;
use crate::dot_gits::{DOT_GIT, MOST_HELD};
use crate::exit::Failure;
use crate::host::Host;
use crate::place;
use crate::project::Project;
use crate::records;
use crate::registry::{RUN_JSON, Registry};

/// The sandbox that the plan asks for, as far as this machine supports it; reports what is in force in one
/// line.
pub(crate) fn confine(
    project: &Project<'_>,
    plan: &Plan,
    dot_gits: &[PathBuf],
) -> Result<Confinement, Failure> {
    let Host {
        environment,
        output,
        ..
    } = project.host;
    let (tree, root, settings) = (project.tree()?, &*project.root, &plan.settings);
    if settings.sandbox() != Sandbox::Off && is_all_of_home(root, environment) {
        return Err(Failure::refused(
            anyhow!(
                "{} is or contains your home directory, which no sandbox can both show and hide",
                root.display()
            ),
            "keep the project in its own folder, or use --sandbox off",
        ));
    }
    let folders = git_folders(root, dot_gits);
    let access = |backend| access(tree, project, plan, &folders, backend);
    let confinement = choose(tree, settings, project.host, access)?.map_err(|reason| {
        no_sandbox(
            reason,
            "--sandbox off runs the build with all of your rights",
        )
    })?;
    if confinement.backend != Backend::Off {
        let sees = code_commit_runner::visible(&confinement);
        build_is_seen(root, plan, &sees)?;
        let env = build_env(settings, environment);
        code_commit_runner::differing(&env, root, &sees)
            .iter()
            .for_each(|tool| output.warn(&other_tool(tool)));
    }
    Ok(confinement)
}

/// Starts to look up what the sandbox shows of this machine, while the tree is checked. `writable` are the places that
/// commands may change besides the tree: with others than the sandbox gets later, nothing would be gained.
pub(crate) fn look_ahead(project: &Project<'_>, settings: &Settings, writable: Vec<PathBuf>) {
    if settings.sandbox() != Sandbox::Off {
        let env = build_env(settings, project.host.environment);
        code_commit_runner::look_ahead(Access {
            writable,
            network: settings.network(),
            ..Access::new(&*project.root, &env)
        });
    }
}

/// `without` is the hint for running without a sandbox, which does not help if the limit on open files is too
/// low.
pub fn no_sandbox(reason: NoSandbox, without: &str) -> Failure {
    let is_limit = matches!(reason, NoSandbox::TooFewFiles);
    let help = if is_limit {
        "raise the limit, then try again: ulimit -n 1024"
    } else {
        without
    };
    Failure::refused(reason, help)
}

/// A symlink may point to a program that the sandbox hides: a model could not fix that.
fn build_is_seen(root: &Path, plan: &Plan, sees: impl Fn(&Path) -> bool) -> Result<(), Failure> {
    let build = plan.settings.build_command();
    let program = build.argv.first().filter(|program| program.contains('/'));
    let Some((name, place)) =
        program.and_then(|name| Some((name, root.join(name).canonicalize().ok()?)))
    else {
        return Ok(());
    };
    if sees(&place) {
        return Ok(());
    }
    let is_secret = place
        .iter()
        .any(|name| code_commit_names::is_secret(&name.to_string_lossy()));
    let (name, place) = (name.strip_prefix("./").unwrap_or(name), place.display());
    let show = if is_secret {
        String::new()
    } else {
        format!(", or show it: --readable {place}")
    };
    Err(Failure::refused(
        anyhow!("{name} points to {place}, which the sandbox hides"),
        format!("put it into the project{show}"),
    ))
}

/// A build with another tool than the user's is not the build that the user knows.
fn other_tool(
    Differs {
        name,
        outside,
        inside,
    }: &Differs,
) -> String {
    let folder = outside.parent().unwrap_or(outside).display();
    let show =
        format!("show it with `--readable {folder}` or `[sandbox] readable = [\"{folder}\"]`");
    match inside {
        Some(inside) => {
            format!(
                "`{name}` is {} in the sandbox, not {}: {show}",
                inside.display(),
                outside.display()
            )
        }
        None => format!(
            "`{name}` is {}, which the sandbox hides: {show}",
            outside.display()
        ),
    }
}

/// Lets commands work in a view of the tree where the sandbox allows it. State in the tree would be part of the
/// view, and in a tree of another user the kernel could not copy what a command changes.
pub(crate) fn in_overlay(
    account: ChangeEngine,
    tree: &WorkTree,
    confinement: &Confinement,
) -> Result<ChangeEngine, Failure> {
    let state = place::state(tree)?;
    let is_ours = || {
        let found = tree.root().metadata();
        found.is_ok_and(|found| found.uid() == rustix::process::geteuid().as_raw())
    };
    let is_possible =
        confinement.backend.has_views() && !place::is_in_tree(&state, tree) && is_ours();
    Ok(if is_possible {
        account.in_overlay(&state)
    } else {
        account
    })
}

/// What the build can access of the project and the machine.
fn access(
    tree: &WorkTree,
    project: &Project<'_>,
    plan: &Plan,
    git_folders: &[PathBuf],
    backend: Backend,
) -> Access {
    let (root, settings) = (tree.root(), &plan.settings);
    let readable = settings.readable().into_iter();
    let own = there(root, plan.task.which.binds());
    Access {
        read_only: own
            .chain(held(root, git_folders, backend))
            .chain(held(root, &plan.sealed, backend))
            .collect(),
        pinned: ways(root, plan.sealed.iter().chain(git_folders)),
        masked: keys::hidden(root)
            .into_iter()
            .chain(records(tree))
            .collect(),
        network: settings.network(),
        hosts: hosts(settings),
        writable: writable(root, settings),
        readable: readable.chain(tree.git_elsewhere()).collect(),
        ..Access::new(root, &build_env(settings, project.host.environment))
    }
}

/// The records of `implement`: their hints on how to widen the sandbox are for the user only. Those made here
/// come first, newest first: a repository may contain more folders than a sandbox can hide.
pub fn records(tree: &WorkTree) -> impl Iterator<Item = PathBuf> {
    let logs = records::implement_logs(tree.root());
    // An unreadable list keeps every run from beginning.
    let known = Registry::of(tree).all().unwrap_or_default();
    let known: Vec<PathBuf> = known
        .iter()
        .map(|run| run.path(tree.root()))
        .filter(|run| run.parent() == Some(&logs))
        .collect();
    let entries = code_commit_dir::list(&logs)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    let mut others: Vec<PathBuf> = entries
        .filter(|run| run.join(RUN_JSON).is_file() && !known.contains(run))
        .collect();
    others.sort_unstable();
    known
        .into_iter()
        .chain(others.into_iter().rev())
        .take(MOST_HELD)
}

/// The runner's mode for this setting.
pub fn mode(sandbox: Sandbox) -> Mode {
    match sandbox {
        Sandbox::Auto => Mode::Auto,
        Sandbox::Namespaces => Mode::Namespaces,
        Sandbox::Landlock => Mode::Landlock,
        Sandbox::Docker => Mode::Docker,
        Sandbox::Off => Mode::Off,
    }
}

fn is_all_of_home(root: &Path, environment: &Environment) -> bool {
    environment
        .folder("HOME")
        .is_some_and(|home| home.starts_with(root))
}

/// Protected names that commands may read but not change, relative to the root, except what a build has to
/// write. `agent-config/` is not readable either.
pub(crate) fn read_only(binds: Binds) -> impl Iterator<Item = &'static str> {
    let held =
        code_commit_names::protected(binds).filter(|name| name.writer() != Some(Writer::Build));
    std::iter::once(DOT_GIT)
        .chain(held.map(Name::at_root))
        .filter(|name| *name != AGENT_CONFIG)
}

/// Those of them that exist, as paths.
pub fn there(root: &Path, binds: Binds) -> impl Iterator<Item = PathBuf> {
    read_only(binds)
        .map(|name| root.join(name))
        .filter(|path| path.exists())
}

/// The sealed files that a sandbox can protect: not symlinks, whose targets are not sealed either. Under
/// Landlock nothing could be created in a folder that contains one, so files sealed for their name alone are
/// left to the seal.
pub fn held(root: &Path, sealed: &[PathBuf], backend: Backend) -> impl Iterator<Item = PathBuf> {
    let by_name = move |path: &Path| {
        let name = path.file_name().unwrap_or_default();
        let is_known =
            name == DOT_GIT || code_commit_names::is_protected_anywhere(name.as_encoded_bytes());
        path.is_file() && path.parent() != Some(root) && is_known
    };
    let paths = sealed.iter().map(|name| root.join(name));
    let paths = paths.filter(|path| {
        path.symlink_metadata()
            .is_ok_and(|found| !found.is_symlink())
    });
    paths
        .filter(move |path| backend != Backend::Landlock || !by_name(path))
        .take(MOST_HELD)
}

/// The parent folders of a sealed `.git` or git directory: if one were moved away, another could replace it.
pub(crate) fn ways<'p>(root: &Path, held: impl IntoIterator<Item = &'p PathBuf>) -> Vec<PathBuf> {
    let dot_gits = held
        .into_iter()
        .filter(|path| path.ends_with(DOT_GIT) || root.join(path).join("HEAD").exists());
    let above = dot_gits
        .flat_map(|path| path.ancestors().skip(1))
        .filter(|above| *above != Path::new(""));
    let above: BTreeSet<PathBuf> = above.map(|folder| root.join(folder)).collect();
    above
        .into_iter()
        .filter(|folder| folder.is_dir())
        .take(MOST_HELD)
        .collect()
}

/// Those that a seal covers: files, and missing ones. The latter only in a sandbox, where git could not check
/// out a submodule anyway: without one a build may do so.
pub(crate) fn sealed_dot_gits(
    root: &Path,
    dot_gits: &[PathBuf],
    settings: &Settings,
) -> impl Iterator<Item = PathBuf> {
    let is_sealed = |path: &&PathBuf| match root.join(path).symlink_metadata() {
        Ok(found) => !found.is_dir(),
        Err(_) => settings.sandbox() != Sandbox::Off,
    };
    dot_gits.iter().filter(is_sealed).cloned()
}

/// Those that are folders: a sandbox protects them, since nothing could restore them.
pub(crate) fn git_folders(root: &Path, dot_gits: &[PathBuf]) -> Vec<PathBuf> {
    let is_folder = |path: &&PathBuf| {
        let found = root.join(path).symlink_metadata();
        found.is_ok_and(|found| found.is_dir())
    };
    dot_gits.iter().filter(is_folder).cloned().collect()
}

/// Every file that the configuration protects, relative to the root: tracked files, even missing ones, and
/// all others, except ignored files that no pattern names.
pub fn protected(
    tree: &WorkTree,
    guard: &Guard,
    settings: &Settings,
) -> Result<BTreeSet<PathBuf>, Failure> {
    if settings.protect.is_empty() {
        return Ok(BTreeSet::new());
    }
    let only_protect = settings
        .protect_lists()
        .iter()
        .fold(Policy::new(), Policy::protect);
    let index = tree.index()?;
    let files = index.iter().filter(|one| one.kind != Kind::Submodule);
    let tracked = files
        .filter_map(|one| one.path.to_str())
        .filter(|path| only_protect.refuses(path).is_some());
    let there = guard
        .existing(settings.protect_lists().iter().map(|list| list.join("\n")))
        .map_err(|error| Failure::refused(error, "make every folder of the project readable"))?;
    Ok(tracked
        .map(PathBuf::from)
        .chain(there.into_iter().map(PathBuf::from))
        .collect())
}

/// Under Landlock nothing new can be created at the root, and cargo's `target` may not exist yet.
pub(crate) fn writable(root: &Path, settings: &Settings) -> Vec<PathBuf> {
    let target = root
        .join("Cargo.toml")
        .exists()
        .then(|| root.join("target"));
    settings.writable().into_iter().chain(target).collect()
}

/// The hosts that a build may reach.
pub(crate) fn hosts(settings: &Settings) -> Vec<AllowedHost> {
    let hosts = settings.sandbox.hosts.iter();
    hosts
        .filter_map(|host| AllowedHost::parse(&host.0))
        .collect()
}

/// Single hosts can be opened in namespaces only. Without a sandbox, everything is open anyway.
pub(crate) fn hosts_can_be_opened(settings: &Settings, backend: Backend) -> Result<(), Failure> {
    let is_open = settings.network() || settings.sandbox.hosts.is_empty();
    if is_open || matches!(backend, Backend::Namespaces | Backend::Off) {
        return Ok(());
    }
    Err(Failure::refused(
        anyhow!("the sandbox {backend} cannot open single hosts"),
        format!(
            "use --sandbox namespaces; to get it, {}; or open the network: --network",
            code_commit_runner::how_to_get_namespaces()
        ),
    ))
}

/// How much builds and the commands of orders may print and use.
pub(crate) fn limits(settings: &Settings) -> Limits {
    let usual = Resources::usual();
    let resources = Resources {
        memory_bytes: settings.build.memory.map(u64::from).or(usual.memory_bytes),
        processes: Some(settings.build_processes()),
        temporary_bytes: settings
            .build
            .temporary
            .map(u64::from)
            .or(usual.temporary_bytes),
        file_bytes: Some(settings.build_file()),
        open_files: Some(settings.build_open_files()),
    };
    Limits {
        output_bytes: settings.build_output(),
        resources,
        ..Limits::default()
    }
}

/// What builds need of the caller's environment, plus what the settings pass on; no keys.
pub(crate) fn build_env(settings: &Settings, environment: &Environment) -> Env {
    let extra = settings.sandbox.env.iter();
    let extra: Vec<OsString> = extra.map(|name| name.0.clone().into()).collect();
    Env::allowed(environment.all().clone(), &extra)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_build_changes_what_is_protected_but_it_locks_versions_and_leaves_output() {
        let names: Vec<&str> = read_only(Binds::Commit).collect();
        insta::assert_snapshot!(names.join("\n"), @"
        .git
        .code-commit
        code-commit.toml
        .gitmodules
        .abl/abl.config.yaml
        .cuggino.json
        .gitignore
        build.sh
        codeRollup.sh
        LLMInstructions.md
        UserSpecification.md
        ");
        let only_in_implement = read_only(Binds::Implement).filter(|name| !names.contains(name));
        assert_eq!(
            only_in_implement.collect::<Vec<_>>(),
            ["logs", "llm-user-output.txt"]
        );
        assert_eq!(
            read_only(Binds::Always).collect::<Vec<_>>(),
            [".git", ".code-commit", "code-commit.toml", ".gitmodules"]
        );
    }

    #[test]
    fn sealed_files_are_held_and_a_git_folder_with_the_way_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for file in ["a/b/.git", "c/d/HEAD", "e/build.sh", "build.sh"] {
            code_commit_dir::replace(&root.join(file), b"").unwrap();
        }
        std::os::unix::fs::symlink("a", root.join("f")).unwrap();
        let sealed = ["a/b/.git", "c/d", "e/build.sh", "build.sh", "f", "gone"].map(PathBuf::from);
        let from = |first: usize| sealed[first..4].iter().map(|path| root.join(path));
        assert!(held(root, &sealed, Backend::Namespaces).eq(from(0)));
        assert!(held(root, &sealed, Backend::Landlock).eq(from(1)));
        assert_eq!(
            ways(root, &sealed),
            ["a", "a/b", "c"].map(|path| root.join(path))
        );
    }
}
