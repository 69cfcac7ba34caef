//! `doctor`, `completions`, `man`, `--edit`.

use std::path::Path;

use code_commit_fixtures::server::{Script, Step};

use crate::scenes::commit::{KEY, Scene};
use crate::scenes::program::{Ran, where_mounted};

/// The report without what differs from machine to machine: backends, programs.
fn steady(ran: &Ran) -> String {
    let varies = ["git ", "namespaces ", "landlock ", "docker ", "agent "];
    let keep = |line: &&str| {
        !varies.iter().any(|name| {
            line.get(4..)
                .is_some_and(|rest| rest.trim_start().starts_with(name))
        })
    };
    ran.to_string()
        .lines()
        .filter(keep)
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn a_project_in_order_can_be_run() {
    let scene = Scene::with_replies([]);
    let args = [
        "doctor",
        "--online",
        "--sandbox",
        "off",
        "--base-url",
        scene.server.origin(),
    ];
    let ran = scene.run_with(
        &args,
        &[
            ("GEMINI_API_KEY", KEY),
            ("OPENAI_API_KEY", "sk-another-key-000011"),
        ],
    );
    insta::assert_snapshot!(steady(&ran), @"
    exit 0
    --- out
    ok  configuration   no file, all defaults
    ok  sandbox         OFF, commands run with all your rights (asked for)
    ok  key gemini      …77 from GEMINI_API_KEY
    ok  key openai      …11 from OPENAI_API_KEY
    ok  model           gemini/gemini-3.8-flash at [SERVER]
    ok  service         key and model work
    ok  state           [ROOT]/.git/code-commit
    ok  .gitignore      keeps /agent-config out
    ok  query           agent-config/query.txt
    ok  code roll-up    agent-config/codeRollup.txt, rewritten when a run begins
    ok  build           ./build.sh
    a run can start
    --- err
    ");
    let asked: Vec<String> = scene
        .server
        .requests()
        .iter()
        .map(|request| format!("{} {}", request.method, request.path))
        .collect();
    assert_eq!(asked, ["GET /v1beta/models/gemini-3.8-flash"]);
}

#[test]
fn each_model_of_a_list_is_asked_online_whatever_the_others_say() {
    let missing = Step {
        status: Some(404),
        ..Step::body("{}")
    };
    let script = Script::new([]).rule("models/gemini-3.8-flash", missing);
    let scene = Scene::new(script.rule("models/gemini-3.1-pro-preview", Step::body("{}")));
    let models = "gemini-3.8-flash,gemini-3.1-pro-preview";
    let args = [
        "doctor",
        "--online",
        "--model",
        models,
        "--base-url",
        scene.server.origin(),
    ];
    let ran = scene.run_with(&args, &[("GEMINI_API_KEY", KEY)]).exits(3);
    ran.out_has("NO  service         gemini/gemini-3.8-flash: ");
    ran.out_has("ok  service         gemini/gemini-3.1-pro-preview: key and model work");
}

#[test]
fn everything_that_keeps_a_run_from_starting_is_named_at_once_with_a_hint() {
    let scene = Scene::with_replies([]);
    for missing in ["agent-config/query.txt", "build.sh", ".gitignore"] {
        std::fs::remove_file(scene.at(missing)).unwrap();
    }
    scene.write("code-commit.toml", "[limits]\nmax_calls = 0\n");
    insta::assert_snapshot!(steady(&scene.run(&["doctor", "--sandbox", "off"])), @r#"
    exit 3
    --- out
    NO  configuration   0 would allow nothing; omit it for no limit
                         --> code-commit.toml:2:13
                          |
                        2 | max_calls = 0
                          |             ^
                        help: fix or remove the line
    ok  sandbox         OFF, commands run with all your rights (asked for)
    NO  key             there is no key for gemini/gemini-3.8-flash
                        help: set GEMINI_API_KEY, or put the key into agent-config/gemini-key.txt
    ok  model           gemini/gemini-3.8-flash
    ok  state           [ROOT]/.git/code-commit
    ok  .gitignore      the next run adds a line that keeps /agent-config out
    NO  query           there is no agent-config/query.txt
                        help: describe the change with -m "…", or in agent-config/query.txt
    ok  code roll-up    agent-config/codeRollup.txt, rewritten when a run begins
    NO  build           there is no build.sh
                        help: write one that exits with 0 if and only if the project is correct: code-commit init writes a first build.sh
    no run can start: 4 to fix, first: configuration
    --- err
    "#);
}

#[test]
fn commands_that_only_look_make_nothing() {
    let scene = Scene::with_replies([]);
    let state = scene.at(".git/code-commit");
    for command in ["doctor", "runs", "show", "diff", "page", "costs", "config"] {
        let ran = scene.run(&[command]);
        assert!(!state.exists(), "{command}: {ran}");
    }
    let shown = scene.run(&["show"]).exits(7);
    shown
        .err_has("there is no run here yet")
        .err_has("runs are not part of a clone; start the first one here with code-commit -m");
}

#[test]
fn a_roll_up_that_is_older_than_what_it_holds_is_told_and_keeps_no_run_from_starting() {
    let scene = Scene::with_replies([]);
    scene.disown_rollup();
    scene.write("src/greet.sh", "greet() { echo Hello, you!; }\n");
    scene.write("not-in-it.txt", "new\n");
    let about = |ran: &Ran| {
        ran.out
            .lines()
            .find(|line| line.contains("  code roll-up "))
            .map(str::to_owned)
    };
    let examine = || scene.run_keyed(&["doctor", "--sandbox", "off"]);
    let ran = examine().exits(0);
    let told = "ok  code roll-up    agent-config/codeRollup.txt is older than src/greet.sh: \
        the model sees an old version; update it: code-commit rollup";
    assert_eq!(about(&ran).as_deref(), Some(told));
    assert_eq!(scene.run(&["rollup"]).code, Some(0));
    assert_eq!(
        about(&examine()).as_deref(),
        Some("ok  code roll-up    agent-config/codeRollup.txt, rewritten when a run begins")
    );
}

#[test]
fn a_key_that_git_tracks_is_found_although_its_folder_is_ignored() {
    let scene = Scene::with_replies([]);
    scene.write("agent-config/gemini-key.txt", KEY.as_bytes());
    scene.git(&["add", "-f", "agent-config/gemini-key.txt"]);
    scene.project.commit("a key").unwrap();
    let ran = scene.run(&["doctor", "--sandbox", "off"]).exits(3);
    ran.out_has("NO  .gitignore      git tracks agent-config/gemini-key.txt,");
    let run = scene.commit(&[]).exits(3);
    run.err_has("error: git tracks agent-config/gemini-key.txt,");
    assert_eq!((scene.runs().len(), scene.calls()), (0, 0));
}

#[test]
fn doctor_as_json_is_one_object_a_check() {
    let scene = Scene::with_replies([]);
    let ran = scene.run(&["doctor", "--json", "--sandbox", "off"]);
    assert_eq!(ran.code, Some(3), "no key: {ran}");
    let checks = ran.objects();
    let bad: Vec<&str> = checks
        .iter()
        .filter(|check| check["ok"] == false)
        .map(|check| check["check"].as_str().unwrap())
        .collect();
    assert_eq!(bad, ["key"]);
    let indented = |check: &&serde_json::Value| check["check"].as_str().unwrap().starts_with(' ');
    assert_eq!(
        checks.iter().find(indented),
        None,
        "what is indented for people is not for programs"
    );
}

#[test]
fn every_shell_gets_its_completions() {
    let scene = Scene::with_replies([]);
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = scene.run(&["completions", shell]);
        assert_eq!(ran.code, Some(0), "{shell}");
        for word in ["code-commit", "rollup", "max-cost"] {
            assert!(ran.out.contains(word), "{shell} does not complete {word}");
        }
    }
    assert_eq!(scene.run(&["completions", "tcsh"]).code, Some(2));
}

/// A word that bash has typed so far leads to a case by the name that the script gives to the command.
#[test]
fn the_completions_for_bash_have_a_case_for_every_command() {
    let script = Scene::with_replies([]).run(&["completions", "bash"]).out;
    let named = |line: &str| {
        Some(
            line.trim()
                .strip_prefix("cmd=\"")?
                .strip_suffix('"')?
                .to_owned(),
        )
    };
    let commands: Vec<String> = script
        .lines()
        .filter_map(named)
        .filter(|name| !name.is_empty())
        .collect();
    assert!(commands.len() > 30, "{commands:?}");
    let without: Vec<&String> = commands
        .iter()
        .filter(|name| !script.contains(&format!("\n        {name})\n")))
        .collect();
    assert!(without.is_empty(), "{without:?}");
}

#[test]
fn every_command_has_a_page_of_the_manual() {
    let scene = Scene::with_replies([]);
    let page = scene.run(&["man"]);
    page.out_has(".TH code-commit 1");
    let folder = scene.beside("man/man1");
    assert_eq!(scene.run(&["man", folder.to_str().unwrap()]).code, Some(0));
    for name in ["code-commit", "code-commit-doctor", "code-commit-undo"] {
        assert!(folder.join(format!("{name}.1")).is_file(), "{name}");
    }
}

/// Allows no user namespaces below this one, then runs the rest.
const FORBIDDEN: &str = "echo 0 > \"$0\" || exit 99; exec \"$@\"";

#[test]
fn how_to_get_the_strongest_sandbox_is_said_where_it_does_not_work() {
    let scene = Scene::with_replies([]);
    let setting = Path::new("/proc/sys/user/max_user_namespaces");
    let Some(Ran { out, .. }) = where_mounted(FORBIDDEN, setting, &scene.keyed(&["doctor"], &[]))
    else {
        return;
    };
    let row = |name: &str| {
        out.lines()
            .skip_while(|line| !line.contains(name))
            .take(2)
            .collect::<Vec<_>>()
            .join(" ")
    };
    let help = "allow user namespaces, as root: sysctl -w user.max_user_namespaces=15000";
    assert!(
        row("  namespaces  ").contains(&format!("help: {help}")),
        "{out}"
    );
    if row("  landlock  ").contains("works") {
        assert!(
            row("  sandbox  ").contains(&format!("for the strongest sandbox, {help}")),
            "{out}"
        );
    }
}
