//! The driver cycle of a run through the public interface: begun, resumed, undone and removed.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod own_code;

use std::ffi::OsString;
use std::io;

use code_commit_fixtures::demo::{BREAKS_THE_BUILD, FILES, MENDS_IT, TOUCHES_GIT};
use code_commit_fixtures::project::Project;
use code_commit_llm::{Model, Scripted, scripted::Entry};
use code_commit_repo::WorkTree;
use code_commit_report::{Output, Stream};
use code_commit_runs::commit::{Query, Which};
use code_commit_runs::host::OpenModel;
use code_commit_runs::{
    Exit, Failure, Host, again, changes, chronicle, clean, commit, registry::Registry, resume, undo,
};
use code_commit_settings::{Environment, Keys, Sandbox, Settings};

/// A model that gives these replies in order.
struct Replies(&'static [&'static str]);

impl OpenModel for Replies {
    fn open(&self, _: &Settings, _: &Keys, _: Host<'_>) -> Result<Box<dyn Model>, Failure> {
        let entry = |text: &&str| Entry {
            text: (*text).to_owned(),
            ..Entry::default()
        };
        Ok(Box::new(Scripted::new(self.0.iter().map(entry).collect())))
    }
}

/// For the default loop, without a sandbox.
fn request() -> commit::Request {
    let mut request = commit::Request::default();
    request.layer.model.name = Some("scripted/replies".parse().unwrap());
    request.layer.sandbox.mode = Some(Sandbox::Off);
    request
}

/// A project with a failing test, and what its runs need.
struct Scene {
    project: Project,
    environment: Environment,
    output: Output,
}

impl Scene {
    fn new() -> Self {
        let project = Project::with(&FILES).unwrap();
        project
            .write(
                "agent-config/codeRollup.txt",
                b"src/greet.sh: see the query\n",
            )
            .unwrap();
        let variables = [
            ("PATH", "/usr/local/bin:/usr/bin:/bin"),
            ("HOME", "/nonexistent"),
        ];
        let environment =
            Environment::of(variables.map(|(name, value)| (name.into(), OsString::from(value))));
        let output = Output::new(
            Stream::new(io::sink(), false),
            Stream::new(io::sink(), false),
        );
        Self {
            project,
            environment,
            output,
        }
    }

    fn host<'h>(&'h self, models: &'h Replies) -> Host<'h> {
        let Self {
            project,
            environment,
            output,
        } = self;
        let loops = code_commit_runs::LOOPS;
        Host {
            folder: Ok(project.root()),
            environment,
            output,
            loops,
            models,
            cancel: None,
        }
    }

    /// A run of the default loop with these replies.
    fn commit(&self, replies: &'static [&'static str]) -> Result<Exit, Failure> {
        commit::run(Which::Commit, &request(), self.host(&Replies(replies)))
    }

    /// The names of the runs, the newest first.
    fn runs(&self) -> usize {
        Registry::of(&WorkTree::at(self.project.root()).unwrap())
            .all()
            .unwrap()
            .len()
    }
}

#[test]
fn a_run_is_recorded_undone_and_removed() {
    let scene = Scene::new();
    let before = scene.project.status().unwrap();
    assert_eq!(
        scene
            .commit(&[TOUCHES_GIT, BREAKS_THE_BUILD, MENDS_IT])
            .unwrap(),
        Exit::Done
    );
    assert_ne!(scene.project.status().unwrap(), before);

    let nobody = Replies(&[]);
    let host = scene.host(&nobody);
    let found = chronicle::find(None, host).unwrap();
    let changed = changes::of_run(scene.project.root(), &found.path).unwrap();
    let added: Vec<_> = changed.iter().map(|change| change.stat().added).collect();
    assert_eq!(added, [Some(3), Some(2)]);
    let (begin, end, _) = found.ends("run.json", 1).unwrap();
    assert_eq!((&*begin, &*end), ("{", "\n"));
    assert_eq!(found.ends("../run.json", 1), None);
    let unread = found.path.join("backup/before/tree");
    std::fs::create_dir_all(&unread).unwrap();
    let undo = || undo::run(&undo::Request::default(), host);
    assert_eq!(undo().unwrap_err().exit, Exit::TreeNotRestored);
    std::fs::remove_dir(&unread).unwrap();
    assert_eq!(undo().unwrap(), Exit::Done);
    assert_eq!(scene.project.status().unwrap(), before);

    assert_eq!(scene.runs(), 1);
    let none = clean::Request {
        keep: Some(0),
        ..clean::Request::default()
    };
    assert_eq!(clean::run(&none, host).unwrap(), Exit::Done);
    assert_eq!(scene.runs(), 0);
}

#[test]
fn a_run_without_an_answer_is_resumed_and_no_answer_is_asked_for_twice() {
    let scene = Scene::new();
    assert_eq!(
        scene.commit(&[BREAKS_THE_BUILD]).unwrap(),
        Exit::ModelUnavailable
    );
    // The first reply is used up: the model of the second call starts after it.
    let replies = Replies(&[TOUCHES_GIT, MENDS_IT]);
    let request = resume::Request::default();
    assert_eq!(
        resume::run(&request, scene.host(&replies)).unwrap(),
        Exit::Done
    );
    let over = resume::run(&request, scene.host(&replies)).unwrap_err();
    assert_eq!((over.exit, scene.runs()), (Exit::NothingToDo, 1));
}

#[test]
fn a_run_that_cannot_begin_leaves_no_record() {
    let scene = Scene::new();
    std::fs::remove_file(scene.project.root().join("build.sh")).unwrap();
    let refused = scene.commit(&[MENDS_IT]).unwrap_err();
    assert_eq!((refused.exit, scene.runs()), (Exit::Refused, 0));
}

#[test]
fn a_run_that_changed_nothing_is_not_closed_by_an_undo_that_does_not_name_it() {
    let scene = Scene::new();
    let project = &scene.project;
    for file in ["query", "gemini-system-prompt"] {
        let file = format!("agent-config/{file}.txt");
        project.write(&file, "x".repeat(70_000).as_bytes()).unwrap();
    }
    scene.commit(&[TOUCHES_GIT]).unwrap();
    let nobody = Replies(&[]);
    let host = scene.host(&nobody);
    let run = chronicle::find(None, host).unwrap().facts();
    assert_eq!(run.query.len(), 64 << 10);
    let open = undo::run(&undo::Request::default(), host).unwrap_err();
    assert_eq!(open.exit, Exit::NothingToDo);
    commit::run(Which::Implement, &request(), host).unwrap();
    assert!(!project.status().unwrap().contains("logs/"));
}

#[test]
fn a_run_that_goes_on_from_a_failed_build_is_shown_its_output() {
    let scene = Scene::new();
    scene.commit(&[BREAKS_THE_BUILD]).unwrap();
    let replies = Replies(&[MENDS_IT]);
    let host = scene.host(&replies);
    let mut request = request();
    request.query = Query::given("no").unwrap();
    again::run(None, request, host).unwrap();
    let query = chronicle::find(None, host).unwrap().facts().query;
    assert!(query.contains("FAILED: "), "{query}");
}
