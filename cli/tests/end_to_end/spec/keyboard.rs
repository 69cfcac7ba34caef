//! What needs a person at a terminal: the questions of `setup`, and the session of `plan`, whose three streams are the agent's.

use std::path::Path;
use std::process::Command;

use crate::scenes::program::{Ran, surrounded};
use crate::scenes::screen::Terminal;
use crate::scenes::spec::{Scene, is_there};
use crate::spec::real;

const COLUMNS: u16 = 100;

fn at_terminal(scene: &Scene, args: &[&str]) -> Terminal {
    Terminal::with_keyboard(&scene.command(args, &[]), COLUMNS).unwrap()
}

fn plan(scene: &Scene) -> Terminal {
    at_terminal(scene, &["spec", "plan", "--sandbox", "off"])
}

/// What the agent asks the person, and the answer.
const ASK: &str = "printf 'What next? '; read answer; echo \"so be it: $answer\"";

fn answer(terminal: &mut Terminal, question: &str, keys: &str) {
    assert!(
        terminal.wait_to_be_asked(question),
        "{}",
        terminal.lines().join("\n")
    );
    terminal.type_in(keys);
}

#[test]
fn setup_asks_one_question_after_the_other_and_saves_the_answers() {
    let scene = Scene::new(&[]);
    let mut terminal = at_terminal(&scene, &["spec", "setup"]);
    answer(&mut terminal, "Specs path [.specs]:", "docs\n");
    answer(&mut terminal, "Maximum iterations [10]:", "none\n");
    assert!(terminal.wait_for("a number, at least 1"));
    answer(&mut terminal, "Maximum iterations [10]:", "3\n");
    answer(&mut terminal, "Setup command (empty: skip) []:", "\n");
    answer(
        &mut terminal,
        "Check command (empty: skip) []:",
        "make test\n",
    );
    answer(&mut terminal, "Commit after each task [no]:", "y\n");
    answer(&mut terminal, "Audit while watch is idle [no]:", "\n");
    assert_eq!(terminal.finish().unwrap(), Some(0));
    insta::assert_snapshot!(terminal.lines().join("\n"), @r#"
    Enter keeps the value in brackets, - takes it away.
    Specs path [.specs]: docs
    Maximum iterations [10]: none
      a number, at least 1
    Maximum iterations [10]: 3
    Setup command (empty: skip) []:
    Check command (empty: skip) []: make test
    Commit after each task [no]: y
    Audit while watch is idle [no]:
    Saved to .cuggino.json:
    {
      "specsPath": "docs",
      "maxIterations": 3,
      "checkCommand": "make test",
      "commit": true,
      "audit": false
    }
    "#);
    assert_eq!(
        scene.read(".cuggino.json"),
        "{\n  \"specsPath\": \"docs\",\n  \"maxIterations\": 3,\n  \"checkCommand\": \"make test\",\n  \"commit\": true,\n  \"audit\": false\n}\n"
    );
    assert!(
        ["wip", "spec-issues", "backlog", "tbd"]
            .iter()
            .all(|name| is_there(&scene.root().join(".cuggino").join(name)))
    );
}

#[test]
fn plan_hands_the_terminal_to_the_agent_and_its_exit_code_back() {
    let scene = Scene::new(&[&format!(
        "test -t 0 && test -t 1 && test -t 2 || exit 99; {ASK}; exit 7"
    )]);
    let mut terminal = plan(&scene);
    answer(&mut terminal, "What next?", "a spec\n");
    assert_eq!(terminal.finish().unwrap(), Some(7));
    let lock = scene.root().join(".git/code-commit/lock");
    assert_eq!(
        std::fs::read_to_string(lock).unwrap(),
        "",
        "the next command would take it for a killed one's"
    );
    assert!(
        terminal.wait_for("so be it: a spec"),
        "{}",
        terminal.lines().join("\n")
    );
    assert!(
        !scene
            .arguments(1)
            .contains("--dangerously-skip-permissions")
    );
    assert!(scene.arguments(1).contains("--append-system-prompt\n"));
}

#[test]
fn plan_keeps_specs_and_tasks_and_puts_everything_else_back() {
    let scene = Scene::new(&[
        "echo spec > .specs/b.md; for box in backlog spec-issues tbd; do echo $box > .cuggino/$box/a.md; done; echo x > .cuggino/memory.md; echo code > src.txt; echo new > new.txt; exit 0",
    ]);
    let mut terminal = plan(&scene);
    assert_eq!(terminal.finish().unwrap(), Some(0));
    assert_eq!(scene.read(".specs/b.md"), "spec\n");
    for mailbox in ["backlog", "spec-issues", "tbd"] {
        assert_eq!(
            scene.read(&format!(".cuggino/{mailbox}/a.md")),
            format!("{mailbox}\n")
        );
    }
    assert_eq!(
        (scene.read("src.txt"), scene.read("new.txt")),
        ("old\n".into(), String::new())
    );
    assert_eq!(scene.read(".cuggino/memory.md"), "");
    assert!(
        terminal.wait_for("src.txt may not be changed while planning"),
        "{}",
        terminal.lines().join("\n")
    );
    let cleaned = Ran::of(&mut scene.command(&["clean", "--keep", "0"], &[]));
    cleaned.out_has("-plan  ").out_has("1 run removed");
}

/// Says so when Ctrl-C reaches it, and goes on.
const HEARS: &str = "trap 'echo heard; touch .cuggino/backlog/heard; exit 5' INT; echo ready; while :; do read answer; done";

#[test]
fn ctrl_c_during_plan_is_the_agents_to_hear() {
    for sandbox in ["off", "auto"] {
        let scene = Scene::new(&[&format!("echo code > src.txt; {HEARS}")]);
        let mut terminal = at_terminal(&scene, &["spec", "plan", "--sandbox", sandbox]);
        answer(&mut terminal, "ready", "\x03");
        assert_eq!(
            terminal.finish().unwrap(),
            Some(5),
            "{sandbox}: {}",
            terminal.lines().join("\n")
        );
        assert!(
            is_there(&scene.root().join(".cuggino/backlog/heard")),
            "{sandbox}"
        );
        assert_eq!(scene.read("src.txt"), "old\n", "{sandbox}");
    }
}

/// Ctrl-C, twice, as soon as it is up.
fn leave_at_once(command: &Command) -> Option<i32> {
    let mut terminal = Terminal::with_keyboard(command, COLUMNS).unwrap();
    assert!(
        terminal.wait_for("Claude Code"),
        "{}",
        terminal.lines().join("\n")
    );
    terminal.type_in("\x03");
    terminal.wait_for("again to exit");
    terminal.type_in("\x03");
    terminal.finish().unwrap()
}

#[test]
fn claude_code_is_started_for_a_talk_and_ends_with_its_own_code() {
    let Some(scene) = real::scene() else { return };
    let environment = [
        ("ANTHROPIC_BASE_URL", "http://127.0.0.1:9"),
        ("ANTHROPIC_API_KEY", real::KEY),
    ];
    let planned =
        leave_at_once(&scene.command(&["spec", "plan", "--sandbox", "off"], &environment));
    let alone = like(
        &scene.command(&[], &environment),
        &scene.home().join("bin/claude"),
    );
    assert_eq!(planned, leave_at_once(&alone));
}

/// Another program in the same surroundings.
fn like(command: &Command, program: &Path) -> Command {
    let mut other = Command::new(program);
    surrounded(&mut other, command);
    other
}
