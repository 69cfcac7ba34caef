//! One agent, one service, one folder.

use std::path::{Path, PathBuf};
use std::time::Duration;

use code_commit_agent::{End, Event, Installed, Key, Kind, Outcome, Permissions, Spawn};
use code_commit_fixtures::server::{Script, Server, Step};
use code_commit_runner::{Access, Cancel, Confinement, Env, Mode, probe};

pub(crate) const KEY: &str = "fake-key-for-tests-1234";

/// An agent that can be started.
pub(crate) struct Scene {
    pub(crate) cli: Installed,
    pub(crate) server: Server,
    pub(crate) root: tempfile::TempDir,
    pub(crate) confinement: Confinement,
}

/// The result of a turn.
pub(crate) struct Turn {
    pub(crate) outcome: Outcome,
    pub(crate) events: Vec<Event>,
    pub(crate) log: String,
}

#[expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "the program is named by the environment; a skip is loud"
)]
fn installed(kind: Kind) -> Option<Installed> {
    let name = format!("CODE_COMMIT_TEST_{}", kind.program().to_uppercase());
    let Some(path) = std::env::var_os(&name) else {
        eprintln!(
            "SKIPPED: a test of {} because {name} is not set",
            kind.name()
        );
        return None;
    };
    Some(
        Installed::at(kind, Path::new(&path))
            .expect("a program at the path that the variable names"),
    )
}

impl Scene {
    pub(crate) fn new(kind: Kind, steps: impl IntoIterator<Item = Step>) -> Option<Self> {
        let cli = installed(kind)?;
        let server = Server::start(Script::new(steps)).unwrap();
        let root = tempfile::tempdir().unwrap();
        for name in ["work", "home"] {
            std::fs::create_dir(root.path().join(name)).unwrap();
        }
        Some(Self {
            cli,
            server,
            root,
            confinement: Confinement::off(),
        })
    }

    /// Codex as npm starts it; `None`, with a message, if its program is not beside that package.
    #[expect(clippy::print_stderr, reason = "a skip is loud")]
    pub(crate) fn by_its_package(mut self) -> Option<Self> {
        let scopes = self
            .cli
            .program
            .ancestors()
            .filter(|folder| folder.ends_with("@openai"));
        let mut scripts = scopes.map(|scope| scope.join("codex/bin/codex.js"));
        let Some(cli) = scripts.find_map(|script| Installed::at(Kind::Codex, &script)) else {
            let program = self.cli.program.display();
            eprintln!(
                "SKIPPED: a test of the package of Codex because {program} is not one of npm's"
            );
            return None;
        };
        self.cli = cli;
        Some(self)
    }

    /// Runs it in the strongest sandbox of this machine.
    pub(crate) fn sandboxed(mut self) -> Self {
        let mut access = Access::new(self.work(), &env());
        access.network = true;
        self.confinement = probe(Mode::Auto, None)
            .expect("some sandbox")
            .confine(access);
        self
    }

    /// Replaces what the service answers.
    pub(crate) fn serve(&mut self, steps: impl IntoIterator<Item = Step>) {
        self.server = Server::start(Script::new(steps)).unwrap();
    }

    #[track_caller]
    pub(crate) fn assert_wrote(&self) {
        let text = std::fs::read_to_string(self.work().join("hi.txt"));
        assert_eq!(text.unwrap(), "hi\n");
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.root.path().canonicalize().unwrap().join("work")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.root.path().canonicalize().unwrap().join("home")
    }

    pub(crate) fn turn(&self, prompt: &str, bend: impl FnOnce(&mut Spawn<'_>)) -> Turn {
        self.turn_until(prompt, &Cancel::new().unwrap(), bend)
    }

    pub(crate) fn turn_until(
        &self,
        prompt: &str,
        cancel: &Cancel,
        bend: impl FnOnce(&mut Spawn<'_>),
    ) -> Turn {
        let (work, home) = (self.work(), self.home());
        let mut spawn = Spawn::new(&work, prompt, &home, &self.confinement);
        let (service, model) = match self.cli.kind {
            Kind::Gemini => ("GOOGLE_GEMINI_BASE_URL", "gemini-3.8-flash"),
            Kind::Claude => ("ANTHROPIC_BASE_URL", "claude-test-1"),
            Kind::Codex => ("OPENAI_BASE_URL", "gpt-test"),
        };
        spawn.model = Some(model);
        spawn.env = env();
        let version = if self.cli.kind == Kind::Codex {
            "/v1"
        } else {
            ""
        };
        spawn.extra_env = vec![(
            service.into(),
            format!("{}{version}", self.server.origin()).into(),
        )];
        spawn.key = Some(Key::new(self.cli.kind.key_variable(), KEY));
        spawn.permissions = Permissions::Skip;
        spawn.timeout = Some(Duration::from_mins(2));
        spawn.retries = 0;
        if matches!(self.confinement.backend, code_commit_runner::Backend::Off)
            && self.cli.kind == Kind::Claude
        {
            // The tests may be run by root.
            spawn.extra_env.push(("IS_SANDBOX".into(), "1".into()));
        }
        bend(&mut spawn);
        let (mut log, mut events) = (Vec::new(), Vec::new());
        let outcome = code_commit_agent::run(&self.cli, &spawn, cancel, &mut log, &mut |event| {
            events.push(event.clone());
        })
        .unwrap();
        Turn {
            outcome,
            events,
            log: String::from_utf8(log).unwrap(),
        }
    }
}

/// A turn whose every request gets this answer ends with this code.
pub(crate) fn fails(kind: Kind, step: Step, bend: fn(&mut Spawn<'_>), code: &str) {
    let Some(scene) = Scene::new(kind, [step.times(99)]) else {
        return;
    };
    scene.turn("hello", bend).ended(|end| end.code() == code);
}

/// Contains nothing of the tester's own environment.
fn env() -> Env {
    let mut env = Env::default();
    env.set("PATH", "/usr/local/bin:/usr/bin:/bin");
    env.set("LANG", "C.UTF-8");
    env.set("HOME", "/nonexistent");
    env
}

impl Turn {
    /// Fails with everything that is known about the turn unless it ended as wanted.
    #[track_caller]
    pub(crate) fn ended(&self, as_wanted: impl FnOnce(&End) -> bool) -> &Self {
        let all = || format!("{:#?}\n{:#?}\n{}", self.outcome, self.events, self.log);
        assert!(as_wanted(&self.outcome.end), "{}", all());
        self
    }
}
