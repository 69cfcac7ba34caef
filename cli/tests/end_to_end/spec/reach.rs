//! How far an agent reaches: the sandbox around the user's lines, limits, and where its service is.

use std::io::BufRead as _;
use std::process::{Command, Stdio};

use serde_json::json;

use crate::scenes::files;
use crate::scenes::program::{Ran, must_have};
use crate::scenes::spec::{Scene, event};

/// In the sandbox an agent cannot count its turns: it sees by the prompt whose turn it is.
const BY_PROMPT: &str = "case \"$prompt\" in \
    *.plan.md*) printf p > $WIP.plan.md; say '<PLAN_COMPLETE>p</PLAN_COMPLETE>';; \
    *.review.md*) tool Read .specs/a.md; say '<APPROVED>good</APPROVED>';; \
    *) say '<DONE>all</DONE>';; esac";

#[test]
fn setup_and_check_run_in_the_agents_sandbox() {
    let scene = Scene::new(&[BY_PROMPT]);
    let secret = scene.home().join("secret");
    std::fs::write(&secret, "hush").unwrap();
    let look = format!(
        "cat {}; touch .git/mine; touch here; true",
        secret.display()
    );
    scene.configure(&json!({ "setupCommand": look, "checkCommand": "ls; env" }));
    let args = ["spec", "run", "--focus", "X", "--json"];
    let key = [("ANTHROPIC_API_KEY", "fake-key-for-tests-1234")];
    let events = Ran::of(&mut scene.command(&args, &key)).exits(0).objects();
    let set_up = event(&events, "SetupCommandOutput")["output"].to_string();
    must_have(&set_up, "No such file");
    must_have(&set_up, "Read-only file system");
    let check = event(&events, "CheckCommandOutput")["output"].to_string();
    must_have(&check, "here");
    assert!(!check.contains("fake-key"), "{check}");
}

#[test]
fn what_the_setup_command_prints_is_nowhere_an_agent_can_read() {
    for backend in ["namespaces", "landlock"] {
        let look = "(ls .git; grep -rs token-of-the-setup . ) > seen.txt; true";
        let scene = Scene::new(&[&format!("{look}; {BY_PROMPT}")]);
        scene.write(".gitignore", "/seen.txt\n");
        scene.write("seen.txt", "");
        // The line itself stands in the configuration, which is the person's.
        scene.configure(
            &json!({ "setupCommand": "echo $((6 * 7))-token-of-the-setup", "checkCommand": look }),
        );
        let ran = scene.spec(&["run", "--focus", "X", "--sandbox", backend, "--verbose"]);
        assert_eq!(ran.code, Some(0), "{backend}: {}{}", ran.out, ran.err);
        assert!(
            ran.out.contains("\n42-token-of-the-setup\n"),
            "the person sees it: {}",
            ran.out
        );
        let seen = scene.read("seen.txt");
        assert!(
            seen.contains("HEAD\n") && !seen.contains("42-token"),
            "{backend}: {seen}"
        );
    }
}

#[test]
fn setup_and_check_cannot_change_the_specs_in_the_sandbox() {
    for backend in ["namespaces", "landlock"] {
        let scene = Scene::new(&[BY_PROMPT]);
        let change = "echo x >> .specs/a.md; echo x > .specs/new.md; true";
        scene.configure(&json!({ "setupCommand": change, "checkCommand": change }));
        let ran = scene.spec(&["run", "--focus", "X", "--sandbox", backend]);
        assert_eq!(ran.code, Some(0), "{backend}: {}{}", ran.out, ran.err);
        assert_eq!(scene.read(".specs/a.md"), "# A\n", "{backend}");
        assert!(
            !crate::scenes::spec::is_there(&scene.root().join(".specs/new.md")),
            "{backend}"
        );
    }
}

/// What a run prints in the middle of which a person saves these files: as soon as its agent says that it is waiting.
fn beside_a_person(scene: &Scene, command: &mut Command, saves: [&str; 2]) -> Vec<String> {
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let lines = std::io::BufReader::new(child.stdout.take().unwrap()).lines();
    let mut events = Vec::new();
    for line in lines.map(Result::unwrap) {
        if line.contains("waiting") {
            saves.iter().for_each(|file| scene.write(file, "person\n"));
        }
        events.push(line);
    }
    let code = child.wait().unwrap().code();
    assert_eq!(code, Some(0), "{command:?}: {events:#?}");
    events
}

#[test]
fn an_audit_in_the_sandbox_changes_nothing_and_leaves_alone_what_a_person_does_meanwhile() {
    for backend in ["namespaces", "landlock"] {
        let tries = "for file in src.txt new .specs/a.md .cuggino/wip/x .git/x; do echo agent > $file; done 2>/dev/null; \
            mkdir made 2>/dev/null; mv src.txt moved 2>/dev/null; rm -f src.txt 2>/dev/null";
        // Until the person has saved their file.
        let waits = "say waiting; until grep -q person .specs/a.md; do sleep 0.05; done; say '<TO_BE_DISCUSSED>one</TO_BE_DISCUSSED>'";
        let scene = Scene::new(&[&format!("{tries}; {waits}")]);
        let args = ["spec", "audit", "--json", "--sandbox", backend];
        let mut audit = scene.command(&args, &[]);
        let events = beside_a_person(&scene, &mut audit, [".specs/a.md", "mine.txt"]);
        assert_eq!(scene.stored("tbd").len(), 1, "{backend}: {events:?}");
        assert_eq!(
            files::names(scene.root()),
            [".cuggino", ".git", ".specs", "mine.txt", "src.txt"],
            "{backend}"
        );
        let files = [
            "src.txt",
            ".specs/a.md",
            "mine.txt",
            ".cuggino/wip/x",
            ".git/x",
        ];
        assert_eq!(
            files.map(|file| scene.read(file)),
            ["old\n", "person\n", "person\n", "", ""],
            "{backend}"
        );
    }
}

#[test]
fn a_planner_in_the_sandbox_changes_only_its_plan_and_leaves_alone_what_a_person_does_meanwhile() {
    for backend in ["namespaces", "landlock"] {
        let tries = "case \"$prompt\" in *.plan.md*) echo agent > src.txt; echo agent > new; \
            say waiting; until grep -q person src.txt; do sleep 0.05; done;; esac 2>/dev/null";
        let scene = Scene::new(&[&format!("{tries}; {BY_PROMPT}")]);
        let mut run = scene.json_run(backend, &[]);
        let events = beside_a_person(&scene, &mut run, ["mine.txt", "src.txt"]);
        assert!(
            !events.concat().contains("ChangesPutBack"),
            "{backend}: {events:#?}"
        );
        let files = ["src.txt", "mine.txt", "new"];
        assert_eq!(
            files.map(|file| scene.read(file)),
            ["person\n", "person\n", ""],
            "{backend}"
        );
    }
}

#[test]
fn no_key_of_the_project_is_seen_or_changed_in_the_sandbox() {
    let look = "cat logs/*/events.jsonl agent-config/gemini-key.txt agent-config/query.txt gemini-key.txt .env; \
        echo agent > agent-config/query.txt; echo agent > agent-config/new; true";
    let scene = Scene::new(&[&format!("({look}) > seen.txt 2>&1; {BY_PROMPT}")]);
    let files = [
        "agent-config/gemini-key.txt",
        "agent-config/query.txt",
        "gemini-key.txt",
        ".env",
    ];
    for file in files {
        scene.write(file, "fake-key-of-the-project-1234\n");
    }
    // What a run of implement tells of how to open a sandbox.
    scene.write("logs/1/run.json", "{}\n");
    scene.write("logs/1/events.jsonl", "a hint\n");
    scene.write(
        ".gitignore",
        "/logs\n/agent-config\n/*-key.txt\n/.env\n/seen.txt\n",
    );
    scene.configure(&json!({ "checkCommand": look }));
    for backend in ["namespaces", "landlock"] {
        let ran = scene.spec(&["run", "--focus", "X", "--sandbox", backend, "--verbose"]);
        assert_eq!(ran.code, Some(0), "{backend}: {}{}", ran.out, ran.err);
        let seen = scene.read("seen.txt");
        assert!(
            !seen.is_empty() && !format!("{seen}{}", ran.out).contains("fake-key"),
            "{backend}: {seen}"
        );
        assert!(
            !format!("{seen}{}", ran.out).contains("a hint"),
            "{backend}: {seen}"
        );
        assert!(
            files
                .iter()
                .all(|file| scene.read(file) == "fake-key-of-the-project-1234\n"),
            "{backend}"
        );
        assert!(
            !crate::scenes::spec::is_there(&scene.root().join("agent-config/new")),
            "{backend}"
        );
    }
}

#[test]
fn what_an_agent_cannot_be_told_or_cannot_keep_is_refused() {
    let scene = Scene::new(&[]);
    for name in ["gemini", "codex"] {
        std::os::unix::fs::symlink(
            scene.home().join("bin/claude"),
            scene.home().join("bin").join(name),
        )
        .unwrap();
    }
    let address = [
        "run",
        "--focus",
        "X",
        "--agent",
        "codex",
        "--base-url",
        "http://127.0.0.1:9/v1",
    ];
    let cost = [
        "run",
        "--focus",
        "X",
        "--agent",
        "gemini",
        "--max-cost",
        "1",
    ];
    for (args, why) in [
        (&address[..], "where its service is"),
        (&cost[..], "limits.max_cost cannot be enforced"),
    ] {
        let ran = scene.spec(args);
        assert_eq!((ran.code, scene.calls()), (Some(3), 0));
        ran.err_has(why);
    }
}

#[test]
fn in_the_sandbox_an_agent_cannot_remove_a_task_that_waits() {
    let scene = Scene::new(&[
        "rm -rf .cuggino/backlog; echo x > .cuggino/tbd/x.md; mv .cuggino .other; say '<SPEC_ISSUE>x</SPEC_ISSUE>'",
    ]);
    scene.write(".cuggino/backlog/a.md", "do A\n");
    let ran = scene.spec(&["run", "--focus", "X", "--sandbox", "auto"]);
    assert_eq!(
        (ran.code, ran.err.contains("which no sandbox prevented")),
        (Some(6), false),
        "{}",
        ran.err
    );
    assert_eq!(
        (
            scene.read(".cuggino/backlog/a.md"),
            scene.stored("tbd").len()
        ),
        ("do A\n".to_owned(), 0)
    );
}

#[test]
fn without_a_sandbox_it_is_said_what_an_agent_does_to_the_files_that_are_a_persons() {
    let scene = Scene::new(&[
        "rm .cuggino/backlog/a.md; echo x > .cuggino/tbd/x.md; echo more >> .cuggino/memory.md; say '<SPEC_ISSUE>x</SPEC_ISSUE>'",
    ]);
    for file in ["backlog/a.md", "backlog/b.md", "memory.md"] {
        scene.write(&format!(".cuggino/{file}"), "mine\n");
    }
    let ran = scene.run();
    let told: Vec<&str> = ran
        .err
        .lines()
        .filter(|line| line.contains("which no sandbox prevented"))
        .collect();
    let end = "changed during the turn of the planning agent, which no sandbox prevented";
    let wanted =
        ["backlog/a.md", "memory.md", "tbd/x.md"].map(|file| format!(".cuggino/{file} {end}"));
    assert_eq!(told.len(), 3, "{}", ran.err);
    assert!(
        told.iter()
            .zip(&wanted)
            .all(|(line, wanted)| line.ends_with(wanted)),
        "{told:?}"
    );
}
