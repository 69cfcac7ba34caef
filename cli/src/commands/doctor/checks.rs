//! The checks, one function per subject.

use std::io::Write as _;
use std::path::Path;

use code_commit_llm::{Blind, Model};
use code_commit_repo::WorkTree;
use code_commit_runner::Backend;
use code_commit_runs::commit::rollup::Rollup;
use code_commit_runs::gitignore::hides_agent_config;
use code_commit_runs::preflight::{self, CODE_ROLLUP, Missing, QUERY};
use code_commit_runs::rollup::Stored;
use code_commit_runs::trusted::Trusted;
use code_commit_runs::{Failure, Host, place, sandbox};
use code_commit_settings::{Environment, Files, Keys, Settings, Standing, keys};

use super::Check;
use crate::args::DoctorArgs;

/// Every check, in the order in which a user would fix problems.
pub(super) fn all(args: &DoctorArgs, host: Host<'_>) -> Result<Vec<Check>, Failure> {
    let (environment, output) = (host.environment, host.output);
    let root = host.root()?;
    let keys = Keys::find(environment, &root);
    output.strike_out(keys.exposed());
    let trusted = host.trusted();
    let mut checks = vec![git(&trusted)];
    let (settings, files) = configuration(&root, environment, args);
    checks.extend(files);
    checks.extend(sandbox(&settings, environment));
    checks.extend(keys_found(&settings, &keys));
    match place::work_tree(&root) {
        Ok(tree) => {
            checks.extend(model(args, &settings, &keys, host));
            checks.push(state_folder(&tree));
            checks.extend(project(&tree, &settings, &trusted));
        }
        Err(failure) => checks.push(Check::failed("work tree", failure)),
    }
    checks.extend(agents(&trusted));
    Ok(checks)
}

/// Without it the default loop cannot tell what is not committed; work orders and the loops of agents need it.
fn git(trusted: &Trusted) -> Check {
    trusted.programs().find("git").map_or_else(
        |error| Check::absent("git", format!("{error}; order, phase and spec need it")),
        |path| Check::good("git", shown(&path)),
    )
}

fn configuration(
    root: &Path,
    environment: &Environment,
    args: &DoctorArgs,
) -> (Settings, Vec<Check>) {
    let files = match Files::read(root, environment) {
        Ok(files) => files,
        Err(failure) => {
            let settings = Settings::of_flags(&args.settings.layer);
            return (
                settings,
                vec![Check::failed("configuration", failure.into())],
            );
        }
    };
    let loaded = files.settings(environment, &args.settings.layer);
    let mut checks = Vec::new();
    if let Some(file) = &files.user {
        checks.push(Check::good("configuration", shown(&file.path)));
    }
    if let Some(file) = &files.project {
        let trust = match files.standing {
            Standing::Trusted => "trusted",
            Standing::Changed => "changed since it was trusted, so it can only tighten",
            Standing::Unknown => "not trusted, so it can only tighten",
        };
        let lines: Vec<String> = std::iter::once(format!("{} ({trust})", shown(&file.path)))
            .chain(
                loaded
                    .ignored
                    .iter()
                    .map(|what| format!("has no effect: {what}")),
            )
            .collect();
        checks.push(Check::good("configuration", lines.join("\n")));
    }
    if checks.is_empty() {
        checks.push(Check::good("configuration", "no file, all defaults"));
    }
    (loaded.settings, checks)
}

/// The configured sandbox must work; for the others it reports why they do not.
fn sandbox(settings: &Settings, environment: &Environment) -> Vec<Check> {
    let docker_host = environment.docker_host();
    let wanted = match code_commit_runner::probe(sandbox::mode(settings.sandbox()), docker_host) {
        Ok(probed) => Check::good("sandbox", probed.why),
        Err(reason) => Check::failed(
            "sandbox",
            sandbox::no_sandbox(reason, "or, with all of your rights: --sandbox off"),
        ),
    };
    let backends = code_commit_runner::survey(docker_host)
        .into_iter()
        .map(|(backend, outcome)| {
            let name = format!("  {backend}");
            match outcome {
                Ok(()) => Check::good(name, "works"),
                Err(why) => {
                    let check = Check::absent(name, why);
                    if backend == Backend::Namespaces {
                        return check.help(code_commit_runner::how_to_get_namespaces());
                    }
                    check
                }
            }
        });
    std::iter::once(wanted).chain(backends).collect()
}

fn keys_found(settings: &Settings, keys: &Keys) -> Vec<Check> {
    let providers = settings.all_providers();
    let found = keys.found(&providers).map(|(provider, key, source)| {
        Check::good(
            format!("key {}", provider.unwrap_or("other")),
            format!("{key} from {source}"),
        )
    });
    let mut checks: Vec<Check> = found.collect();
    checks.extend(
        preflight::key(settings, keys)
            .err()
            .map(|missing| from("key", missing)),
    );
    if checks.is_empty() {
        let remedy = settings
            .provider_of(settings.models().first())
            .or_else(|| providers.first().cloned())
            .as_ref()
            .map(keys::remedy);
        checks.push(Check::absent(
            "key",
            format!("none; {}", remedy.unwrap_or_default()),
        ));
    }
    checks
}

fn model(args: &DoctorArgs, settings: &Settings, keys: &Keys, host: Host<'_>) -> Vec<Check> {
    let name = settings.models().to_string();
    let client = match host.models.open(settings, keys, host) {
        Ok(client) => client,
        Err(failure) => return vec![Check::failed("model", failure)],
    };
    let at = settings
        .model
        .base_url
        .as_ref()
        .map(|url| format!(" at {}", url.0))
        .unwrap_or_default();
    let mut checks = vec![Check::good("model", format!("{name}{at}"))];
    if args.online {
        let models = code_commit_llm::all_of(&*client);
        let is_one = models.len() == 1;
        checks.extend(models.into_iter().map(|model| service(model, is_one)));
    }
    checks
}

/// Whether the model's service knows its key and its name. In a list each has its own line.
fn service(model: &dyn Model, is_one: bool) -> Check {
    let name = if is_one {
        String::new()
    } else {
        format!("{}: ", model.id())
    };
    match model.check(&mut Blind) {
        Ok(()) => Check::good("service", format!("{name}key and model work")),
        Err(error) => {
            let hint = error.hint();
            Check::bad(
                "service",
                format!("{name}{:#}", anyhow::Error::from(error)),
                hint,
            )
        }
    }
}

/// Lock and transactions are stored here.
fn state_folder(tree: &WorkTree) -> Check {
    let folder = match tree.state_place() {
        Ok(folder) => folder,
        Err(error) => {
            let hint = error.hint();
            return Check::bad("state", format!("{:#}", anyhow::Error::from(error)), hint);
        }
    };
    // What only looks leaves nothing behind, not even that folder.
    let existing = folder.ancestors().find(|above| above.is_dir());
    let written = tempfile::tempfile_in(existing.unwrap_or(&folder))
        .and_then(|mut file| file.write_all(&vec![0; ROOM_TO_BEGIN]));
    match written {
        Ok(()) => Check::good("state", shown(&folder)),
        Err(error) => Check::bad(
            "state",
            format!("cannot write in {}: {error}", shown(&folder)),
            "make sure that you own the folder and that the disk has space",
        ),
    }
}

/// Free disk space in bytes to require: about what the record of a small run takes.
const ROOM_TO_BEGIN: usize = 64 << 10;

/// What the default loop checks before it begins.
fn project(tree: &WorkTree, settings: &Settings, trusted: &Trusted) -> Vec<Check> {
    let root = tree.root();
    let hidden = trusted
        .surroundings()
        .is_ok_and(|around| hides_agent_config(around).unwrap_or(false));
    let check = |name: &str, outcome: Result<String, Missing>| match outcome {
        Ok(text) => Check::good(name, text),
        Err(missing) => from(name, missing),
    };
    let write = preflight::query_hint(QUERY);
    let build = &settings.build_command();
    // An unreadable index is reported by the run that reads it.
    let index = tree.index().ok();
    let files = index.iter().flat_map(code_commit_repo::Index::iter);
    let tracked: Vec<String> = files
        .filter_map(|one| one.file())
        .map(str::to_owned)
        .collect();
    vec![
        check(
            ".gitignore",
            preflight::agent_config_is_untracked(&tracked).map(|()| {
                let keeps = if hidden {
                    "keeps"
                } else {
                    "the next run adds a line that keeps"
                };
                format!("{keeps} /agent-config out")
            }),
        ),
        check(
            "query",
            preflight::input(root, QUERY, &write).map(|_| QUERY.to_owned()),
        ),
        check(
            "code roll-up",
            preflight::input(root, CODE_ROLLUP, "make it with: code-commit rollup")
                .map(|text| roll_up(tree, &text, trusted)),
        ),
        check(
            "build",
            preflight::build_command(root, build, trusted.environment())
                .map(|()| build.text.clone()),
        ),
    ]
}

/// A run also begins with an outdated roll-up, and warns. A tree that cannot be inspected is reported by the
/// run.
fn roll_up(tree: &WorkTree, text: &str, trusted: &Trusted) -> String {
    if Stored::ours(tree.root()).is_some() {
        return format!("{CODE_ROLLUP}, rewritten when a run begins");
    }
    let rollup = Rollup::at(tree.root(), CODE_ROLLUP.to_owned(), text);
    let git = trusted.git(tree.root()).ok();
    let status = git.and_then(|git| tree.status(&git).ok());
    let dirty = status.unwrap_or_default().dirty;
    tree.index()
        .ok()
        .and_then(|index| rollup.is_older(tree.root(), &index, &dirty))
        .unwrap_or_else(|| CODE_ROLLUP.to_owned())
}

/// Only the loops of agents need one.
fn agents(trusted: &Trusted) -> Vec<Check> {
    [
        code_commit_agent::Kind::Claude,
        code_commit_agent::Kind::Gemini,
        code_commit_agent::Kind::Codex,
    ]
    .into_iter()
    .map(
        |kind| match code_commit_agent::find(kind, trusted.programs()) {
            Ok(found) => {
                let version = found
                    .version
                    .map(|version| format!(" {version}"))
                    .unwrap_or_default();
                Check::good(
                    "agent",
                    format!("{}{version}, {}", kind.name(), shown(&found.program)),
                )
            }
            Err(missing) => Check::absent("agent", format!("{missing}; {}", missing.hint())),
        },
    )
    .collect()
}

fn from(name: &str, missing: Missing) -> Check {
    Check::bad(name, missing.what, missing.hint)
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}
