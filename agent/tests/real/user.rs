//! The user's own settings, logins and sessions: a CLI in the sandbox uses them, but cannot plant
//! anything there.

#![expect(clippy::disallowed_methods, reason = "a test makes its files")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use code_commit_agent::{End, Home, Kind, Session, Spawn};
use code_commit_fixtures::server::Step;
use code_commit_runner::{Access, Mode, probe};
use serde_json::json;

use crate::support::{Scene, Turn};

const FIRST: &str = "5f7d1d52-3a64-4f0e-8a57-0a9a0b8a1c2d";
/// The settings that Gemini CLI needs.
const GEMINI: &str = r#"{"security": {"auth": {"selectedType": "gemini-api-key"}}}"#;
const SECOND: &str = "6f7d1d52-3a64-4f0e-8a57-0a9a0b8a1c2d";

/// Files that configure, or are run by, the user's next session; some of them exist, some do not.
fn targets(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Claude => &[
            ".claude.json",
            ".claude/settings.json",
            ".claude/settings.local.json",
            ".claude/hooks/h.sh",
            ".claude/commands/c.md",
            ".claude/plugins/p.json",
            ".claude/skills/s/SKILL.md",
            ".claude/agents/a.md",
            ".claude/CLAUDE.md",
            ".claude/shell-snapshots/s.sh",
            ".claude/session-env/e.sh",
        ],
        Kind::Gemini => &[
            ".gemini/settings.json",
            ".gemini/.env",
            ".gemini/GEMINI.md",
            ".gemini/extensions/e/gemini-extension.json",
            ".gemini/commands/c.toml",
            ".gemini/trustedFolders.json",
            ".gemini/history/work/.git/config",
        ],
        Kind::Codex => &[
            ".codex/config.toml",
            ".codex/hooks.json",
            ".codex/AGENTS.md",
            ".codex/prompts/p.md",
            ".codex/skills/s/SKILL.md",
            ".codex/rules/r.rules",
            ".codex/plugins/p.json",
        ],
    }
}

/// The files that exist before the turn, and where sessions are.
fn own(
    kind: Kind,
) -> (
    &'static [(&'static str, &'static str)],
    &'static [&'static str],
) {
    match kind {
        Kind::Claude => (
            &[
                (".claude.json", "{}"),
                (".claude/settings.json", "{}"),
                (".claude/hooks/h.sh", "true"),
            ],
            &[".claude/projects/"],
        ),
        Kind::Gemini => (
            &[
                (".gemini/settings.json", GEMINI),
                (".gemini/commands/d.toml", ""),
            ],
            &[".gemini/tmp/"],
        ),
        Kind::Codex => (
            &[(".codex/config.toml", ""), (".codex/prompts/q.md", "q")],
            &[".codex/sessions/"],
        ),
    }
}

fn planting(kind: Kind, home: &Path) -> Step {
    let each = targets(kind)
        .iter()
        .flat_map(|name| [home.join(name), Path::new("$HOME").join(name)]);
    let lines = each.map(|path| {
        let (path, folder) = (path.display(), path.parent().unwrap().display());
        format!("mkdir -p {folder}; echo evil >> {path}; ")
    });
    let line = format!("{}echo hi > hi.txt", lines.collect::<String>());
    match kind {
        Kind::Claude => Step::call("Bash", json!({ "command": line, "description": "x" })),
        Kind::Gemini => Step::call(
            "run_shell_command",
            json!({ "command": line, "description": "x" }),
        ),
        Kind::Codex => Step::call("exec_command", json!({ "cmd": line })),
    }
}

/// Every file below the home except those of sessions.
fn files(home: &Path, sessions: &[&str]) -> BTreeMap<String, Vec<u8>> {
    let (mut files, mut folders) = (BTreeMap::new(), vec![home.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path: PathBuf = entry.unwrap().path();
            let name = path.strip_prefix(home).unwrap().display().to_string();
            if path.is_dir() {
                folders.push(path);
            } else if !sessions.iter().any(|folder| name.starts_with(folder)) {
                files.insert(name, fs::read(path).unwrap());
            }
        }
    }
    files
}

fn check(kind: Kind) {
    let Some(mut scene) = Scene::new(kind, []) else {
        return;
    };
    let home = scene.home();
    let steps = [
        Step::text("One."),
        planting(kind, &home),
        Step::text("Two."),
        Step::text("Three."),
        Step::text("Four."),
    ];
    scene.serve(steps);
    let (there, sessions) = own(kind);
    for (name, text) in there {
        fs::create_dir_all(home.join(name).parent().unwrap()).unwrap();
        fs::write(home.join(name), text).unwrap();
    }
    let turn = |scene: &Scene, prompt: &str, session: Session| -> Turn {
        let bend = |spawn: &mut Spawn<'_>| {
            (spawn.session, spawn.home) = (session, Home::User);
            spawn.env.set("HOME", &home);
        };
        scene.turn(prompt, bend)
    };
    let new = |id: &str| {
        if kind == Kind::Codex {
            Session::None
        } else {
            Session::New(id.into())
        }
    };
    let first = turn(&scene, "first words", new(FIRST));
    first.ended(|end| *end == End::Ok);
    let before = files(&home, sessions);

    let access = Access {
        network: true,
        home: Some(home.clone()),
        ..scene.confinement.access.clone()
    };
    let access = Access {
        tree: scene.work(),
        ..access
    };
    // Namespaces need a program that is its own helper, which a test is not.
    scene.confinement = probe(Mode::Landlock, None)
        .expect("this sandbox")
        .confine(access);
    let resumed = turn(
        &scene,
        "second words",
        Session::Resume(first.outcome.session.clone().unwrap()),
    );
    resumed.ended(|end| *end == End::Ok);
    assert!(scene.work().join("hi.txt").exists(), "{}", resumed.log);
    let third = turn(&scene, "third words", new(SECOND));
    third.ended(|end| *end == End::Ok);
    let fourth = turn(
        &scene,
        "fourth words",
        Session::Resume(third.outcome.session.clone().unwrap()),
    );
    fourth.ended(|end| *end == End::Ok);
    assert_eq!(fourth.outcome.text, "Four.");
    let bodies = scene
        .server
        .requests()
        .into_iter()
        .map(|request| String::from_utf8(request.body).unwrap());
    let bodies: Vec<String> = bodies.collect();
    assert!(
        bodies
            .iter()
            .any(|body| body.contains("first words") && body.contains("second words"))
    );
    assert!(
        bodies
            .iter()
            .any(|body| body.contains("third words") && body.contains("fourth words"))
    );
    let after = files(&home, sessions);
    for (name, bytes) in &after {
        assert_eq!(Some(bytes), before.get(name), "{name}");
    }
    assert_eq!(before.len(), after.len());
}

#[test]
fn claude_code_goes_on_with_the_users_session_and_plants_nothing() {
    check(Kind::Claude);
}

#[test]
fn gemini_cli_goes_on_with_the_users_session_and_plants_nothing() {
    check(Kind::Gemini);
}

#[test]
fn codex_goes_on_with_the_users_session_and_plants_nothing() {
    check(Kind::Codex);
}
