//! `code-commit check`: the build, the commands of an order, or the check command of the specs, in its sandbox, and
//! nothing paid.

use std::rc::Rc;
use std::time::Duration;

use anyhow::anyhow;
use code_commit_engine::{Build, Built, Ended, Harness as _, Journaled};
use code_commit_guard::Guard;
use code_commit_logging::Stamp;
use code_commit_loop_order::WorkOrder;
use code_commit_perform::{BuildCommand, CommitWorld, Observer, Progress, Rules};
use code_commit_repo::WorkTree;
use code_commit_report::{BAD, GOOD, Ndjson, Output, Volume, phrases, printable, printable_name};
use code_commit_settings::{Keys, Options, Settings};
use serde_json::json;

pub(crate) mod traces;

use self::traces::{CHECK, put_away};
use crate::commit::fault;
use crate::commit::plan::{Plan, Task};
use crate::commit::run::{account, build_command, guard, seal};
use crate::driver::{UNLIKE_RECORDED, failure};
use crate::exit::{Exit, Failure};
use crate::host::Host;
use crate::model::asking;
use crate::preflight::{self, Missing};
use crate::project::Project;
use crate::records::{NewRun, RUNS};
use crate::registry::Registry;
use crate::sandbox;
use crate::{lock, order, place, spec};

/// What is checked: a build has no command line, since everybody calls it the build.
struct Subject {
    line: Option<String>,
    command: BuildCommand,
}

impl Subject {
    fn name(&self) -> String {
        self.line.as_ref().map_or_else(
            || "the build".to_owned(),
            |line| format!("`{}`", printable_name(line)),
        )
    }
}

/// Whose commands are checked.
#[derive(Debug, Clone, Copy)]
pub enum Of<'o> {
    /// The build.
    Build,
    /// The verification and the acceptance commands of an order, each within this time.
    Order(&'o WorkOrder, Duration),
    /// The check command of the specs.
    Specs,
}

/// Runs the commands as a run would, reports the verdict about each, and leaves the tree as it was. The worst decides.
pub fn run(layer: &Options, of: Of<'_>, host: Host<'_>) -> Result<Exit, Failure> {
    let tree = place::work_tree(host.here()?)?;
    let settings = crate::config::load(tree.root(), layer, host)?;
    with(settings, &tree, of, host)
}

/// As [`run`], with these settings.
pub fn with(
    settings: Settings,
    tree: &WorkTree,
    of: Of<'_>,
    host: Host<'_>,
) -> Result<Exit, Failure> {
    let Host {
        environment,
        output,
        ..
    } = host;
    let redactor = output.strike_out(Keys::find(environment, tree.root()).exposed());
    let lock = lock::take(tree, host)?;
    // A query is not needed: nobody is asked.
    let task = Task::commit(String::new(), String::new(), Vec::new(), &settings);
    let mut plan = Plan::new(settings, tree, task)?;
    let project = Project::of(tree, host);
    let guard = guard(&project, &plan)?;
    let subjects = subjects(of, &project, &guard, &mut plan)?;
    let Some(first) = subjects.first() else {
        return Ok(Exit::Done);
    };
    let name = format!("{}{CHECK}", Stamp::now().folder_name());
    let new = NewRun::create(
        &place::state(tree)?.join(RUNS),
        &name,
        redactor,
        "make the folder writable",
    )?;
    let folder = new.folder().clone();
    // Listed as long as it lasts: if this is killed, the next command finds it and clears up.
    Registry::of(tree).add(folder.path(), None)?;
    lock::under_way(&lock, tree, folder.path())?;
    let mut account = account(&plan, &project, tree, &first.command.settings.confinement)?;
    account.scope.keeps_nothing = true;
    let record = new
        .record(Ears(output.clone()))
        .map_err(Failure::no_record)?;
    let rules = Rules {
        root: tree.root().to_owned(),
        guard: guard.into(),
        lock: lock.into(),
    };
    let nobody = Rc::new(code_commit_llm::Scripted::new(Vec::new()));
    let world = CommitWorld {
        asking: asking(&plan.settings),
        account,
        ..CommitWorld::new(
            record,
            rules,
            nobody,
            crate::interrupt::watched(host.cancel)?,
        )
    };
    let mut harness = Journaled::new(world, Vec::new());
    let checked = (1..)
        .zip(&subjects)
        .try_fold(Exit::Done, |worst, (round, subject)| {
            harness.world().build = subject.command.clone();
            let built = harness.perform(Build { round })?;
            // Its record is gone at the end.
            let printed = code_commit_perform::output_text(&folder, &built.output.stored.file);
            let printed = printed
                .map(|text| text.as_str().to_owned())
                .unwrap_or_default();
            Ok(worse(worst, tell(&built, &printed, subject, of, host)))
        });
    let fault = |error| fault(error, tree.root(), &folder);
    let checked = checked.map_err(|stop| failure(stop, UNLIKE_RECORDED.to_owned(), fault));
    // Otherwise the next command restores what is left.
    let left = code_commit_perform::undo_folders(folder.path());
    if code_commit_changes::is_settled(folder.path()).unwrap_or(false)
        && left.is_ok_and(|left| left.is_empty())
    {
        put_away(tree, &folder)?;
    }
    if code_commit_changes::has_taken_in(folder.path()) {
        let folder = folder.path().display();
        output.warn(&format!(
            "files that were removed from the tree are kept in {folder}; delete it if you do not need them"
        ));
    }
    checked
}

fn subjects(
    of: Of<'_>,
    project: &Project<'_>,
    guard: &Guard,
    plan: &mut Plan,
) -> Result<Vec<Subject>, Failure> {
    let named = |(line, command)| Subject {
        line: Some(line),
        command,
    };
    match of {
        Of::Build => build(project, guard, plan).map(|command| {
            vec![Subject {
                line: None,
                command,
            }]
        }),
        Of::Order(order, timeout) => {
            let project = (project, guard);
            let commands = order::commands_to_check(order, timeout, project, &plan.settings)?;
            Ok(commands.into_iter().map(named).collect())
        }
        Of::Specs => {
            let command = spec::check_command(project, &plan.settings)?;
            Ok(vec![named(command)])
        }
    }
}

fn build(project: &Project<'_>, guard: &Guard, plan: &mut Plan) -> Result<BuildCommand, Failure> {
    let environment = project.host.environment;
    preflight::build_command(&project.root, &plan.settings.build_command(), environment)
        .map_err(|Missing { what, hint }| Failure::new(Exit::Unfit, anyhow!(what)).help(hint))?;
    // Without git, the build can still be checked.
    let dot_gits = project
        .trusted
        .status(&plan.settings)
        .unwrap_or_default()
        .dot_gits;
    seal(project, guard, &dot_gits, plan)?;
    let confinement = sandbox::confine(project, plan, &dot_gits)?;
    Ok(build_command(plan, environment, confinement))
}

/// What a machine lacks comes before what the code lacks.
fn worse(one: Exit, other: Exit) -> Exit {
    let rank = |exit: &Exit| {
        [Exit::Done, Exit::Failed, Exit::Unfit]
            .iter()
            .position(|known| known == exit)
    };
    if rank(&other) > rank(&one) {
        other
    } else {
        one
    }
}

/// Prints the verdict; gives the exit code. Before an order is carried out its commands may fail, or not be there yet.
fn tell(built: &Built, printed: &str, subject: &Subject, of: Of<'_>, host: Host<'_>) -> Exit {
    let output = host.output;
    let is_of_order = matches!(of, Of::Order(..));
    let took = phrases::seconds(Duration::from_millis(built.elapsed_ms));
    let (name, line) = (subject.name(), &subject.line);
    let (word, exit) = if built.passed() {
        ("green", Exit::Done)
    } else if !built.ended.has_started() {
        ("unfit", Exit::Unfit)
    } else if is_of_order && built.ended == Ended::TimedOut {
        ("hangs", Exit::Failed)
    } else {
        ("red", Exit::Failed)
    };
    output.object(&json!({ "command": line, "fitness": word, "ended": built.ended, "elapsed_ms": built.elapsed_ms, "output": printed }));
    if exit != Exit::Done && !is_of_order {
        output.report(printable(printed).trim_end());
    }
    if exit == Exit::Done {
        let already = if is_of_order { " already" } else { "" };
        output.report(&output.paint(GOOD, &format!("green{already}: {name} passes ({took})")));
    } else {
        let ended = if exit == Exit::Unfit {
            built.ended.to_string()
        } else {
            format!("fails: {}", phrases::ended(built.ended))
        };
        output.report(&output.paint(BAD, &format!("{word}: {name} {ended} ({took})")));
    }
    if is_of_order { Exit::Done } else { exit }
}

/// Hears warnings only, since the output of the build is shown at its end; a program that asks for more with `--verbose`
/// gets every event.
struct Ears(Output);

impl Observer for Ears {
    fn see(&mut self, progress: &Progress<'_>) {
        if self.0.json && self.0.volume == Volume::Verbose {
            Ndjson(self.0.clone()).see(progress);
        }
        if let Progress::Warning(problem) = progress {
            self.0.warn(&problem.message);
        }
    }
}
