//! Each promise as one check that runs the program on the stage of any loop.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::portable::place_in;
use crate::promises::loops::{Loop, Second, Stage, Undo};
use crate::scenes::files;
use crate::scenes::program::Ran;

/// The error is what was seen instead.
pub(super) type Verdict = Result<(), String>;

fn must(holds: bool, what: &str, seen: &Ran) -> Verdict {
    if holds {
        Ok(())
    } else {
        Err(format!("{what}: {seen}"))
    }
}

/// Exit code 0.
fn succeeds(mut command: Command) -> Result<Ran, String> {
    let ran = Ran::of(&mut command);
    must(ran.code == Some(0), "exit code 0", &ran).map(|()| ran)
}

/// A finished run, and its name.
fn finished(of: &Loop) -> Result<(Box<dyn Stage>, String), String> {
    let stage = (of.stage)(Second::Answered);
    succeeds(stage.run(&[]))?;
    let name = name(of, &*stage);
    Ok((stage, name))
}

/// A run that a signal ends while its second question has no answer.
fn ended_by(signal: Signal, of: &Loop, more: &[&str]) -> (Box<dyn Stage>, Ran) {
    let stage = (of.stage)(Second::Hangs);
    let mut child = stage
        .run(more)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while !stage.hangs() && child.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    assert!(
        stage.hangs(),
        "{}",
        Ran::from(child.wait_with_output().unwrap())
    );
    kill_process(Pid::from_child(&child), signal).unwrap();
    (stage, child.wait_with_output().unwrap().into())
}

/// Finishes the only run, and asks again only the question that had no answer.
fn goes_on(of: &Loop, stage: &dyn Stage, command: Command) -> Result<Ran, String> {
    let ran = succeeds(command)?;
    let (asked, wanted, runs) = (stage.asked(), of.answers + 1, folders(of, stage).len());
    let what = format!("1 run of {wanted} questions, not {runs} of {asked}");
    must((runs, asked) == (1, wanted), &what, &ran).map(|()| ran)
}

/// The folders of all runs.
fn folders(of: &Loop, stage: &dyn Stage) -> Vec<PathBuf> {
    let mut folders = files::entries(stage.root().join(of.runs));
    folders.retain(|path| path.is_dir());
    folders
}

/// The name of the only run.
fn name(of: &Loop, stage: &dyn Stage) -> String {
    let [run] = &folders(of, stage)[..] else {
        panic!("{} has not one run", of.name)
    };
    run.file_name().unwrap().to_str().unwrap().to_owned()
}

fn objects(ran: &Ran) -> Result<Vec<Value>, String> {
    let lines: Result<Vec<Value>, _> = ran.out.lines().map(serde_json::from_str).collect();
    lines.map_err(|error| format!("one JSON object a line, but {error}: {ran}"))
}

/// Its last line is a summary, and holds what is asked of it.
fn ends_in_summary(ran: &Ran, holds: impl Fn(&Value) -> bool) -> Verdict {
    let last = objects(ran)?.pop().unwrap_or_default();
    must(
        last["event"] == "summary" && holds(&last),
        "a summary as the last line",
        ran,
    )
}

/// The command prints the name of the run, for a person and in an object of `--json`. `RUN` among its arguments is that name.
fn names(of: &Loop, args: &[&str]) -> Verdict {
    let (stage, name) = finished(of)?;
    let args: Vec<&str> = args
        .iter()
        .map(|arg| if *arg == "RUN" { name.as_str() } else { arg })
        .collect();
    let ran = succeeds(stage.command(&args))?;
    must(ran.out.contains(&name), "the name of the run", &ran)?;
    let json = succeeds(stage.command(&[&args[..], &["--json"]].concat()))?;
    must(
        objects(&json)?
            .iter()
            .any(|line| line["run"] == name.as_str()),
        "an object with the run",
        &json,
    )
}

/// The same command continues a killed run.
pub(super) fn kill(of: &Loop) -> Verdict {
    let (stage, _) = ended_by(Signal::KILL, of, &[]);
    goes_on(of, &*stage, stage.run(&[])).map(drop)
}

/// An interrupted run is continued by its name.
pub(super) fn resume(of: &Loop) -> Verdict {
    let (stage, _) = ended_by(Signal::INT, of, &[]);
    let resume = stage.command(&["resume", &name(of, &*stage), "--json"]);
    ends_in_summary(&goes_on(of, &*stage, resume)?, |_| true)
}

/// Ctrl-C names the command that continues, and the same command does.
pub(super) fn ctrl_c(of: &Loop) -> Verdict {
    let (stage, ran) = ended_by(Signal::INT, of, &[]);
    must(ran.code == Some(130), "exit code 130", &ran)?;
    let help = ran
        .err
        .lines()
        .find(|line| line.starts_with(" help: "))
        .unwrap_or_default();
    must(
        help.contains("code-commit "),
        "the command that goes on",
        &ran,
    )?;
    goes_on(of, &*stage, stage.run(&[])).map(drop)
}

/// The same work under the same key is answered from the record.
pub(super) fn key(of: &Loop) -> Verdict {
    let stage = (of.stage)(Second::Answered);
    succeeds(stage.run(&["--key", "ticket 7"]))?;
    let again = succeeds(stage.run(&["--key", "ticket 7", "--json"]))?;
    must(stage.asked() == of.answers, "no further question", &again)?;
    ends_in_summary(&again, |last| last["from_record"] == true)
}

pub(super) fn json(of: &Loop) -> Verdict {
    let stage = (of.stage)(Second::Answered);
    ends_in_summary(&succeeds(stage.run(&["--json"]))?, |_| true)
}

pub(super) fn json_stopped(of: &Loop) -> Verdict {
    let (_, ran) = ended_by(Signal::INT, of, &["--json"]);
    must(ran.code == Some(130), "exit code 130", &ran)?;
    let mut lines = objects(&ran)?;
    let (error, summary) = (
        lines.pop().unwrap_or_default(),
        lines.pop().unwrap_or_default(),
    );
    let is_told =
        summary["summary"]["outcome"] == "stopped" && summary["summary"]["usage"].is_object();
    must(
        error["event"] == "error" && summary["event"] == "summary" && is_told,
        "a summary before the error",
        &ran,
    )
}

/// Says how large the first prompt is; sends and changes nothing.
pub(super) fn dry_run(of: &Loop) -> Verdict {
    let stage = (of.stage)(Second::Answered);
    let state = || {
        let mut files = files::named(&stage.root());
        files.retain(|(name, _)| !name.starts_with(".git/"));
        (files, files::entries(stage.root().join(of.runs)))
    };
    let before = state();
    let ran = succeeds(stage.run(&["--dry-run"]))?;
    must(
        ran.out.contains(" tokens"),
        "the size of the first prompt",
        &ran,
    )?;
    must(stage.asked() == 0, "no question", &ran)?;
    must(state() == before, "the same files", &ran)
}

pub(super) fn runs(of: &Loop) -> Verdict {
    names(of, &["runs"])
}

pub(super) fn show(of: &Loop) -> Verdict {
    names(of, &["show", "RUN"])
}

/// The record names no folder of the machine that it was made on.
pub(super) fn portable(of: &Loop) -> Verdict {
    let (stage, name) = finished(of)?;
    let run = stage.root().join(of.runs).join(name);
    place_in(&run, &stage.root()).map_or(Ok(()), Err)
}

pub(super) fn page(of: &Loop) -> Verdict {
    let (stage, name) = finished(of)?;
    let ran = succeeds(stage.command(&["page", &name]))?;
    must(
        ran.out.starts_with("<!doctype html>") && ran.out.contains(&name),
        "a page of the run",
        &ran,
    )
}

/// Restores the file, or refuses and names a command of git that does.
pub(super) fn undo(of: &Loop) -> Verdict {
    let stage = (of.stage)(Second::Answered);
    let content = || fs::read(stage.root().join(of.file)).ok();
    let before = content();
    succeeds(stage.run(&[]))?;
    let after = content();
    assert_ne!(before, after);
    let undo = stage.command(&["undo", &name(of, &*stage)]);
    match of.undo {
        Undo::Restores => {
            let ran = succeeds(undo)?;
            must(content() == before, "the file as it was", &ran)
        }
        Undo::NamesGit => {
            let ran = Ran::of(&mut { undo });
            must(
                ran.code == Some(3) && ran.err.contains("`git re"),
                "the way out",
                &ran,
            )?;
            must(content() == after, "nothing is touched", &ran)
        }
    }
}

/// Removes a finished run; keeps an interrupted one, which then continues.
pub(super) fn clean(of: &Loop) -> Verdict {
    let (stage, name) = finished(of)?;
    let clean = succeeds(stage.command(&["clean", "--keep", "0"]))?;
    must(
        !stage.root().join(of.runs).join(&name).exists(),
        "a finished run goes",
        &clean,
    )?;
    let (stage, _) = ended_by(Signal::INT, of, &[]);
    let clean = succeeds(stage.command(&["clean", "--keep", "0"]))?;
    must(
        clean.out.contains("not over: code-commit "),
        "an unfinished run stays",
        &clean,
    )?;
    goes_on(of, &*stage, stage.run(&[])).map(drop)
}
