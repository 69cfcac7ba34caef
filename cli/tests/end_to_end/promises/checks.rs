//! Each promise as one check that runs the program on the stage of any loop.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::portable::place_in;
use crate::promises::loops::{Loop, Second, Stage, Undo};
use crate::scenes::files;
use crate::scenes::program::{Ran, start_heard};

fn succeeds(mut command: Command) -> Ran {
    Ran::of(&mut command).exits(0)
}

/// A finished run, and its name.
fn finished(of: &Loop) -> (Box<dyn Stage>, String) {
    let stage = (of.stage)(Second::Answered);
    succeeds(stage.run(&[]));
    let name = name(of, &*stage);
    (stage, name)
}

/// A run that a signal ends while its second question has no answer.
fn ended_by(signal: Signal, of: &Loop, more: &[&str]) -> (Box<dyn Stage>, Ran) {
    let stage = (of.stage)(Second::Hangs);
    let mut child = start_heard(&mut stage.run(more));
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
fn goes_on(of: &Loop, stage: &dyn Stage, command: Command) -> Ran {
    let ran = succeeds(command);
    let (runs, asked) = (folders(of, stage).len(), stage.asked());
    assert_eq!((runs, asked), (1, of.answers + 1), "{ran}");
    ran
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
    files::name(run)
}

/// Its last line is a summary.
fn summary(ran: &Ran) -> Value {
    let last = ran.objects().pop().unwrap_or_default();
    assert_eq!(last["event"], "summary", "{ran}");
    last
}

/// The command prints the name of the run, for a person and in an object of `--json`. `RUN` among its arguments is that name.
fn names(of: &Loop, args: &[&str]) {
    let (stage, name) = finished(of);
    let args: Vec<&str> = args
        .iter()
        .map(|arg| if *arg == "RUN" { name.as_str() } else { arg })
        .collect();
    succeeds(stage.command(&args)).out_has(&name);
    let json = succeeds(stage.command(&[&args[..], &["--json"]].concat()));
    let is_named = |line: &Value| line["run"] == name.as_str();
    assert!(json.objects().iter().any(is_named), "{json}");
}

/// The same command continues a killed run.
pub(super) fn kill(of: &Loop) {
    let (stage, _) = ended_by(Signal::KILL, of, &[]);
    goes_on(of, &*stage, stage.run(&[]));
}

/// An interrupted run is continued by its name.
pub(super) fn resume(of: &Loop) {
    let (stage, _) = ended_by(Signal::INT, of, &[]);
    let resume = stage.command(&["resume", &name(of, &*stage), "--json"]);
    summary(&goes_on(of, &*stage, resume));
}

/// Ctrl-C names the command that continues, and the same command does.
pub(super) fn ctrl_c(of: &Loop) {
    let (stage, ran) = ended_by(Signal::INT, of, &[]);
    let ran = ran.exits(130);
    let mut lines = ran.err.lines();
    let help = lines.find(|line| line.starts_with(" help: "));
    assert!(help.unwrap_or_default().contains("code-commit "), "{ran}");
    goes_on(of, &*stage, stage.run(&[]));
}

/// The same work under the same key is answered from the record.
pub(super) fn key(of: &Loop) {
    let stage = (of.stage)(Second::Answered);
    succeeds(stage.run(&["--key", "ticket 7"]));
    let again = succeeds(stage.run(&["--key", "ticket 7", "--json"]));
    assert_eq!(stage.asked(), of.answers, "{again}");
    assert_eq!(summary(&again)["from_record"], true, "{again}");
}

pub(super) fn json(of: &Loop) {
    let stage = (of.stage)(Second::Answered);
    summary(&succeeds(stage.run(&["--json"])));
}

/// A summary before the error.
pub(super) fn json_stopped(of: &Loop) {
    let ran = ended_by(Signal::INT, of, &["--json"]).1.exits(130);
    let lines = ran.objects();
    let [.., summary, error] = &lines[..] else {
        panic!("{ran}")
    };
    assert_eq!(error["event"], "error", "{ran}");
    assert_eq!(summary["event"], "summary", "{ran}");
    assert_eq!(summary["summary"]["outcome"], "stopped", "{ran}");
    assert!(summary["summary"]["usage"].is_object(), "{ran}");
}

/// Says how large the first prompt is; sends and changes nothing.
pub(super) fn dry_run(of: &Loop) {
    let stage = (of.stage)(Second::Answered);
    let state = || {
        let mut files = files::named(&stage.root());
        files.retain(|(name, _)| !name.starts_with(".git/"));
        (files, files::entries(stage.root().join(of.runs)))
    };
    let before = state();
    let ran = succeeds(stage.run(&["--dry-run"]));
    ran.out_has(" tokens");
    assert_eq!(stage.asked(), 0, "{ran}");
    assert!(state() == before, "the same files: {ran}");
}

pub(super) fn runs(of: &Loop) {
    names(of, &["runs"]);
}

pub(super) fn show(of: &Loop) {
    names(of, &["show", "RUN"]);
}

/// The record names no folder of the machine that it was made on.
pub(super) fn portable(of: &Loop) {
    let (stage, name) = finished(of);
    let run = stage.root().join(of.runs).join(name);
    assert_eq!(place_in(&run, &stage.root()), None);
}

pub(super) fn page(of: &Loop) {
    let (stage, name) = finished(of);
    let ran = succeeds(stage.command(&["page", &name]));
    assert!(ran.out.starts_with("<!doctype html>"), "{ran}");
    ran.out_has(&name);
}

/// Restores the file, or refuses and names a command of git that does.
pub(super) fn undo(of: &Loop) {
    let stage = (of.stage)(Second::Answered);
    let content = || fs::read(stage.root().join(of.file)).ok();
    let before = content();
    succeeds(stage.run(&[]));
    let after = content();
    assert_ne!(before, after);
    let ran = Ran::of(&mut stage.command(&["undo", &name(of, &*stage)]));
    match of.undo {
        Undo::Restores => assert_eq!((ran.code, content()), (Some(0), before), "{ran}"),
        Undo::NamesGit => {
            ran.exits(3).err_has("`git re");
            assert_eq!(content(), after, "nothing is touched");
        }
    }
}

/// Removes a finished run; keeps an interrupted one, which then continues.
pub(super) fn clean(of: &Loop) {
    let (stage, name) = finished(of);
    let clean = succeeds(stage.command(&["clean", "--keep", "0"]));
    let run = stage.root().join(of.runs).join(&name);
    assert!(!run.exists(), "a finished run goes: {clean}");
    let (stage, _) = ended_by(Signal::INT, of, &[]);
    succeeds(stage.command(&["clean", "--keep", "0"])).out_has("not over: code-commit ");
    goes_on(of, &*stage, stage.run(&[]));
}
