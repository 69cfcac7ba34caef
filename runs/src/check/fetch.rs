//! What the package managers of a project fetch: into the project's layers over their caches, and nowhere else.

use std::fs;
use std::path::Path;

use anyhow::anyhow;
use code_commit_logging::millis;
use code_commit_names::{MANAGERS, Manager};
use code_commit_repo::WorkTree;
use code_commit_report::{BAD, Output, phrases, printable};
use code_commit_runner::{Command, Confinement, Ended, Env, Lack, Ran, View, programs_in};
use code_commit_settings::{Keys, Origin, Setting, Settings};
use serde_json::json;

use crate::commit::plan;
use crate::commit::plan::Task;
use crate::exit::{Exit, Failure};
use crate::host::Host;
use crate::sandbox::{self, Otherwise};
use crate::{caches, lock, place};

/// Folder in the state folder for the view of the tree, which is removed at the end.
const VIEW: &str = "fetch";

/// Fetches with each package manager that the files of the project show, and tells of each. The first that fails
/// ends it: `Unfit`.
pub(super) fn all(settings: &Settings, tree: &WorkTree, host: Host<'_>) -> Result<Exit, Failure> {
    let Host {
        environment,
        output,
        ..
    } = host;
    output.strike_out(Keys::find(environment, tree.root()).exposed());
    let env = sandbox::build_env(settings, environment);
    let managers = usable(tree.root(), &env, output);
    if managers.is_empty() {
        output.report(
            "nothing to fetch: no file at the root belongs to a package manager that fetches ahead",
        );
        return Ok(Exit::Done);
    }
    let _lock = lock::take(tree, host)?;
    let cancel = crate::interrupt::watched()?;
    let mut confinement = around(settings, &managers, tree, host)?;
    let state = place::state(tree)?;
    for Manager { fetch, .. } in managers {
        confinement.access.view = Some(view(&state)?);
        let command = Command {
            deadline: Some(settings.build_timeout.value),
            limits: sandbox::limits(settings),
            ..Command::new(["sh", "-c", fetch], tree.root(), env.clone())
        };
        let ran = code_commit_runner::run(&command, &confinement, &cancel, &mut |_, _| {});
        caches::remove_layers(&state, VIEW).map_err(Failure::cannot_make)?;
        let done = ran.map_err(|error| Failure::refused(error, "see code-commit doctor"))?;
        let ran = Ran {
            output: &done,
            root: tree.root(),
            env: &env,
            confinement: &confinement,
        };
        let exit = tell(fetch, &ran, output);
        if exit != Exit::Done {
            return Ok(exit);
        }
    }
    Ok(Exit::Done)
}

/// Warns of what is not fetched, and why.
fn usable(root: &Path, env: &Env, output: &Output) -> Vec<&'static Manager> {
    let entries = code_commit_dir::list(root).into_iter().flatten().flatten();
    let files: Vec<String> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    let used = MANAGERS
        .iter()
        .filter(|manager| files.iter().any(|file| manager.is_shown_by(file)));
    let is_usable = |manager: &&Manager| {
        let Manager { name, fetch, .. } = manager;
        let program = fetch.split(' ').next().unwrap_or_default();
        if fetch.is_empty() {
            let hosts: String = manager
                .hosts()
                .map(|host| format!(" --allow-host {host}"))
                .collect();
            let why = "has no command that only fills a cache; a build that fetches with it needs";
            output.warn(&format!("not fetched: {name} {why}{hosts}"));
        } else if programs_in(env.get("PATH"), root, program).is_empty() {
            output.warn(&format!(
                "not fetched: `{fetch}`, because `{program}` is not installed"
            ));
        } else {
            return true;
        }
        false
    };
    used.filter(is_usable).collect()
}

/// The sandbox of builds, with the hosts of the package managers.
fn around(
    settings: &Settings,
    managers: &[&Manager],
    tree: &WorkTree,
    host: Host<'_>,
) -> Result<Confinement, Failure> {
    let mut settings = settings.clone();
    let hosts = managers.iter().flat_map(|manager| manager.hosts());
    settings.hosts.extend(hosts.map(|name| Setting {
        value: name.to_owned(),
        origin: Origin::Default,
    }));
    let task = Task::commit(String::new(), String::new(), Vec::new(), &settings);
    let confinement =
        sandbox::confine(tree, &plan(settings, tree, task)?, Otherwise::Refuse, host)?;
    if confinement.rung.has_views() && confinement.access.caches.is_some() {
        return Ok(confinement);
    }
    Err(Failure::refused(
        anyhow!(
            "what is fetched could not stay: {} has no layers over caches here",
            confinement.rung
        ),
        format!(
            "use --sandbox namespaces; to get it, {}",
            code_commit_runner::how_to_get_namespaces()
        ),
    ))
}

/// An empty layer over the tree, which nothing is taken from.
fn view(state: &Path) -> Result<View, Failure> {
    let view = View {
        upper: state.join(VIEW).join("upper"),
        work: state.join(VIEW).join("work"),
    };
    let made = caches::remove_layers(state, VIEW).and_then(|()| fs::create_dir_all(&view.upper));
    made.and_then(|()| fs::create_dir(&view.work))
        .map_err(Failure::cannot_make)?;
    Ok(view)
}

fn tell(line: &str, ran: &Ran<'_>, output: &Output) -> Exit {
    let (done, lack) = (ran.output, ran.lack());
    let code = lack.as_ref().map(|lack| lack.kind.code());
    let (what, help) = lack.map_or_else(
        || (phrases::ended(done.ended), "see its output".to_owned()),
        |Lack { what, help, .. }| (what, help),
    );
    let lack = code.map(|code| json!({ "code": code, "message": what, "remedy": help }));
    output.object(&json!({ "fetched": line, "lack": lack, "ended": done.ended, "elapsed_ms": millis(done.elapsed), "output": done.text() }));
    let took = phrases::seconds(done.elapsed);
    if done.success() {
        output.report(&format!("fetched: {line} ({took})"));
        return Exit::Done;
    }
    output.report(printable(&done.text()).trim_end());
    output.report(&output.paint(
        BAD,
        &format!("unfit: `{line}`: {} ({took})", printable(&what)),
    ));
    output.report_prose(&format!("help: {}", printable(&help)));
    if done.ended == Ended::Interrupted {
        Exit::Interrupted
    } else {
        Exit::Unfit
    }
}
