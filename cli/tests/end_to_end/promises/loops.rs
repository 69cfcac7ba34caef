//! One row for each loop, and a stage for it: a project, work to do, and a model or agents that answer.

use std::path::PathBuf;
use std::process::Command;

use code_commit_fixtures::demo::{BREAKS_THE_BUILD, MENDS_IT};
use code_commit_fixtures::server::{Hang, Script, Server, Step};
use serde_json::json;

use crate::scenes::{commit, order, phase, spec};

/// What is different from loop to loop.
pub(super) struct Loop {
    pub(super) name: &'static str,
    pub(super) stage: fn(Second) -> Box<dyn Stage>,
    /// How many answers finish the work.
    pub(super) answers: usize,
    /// Where its runs are, from the root of the project.
    pub(super) runs: &'static str,
    /// A file that the work changes or makes.
    pub(super) file: &'static str,
    pub(super) undo: Undo,
}

/// What becomes of the second question the first time that it is asked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Second {
    Answered,
    /// There is no answer to it; asked once more, it is answered.
    Hangs,
}

/// What `undo` does with a finished run.
pub(super) enum Undo {
    Restores,
    /// It keeps no old contents, so it names a command of git.
    NamesGit,
}

pub(super) const LOOPS: &[Loop] = &[
    Loop {
        name: "commit",
        stage: |second| {
            Box::new(Asked {
                scene: asked(second),
                implement: false,
            })
        },
        answers: 2,
        runs: "agent-config/logs",
        file: "src/greet.sh",
        undo: Undo::Restores,
    },
    Loop {
        name: "implement",
        stage: |second| {
            Box::new(Asked {
                scene: asked(second),
                implement: true,
            })
        },
        answers: 2,
        runs: "logs",
        file: "src/greet.sh",
        undo: Undo::Restores,
    },
    Loop {
        name: "order",
        stage: |second| Box::new(ordered(second)),
        answers: 2,
        runs: "../out",
        file: "src/greet.sh",
        undo: Undo::Restores,
    },
    Loop {
        name: "phase",
        stage: |second| Box::new(phased(second)),
        answers: 2,
        runs: ".abl/logs",
        file: "src/app",
        undo: Undo::NamesGit,
    },
    Loop {
        name: "spec",
        stage: |second| Box::new(specified(second)),
        answers: 3,
        runs: ".git/code-commit/spec",
        file: "src.txt",
        undo: Undo::NamesGit,
    },
];

/// A project with what a loop works on, and who answers its questions.
pub(super) trait Stage {
    fn root(&self) -> PathBuf;
    /// The loop's own command.
    fn run(&self, more: &[&str]) -> Command;
    /// Another command in the project, with the keys of the first.
    fn command(&self, args: &[&str]) -> Command;
    /// How many questions were asked, answered or not.
    fn asked(&self) -> usize;
    /// Whether the question that gets no answer has been asked.
    fn hangs(&self) -> bool {
        self.asked() == 2
    }
}

/// Two replies; between them, if asked for, a question that gets none.
fn script(replies: [&str; 2], second: Second) -> Script {
    let hangs = (second == Second::Hangs).then(|| Step::text("").hang(Hang::BeforeHead));
    let [one, two] = replies.map(Step::text);
    Script::new([one].into_iter().chain(hangs).chain([two]))
}

/// The requests that are not about the size of a prompt.
fn questions(server: &Server) -> usize {
    server
        .requests()
        .iter()
        .filter(|request| !request.path.ends_with(":countTokens"))
        .count()
}

/// `commit` and `implement`, which share a scene.
struct Asked {
    scene: commit::Scene,
    implement: bool,
}

fn asked(second: Second) -> commit::Scene {
    let scene = commit::Scene::new(script([BREAKS_THE_BUILD, MENDS_IT], second));
    scene.system_prompt();
    scene
}

impl Stage for Asked {
    fn root(&self) -> PathBuf {
        self.scene.project.root().to_owned()
    }

    fn run(&self, more: &[&str]) -> Command {
        let command: &[&str] = if self.implement { &["implement"] } else { &[] };
        self.command(&[command, &self.scene.flags(), more].concat())
    }

    fn command(&self, args: &[&str]) -> Command {
        self.scene.keyed(args, &[])
    }

    fn asked(&self) -> usize {
        questions(&self.scene.server)
    }
}

fn ordered(second: Second) -> order::Scene {
    let replies = [order::BAD, order::GOOD].map(order::greet);
    order::Scene::scripted(
        &order::FILES,
        script(replies.each_ref().map(String::as_str), second),
    )
}

impl Stage for order::Scene {
    fn root(&self) -> PathBuf {
        self.root().to_owned()
    }

    fn run(&self, more: &[&str]) -> Command {
        self.command(more)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.program(args);
        command.env("OPENAI_API_KEY", order::KEY);
        command
    }

    fn asked(&self) -> usize {
        questions(&self.server)
    }
}

fn phased(second: Second) -> phase::Scene {
    let mut turns = vec![("builder-1", "echo one > app")];
    if second == Second::Hangs {
        turns.push(("verifier-1", "touch \"$here/hangs\"; exec sleep 60"));
    }
    phase::Scene::new(&turns)
}

impl Stage for phase::Scene {
    fn root(&self) -> PathBuf {
        self.project("")
    }

    fn run(&self, more: &[&str]) -> Command {
        Stage::command(
            self,
            &[&["phase", "run", "--sandbox", "off"], more].concat(),
        )
    }

    fn command(&self, args: &[&str]) -> Command {
        self.command(args, &[])
    }

    fn asked(&self) -> usize {
        usize::try_from(self.turns("builder") + self.turns("verifier")).unwrap()
    }

    fn hangs(&self) -> bool {
        self.at("bin/hangs").exists()
    }
}

fn specified(second: Second) -> spec::Scene {
    let mut turns = vec![spec::PLAN, spec::DONE, spec::APPROVE];
    if second == Second::Hangs {
        turns.insert(1, "touch $HOME/hangs; exec sleep 60");
    }
    let scene = spec::Scene::new(&turns);
    scene.configure(&json!({ "commit": true }));
    scene
}

impl Stage for spec::Scene {
    fn root(&self) -> PathBuf {
        self.root()
    }

    fn run(&self, more: &[&str]) -> Command {
        let run = ["spec", "run", "--focus", "Add X", "--sandbox", "off"];
        Stage::command(self, &[&run, more].concat())
    }

    fn command(&self, args: &[&str]) -> Command {
        self.command(args, &[])
    }

    fn asked(&self) -> usize {
        usize::try_from(self.calls()).unwrap()
    }

    fn hangs(&self) -> bool {
        self.home().join("hangs").exists()
    }
}
