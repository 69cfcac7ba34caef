//! A loop of somebody else: it is in no file of this crate, and gets every promise.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod haiku;

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex};

use code_commit_engine::Event;
use code_commit_fixtures::project;
use code_commit_llm::{Model, Scripted, scripted::Entry};
use code_commit_logging::Redactor;
use code_commit_perform::Past;
use code_commit_report::{Output, Stream};
use code_commit_runner::Cancel;
use code_commit_runs::driver::forecast;
use code_commit_runs::host::OpenModel;
use code_commit_runs::undo;
use code_commit_runs::{Exit, Failure, Host, Project, chronicle, clean, resume};
use code_commit_settings::{Environment, Keys, Settings};
use rustix::process::{Signal, getpid, kill_process};

use crate::haiku::{Haiku, LOOPS};

/// The first two answers write a verse each.
struct Poet;

impl OpenModel for Poet {
    fn open(&self, _: &Settings, _: &Keys, _: Host<'_>) -> Result<Box<dyn Model>, Failure> {
        let verse = |text: &str| Entry {
            text: text.to_owned(),
            ..Entry::default()
        };
        let both = [
            "^^^haiku.txt\none\n^^^end\n",
            "^^^haiku.txt\none\ntwo\n^^^end\n",
        ];
        Ok(Box::new(Scripted::new(both.map(verse).into())))
    }
}

#[derive(Clone, Default)]
struct Page(Arc<Mutex<Vec<u8>>>);

impl Write for Page {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Scene {
    root: PathBuf,
    /// Removes the folder in the end.
    _project: Option<project::Project>,
    environment: Environment,
    page: Page,
    output: Output,
}

impl Scene {
    fn new() -> Self {
        let project = project::Project::with(&[("README.md", "a poem\n")]).unwrap();
        let root = project.root().to_owned();
        Self {
            _project: Some(project),
            ..Self::at(root)
        }
    }

    fn at(root: PathBuf) -> Self {
        let variables = [
            ("PATH", "/usr/local/bin:/usr/bin:/bin"),
            ("HOME", "/nonexistent"),
        ];
        let environment =
            Environment::of(variables.map(|(name, value)| (name.into(), OsString::from(value))));
        let page = Page::default();
        let stream = || Stream::new(page.clone(), false);
        let mut output = Output::new(stream(), stream());
        output.json = true;
        Self {
            root,
            _project: None,
            environment,
            page,
            output,
        }
    }

    fn host(&self) -> Host<'_> {
        let Self {
            root,
            environment,
            output,
            ..
        } = self;
        Host {
            folder: Ok(root),
            environment,
            output,
            loops: LOOPS,
            models: &Poet,
            cancel: None,
        }
    }

    /// What was printed since it was asked last.
    fn said(&self) -> String {
        String::from_utf8(std::mem::take(&mut *self.page.0.lock().unwrap())).unwrap()
    }

    fn poem(&self) -> Option<String> {
        fs::read_to_string(self.root.join("haiku.txt")).ok()
    }

    fn runs(&self) -> Vec<PathBuf> {
        let project = Project::here(self.host()).unwrap();
        let all = project.registry().all().unwrap();
        all.iter().map(|known| known.path(&project.root)).collect()
    }

    /// How often the model was asked, in the only run.
    fn asked(&self) -> usize {
        let runs = self.runs();
        assert_eq!(runs.len(), 1, "{runs:?}");
        Past::read(runs.first().unwrap())
            .unwrap()
            .lines
            .iter()
            .filter(|line| matches!(line, Event::Asked(_)))
            .count()
    }

    fn summary(&self) -> String {
        let said = self.said();
        let is_summary = |line: &&str| line.contains("\"event\":\"summary\"");
        said.lines()
            .rfind(is_summary)
            .unwrap_or_default()
            .to_owned()
    }
}

#[test]
fn ctrl_c_names_the_way_on_and_resume_asks_no_question_twice() {
    let scene = Scene::new();
    let project = Project::here(scene.host()).unwrap();
    let haiku = Haiku::of(&project);
    haiku.then.set(Some(Cancel::set));
    let stopped = haiku.start(None).unwrap_err();
    assert!(
        stopped.help.contains("code-commit resume ") && stopped.help.ends_with("-haiku"),
        "{}",
        stopped.help
    );
    stopped.tell(scene.host().output);
    assert!(scene.summary().contains("\"outcome\":\"stopped\""));
    // An unfinished run stays.
    let none = clean::Request {
        keep: Some(0),
        ..clean::Request::default()
    };
    clean::run(&none, scene.host()).unwrap();
    assert_eq!(
        resume::run(&resume::Request::default(), scene.host()).unwrap(),
        Exit::Done
    );
    assert_eq!(
        (scene.asked(), scene.poem().as_deref()),
        (2, Some("one\ntwo\n"))
    );
    let over = resume::run(&resume::Request::default(), scene.host()).unwrap_err();
    assert_eq!(over.exit, Exit::NothingToDo);
}

/// The folder in which a process of this test is to kill itself after the first verse.
const KILLED_IN: &str = "HAIKU_KILLED_IN";

#[test]
#[expect(clippy::disallowed_methods, reason = "a process of its own is killed")]
fn after_a_kill_resume_asks_no_question_twice() {
    if let Some(folder) = std::env::var_os(KILLED_IN) {
        let scene = Scene::at(folder.into());
        let project = Project::here(scene.host()).unwrap();
        let haiku = Haiku::of(&project);
        haiku
            .then
            .set(Some(|_| kill_process(getpid(), Signal::KILL).unwrap()));
        haiku.start(None).unwrap();
    }
    let scene = Scene::new();
    let itself = ["--exact", "after_a_kill_resume_asks_no_question_twice"];
    let mut killed = Command::new(std::env::current_exe().unwrap());
    let ended = killed
        .args(itself)
        .env(KILLED_IN, &scene.root)
        .status()
        .unwrap();
    assert_eq!(
        (ended.signal(), scene.poem().as_deref()),
        (Some(Signal::KILL.as_raw()), Some("one\n"))
    );
    assert_eq!(
        resume::run(&resume::Request::default(), scene.host()).unwrap(),
        Exit::Done
    );
    assert_eq!(
        (scene.asked(), scene.poem().as_deref()),
        (2, Some("one\ntwo\n"))
    );
}

#[test]
fn the_same_work_goes_on_with_its_unfinished_run_and_is_answered_under_its_key() {
    let scene = Scene::new();
    let project = Project::here(scene.host()).unwrap();
    let haiku = Haiku::of(&project);
    haiku.then.set(Some(Cancel::set));
    haiku.start(Some("snow")).unwrap_err();
    let done = Haiku::of(&project).start(Some("snow")).unwrap();
    assert_eq!(
        (done.exit, done.from_record, scene.asked()),
        (Exit::Done, false, 2)
    );
    assert!(scene.summary().contains("\"outcome\":\"done\""));
    let again = Haiku::of(&project).start(Some("snow")).unwrap();
    assert_eq!(
        (again.exit, again.from_record, scene.asked()),
        (Exit::Done, true, 2)
    );
    assert!(scene.summary().contains("\"from_record\":true"));
    assert!(scene.runs()[0].join("summary.json").is_file());
}

#[test]
fn a_finished_run_is_found_shown_as_a_page_undone_and_removed() {
    let mut scene = Scene::new();
    let project = Project::here(scene.host()).unwrap();
    Haiku::of(&project).start(None).unwrap();
    let found = chronicle::find(None, scene.host()).unwrap().facts();
    assert!(found.name.ends_with("-haiku"), "{}", found.name);
    assert_eq!((&*found.kind, &*found.verdict), ("haiku", "done"));
    let run = chronicle::find(None, scene.host())
        .unwrap()
        .whole(&project.root, &Redactor::default())
        .unwrap();
    let page = code_commit_page::run(&run, &|_, _| None);
    assert!(
        page.contains("haiku.txt") && page.contains("Round 2"),
        "{page}"
    );
    scene.output.json = false;
    assert_eq!(
        undo::run(&undo::Request::default(), scene.host()).unwrap(),
        Exit::Done
    );
    let said = scene.said();
    assert!(said.contains("restored 1 file to its state"), "{said}");
    assert_eq!(scene.poem(), None);
    let none = clean::Request {
        keep: Some(0),
        ..clean::Request::default()
    };
    assert_eq!(clean::run(&none, scene.host()).unwrap(), Exit::Done);
    assert_eq!(scene.runs().len(), 0);
    assert_eq!(
        forecast("verse 1 about snow", scene.host().output),
        Exit::Done
    );
}
