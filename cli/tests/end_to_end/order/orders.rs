//! S2 §4.1: orders that are refused, each with its field named; `order check` and `order new`.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::Path;

use code_commit_fixtures::server::{Script, Step};
use serde_json::{Value, json};

use crate::scenes::files;
use crate::scenes::order::{FILES, GOOD, KEY, Scene, greet, proposal, unverified};
use crate::scenes::program::Ran;

/// The order is refused by `run` and by `check`, and both name the field.
#[track_caller]
fn check_refused(over: &Value, field: &str) {
    let scene = Scene::with(&[]);
    scene.place_order(over);
    let run = scene.run(&[]).exits(3);
    assert!(run.err.contains(field), "{field}: {}", run.err);
    let check = Ran::of(&mut scene.check()).exits(1);
    assert!(check.out.contains(field), "{field}: {}", check.out);
    assert_eq!((scene.runs().len(), scene.status()), (0, String::new()));
}

#[test]
fn a_program_that_is_not_there_is_refused_with_its_field() {
    for command in [
        "no-such-program --flag",
        "/no/such/program",
        "../no-such-program",
        "/etc/passwd",
    ] {
        check_refused(
            &json!({ "acceptance_commands": ["true", command] }),
            "acceptance_commands[1]",
        );
    }
    let scene = Scene::with(&[&greet(GOOD)]);
    let tools = scene.beside("tools");
    fs::create_dir(&tools).unwrap();
    for name in ["sh", "git", "bash"] {
        symlink(format!("/bin/{name}"), tools.join(name)).unwrap();
    }
    symlink("/bin/true", tools.join("python3")).unwrap();
    scene.place_order(&json!({ "acceptance_commands": ["python -m pytest"] }));
    let refused = Ran::of(scene.command(&[]).env("PATH", &tools)).exits(3);
    refused.err_has("there is no program python on PATH (python3 is there)");
    assert_eq!((scene.calls(), scene.runs().len()), (0, 0));
}

#[test]
fn a_program_that_the_change_or_a_command_makes_is_not_asked_for_before() {
    let scene = Scene::with(&[&proposal("src/new.sh", None, "echo new\n")]);
    let made = "sh -c 'mkdir -p build; cp src/new.sh build/x; chmod +x build/x'";
    let inside = format!("{}/build/x", scene.root().display());
    scene.place_order(
        &json!({ "acceptance_commands": [made, "./build/x", "build/../build/x", inside] }),
    );
    let check = Ran::of(&mut scene.check());
    assert_eq!(check.code, Some(0), "{}", check.out);
    assert_eq!(scene.run(&[]).code, Some(0));
}

#[test]
fn a_verification_that_cannot_be_started_is_told_before_anything_is_paid() {
    let files = unverified();
    let scene = Scene::scripted(&files, Script::new([]));
    let tools = scene.beside("tools");
    fs::create_dir(&tools).unwrap();
    for name in ["sh", "git"] {
        symlink(format!("/bin/{name}"), tools.join(name)).unwrap();
    }
    let check = Ran::of(scene.check().env("PATH", &tools));
    assert_eq!(check.code, Some(0), "{}{}", check.out, check.err);
    let told = "warning: there is no program python on PATH, so the verification of every attempt will fail: install it, or write scripts/verify.sh, which then takes its place\n";
    check.err_has(told);
    let run = Ran::of(scene.command(&["--max-attempts", "1"]).env("PATH", &tools));
    run.err_has("warning: there is no program python on PATH");
}

/// Before, during and after the run.
#[test]
fn the_verification_is_named_and_that_it_cannot_pass_without_a_python_file() {
    let files = unverified();
    let python = ("src/tool.py", "print('x')\n");
    for (project, is_warned) in [
        (files.clone(), true),
        ([files, vec![python]].concat(), false),
        (FILES.to_vec(), false),
    ] {
        let has_script = project.contains(&FILES[1]);
        let scene = Scene::scripted(&project, Script::new([Step::text(&greet(GOOD))]));
        let tools = scene.beside("tools");
        fs::create_dir(&tools).unwrap();
        files::write_program(&tools.join("python"), "#!/bin/sh\n[ \"$2\" != pytest ]\n");
        let path = format!("{}:/usr/bin:/bin", tools.display());
        let check = Ran::of(scene.check().env("PATH", &path));
        let run = Ran::of(
            scene
                .command(&["--max-attempts", "1", "--sandbox", "off"])
                .env("PATH", &path),
        );
        let warning = "warning: there is no Python file for `python -m pytest -q` to test, so the verification of every attempt will fail: write scripts/verify.sh, which then takes its place\n";
        for ran in [&check, &run] {
            assert_eq!(ran.err.contains(warning), is_warned, "{ran}");
        }
        let (first, last) = if has_script {
            (
                "verification: bash scripts/verify.sh",
                "✓ PASS (success) after 1 attempt",
            )
        } else {
            (
                "verification: python -m compileall -q ., python -m pip --version, python -m pytest -q (there is no scripts/verify.sh)",
                "✗ FAIL (verify_failed) after 1 attempt: `python -m pytest -q` exited with 1",
            )
        };
        assert!(run.err.lines().any(|line| line == first), "{run}");
        assert!(run.out.lines().any(|line| line == last), "{run}");
    }
}

#[test]
fn a_path_that_the_record_cannot_name_is_refused_before_anything_is_made() {
    let scene = Scene::with(&[]);
    let odd = scene.beside(OsStr::from_bytes(b"odd\xff"));
    fs::create_dir(&odd).unwrap();
    let (plain, odd_order) = (scene.beside("order.json"), odd.join("order.json"));
    fs::copy(&plain, &odd_order).unwrap();
    let refused = |repo: &Path, order: &Path, out: &Path| {
        let mut command = scene.program(&[
            "order",
            "run",
            "--sandbox",
            "off",
            "--llm-model",
            "openai/test",
            "--json",
        ]);
        command
            .env("OPENAI_API_KEY", KEY)
            .args([OsStr::new("--repo"), repo.as_os_str()]);
        command.args([OsStr::new("--out"), out.as_os_str(), order.as_os_str()]);
        let ran = Ran::of(&mut command).exits(3);
        ran.err_has("is not UTF-8, and the record of an order's run names it");
        assert!(!out.exists());
        command
    };
    let (root, out) = (scene.root(), scene.beside("out"));
    refused(root, &plain, &odd.join("out"));
    // A table names each of several orders.
    let mut several = refused(root, &odd_order, &out);
    Ran::of(several.args([plain.as_os_str(), OsStr::new("--commit")])).exits(3);
    fs::rename(root, odd.join("project")).unwrap();
    fs::create_dir(root).unwrap();
    refused(&odd.join("project"), &plain, &out);
}

#[test]
fn a_template_is_written_once_and_can_be_checked() {
    let scene = Scene::with(&[]);
    let file = scene.beside("new.json");
    let file = file.to_str().unwrap();
    Ran::of(&mut scene.program(&["order", "new", file])).exits(0);
    let first = std::fs::read(file).unwrap();
    Ran::of(&mut scene.program(&["order", "new", file])).exits(3);
    assert_eq!(std::fs::read(file).unwrap(), first);
    let check = Ran::of(&mut scene.program(&["order", "check", file])).exits(1);
    check.out_has("intent is that of the template; say what is wanted");
}

#[test]
fn a_check_asks_no_model_and_says_that_a_tree_is_not_clean() {
    let scene = Scene::with(&[]);
    let check = || Ran::of(scene.check().arg("--json"));
    let checked = check().out;
    let first = checked.lines().next().unwrap();
    assert_eq!(serde_json::from_str::<Value>(first).unwrap()["ok"], true);
    scene.write("untracked", "");
    let found = check().exits(1);
    found.out_has("is not clean: untracked; commit these files");
    assert_eq!(scene.calls(), 0);
}

#[test]
fn an_order_that_nobody_has_filled_in_is_named_by_check_and_by_run() {
    let scene = Scene::with(&[]);
    let file = scene.beside("order.json");
    let file = file.to_str().unwrap();
    let template = code_commit_loop_order::TEMPLATE.replace("order-1", "mine");
    scene.place("order.json", template.as_bytes());
    let (check, run) = (
        Ran::of(&mut scene.program(&["order", "check", file])),
        scene.run(&[]),
    );
    assert_eq!(
        (check.code, run.code, scene.calls()),
        (Some(1), Some(3), 0),
        "{check}{run}"
    );
    let problem = "is that of the template; say what is wanted";
    check.out_has(&format!("intent {problem}"));
    run.err_has(&format!("intent: {problem}"));
}
