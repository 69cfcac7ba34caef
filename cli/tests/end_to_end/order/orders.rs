//! S2 §4.1: orders that are refused, each with its field named; `order check` and `order new`.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::Path;

use code_commit_fixtures::server::{Script, Step};
use serde_json::{Value, json};

use crate::scenes::files;
use crate::scenes::order::{FILES, GOOD, KEY, Scene, greet, order, proposal};
use crate::scenes::program::Ran;

/// The order is refused by `run` and by `check`, and both name the field.
#[track_caller]
fn check_refused(over: &Value, field: &str) {
    let scene = Scene::with(&[]);
    scene.place_order(over);
    let file = scene.beside("order.json");
    let run = scene.run(&[]);
    assert_eq!(run.code, Some(3), "{}", run.err);
    assert!(run.err.contains(field), "{field}: {}", run.err);
    let check = Ran::of(&mut scene.program(&["order", "check", file.to_str().unwrap()]));
    assert_eq!(check.code, Some(1), "{}{}", check.out, check.err);
    assert!(check.out.contains(field), "{field}: {}", check.out);
    assert_eq!(
        (scene.runs().len(), scene.project.status().unwrap()),
        (0, String::new())
    );
}

#[test]
fn hostile_paths_are_refused_with_their_field() {
    for path in [
        "/etc/passwd",
        "../outside",
        "src/../../outside",
        "src/../src/new.sh",
        "C:/windows",
        "c:x",
        "src\\a",
        "src/*.sh",
        "src/gr??t.sh",
        "src/",
        "",
        ".",
        "a\u{0}b",
        "a\nb",
        ".git/config",
        "sub/.GIT/hooks/x",
        ".code-commit/lock",
        ".gitmodules",
    ] {
        check_refused(
            &json!({ "allowed_files": ["src/greet.sh", path] }),
            "allowed_files[1]",
        );
    }
}

#[test]
fn context_outside_of_the_allowed_files_is_refused_with_its_field() {
    check_refused(
        &json!({ "context_files": ["src/greet.sh", "src/other.txt"] }),
        "context_files[1]",
    );
    check_refused(
        &json!({ "context_files": ["/etc/passwd"] }),
        "context_files[0]",
    );
}

#[test]
fn eleven_context_files_are_refused() {
    let files: Vec<String> = (0..11).map(|n| format!("f{n}")).collect();
    check_refused(
        &json!({ "allowed_files": files, "context_files": files }),
        "context_files",
    );
}

#[test]
fn commands_that_need_a_shell_are_refused_with_their_field() {
    for command in [
        "true && true",
        "cat < x",
        "a | b",
        "a; b",
        "echo $(id)",
        "echo `id`",
        "sleep 1 &",
        "a 'b",
        "",
        "FOO=1 sh tests/run.sh",
        "ls *.txt",
        "cd src",
        "~/x",
        "ls ~/x",
        "$HOME/x",
        "echo $HOME",
    ] {
        check_refused(
            &json!({ "acceptance_commands": ["true", command] }),
            "acceptance_commands[1]",
        );
    }
    check_refused(&json!({ "acceptance_commands": [] }), "acceptance_commands");
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
    let refused = Ran::of(scene.command(&[]).env("PATH", &tools));
    assert_eq!(refused.code, Some(3), "{}", refused.err);
    assert!(
        refused
            .err
            .contains("there is no program python on PATH (python3 is there)"),
        "{}",
        refused.err
    );
    assert_eq!((scene.server.requests().len(), scene.runs().len()), (0, 0));
}

#[test]
fn a_program_that_the_change_or_a_command_makes_is_not_asked_for_before() {
    let scene = Scene::with(&[&proposal("src/new.sh", None, "echo new\n")]);
    let made = "sh -c 'mkdir -p build; cp src/new.sh build/x; chmod +x build/x'";
    let inside = format!("{}/build/x", scene.root().display());
    scene.place_order(
        &json!({ "acceptance_commands": [made, "./build/x", "build/../build/x", inside] }),
    );
    let check = Ran::of(&mut scene.program(&[
        "order",
        "check",
        scene.beside("order.json").to_str().unwrap(),
    ]));
    assert_eq!(check.code, Some(0), "{}", check.out);
    assert_eq!(scene.run(&[]).code, Some(0));
}

#[test]
fn a_name_is_not_missed_where_path_leads_into_the_project() {
    let scene = Scene::with(&[]);
    scene.place_order(&json!({ "acceptance_commands": ["made-by-the-change"] }));
    let file = scene.beside("order.json");
    for inside in ["bin".into(), scene.root().join("bin")] {
        let mut command = scene.program(&["order", "check", file.to_str().unwrap()]);
        let paths = command
            .get_envs()
            .find_map(|(name, value)| value.filter(|_| name == "PATH"))
            .unwrap();
        let path = std::env::join_paths(std::env::split_paths(paths).chain([inside])).unwrap();
        let check = Ran::of(command.env("PATH", path));
        assert_eq!(check.code, Some(0), "{}{}", check.out, check.err);
    }
}

#[test]
fn a_verification_that_cannot_be_started_is_told_before_anything_is_paid() {
    let files: Vec<(&str, &str)> = FILES
        .into_iter()
        .filter(|(path, _)| *path != "scripts/verify.sh")
        .collect();
    let scene = Scene::scripted(&files, Script::new([]));
    let tools = scene.beside("tools");
    fs::create_dir(&tools).unwrap();
    for name in ["sh", "git"] {
        symlink(format!("/bin/{name}"), tools.join(name)).unwrap();
    }
    let file = scene.beside("order.json");
    let check = Ran::of(
        scene
            .program(&["order", "check", file.to_str().unwrap()])
            .env("PATH", &tools),
    );
    assert_eq!(check.code, Some(0), "{}{}", check.out, check.err);
    let told = "warning: there is no program python on PATH, so the verification of every attempt will fail: install it, or write scripts/verify.sh, which then takes its place\n";
    assert!(check.err.contains(told), "{check}");
    let run = Ran::of(scene.command(&["--max-attempts", "1"]).env("PATH", &tools));
    assert!(
        run.err
            .contains("warning: there is no program python on PATH"),
        "{}",
        run.err
    );
}

/// Before, during and after the run.
#[test]
fn the_verification_is_named_and_that_it_cannot_pass_without_a_python_file() {
    let files: Vec<(&str, &str)> = FILES
        .into_iter()
        .filter(|(path, _)| *path != "scripts/verify.sh")
        .collect();
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
        let file = scene.beside("order.json");
        let check = Ran::of(
            scene
                .program(&["order", "check", file.to_str().unwrap()])
                .env("PATH", &path),
        );
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
fn missing_unknown_and_mistyped_fields_are_named() {
    for field in [
        "id",
        "title",
        "intent",
        "allowed_files",
        "forbidden",
        "acceptance_commands",
        "context_files",
    ] {
        check_refused(&json!({ field: null }), field);
        check_refused(&json!({ field: 7 }), field);
    }
    check_refused(&json!({ "allowed_file": [] }), "allowed_file");
    check_refused(&json!({ "forbidden": ["x", 1] }), "forbidden[1]");
    check_refused(&json!({ "notes": 1 }), "notes");
    check_refused(&json!({ "max_cost": -1 }), "max_cost");
    check_refused(
        &json!({ "preconditions": [{ "file_is": "x" }] }),
        "preconditions",
    );
    check_refused(
        &json!({ "postconditions": [{ "file_exists": "../x" }] }),
        "postconditions[0]",
    );
}

#[test]
fn all_mistakes_are_reported_at_once() {
    let scene = Scene::with(&[]);
    scene.place_order(&json!({ "id": 1, "allowed_files": ["/a", "*"], "acceptance_commands": ["a|b"], "context_files": [] }));
    let ran = scene.run(&[]);
    for field in [
        "id",
        "allowed_files[0]",
        "allowed_files[1]",
        "acceptance_commands[0]",
    ] {
        assert!(ran.err.contains(field), "{field}: {}", ran.err);
    }
}

#[test]
fn text_that_is_no_json_object_is_refused() {
    let twice = order(&json!({}))
        .to_string()
        .replacen('{', r#"{"id":"other","#, 1);
    let inner = twice.replacen(
        r#"{"id":"other","#,
        r#"{"preconditions":[{"file_exists":"x","file_exists":"src/other.txt"}],"#,
        1,
    );
    for bytes in [
        &b"{"[..],
        b"[]",
        b"\xff\xfe",
        b"",
        twice.as_bytes(),
        inner.as_bytes(),
    ] {
        let scene = Scene::with(&[]);
        scene.place("order.json", bytes);
        assert_eq!(scene.run(&[]).code, Some(3));
    }
}

#[test]
fn a_path_that_the_record_cannot_name_is_refused_before_anything_is_made() {
    let scene = Scene::with(&[]);
    let odd = scene.project.beside().join(OsStr::from_bytes(b"odd\xff"));
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
        let ran = Ran::of(&mut command);
        assert_eq!(ran.code, Some(3), "{}", ran.err);
        assert!(
            ran.err
                .contains("is not UTF-8, and the record of an order's run names it"),
            "{}",
            ran.err
        );
        assert!(!out.exists());
        command
    };
    let (root, out) = (scene.root(), scene.beside("out"));
    refused(root, &plain, &odd.join("out"));
    // A table names each of several orders.
    let mut several = refused(root, &odd_order, &out);
    assert_eq!(
        Ran::of(several.args([plain.as_os_str(), OsStr::new("--commit")])).code,
        Some(3)
    );
    fs::rename(root, odd.join("project")).unwrap();
    fs::create_dir(root).unwrap();
    refused(&odd.join("project"), &plain, &out);
}

#[test]
fn a_context_file_that_is_not_utf8_is_refused_with_its_field() {
    let scene = Scene::with(&[]);
    scene.project.write("src/greet.sh", b"caf\xe9\n").unwrap();
    scene.project.commit("latin 1").unwrap();
    let ran = scene.run(&[]);
    assert_eq!(ran.code, Some(3));
    assert!(
        ran.err
            .contains("context_files[0]: is not UTF-8 (at byte 3)"),
        "{}",
        ran.err
    );
}

#[test]
fn a_link_among_the_allowed_files_is_refused_with_its_field() {
    let scene = Scene::with(&[]);
    std::os::unix::fs::symlink("/etc/passwd", scene.root().join("src/new.sh")).unwrap();
    scene.project.commit("a link").unwrap();
    let ran = scene.run(&[]);
    assert_eq!(ran.code, Some(3));
    assert!(ran.err.contains("allowed_files[1]"), "{}", ran.err);
}

#[test]
fn context_beyond_200_kb_is_cut_at_a_line_and_counted() {
    let scene = Scene::with(&["no"]);
    let line = "12345678\n";
    scene
        .project
        .write("src/greet.sh", line.repeat(30_000).as_bytes())
        .unwrap();
    scene.project.commit("large").unwrap();
    scene.run(&["--max-attempts", "1"]);
    let prompt = scene.recorded("attempt_1/prompt.txt");
    let note = "--- NOT SHOWN: 65205 BYTES MORE OF src/greet.sh; IT MAY NOT BE REPLACED ---\n";
    assert!(
        prompt.contains(&format!("\n{line}{note}")),
        "{}",
        &prompt[..3000]
    );
    assert_eq!(prompt.matches(line).count(), 22_755);
}

#[test]
fn a_file_that_was_shown_in_part_may_not_be_replaced() {
    let large = "12345678\n".repeat(30_000);
    let scene = Scene::with(&[&proposal("src/greet.sh", Some(&large), GOOD)]);
    scene
        .project
        .write("src/greet.sh", large.as_bytes())
        .unwrap();
    scene.project.commit("large").unwrap();
    scene.run(&["--max-attempts", "1"]);
    assert_eq!(scene.verdict(), "FAIL write_scope_violation");
    let brief = scene.json("attempt_1/failure_brief.json");
    let told = brief["primary_error_excerpt"].as_str().unwrap();
    assert_eq!(
        told,
        "`src/greet.sh` was shown in part only, so it may not be replaced; leave it unchanged."
    );
    assert_eq!(scene.project.read("src/greet.sh").unwrap(), large);
}

#[test]
fn a_model_whose_provider_cannot_be_told_is_a_wrong_command_line() {
    let ran = Scene::with(&[]).run(&["--llm-model", "fake-model"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{}", ran.err);
    assert!(
        ran.err.contains("'fake-model'") && ran.err.contains("--llm-model"),
        "{}",
        ran.err
    );
}

#[test]
fn a_template_is_written_once_and_can_be_checked() {
    let scene = Scene::with(&[]);
    let file = scene.beside("new.json");
    let file = file.to_str().unwrap();
    assert_eq!(
        Ran::of(&mut scene.program(&["order", "new", file])).code,
        Some(0)
    );
    let first = std::fs::read(file).unwrap();
    assert_eq!(
        Ran::of(&mut scene.program(&["order", "new", file])).code,
        Some(3)
    );
    assert_eq!(std::fs::read(file).unwrap(), first);
    let check = Ran::of(&mut scene.program(&["order", "check", file]));
    assert_eq!(check.code, Some(1), "{}{}", check.out, check.err);
    assert!(
        check
            .out
            .contains("intent is that of the template; say what is wanted"),
        "{}",
        check.out
    );
}

#[test]
fn a_template_that_keeps_the_tree_from_being_clean_is_told_of() {
    let scene = Scene::with(&[]);
    let new = |file: &str| Ran::of(&mut scene.program(&["order", "new", file])).err;
    let outside = scene.beside("new.json");
    assert_eq!(new(outside.to_str().unwrap()), "");
    let told =
        "order run wants a clean work tree: commit the order first, or move it out of there\n";
    assert_eq!(new("inside.json"), told);
    scene
        .project
        .write(".gitignore", b"/ignored.json\n")
        .unwrap();
    assert_eq!(new("ignored.json"), "");
}

#[test]
fn a_check_asks_no_model_and_says_that_a_tree_is_not_clean() {
    let scene = Scene::with(&[]);
    let file = scene.beside("order.json");
    let check =
        || Ran::of(&mut scene.program(&["order", "check", file.to_str().unwrap(), "--json"]));
    let checked = check().out;
    let first = checked.lines().next().unwrap();
    assert_eq!(serde_json::from_str::<Value>(first).unwrap()["ok"], true);
    scene.project.write("untracked", b"").unwrap();
    let found = check();
    assert_eq!(found.code, Some(1));
    assert!(
        found
            .out
            .contains("is not clean: untracked; commit these files"),
        "{}",
        found.out
    );
    assert_eq!(scene.server.requests().len(), 0);
}

#[test]
fn what_check_says_of_an_order_as_a_whole_and_of_the_tree_is_a_sentence() {
    let scene = Scene::with(&[]);
    scene.place("half.json", b"{\"id\":\"f\",\n");
    scene.project.write("stray", b"").unwrap();
    let checked = Ran::of(&mut scene.program(&["order", "check", "../half.json"]));
    assert_eq!(checked.code, Some(1), "{}", checked.err);
    let said: Vec<&str> = checked.out.lines().skip(1).collect();
    insta::assert_snapshot!(said.join("\n"), @"
      the order cannot be read: EOF while parsing a value at line 2 column 0; an order is one JSON object
      the work tree is not clean: stray; commit these files, stash them (git stash -u) or move them away
    ");
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
        (check.code, run.code, scene.server.requests().len()),
        (Some(1), Some(3), 0),
        "{check}{run}"
    );
    let problem = "is that of the template; say what is wanted";
    assert!(check.out.contains(&format!("intent {problem}")), "{check}");
    assert!(run.err.contains(&format!("intent: {problem}")), "{run}");
}
