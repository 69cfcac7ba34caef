//! A project with phases: its folders, its specs, how far it has come.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use engine::Named as _;
use logging::sha256_hex;
use loop_phase::state::{State, Status};
use loop_phase::{FAILED_SPECS, Inputs, Limits, PhaseSpec, Role, RoleInputs, Start};
use names::ours::{ABL, PHASE_CONFIG};
use repo::Git;
use settings::Environment;
use settings::phase::Config;

use crate::exit::Failure;
use crate::phase::folders::{Folders, refuse_links};
use crate::text;

/// Where the specs are.
pub const SPECS: &str = ".abl/specs";
/// The person's description.
pub const PROJECT: &str = ".abl/project.md";
/// Where prompts of the roles may be, the first that is there.
const PROMPTS: [&str; 2] = ["prompts", ".abl/prompts"];

/// A project as it stands.
#[derive(Debug)]
pub(crate) struct Project {
    /// Its root.
    pub root: PathBuf,
    /// Its configuration.
    pub config: Config,
    /// Where the roles work.
    folders: Folders,
    /// Specs by phase.
    pub specs: BTreeMap<u32, String>,
    /// Where the loop is, as the file says.
    pub state: State,
    /// The source folder's repository.
    pub src_git: Git,
    /// The tests folder's.
    pub tests_git: Git,
}

impl Project {
    /// Looks everything over; makes the two folders and their repositories if they are not there. `root` is without links.
    pub(crate) fn open(root: &Path, environment: &Environment) -> Result<Self, Failure> {
        if root.to_str().is_none() {
            let error = anyhow!("{} is not UTF-8, and the roles are told of it", root.display());
            return Err(Failure::refused(error, "move the project to a folder of another name"));
        }
        refuse_links(root)?;
        let config = Config::parse(read(&root.join(PHASE_CONFIG))?.as_deref())
            .map_err(|message| Failure::refused(anyhow!("{PHASE_CONFIG}: {message}"), "mend the file"))?;
        let folders = Folders::find(root, &config)?;
        if folders.src() == root {
            // Only what is there can be hidden: a builder could else write the verifier's prompt of the next run.
            let prompts = root.join(PROMPTS[0]);
            make_folder(&prompts)?;
        }
        let specs = require_specs(root)?;
        let state = match read(&root.join(ABL).join(loop_phase::STATE))? {
            Some(text) => serde_json::from_str(&text).map_err(|error| {
                let file = format!("{ABL}/{}", loop_phase::STATE);
                Failure::refused(
                    anyhow!("{file}: {error}"),
                    format!("mend the file, or remove it: code-commit phase trust N adopts what the commits in {} say", config.src),
                )
            })?,
            None => State::default(),
        };
        let src_git = repository(folders.src(), environment)?;
        let tests_git = repository(folders.tests(), environment)?;
        Ok(Self { root: root.to_owned(), config, folders, specs, state, src_git, tests_git })
    }

    /// Where the source is.
    pub(crate) fn src(&self) -> &Path {
        self.folders.src()
    }

    /// Where the tests are.
    pub(crate) fn tests(&self) -> &Path {
        self.folders.tests()
    }

    /// Whether a phase has passed for the specs as they are. A commit that says so is only a name: anybody may have made it.
    pub(crate) fn has_passed(&self, phase: u32) -> bool {
        self.state.has_passed(phase, &self.specs_sha256(phase))
    }

    /// What a pass is bound to: the specs up to this one.
    pub(crate) fn specs_sha256(&self, phase: u32) -> String {
        let specs = self
            .specs
            .range(..=phase)
            .map(|(number, text)| format!("{number} {}\n", sha256_hex(text.as_bytes())));
        sha256_hex(specs.collect::<String>().as_bytes())
    }

    /// Phases that have passed for other specs than there are now.
    pub(crate) fn stale(&self) -> Vec<u32> {
        let passed = self.state.phases_completed.iter().copied();
        passed.filter(|phase| self.specs.contains_key(phase) && !self.has_passed(*phase)).collect()
    }

    /// Whether there is a commit that says that a phase has passed.
    pub(crate) fn is_committed_as_passed(&self, phase: u32) -> Result<bool, Failure> {
        // A message ends with a line end, which `$` does not match.
        let commit = self.src_git.commit_of(&format!("HEAD^{{/^phase{phase}/passed[[:space:]]}}"));
        let commit = commit.context("cannot look at the commits of the source folder")?;
        Ok(commit.is_some())
    }

    /// The phase that is open, or the first one that has not passed; none when all have.
    pub(crate) fn next_phase(&self) -> Option<u32> {
        let open = self.state.current.phase.filter(|phase| self.specs.contains_key(phase));
        open.into_iter().chain(self.specs.keys().copied()).find(|phase| !self.has_passed(*phase))
    }

    /// What the loop is told. `builder` and `verifier` are the models that will really be asked.
    pub(crate) fn inputs(&self, phase: u32, builder: &str, verifier: &str) -> Result<Inputs, Failure> {
        let mut specs = Vec::new();
        for (number, text) in &self.specs {
            let title = loop_phase::spec::title(text, *number);
            if title.is_none() && *number == phase {
                let message =
                    anyhow!("the first line of {SPECS}/phase{phase}.md is not `# Phase {phase}: Title`");
                return Err(Failure::refused(
                    message,
                    "code-commit phase check names every fault of the specs",
                ));
            }
            let completed = self.has_passed(*number);
            let specs_sha256 = self.specs_sha256(*number);
            let title = title.unwrap_or_default().to_owned();
            specs.push(PhaseSpec {
                number: *number,
                title,
                text: text.as_str().into(),
                completed,
                specs_sha256,
            });
        }
        let config = &self.config;
        let role =
            |who: Role, folder: &Path, commands: &BTreeMap<String, settings::phase::Entry>, model: &str| {
                let commands =
                    commands.iter().map(|(name, entry)| (name.clone(), entry.description.clone())).collect();
                Ok::<_, Failure>(RoleInputs {
                    prompt: self.role_prompt(who)?.into(),
                    workspace: folder.display().to_string(),
                    commands,
                    model: model.to_owned(),
                })
            };
        Ok(Inputs {
            phase,
            specs,
            project: read(&self.root.join(PROJECT))?.map(Into::into),
            builder: role(Role::Builder, self.src(), &config.builder_commands, builder)?,
            verifier: role(Role::Verifier, self.tests(), &config.verifier_commands, verifier)?,
            limits: Limits { iterations: config.iterations, ..Limits::default() },
            start: self.start(phase),
        })
    }

    fn role_prompt(&self, role: Role) -> Result<String, Failure> {
        for folder in PROMPTS {
            if let Some(text) = read(&self.root.join(folder).join(format!("{}.md", role.name())))? {
                return Ok(text);
            }
        }
        Ok(match role {
            Role::Builder => prompt::phase::BUILDER,
            Role::Verifier => prompt::phase::VERIFIER,
        }
        .to_owned())
    }

    /// Where a phase begins that has no journal to go on with.
    fn start(&self, phase: u32) -> Start {
        // Anything but a file of text is for the verifier to mend, whose turn removes it first.
        let failures = read(&self.tests().join(FAILED_SPECS)).unwrap_or(None);
        let failures = failures.filter(|text| !loop_phase::failed::parse(text).is_pass()).map(Into::into);
        let current = &self.state.current;
        if current.phase != Some(phase) {
            return Start { iteration: 1, builder_done: false, failures };
        }
        let (iteration, builder_done) = match current.status {
            Status::Building => (current.verifier_iteration, current.builder_done),
            Status::Verifying => (current.verifier_iteration, true),
            Status::ContractsFailed => (current.verifier_iteration + 1, false),
            // A person has looked at what failed: all iterations are there again.
            Status::Clean | Status::Stuck | Status::Completed => (1, false),
        };
        Start { iteration: iteration.clamp(1, self.config.iterations), builder_done, failures }
    }
}

/// The specs by phase; a project without any is none.
fn require_specs(root: &Path) -> Result<BTreeMap<u32, String>, Failure> {
    let specs = specs(root)?;
    if specs.is_empty() {
        return Err(Failure::refused(
            anyhow!("there is no spec, {SPECS}/phase1.md"),
            "code-commit phase init makes what a project needs",
        ));
    }
    Ok(specs)
}

/// The specs by phase.
pub fn specs(root: &Path) -> Result<BTreeMap<u32, String>, Failure> {
    let folder = root.join(SPECS);
    let Ok(entries) = fs::read_dir(&folder) else { return Ok(BTreeMap::new()) };
    let mut specs = BTreeMap::new();
    for entry in entries {
        let entry = entry.with_context(|| format!("cannot list {}", folder.display()))?;
        if let Some(number) = entry.file_name().to_str().and_then(loop_phase::spec::number)
            && let Some(text) = read(&entry.path())?
        {
            specs.insert(number, text);
        }
    }
    Ok(specs)
}

/// A file's text; none if it is not there. A link is not followed and a pipe not read: a role may have planted it.
pub fn read(path: &Path) -> Result<Option<String>, Failure> {
    if path.is_symlink() { Ok(None) } else { text::read(path) }
}

fn make_folder(folder: &Path) -> Result<(), Failure> {
    let made = fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()));
    made.map_err(Failure::cannot_make)
}

/// The repository of a folder, made if it is not there. One further up is not it: neither role may see the other's history.
fn repository(folder: &Path, environment: &Environment) -> Result<Git, Failure> {
    make_folder(folder)?;
    if !folder.join(".git").exists() {
        repo::init(folder).map_err(|error| Failure::refused(error, "make the folder writable"))?;
    }
    Ok(Git::new(folder, environment.all().clone()))
}
