//! The two roles: what each can reach, its desk, and where it works.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use code_commit_agent::Permissions;
use code_commit_engine::Named as _;
use code_commit_loop_phase::{Phases, Place, Repository as Where, Role as Who};
use code_commit_perform::{Cast, Counted, Repository, Role, Watched, Worker};
use code_commit_repo::WorkTree;
use code_commit_report::Output;
use code_commit_runner::{Confinement, Env, Mode, Rung, View, probe};
use code_commit_settings::phase::{Config, Entry};

use crate::agents::{address, protected};
use crate::exit::Failure;
use crate::phase::access;
use crate::phase::access::Granted;
use crate::phase::agents::{self, Chosen, Crew};
use crate::phase::desk::{self, Counter};
use crate::phase::folders::SPECS;
use crate::phase::request::{Desk, SOCKET, Side};
use crate::phase::work::Phase;
use crate::sandbox;
use code_commit_names::ours::{ABL, PHASE_CONFIG, STATE};

/// The folder in the state folder for what commands change in a view of the source.
const LAYERS: &str = "desk-view";

/// Builder and verifier, their folders and repositories.
pub(crate) struct Team {
    builder: Role,
    verifier: Role,
    /// The folder with the phases' own files.
    own: PathBuf,
    tests: PathBuf,
    specs: PathBuf,
    /// What is no test below the tests.
    no_tests: Vec<String>,
    src_repository: Repository,
    tests_repository: Repository,
}

impl Cast<Phases> for Team {
    fn role(&self, role: Who) -> &Role {
        match role {
            Who::Builder => &self.builder,
            Who::Verifier => &self.verifier,
        }
    }

    fn folder(&self, place: Place) -> PathBuf {
        match place {
            Place::Abl => self.own.clone(),
            Place::Tests => self.tests.clone(),
            Place::Specs => self.specs.clone(),
            Place::Src => self.builder.cwd.clone(),
        }
    }

    fn counted(&self, place: Place) -> Counted {
        let without = |repository: &Repository| Counted::NotIgnored {
            without: repository.exclude.clone(),
        };
        match place {
            // Whatever the project ignores, the specs count.
            Place::Abl | Place::Specs => Counted::All,
            Place::Tests => Counted::NotIgnored {
                without: self.no_tests.clone(),
            },
            Place::Src => without(&self.src_repository),
        }
    }

    fn repository(&self, repository: Where) -> &Repository {
        match repository {
            Where::Src => &self.src_repository,
            Where::Tests => &self.tests_repository,
        }
    }
}

impl Phase<'_> {
    /// By role.
    pub(crate) fn desks(&self) -> Result<BTreeMap<&'static str, Counter>, Failure> {
        let program = std::env::current_exe().context("cannot tell where this program is")?;
        let config = &self.project.config;
        let commands = [
            (Who::Builder.name(), &config.builder_commands),
            (Who::Verifier.name(), &config.verifier_commands),
        ];
        let sandbox = self.around_commands()?;
        let desk = |(name, commands): (&'static str, &BTreeMap<String, Entry>)| {
            let counter = Counter::new(&program, self.desk(commands), self.site.host.output);
            let mut counter = counter.context("cannot make the desk for abl-cmd")?;
            let sandbox = sandbox.clone().filter(|_| !commands.is_empty());
            if let Some(sandbox) = sandbox {
                let is_verifiers = name == Who::Verifier.name();
                counter.confine(if is_verifiers {
                    self.without_changes(sandbox)
                } else {
                    sandbox
                });
            }
            Ok((name, counter))
        };
        commands.into_iter().map(desk).collect()
    }

    /// The sandbox of the commands, if there is any: like the roles', but for containers, which give no view.
    fn around_commands(&self) -> Result<Option<Confinement>, Failure> {
        let project = self.project;
        let mut commands = [
            &project.config.builder_commands,
            &project.config.verifier_commands,
        ]
        .into_iter();
        if self.probed.rung == Rung::Off || commands.all(BTreeMap::is_empty) {
            return Ok(None);
        }
        let (root, src, tests) = (&project.root, project.src(), project.tests());
        let env = sandbox::build_env(&self.settings, self.site.host.environment);
        let values = |places: &[code_commit_settings::Setting<PathBuf>]| -> Vec<PathBuf> {
            places.iter().map(|place| place.value.clone()).collect()
        };
        let granted = Granted {
            readable: values(&self.settings.readable),
            writable: values(&self.settings.writable),
            network: self.settings.network.value,
            hosts: sandbox::hosts(&self.settings),
        };
        let inside = access::dot_gits(root, src, tests)?;
        let around = access::around(root, (src, &inside), tests, &[], &env);
        let access = access::of_commands(around, root, tests, &granted);
        let other = if self.probed.rung == Rung::Docker {
            probe(Mode::Namespaces, None).ok()
        } else {
            None
        };
        let probed = other.unwrap_or_else(|| self.probed.clone());
        sandbox::hosts_can_be_opened(&self.settings, probed.rung)?;
        Ok(Some(probed.confine(access)))
    }

    /// What commands of the verifier change in the source is gone after the turn: the builder builds.
    fn without_changes(&self, mut sandbox: Confinement) -> Confinement {
        let src = self.project.src();
        let is_ours = || {
            src.metadata()
                .is_ok_and(|it| it.uid() == rustix::process::geteuid().as_raw())
        };
        let is_possible = sandbox.rung.has_views() && self.state != src.join(STATE) && is_ours();
        if is_possible {
            let layers = self.state.join(LAYERS);
            sandbox.access.view = Some(View {
                upper: layers.join("upper"),
                work: layers.join("work"),
            });
        } else {
            self.site.host.output.warn(desk::READ_ONLY);
            sandbox.access.read_only.push(src.to_owned());
        }
        sandbox
    }

    pub(crate) fn team(&self) -> Result<Team, Failure> {
        let logs = self.logs();
        let role = |who: Who, crew: &Crew| self.role(who, crew, self.desks.get(who.name()), &logs);
        let repository = |git: &code_commit_repo::Git| {
            let exclude = self.project.never_committed(git.folder());
            Repository {
                git: git.clone(),
                exclude,
            }
        };
        Ok(Team {
            builder: role(Who::Builder, &self.builder)?,
            verifier: role(Who::Verifier, &self.verifier)?,
            own: self.project.root.join(ABL),
            tests: self.project.tests().to_owned(),
            specs: self.project.root.join(SPECS),
            no_tests: self.project.no_tests(),
            src_repository: repository(&self.project.src_git),
            tests_repository: repository(&self.project.tests_git),
        })
    }

    fn desk(&self, commands: &BTreeMap<String, Entry>) -> Desk {
        let env = sandbox::build_env(&self.settings, self.site.host.environment);
        let text = |word: &OsStr| word.to_str().map(str::to_owned);
        Desk {
            socket: PathBuf::new(),
            commands: commands.clone(),
            specs: self.project.specs.clone(),
            cwd: self.project.root.clone(),
            env: env
                .iter()
                .filter_map(|(name, value)| Some((text(name)?, text(value)?)))
                .collect(),
            timeout_seconds: self.args.command_timeout.as_secs().max(1),
            confinement: None,
            side: Side::Open,
        }
    }

    fn role(
        &self,
        who: Who,
        crew: &Crew,
        desk: Option<&Counter>,
        logs: &Path,
    ) -> Result<Role, Failure> {
        let project = self.project;
        let (own, other) = if who == Who::Builder {
            (project.src(), project.tests())
        } else {
            (project.tests(), project.src())
        };
        let name = who.name();
        let mut env = Env::allowed(self.site.host.environment.all().clone(), &[]);
        let visible = desk
            .map(Counter::visible)
            .map(Vec::from)
            .unwrap_or_default();
        // The harness's own folder is read-only or hidden if it is in the role's.
        let state = self.state.join("agents").join(name);
        let home = desk
            .filter(|_| state.starts_with(own))
            .map_or(state, |desk| desk.home(name));
        let inside = access::dot_gits(&project.root, own, other)?;
        let access = access::around(&project.root, (own, &inside), other, &visible, &env);
        if let Some(desk) = desk {
            let path = env
                .get("PATH")
                .map_or_else(|| "/usr/local/bin:/usr/bin:/bin".into(), OsString::from);
            let folders = [desk.bin()].into_iter().chain(std::env::split_paths(&path));
            env.set(
                "PATH",
                std::env::join_paths(folders).unwrap_or(path.clone()),
            );
            env.set(SOCKET, desk.socket());
        }
        Ok(Role {
            worker: self.worker(&crew.first),
            others: crew
                .others
                .iter()
                .map(|chosen| self.worker(chosen))
                .collect(),
            cwd: own.to_owned(),
            confinement: self.probed.confine(access),
            env,
            home: Some(home),
            permissions: Permissions::Skip,
            timeout: self
                .settings
                .max_time
                .value
                .into_iter()
                .chain([self.args.turn_timeout])
                .min(),
            idle_timeout: Some(self.args.idle_timeout),
            watched: self.watched(own),
            log: Some(logs.join(format!("{name}.log"))),
        })
    }

    fn worker(&self, chosen: &Chosen) -> Worker {
        let address = address(chosen.cli.kind, self.args.base_url.as_ref());
        Worker {
            cli: chosen.cli.clone(),
            model: Some(chosen.model.clone()),
            extra_env: agents::passed(self.site.host.environment)
                .into_iter()
                .chain(address)
                .collect(),
            key: Some(chosen.key.clone()),
        }
    }

    /// Everything that the sandbox lets it change, except what the configuration protects.
    fn watched(&self, own: &Path) -> Watched {
        let root = &self.project.root;
        let below = own
            .strip_prefix(root)
            .map(|below| below.display().to_string())
            .unwrap_or_default();
        let mut skip = access::skipped();
        // A verifier may take its folder for the project, and put its failures into `.abl/tests` there.
        skip.retain(|name| name != ABL || own != self.project.tests());
        Watched {
            root: own.to_owned(),
            tree: WorkTree::at(own).ok(),
            within: if below.is_empty() { below } else { below + "/" },
            skip,
            may_touch: None,
            protect: protected(&self.settings),
            shown: vec![(way(own, root), root.join(SPECS))],
        }
    }
}

/// Commands come with the project, and run code that a model wrote.
pub(super) fn warn_of_commands(config: &Config, output: &Output) {
    let mut names: Vec<&str> = config
        .builder_commands
        .keys()
        .chain(config.verifier_commands.keys())
        .map(String::as_str)
        .collect();
    names.sort_unstable();
    names.dedup();
    if !names.is_empty() {
        output.warn(&format!(
            "commands of {} run with all your rights, and what they start, too: {}",
            PHASE_CONFIG,
            names.join(", ")
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
    format!(
        "{}{}",
        "../".repeat(up),
        specs.strip_prefix(common).unwrap_or(&specs).display()
    )
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
