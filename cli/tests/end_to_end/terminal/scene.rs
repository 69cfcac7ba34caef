//! A project with a scripted model, run on a terminal or without one.

use std::process::Command;

use fixtures::demo::FILES;
use fixtures::project::Project;
use fixtures::server::{Script, Server};

use crate::scenes::hermetic;

/// A key that opens nothing.
pub const KEY: &str = "AIzaSyTerminal-key-of-no-use-33";

/// A project with a model behind it.
pub struct Scene {
    pub project: Project,
    pub server: Server,
}

impl Scene {
    /// The demo's project with its roll-up.
    pub fn new(script: Script) -> Self {
        let scene = Self { project: Project::with(&FILES).unwrap(), server: Server::start(script).unwrap() };
        assert!(scene.program(&["rollup"], &[]).output().unwrap().status.success());
        scene
    }

    /// The program in the project's root, with a key.
    pub fn program(&self, args: &[&str], environment: &[(&str, &str)]) -> Command {
        let key = [("GEMINI_API_KEY", KEY)];
        let environment = [&key, environment].concat();
        hermetic::program(self.project.root(), self.project.beside(), args, &environment)
    }

    /// The flags of a run that asks this scene's model and has no wall, which has tests of its own.
    pub fn flags(&self) -> [&str; 6] {
        ["--model", "gemini-test", "--base-url", self.server.origin(), "--sandbox", "off"]
    }
}

/// Compares with a stored snapshot in which times, ports and temporary places have no say.
pub fn check(name: &str, scene: &Scene, text: &str) {
    let text = text
        .replace(&scene.project.root().display().to_string(), "[ROOT]")
        .replace(&scene.project.beside().display().to_string(), "[BESIDE]")
        .replace(scene.server.origin(), "[SERVER]");
    insta::with_settings!({
        filters => [
            (r"\d{4}(-\d\d){5}", "[STAMP.............]"),
            (r"\b\d\.\d s\b", "[T] s"),
        ],
        prepend_module_to_snapshot => false,
    }, { insta::assert_snapshot!(name, text) });
}
