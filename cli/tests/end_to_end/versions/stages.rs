//! A small finished run of each loop, with one change, and the project that it can be put into.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::scenes::program::Ran;
use crate::scenes::{commit, files, order, phase, spec};

pub(super) const LOOPS: [&str; 4] = ["commit", "order", "phase", "spec"];
/// The list of runs in a repository's own state.
const LIST: &str = ".git/code-commit/known-runs.json";
/// What belongs to the machine: repositories, agents' homes, keys.
const NOT_KEPT: [&str; 4] = [".git", ".gitignore", ".code-commit", ".env"];
/// Stands for the folder with the runs of orders, which is not in the project.
const OUT: &str = "[OUT]";

/// A project in which the loop can work, with a model or agents that answer once.
pub(super) enum Stage {
    Commit(commit::Scene),
    Order(order::Scene),
    Phase(phase::Scene),
    Spec(spec::Scene),
}

impl Stage {
    pub(super) fn of(name: &str) -> Self {
        match name {
            "commit" => Self::Commit(commit::Scene::with_replies([
                code_commit_fixtures::demo::MENDS_IT,
            ])),
            "order" => Self::Order(order::Scene::with(&[&order::greet(order::GOOD)])),
            "phase" => Self::Phase(phase::Scene::new(&[("builder-1", "echo one > app")])),
            _ => {
                let scene = spec::Scene::new(&[spec::PLAN, spec::DONE, spec::APPROVE]);
                scene.configure(&json!({ "commit": true }));
                Self::Spec(scene)
            }
        }
    }

    pub(super) fn root(&self) -> PathBuf {
        match self {
            Self::Commit(scene) => scene.project.root().to_owned(),
            Self::Order(scene) => scene.root().to_owned(),
            Self::Phase(scene) => scene.project(""),
            Self::Spec(scene) => scene.root(),
        }
    }

    /// The folder with the runs.
    pub(super) fn runs(&self) -> PathBuf {
        match self {
            Self::Commit(_) => self.root().join("agent-config/logs"),
            Self::Order(scene) => scene.beside("out"),
            Self::Phase(_) => self.root().join(".abl/logs"),
            Self::Spec(_) => self.root().join(".git/code-commit/spec"),
        }
    }

    /// The program in the project, with keys and agents.
    pub(super) fn command(&self, args: &[&str]) -> Command {
        match self {
            Self::Commit(scene) => scene.keyed(args, &[]),
            Self::Order(scene) => {
                let mut command = scene.program(args);
                command.env("OPENAI_API_KEY", order::KEY);
                command
            }
            Self::Phase(scene) => scene.command(args, &[]),
            Self::Spec(scene) => scene.command(args, &[]),
        }
    }

    /// The loop's own command, which goes on with an unfinished run.
    pub(super) fn work(&self, more: &[&str]) -> Command {
        let own: &[&str] = match self {
            Self::Commit(scene) => return self.command(&[&scene.flags(), more].concat()),
            Self::Order(scene) => return scene.command(more),
            Self::Phase(_) => &["phase", "run", "--sandbox", "off"],
            Self::Spec(_) => &["spec", "run", "--focus", "Add X", "--sandbox", "off"],
        };
        self.command(&[own, more].concat())
    }

    /// Makes a run and keeps it: the folder `run/NAME`, the files of its project in `tree`, the list of runs if it is on
    /// one, and the run as a bundle.
    pub(super) fn record(&self, into: &Path) {
        let done = Ran::of(&mut self.work(&[]));
        assert_eq!(done.code, Some(0), "{done}");
        let (root, runs) = (self.root(), self.runs());
        let run = files::entries(&runs)
            .into_iter()
            .find(|path| path.is_dir())
            .unwrap();
        let name = run.file_name().unwrap().to_str().unwrap();
        for path in files::below(&root)
            .iter()
            .filter(|path| !path.starts_with(&runs))
        {
            let path = path.strip_prefix(&root).unwrap();
            if !path
                .components()
                .any(|part| NOT_KEPT.iter().any(|name| part.as_os_str() == *name))
            {
                files::write(&into.join("tree").join(path), "");
                fs::copy(root.join(path), into.join("tree").join(path)).unwrap();
            }
        }
        files::copy(&run, &into.join("run").join(name));
        if let Ok(list) = fs::read_to_string(root.join(LIST)) {
            files::write(
                &into.join("known-runs.json"),
                list.replace(&*runs.to_string_lossy(), OUT),
            );
        }
        let bundle = into.join("bundle");
        let exported =
            Ran::of(&mut self.command(&["export", name, "-o", bundle.to_str().unwrap()]));
        assert_eq!(exported.code, Some(0), "{exported}");
    }

    /// Puts such a run into this project; gives its folder.
    pub(super) fn put(&self, kept: &Path) -> PathBuf {
        files::copy(&kept.join("tree"), &self.root());
        files::copy(&kept.join("run"), &self.runs());
        if let Ok(list) = fs::read_to_string(kept.join("known-runs.json")) {
            files::write(
                &self.root().join(LIST),
                list.replace(OUT, &self.runs().to_string_lossy()),
            );
        }
        self.runs()
            .join(files::names(kept.join("run")).pop().unwrap())
    }
}
