//! The commands that need no model.

use std::os::unix::fs::symlink;

use code_commit_fixtures::demo::MENDS_IT;
use code_commit_fixtures::server::{Script, Step};
use serde_json::Value;

use crate::disk_errors::injected;
use crate::scenes::commit::{KEY, Scene};
use crate::scenes::program::{Ran, must_have};

#[test]
fn init_rollup_and_a_query_are_all_that_a_new_folder_needs() {
    let reply = Step::text("^^^hello.sh\necho hello, you\n^^^end\n");
    let scene = Scene::with_files(&[("hello.sh", "echo hello\n")], Script::new([reply]));
    std::fs::remove_dir_all(scene.at("agent-config")).unwrap();
    let first = scene.run(&["init"]);
    insta::assert_snapshot!(first, @r"
    exit 0
    --- out
    .gitignore: added /agent-config, where keys and logs are kept
    agent-config/query.txt: empty, for you to write
    build.sh: fails until you add the commands that build and test the project

    next:
      1. set GEMINI_API_KEY, or put the key into agent-config/gemini-key.txt
      2. make sure that ./build.sh passes if and only if the project is correct: code-commit check
      3. git add and commit the project's files
      4. describe the change in agent-config/query.txt
      5. code-commit rollup && code-commit
    --- err
    ");
    assert!(scene.status().contains("?? build.sh"));
    assert!(!scene.status().contains("agent-config"));
    scene.write("agent-config/query.txt", "Say you.\n");
    scene.project.commit("prepared").unwrap();
    insta::assert_snapshot!(scene.run_keyed(&["init"]), @r"
    exit 0
    --- out
    everything already exists

    next:
      1. make sure that ./build.sh passes if and only if the project is correct: code-commit check
      2. code-commit rollup && code-commit
    --- err
    ");
    scene.write("build.sh", "#!/bin/sh\ngrep -q you hello.sh\n");
    scene.write("agent-config/query.txt", "Say you.\n");
    assert_eq!(
        scene.commit(&[]).code,
        Some(3),
        "nobody makes the roll-up unasked"
    );
    assert_eq!(scene.run(&["rollup"]).code, Some(0));
    scene.commit(&[]).exits(0);
    assert!(scene.recorded("1-query.txt").contains("echo hello\n"));
}

#[test]
fn the_short_help_is_one_screen_and_that_of_a_command_lists_its_flags() {
    let scene = Scene::with_replies([]);
    insta::assert_snapshot!(scene.run(&["-h"]), @r#"
    exit 0
    --- out
    The model proposes, the harness decides.
    Usage: code-commit [-m QUERY] [OPTIONS]    change this project until it builds
           code-commit COMMAND [OPTIONS]       all flags: code-commit COMMAND --help

    Change
      run                              the default loop, as without a command
      implement, order, phase, spec    the other loops: rounds, work orders, agents
      again, resume                    go on from a finished run, or a stopped one
      check, apply, acp, mcp           the build; a reply; for editors and agents
    Look
      runs, show, diff, costs          the runs; what one did, changed and cost
      page, parse, guard               a page of a run; a reply; a path
    Steer
      undo, redo                       take a change back, or reapply it
      clean                            remove old runs
    Set up
      init, rollup, demo               a new project; the code to show; an example
      config, trust, doctor            settings in force; what works on this machine
      completions, man, help           for your shell; manual pages; help

    Examples:
      code-commit demo                                 a complete run without a key
      code-commit -m "Add a --quiet flag." --commit    change, build and commit
      code-commit undo                                 take the newest run back
    --- err
    "#);
    let show = scene.run(&["show", "-h"]);
    show.out_has("Usage: code-commit show [OPTIONS] [RUN]")
        .out_has("--json");
}

#[test]
fn init_makes_the_system_prompt_that_implement_asks_for() {
    let reply = Step::text("^^^hello.sh\necho hello, you\n^^^end\n");
    let scene = Scene::with_files(&[("hello.sh", "echo hello\n")], Script::new([reply]));
    let key = [("GEMINI_API_KEY", KEY)];
    let implement = scene.implement(&[]);
    assert_eq!(scene.run(&["init"]).code, Some(0));
    scene.write("build.sh", "#!/bin/sh\ngrep -q you hello.sh\n");
    scene.write("agent-config/query.txt", "Say you.\n");
    let refused = scene.run_with(&implement, &key).exits(3);
    refused.err_has("code-commit init --implement");
    let made = scene.run(&["init", "--implement"]);
    made.out_has("agent-config/gemini-system-prompt.txt: teaches the model");
    made.out_has("code-commit rollup && code-commit implement\n");
    assert_eq!(scene.run(&["rollup"]).code, Some(0));
    scene.run_with(&implement, &key).exits(0);
    let mut run = std::fs::read_dir(scene.at("logs"))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let asked =
        std::fs::read_to_string(run.find(|path| path.is_dir()).unwrap().join("query-1.txt"))
            .unwrap();
    for fence in [
        "&&&start",
        "%%%start",
        "$$$start",
        "^^^src/main.rs",
        "^^^delete",
        "^^^^end",
    ] {
        assert!(asked.contains(fence), "{fence}: {asked}");
    }
    // What a person has written stays, at the root as well.
    scene.write("agent-config/gemini-system-prompt.txt", "mine\n");
    assert!(
        scene
            .run(&["init", "--implement"])
            .out
            .starts_with("everything already exists")
    );
    let root = scene.project.root();
    std::fs::rename(
        root.join("agent-config/gemini-system-prompt.txt"),
        root.join("gemini-system-prompt.txt"),
    )
    .unwrap();
    assert!(
        scene
            .run(&["init", "--implement"])
            .out
            .starts_with("everything already exists")
    );
}

#[test]
fn a_roll_up_follows_no_link_either_where_openat2_is_denied() {
    // An old kernel, and a container that denies the call.
    for error in ["ENOSYS", "EPERM"] {
        let scene = with_a_folder_that_became_a_link();
        let Some(ran) = injected(&scene, &format!("openat2:error={error}"), &["rollup"]) else {
            return;
        };
        assert!(ran.code == Some(0) && ran.was_hit, "{error}: {}", ran.words);
        no_diary(&scene);
    }
}

/// What git tracks in `src` is behind a link, outside of the project.
fn with_a_folder_that_became_a_link() -> Scene {
    let scene = Scene::with_replies([]);
    let (inside, outside) = (scene.at("src"), scene.beside("elsewhere"));
    scene.write("src/notes.txt", "somebody's diary\n");
    scene.git(&["add", "."]);
    std::fs::rename(&inside, &outside).unwrap();
    symlink(&outside, &inside).unwrap();
    scene
}

fn no_diary(scene: &Scene) {
    let rollup = scene.read("agent-config/codeRollup.txt");
    must_have(&rollup, "--- FILE build.sh ---");
    assert!(!rollup.contains("diary"), "{rollup}");
}

#[test]
fn a_line_for_guard_that_is_not_utf8_is_refused_by_its_number() {
    let scene = Scene::with_replies([]);
    let mut command = scene.command(&["guard", "--json", "--stdin"], &[]);
    let ran = Ran::fed(&mut command, b"\"a.txt\"\n\"\xff\"\n").exits(3);
    ran.err_has("line 2 is not a JSON string");
}

#[test]
fn a_rule_that_is_taken_back_further_down_does_not_hide_keys() {
    let scene = Scene::with_replies([]);
    scene.write(".gitignore", "/agent-config\n!/agent-config/\n");
    must_have(&scene.run(&["init"]).out, ".gitignore: added /agent-config");
}

#[test]
fn the_demo_shows_a_refusal_a_failure_and_a_repair() {
    let scene = Scene::with_replies([]);
    let temporary = scene.project.beside().display().to_string();
    let ran = scene.run_with(&["demo", "--sandbox", "off"], &[("TMPDIR", &temporary)]);
    assert_eq!(ran.code, Some(0), "{ran}");
    for seen in [
        "reply refused",
        "build failed",
        "build passed",
        "done after 3 rounds",
        "+    echo \"Hello, ${1:-world}!\"",
    ] {
        assert!(ran.to_string().contains(seen), "{seen} is missing in {ran}");
    }
}

#[test]
fn the_demo_says_as_json_where_its_project_is_kept() {
    let scene = Scene::with_replies([]);
    let temporary = scene.project.beside().display().to_string();
    let args = ["demo", "--sandbox", "off", "--json"];
    let ran = Ran::of(&mut scene.command(&args, &[("TMPDIR", &temporary)]));
    let lines = ran.objects();
    let [.., summary, kept] = lines.as_slice() else {
        panic!("{ran}")
    };
    assert_eq!(
        (&summary["event"], &kept["event"]),
        (&"summary".into(), &"kept".into()),
        "{ran}"
    );
    assert!(
        std::path::Path::new(kept["folder"].as_str().unwrap())
            .join("build.sh")
            .is_file(),
        "{ran}"
    );
}

#[test]
fn what_is_printed_as_a_file_is_one_line_of_json_where_json_is_asked_for() {
    let scene = Scene::with_replies([]);
    for command in [&["config", "--schema"][..], &["order", "new", "-"]] {
        let plain = scene.run(command).out;
        let json = scene.run(&[command, &["--json"]].concat()).out;
        assert_eq!(json.lines().count(), 1, "{json}");
        let [plain, json] = [plain, json].map(|text| serde_json::from_str::<Value>(&text).unwrap());
        assert_eq!(plain, json);
    }
    assert_eq!(scene.run(&["completions", "bash", "--json"]).code, Some(2));
}

#[test]
fn parse_prints_one_object_about_a_good_reply() {
    let scene = Scene::with_replies([]);
    scene.write(
        "reply",
        "^^^a.txt\none\n^^^end\n^^^b.txt\n^^^delete\n&&&start\nhello\n&&&end\n",
    );
    insta::assert_snapshot!(scene.run(&["parse", "--json", "reply"]), @r#"
    exit 0
    --- out
    {"debug":[],"files":[{"action":"write","bytes":4,"path":"a.txt","sha256":"2c8b08da5ce60398e1f19af0e5dccc744df274b826abe585eaba68c525434806","span":[0,20]},{"action":"delete","bytes":0,"path":"b.txt","sha256":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855","span":[20,39]}],"no_change":null,"ok":true,"thinking":[],"user":["hello\n"]}
    --- err
    "#);
    insta::assert_snapshot!(scene.run(&["parse", "reply"]), @r"
    exit 0
    --- out
    write   a.txt  4 B
    delete  b.txt
    for the user:
    hello
    --- err
    ");
}

#[test]
fn parse_points_at_everything_that_is_wrong() {
    let scene = Scene::with_replies([]);
    scene.write("reply", "^^^a.txt\none\n\n&&&start\nhello\n");
    let json = scene.run(&["parse", "--json", "reply"]).exits(1);
    insta::assert_snapshot!(json.out, @r#"{"errors":[{"code":"nested","column":1,"line":4,"message":"`&&&start` is inside another block (see line 1); close the other block before it; if this line is content, give the other block a longer fence: `^^^^PATH` before and `^^^^end` after it","span":[14,22]},{"code":"unterminated","column":1,"line":4,"message":"the block of `&&&start` is never closed; write `&&&end` on a line of its own after the last line of the content","span":[14,22]}],"ok":false}"#);
    let plain = scene.run(&["parse", "reply"]);
    assert_eq!(plain.err, json.err);
    insta::assert_snapshot!(plain, @r"
    exit 1
    --- out
    --- err
    error: `&&&start` is inside another block (see line 1)
     --> reply:4:1
      |
    4 | &&&start
      | ^^^^^^^^
      |
      = help: close the other block before it; if this line is content, give the other block a longer fence: `^^^^PATH` before and `^^^^end` after it
    error: the block of `&&&start` is never closed
     --> reply:4:1
      |
    4 | &&&start
      | ^^^^^^^^
      |
      = help: write `&&&end` on a line of its own after the last line of the content
    ");
}

#[test]
fn guard_says_which_paths_and_why_not() {
    let scene = Scene::with_replies([]);
    let ran = scene.run(&[
        "guard",
        "--json",
        "src/new.rs",
        "../x",
        ".git/config",
        "agent-config/query.txt",
        "build.sh",
    ]);
    insta::assert_snapshot!(ran, @r#"
    exit 1
    --- out
    {"code":null,"path":"src/new.rs","reason":null,"verdict":"allow"}
    {"code":"relative-component","path":"../x","reason":"`../x` has a `.` or `..` component; write the path relative to the project's root.","verdict":"refuse"}
    {"code":"dot-git","path":".git/config","reason":"`.git/config` is or looks like git's own folder; leave it unchanged.","verdict":"refuse"}
    {"code":"protected","path":"agent-config/query.txt","reason":"`agent-config/query.txt` is protected (the harness's settings and keys); leave it unchanged.","verdict":"refuse"}
    {"code":"protected","path":"build.sh","reason":"`build.sh` is protected (the build decides whether the work is done); leave it unchanged.","verdict":"refuse"}
    --- err
    "#);
    insta::assert_snapshot!(scene.run(&["guard", "src/new.rs", "build.sh"]), @r"
    exit 1
    --- out
    allow   src/new.rs
    refuse  `build.sh` is protected (the build decides whether the work is done); leave it unchanged. [protected]
    --- err
    ");
}

#[test]
fn apply_writes_all_or_nothing_and_can_be_undone() {
    let scene = Scene::with_replies([]);
    scene.write(
        "agent-config/reply",
        "^^^a.txt\none\n^^^end\n^^^src/greet.sh\n^^^delete\n",
    );
    scene.write(
        "agent-config/bad",
        "^^^a.txt\none\n^^^end\n^^^build.sh\n^^^delete\n",
    );
    insta::assert_snapshot!(
        "apply_refused",
        scene.run(&["apply", "--json", "agent-config/bad"])
    );
    insta::assert_snapshot!(
        "apply_dry",
        scene.run(&["apply", "--dry-run", "agent-config/reply"])
    );
    assert_eq!(scene.status(), "");
    insta::assert_snapshot!(
        "apply_json",
        scene.run(&["apply", "--json", "agent-config/reply"])
    );
    assert_eq!(scene.status(), " D src/greet.sh\n?? a.txt\n");
    assert_eq!(scene.run(&["undo"]).code, Some(0));
    assert_eq!(scene.status(), "");
}

/// A file that takes nothing.
fn full_disk() -> std::fs::File {
    let mut options = std::fs::File::options();
    options.write(true).open("/dev/full").unwrap()
}

#[test]
fn a_report_that_cannot_be_printed_is_no_success() {
    let scene = Scene::with_replies([]);
    let full = full_disk();
    // There is nothing to print.
    Ran::of(scene.command(&["runs"], &[]).stdout(full)).exits(0);
    let commands: [&[&str]; 7] = [
        &["guard", "src/new.rs"],
        &["config"],
        &["config", "--schema"],
        &["completions", "bash"],
        &["man"],
        &["order", "new", "-"],
        &["--help"],
    ];
    for command in commands {
        let full = full_disk();
        let ran = Ran::of(scene.command(command, &[]).stdout(full));
        assert_eq!(ran.code, Some(70), "{command:?}");
        ran.err_has("error: cannot write to standard output: No space left on device");
    }
    let full = full_disk();
    // Nothing is lost on standard error that was asked for.
    Ran::of(scene.command(&["rollup"], &[]).stderr(full)).exits(0);
}

#[test]
fn a_report_that_cannot_be_printed_changes_no_verdict() {
    let scene = Scene::with_replies([MENDS_IT]);
    let run = scene.flags();
    for args in [&run[..], &["undo"]] {
        let full = full_disk();
        let ran = Ran::of(scene.keyed(args, &[]).stdout(full)).exits(0);
        ran.err_has("cannot write to standard output: No space left on device");
    }
}

#[test]
fn a_roll_up_says_which_links_and_odd_names_it_leaves_out_and_which_file_it_cannot_read() {
    use std::os::unix::fs::PermissionsExt as _;
    let scene = Scene::with_replies([]);
    let root = scene.project.root();
    std::os::unix::fs::symlink("greet.sh", root.join("src/link")).unwrap();
    std::fs::copy(
        root.join("src/greet.sh"),
        root.join(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(b"odd\xff")),
    )
    .unwrap();
    scene.git(&["add", "."]);
    let ran = scene.run(&["rollup"]);
    ran.err_has("warning: left out: src/link (symbolic links: 1)");
    ran.err_has("warning: left out: odd\\xff (names that are not UTF-8: 1)");
    let closed = root.join("src/greet.sh");
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o000)).unwrap();
    if std::fs::File::open(&closed).is_err() {
        let ran = scene.run(&["rollup"]).exits(3);
        ran.err_has("error: cannot read src/greet.sh");
    }
}

#[test]
fn a_command_line_that_cannot_be_understood_is_told_as_json_too() {
    let scene = Scene::with_replies([]);
    insta::assert_snapshot!(scene.run(&["--json", "--model", "bogus"]), @r#"
    exit 2
    --- out
    {"event":"error","exit":2,"help":"For more information, try '--help'.","message":"invalid value 'bogus' for '--model <MODEL>': cannot tell the provider of `bogus`: write it before the name, such as openai/bogus, or write scripted/FILE"}
    --- err
    error: invalid value 'bogus' for '--model <MODEL>': cannot tell the provider of `bogus`: write it before the name, such as openai/bogus, or write scripted/FILE

    For more information, try '--help'.
    "#);
    let lines = [
        vec!["nosuch", "--json"],
        vec!["spec", "--json"],
        vec!["show", "one", "two", "--json"],
    ];
    for line in lines {
        let ran = scene.run_keyed(&line);
        let told: serde_json::Value = serde_json::from_str(ran.out.trim()).unwrap();
        assert_eq!(
            (&told["event"], &told["exit"]),
            (&"error".into(), &2.into()),
            "{ran}"
        );
        assert_eq!(ran.code, Some(2), "{ran}");
    }
    let clean = scene.run(&["clean", "--json"]);
    let told: serde_json::Value = serde_json::from_str(clean.out.trim()).unwrap();
    let missing = "the following required arguments were not provided: <--keep <NUMBER>|--older-than <DAYS>|--caches>";
    assert_eq!(told["message"], missing);
    let with_key = scene.run_keyed(&["--json", KEY]);
    with_key.out_has("[key …77]");
    assert!(!with_key.to_string().contains(KEY), "{with_key}");
    let a_path = scene.run(&["guard", "--nosuch", "--", "--json"]);
    assert_eq!(
        (a_path.code, a_path.out.as_str()),
        (Some(2), ""),
        "{a_path}"
    );
}

#[test]
fn tools_without_anything_to_tell_still_print_an_object() {
    let scene = Scene::with_replies([]);
    for (command, event) in [("init", "init"), ("costs", "costs")] {
        let ran = scene.run(&[command, "--json"]);
        let value: serde_json::Value = serde_json::from_str(ran.out.trim()).unwrap();
        assert_eq!(value["event"], event, "{ran}");
    }
}
