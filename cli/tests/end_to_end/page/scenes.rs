//! A run of each loop, and the pages that were made of them.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use code_commit_fixtures::demo::{BREAKS_THE_BUILD, MENDS_IT, TOUCHES_GIT};
use serde_json::json;

use crate::scenes::program::Ran;
use crate::scenes::{commit, files, order, phase, spec};

/// A folder with pages.
pub(super) struct Pages(tempfile::TempDir);

impl Pages {
    pub(super) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(super) fn all(&self) -> Vec<PathBuf> {
        files::entries(self.0.path())
    }

    pub(super) fn keep(&self, name: &str, html: &str) {
        fs::write(self.0.path().join(format!("{name}.html")), html).unwrap();
    }

    pub(super) fn make(&self, name: &str, scene: &commit::Scene, args: &[&str]) {
        self.of(name, &mut scene.command(args, &[]));
    }

    #[track_caller]
    fn of(&self, name: &str, command: &mut Command) {
        let ran = Ran::of(command).exits(0);
        self.keep(name, &ran.out);
    }
}

/// `commit.html`, `implement.html`, and `all.html`, which is of the project with both.
pub(super) fn commit_and_implement(pages: &Pages) {
    let scene = commit::Scene::with_replies([
        TOUCHES_GIT,
        BREAKS_THE_BUILD,
        MENDS_IT,
        BREAKS_THE_BUILD,
        MENDS_IT,
    ]);
    assert_eq!(scene.commit(&[]).code, Some(0));
    pages.make("commit", &scene, &["page"]);
    scene.git(&["checkout", "-q", "--", "src"]);
    scene.git(&["add", "README.md"]);
    scene.system_prompt();
    let base = [
        "implement",
        "--base-url",
        scene.server.origin(),
        "--sandbox",
        "off",
        "--model",
        "gemini-test",
    ];
    assert_eq!(scene.run_keyed(&base).code, Some(0));
    pages.make("implement", &scene, &["page"]);
    pages.make("all", &scene, &["page", "--all"]);
}

/// `order.html`.
pub(super) fn one_order(pages: &Pages) {
    let scene = order::Scene::with(&[&order::greet(order::BAD), &order::greet(order::GOOD)]);
    scene.place_order(&json!({}));
    assert_eq!(scene.run(&["--commit"]).code, Some(0));
    pages.of("order", &mut scene.program(&["page"]));
}

/// `phase.html`.
pub(super) fn one_phase(pages: &Pages) {
    let scene = phase::Scene::new(&[
        ("builder-1", "echo one > app"),
        ("verifier-1", "fails 404"),
        ("builder-2", "echo two > app"),
        ("verifier-2", ": > failed_specs.md"),
    ]);
    assert_eq!(scene.run(&["run"]).code, Some(0));
    pages.of("phase", &mut scene.command(&["page"], &[]));
}

/// `spec.html`.
pub(super) fn one_spec(pages: &Pages) {
    let scene = spec::Scene::new(&[spec::PLAN, spec::DONE, spec::APPROVE]);
    scene.configure(&spec::all_settings());
    scene.run();
    pages.of("spec", &mut scene.command(&["page"], &[]));
}
