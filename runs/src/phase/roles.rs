//! The two roles: what each can see and change, its commands, and where it works (S3 §Information Boundaries).

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use code_commit_agent::Permissions;
use code_commit_engine::Named as _;
use code_commit_loop_phase::{Phases, Place, Repository as Where, Role as Who};
use code_commit_names::By;
use code_commit_names::ours::{ABL, PHASE_CONFIG, STATE};
use code_commit_perform::{Cast, Counted, Repository, Role, Watched};
use code_commit_repo::WorkTree;
use code_commit_report::Output;
use code_commit_runner::{Access, Backend, Confinement, Env, Mode, Probed, View, probe};
use code_commit_settings::{Sandbox, Settings};

use crate::dot_gits;
use crate::exit::Failure;
use crate::phase::agents::RoleAgents;
use crate::phase::commands::{CommandServer, Commands, READ_ONLY, SOCKET};
use crate::phase::folders::{HIDDEN, SPECS};
use crate::phase::project::PhaseProject;
use crate::phase::run::Phase;
use crate::sandbox;

/// The folder in the state folder for what commands change in a view of the source.
const LAYERS: &str = "command-view";
/// What flags change: how long a turn, a silence and a command may take.
const TURN_TIMEOUT: Duration = Duration::from_hours(1);
const IDLE_TIMEOUT: Duration = Duration::from_mins(15);
const COMMAND_TIMEOUT: Duration = Duration::from_mins(10);
/// As many mounts as a sandbox can take besides its own.
const MOST_SHOWN: usize = 1000;

/// Builder and verifier, their folders and repositories.
pub(crate) struct Roles<'p> {
    project: &'p PhaseProject,
    builder: Role,
    verifier: Role,
    src: Repository,
    tests: Repository,
}

impl Cast<Phases> for Roles<'_> {
    fn role(&self, role: Who) -> &Role {
        match role {
            Who::Builder => &self.builder,
            Who::Verifier => &self.verifier,
        }
    }

    fn folder(&self, place: Place) -> PathBuf {
        match place {
            Place::Abl => self.project.root.join(ABL),
            Place::Tests => self.project.tests().to_owned(),
            Place::Specs => self.project.root.join(SPECS),
            Place::Src => self.project.src().to_owned(),
        }
    }

    fn counted(&self, place: Place) -> Counted {
        let without = match place {
            // Whatever the project ignores, the specs count.
            Place::Abl | Place::Specs => return Counted::All,
            Place::Tests => self.project.no_tests(),
            Place::Src => self.src.exclude.clone(),
        };
        Counted::NotIgnored { without }
    }

    fn repository(&self, repository: Where) -> &Repository {
        match repository {
            Where::Src => &self.src,
            Where::Tests => &self.tests,
        }
    }
}

impl Phase<'_> {
    pub(super) fn roles(
        &self,
        builder: &CommandServer,
        verifier: &CommandServer,
    ) -> Result<Roles<'_>, Failure> {
        let project = self.project;
        let repository = |git: &code_commit_repo::Git| Repository {
            git: git.clone(),
            exclude: project.never_committed(git.folder()),
        };
        Ok(Roles {
            project,
            builder: self.role(Who::Builder, &self.builder, builder)?,
            verifier: self.role(Who::Verifier, &self.verifier, verifier)?,
            src: repository(&project.src_git),
            tests: repository(&project.tests_git),
        })
    }

    fn role(&self, who: Who, agents: &RoleAgents, server: &CommandServer) -> Result<Role, Failure> {
        let own = self.project.folder(who);
        let mut env = Env::allowed(self.site.host.environment.all().clone(), &[]);
        let access = access(self.project, who, &server.visible(), &env)?;
        let path = env.get("PATH").map(OsStr::to_owned);
        let path = path.unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
        let mut folders = vec![server.bin()];
        folders.extend(std::env::split_paths(&path));
        env.set("PATH", std::env::join_paths(folders).unwrap_or(path));
        env.set(SOCKET, server.socket());
        // The harness's own folder is read-only or hidden if it is in the role's.
        let mut home = self.state.join("agents").join(who.name());
        if home.starts_with(own) {
            home = server.home(who.name());
        }
        let options = &self.asked.options;
        let max_time = self.settings.limits.max_time.map(Duration::from);
        let turn_timeout = options.turn_timeout.unwrap_or(TURN_TIMEOUT);
        Ok(Role {
            worker: agents.first.clone(),
            others: agents.others.clone(),
            cwd: own.to_owned(),
            confinement: self.probed.confine(access),
            env,
            home: Some(home),
            permissions: Permissions::Skip,
            timeout: max_time.into_iter().chain([turn_timeout]).min(),
            idle_timeout: Some(options.idle_timeout.unwrap_or(IDLE_TIMEOUT)),
            watched: self.watched(who),
            log: Some(self.logs().join(format!("{}.log", who.name()))),
        })
    }

    /// Everything that the sandbox lets it change, except what the configuration protects.
    fn watched(&self, who: Who) -> Watched {
        let (root, own) = (&self.project.root, self.project.folder(who));
        let below = own.strip_prefix(root).unwrap_or(own).display().to_string();
        // A verifier may take its folder for the project, and put its failures into `.abl/tests` there.
        let skip = code_commit_names::left_out(By::Phase)
            .filter(|name| *name != ABL || who == Who::Builder)
            .map(str::to_owned);
        Watched {
            root: own.to_owned(),
            tree: WorkTree::at(own).ok(),
            git: Some(self.project.git(who).clone()),
            within: if below.is_empty() { below } else { below + "/" },
            skip: skip.collect(),
            may_touch: None,
            protect: self.settings.protect_lists(),
            shown: vec![(way(own, root), root.join(SPECS))],
        }
    }

    /// The commands of a role.
    pub(super) fn command_server(&self, who: Who) -> Result<CommandServer, Failure> {
        let program = std::env::current_exe().context("cannot tell where this program is")?;
        let env = sandbox::build_env(&self.settings, self.site.host.environment);
        let entries = self.project.commands(who).clone();
        let confinement = if entries.is_empty() || self.probed.backend == Backend::Off {
            Confinement::off()
        } else {
            self.around_commands(who, &env)?
        };
        let timeout = self.asked.options.command_timeout;
        let commands = Commands {
            entries,
            specs: self.project.specs.clone(),
            cwd: self.project.root.clone(),
            env,
            timeout: timeout
                .unwrap_or(COMMAND_TIMEOUT)
                .max(Duration::from_secs(1)),
            confinement,
        };
        let server = CommandServer::new(program, commands, self.site.host.output.clone());
        Ok(server.context("cannot make the folder of abl-cmd")?)
    }

    /// The sandbox of the commands: like the roles', but for containers, which give no view.
    fn around_commands(&self, who: Who, env: &Env) -> Result<Confinement, Failure> {
        let access = access_of_commands(self.project, &self.settings, env)?;
        let mut probed = self.probed.clone();
        if probed.backend == Backend::Docker {
            probed = probe(Mode::Namespaces, None).unwrap_or(probed);
        }
        sandbox::hosts_can_be_opened(&self.settings, probed.backend)?;
        let sandbox = probed.confine(access);
        Ok(match who {
            Who::Builder => sandbox,
            Who::Verifier => self.without_changes(sandbox),
        })
    }

    /// What commands of the verifier change in the source is gone after the turn: the builder builds.
    fn without_changes(&self, mut sandbox: Confinement) -> Confinement {
        let src = self.project.src();
        let own = rustix::process::geteuid().as_raw();
        let is_ours = || src.metadata().is_ok_and(|found| found.uid() == own);
        if sandbox.backend.has_views() && self.state != src.join(STATE) && is_ours() {
            let layers = self.state.join(LAYERS);
            let [upper, work] = ["upper", "work"].map(|name| layers.join(name));
            sandbox.access.view = Some(View { upper, work });
        } else {
            self.site.host.output.warn(READ_ONLY);
            sandbox.access.read_only.push(src.to_owned());
        }
        sandbox
    }
}

/// What no role but the one that works in `other` may see.
fn hidden(root: &Path, other: &Path) -> impl Iterator<Item = PathBuf> {
    let names = HIDDEN.iter().map(|name| root.join(name));
    names.chain([other.to_owned(), root.join(".git")])
}

/// The access of one role. The same for every sandbox.
fn access(
    project: &PhaseProject,
    who: Who,
    visible: &[PathBuf],
    env: &Env,
) -> Result<Access, Failure> {
    let (root, own, other) = (&*project.root, project.folder(who), project.other(who));
    let hidden: Vec<PathBuf> = hidden(root, other).collect();
    // The `.git` of every repository in its folder that it can see.
    let inside = || {
        let (tree, git) = (WorkTree::at(own)?, project.git(who));
        let repositories = tree.repositories_below(tree.status(git)?, git);
        anyhow::Ok(dot_gits::of(&tree, &repositories))
    };
    let mut inside = inside()
        .map_err(|error| Failure::refused(error, format!("run git status in {}", own.display())))?;
    inside.retain(|path| {
        let path = own.join(path);
        !hidden.iter().any(|hidden| path.starts_with(hidden))
    });
    // Moving a folder between its own and the other's would later expose the other's. Parents first.
    let between = other.ancestors().skip(1);
    let between = between.take_while(|way| way.starts_with(own) && *way != own);
    let between: BTreeSet<PathBuf> = between.map(Path::to_owned).collect();
    let mut new = Access::new(own, env);
    // Folders of the project on PATH are either the role's own already, or not for it.
    new.path.retain(|folder| !folder.starts_with(root));
    Ok(Access {
        // A role may read its own repository, but the harness commits. All of `.abl` is read-only: if only
        // the specs were, a role could replace `.abl`, and the next run would trust its commands.
        read_only: [own.join(".git"), root.join(ABL)]
            .into_iter()
            .filter(|path| path.starts_with(own))
            .chain(dot_gits::held(own, &inside))
            .collect(),
        pinned: between
            .into_iter()
            .chain(sandbox::ways(own, &inside))
            .collect(),
        masked: hidden
            .into_iter()
            .filter(|path| path.starts_with(own) && path != &own.join(".git"))
            .collect(),
        readable: visible.iter().cloned().chain([root.join(SPECS)]).collect(),
        // The agent has to reach its service.
        network: true,
        ..new
    })
}

/// The access of the configuration's commands: the source, which they may change, and the rest of the project to
/// read. The tests, prompts, keys and the harness's own files are absent unless the user's configuration names them:
/// what runs here is what the builder wrote, and must not change what it is judged by. The network is their own,
/// unless opened.
fn access_of_commands(
    project: &PhaseProject,
    settings: &Settings,
    env: &Env,
) -> Result<Access, Failure> {
    let around = access(project, Who::Builder, &[], env)?;
    let (readable, writable) = (settings.readable(), settings.writable());
    let granted = [&*readable, &*writable].concat();
    let mut beside = Beside {
        others: hidden(&project.root, project.tests())
            .chain(granted.iter().cloned())
            .chain([around.tree.clone()])
            .collect(),
        found: Vec::new(),
    };
    if around.tree != project.root {
        beside.show(&project.root);
    }
    let masked = around
        .masked
        .into_iter()
        .filter(|path| !granted.contains(path));
    Ok(Access {
        masked: masked.collect(),
        readable: [around.readable, beside.found, readable].concat(),
        writable,
        network: settings.network(),
        hosts: sandbox::hosts(settings),
        ..around
    })
}

/// The files and folders of the project that commands see, each whole unless something in it has other rights. No
/// symlinks: one may point to what is hidden.
struct Beside {
    /// What is hidden, or has rights of its own.
    others: Vec<PathBuf>,
    found: Vec<PathBuf>,
}

impl Beside {
    fn show(&mut self, folder: &Path) {
        let entries = code_commit_dir::list(folder)
            .into_iter()
            .flatten()
            .flatten();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        paths.sort_unstable();
        for path in paths {
            let is_full = self.found.len() >= MOST_SHOWN;
            if path.is_symlink() || self.others.contains(&path) || is_full {
                continue;
            }
            if self.others.iter().any(|other| other.starts_with(&path)) {
                self.show(&path);
            } else {
                self.found.push(path);
            }
        }
    }
}

/// Docker if available, otherwise namespaces, otherwise nothing runs. Not Landlock: a role could neither
/// create files at the top of its folder nor call `abl-cmd`.
pub(super) fn choose_sandbox(
    sandbox: Sandbox,
    docker_host: Option<&OsStr>,
    output: &Output,
) -> Result<Probed, Failure> {
    if sandbox == Sandbox::Landlock {
        let why =
            "behind Landlock a role could make no new file in its folder, and not call abl-cmd";
        let help = "use --sandbox namespaces or --sandbox docker";
        return Err(Failure::refused(anyhow!(why), help));
    }
    let is_auto = sandbox == Sandbox::Auto;
    let probed = if is_auto {
        probe(Mode::Docker, docker_host).or_else(|_| probe(Mode::Namespaces, docker_host))
    } else {
        probe(sandbox::mode(sandbox), docker_host)
    };
    let without = "--sandbox off lets each role see the other's folder";
    let mut probed = probed.map_err(|reason| sandbox::no_sandbox(reason, without))?;
    if is_auto && probed.backend == Backend::Docker {
        "a Docker container for each role".clone_into(&mut probed.why);
    } else if is_auto {
        let parts = probed.backend.parts();
        probed.why = format!("{parts} around each role (no Docker daemon answers)");
    }
    if probed.backend == Backend::Off {
        output.warn("there is no sandbox: each role can see the other's folder, its history, and everything else that you can");
    }
    sandbox::say(&probed, output);
    Ok(probed)
}

/// Commands come with the project, and run code that a model wrote.
pub(super) fn warn_of_commands(project: &PhaseProject, output: &Output) {
    let both = [Who::Builder, Who::Verifier].map(|who| project.commands(who).keys());
    let names: BTreeSet<&str> = both.into_iter().flatten().map(String::as_str).collect();
    if !names.is_empty() {
        let names = Vec::from_iter(names).join(", ");
        output.warn(&format!(
            "commands of {PHASE_CONFIG} run with all your rights, and what they start, too: {names}"
        ));
    }
}

/// A role's relative path to the specs: they have the same path inside and outside its sandbox.
fn way(own: &Path, root: &Path) -> String {
    let specs = root.join(SPECS);
    let common = own
        .ancestors()
        .find(|folder| specs.starts_with(folder))
        .unwrap_or(root);
    let up = own
        .strip_prefix(common)
        .map_or(0, |down| down.components().count());
    let down = specs.strip_prefix(common).unwrap_or(&specs);
    format!("{}{}", "../".repeat(up), down.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_a_role_names_the_specs_as_it_can_open_them() {
        let root = Path::new("/p");
        for (own, way_there) in [
            ("/p/src", "../.abl/specs"),
            ("/p/.abl/tests", "../specs"),
            ("/p/a/b", "../../.abl/specs"),
            ("/p", ".abl/specs"),
        ] {
            assert_eq!(way(Path::new(own), root), way_there, "{own}");
        }
    }
}
