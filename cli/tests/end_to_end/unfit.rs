//! Machines that lack what the build needs: `check`, and runs that end instead of asking a model to repair them.

use code_commit_fixtures::demo::{BREAKS_THE_BUILD, MENDS_IT};
use code_commit_fixtures::server::{Script, Step};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};

use crate::scenes::commit::Scene;
use crate::scenes::program::Ran;
use crate::scenes::{files, order};
use crate::typed;

/// The build needs a program that nobody has.
const NEEDS_A_TOOL: &str = "#!/bin/sh\nset -e\nno-such-tool --verify\n";

/// The demo's project with this build, committed.
fn with_build(build: &str, replies: &[&str]) -> Scene {
    let scene = Scene::new(Script::new(replies.iter().map(|reply| Step::text(reply))));
    scene.project.write("build.sh", build.as_bytes()).unwrap();
    scene.project.commit("another build").unwrap();
    assert_eq!(scene.run(&["rollup"]).code, Some(0));
    scene
}

#[test]
fn check_says_whether_the_build_can_do_its_work_here() {
    let scene = with_build("#!/bin/sh\necho gen > gen.txt\nexit 0\n", &[]);
    let green = scene.run(&["check", "--sandbox", "off"]);
    assert_eq!(green.code, Some(0), "{green}");
    assert!(
        green.out.contains("green: the build passes") && green.err.contains("nothing to fix"),
        "{green}"
    );

    scene
        .project
        .write(
            "build.sh",
            b"#!/bin/sh\necho gen > gen.txt; echo it is wrong; exit 1\n",
        )
        .unwrap();
    let red = scene.run(&["check", "--sandbox", "off"]);
    assert_eq!(red.code, Some(1), "{red}");
    assert!(
        red.out.starts_with("it is wrong\n")
            && red.out.contains("red: the build fails: exit code 1"),
        "{red}"
    );

    scene
        .project
        .write("build.sh", NEEDS_A_TOOL.as_bytes())
        .unwrap();
    let unfit = scene.run(&["check", "--sandbox", "off"]);
    assert_eq!(unfit.code, Some(8), "{unfit}");
    assert!(
        unfit
            .out
            .contains("unfit: the program `no-such-tool` is not installed"),
        "{unfit}"
    );

    // Nothing was asked, nothing is recorded, and what the build made is gone.
    assert_eq!(scene.project.status().unwrap(), " M build.sh\n");
    assert!(scene.run(&["runs"]).out.is_empty() && scene.server.requests().is_empty());
}

#[test]
fn check_tells_programs_what_is_lacking_by_its_code() {
    let scene = with_build(NEEDS_A_TOOL, &[]);
    let told = scene.run(&["check", "--sandbox", "off", "--json"]);
    let objects = told
        .out
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let verdict = objects
        .into_iter()
        .find(|object| object.get("fitness").is_some())
        .unwrap();
    assert_eq!(
        (
            verdict["fitness"].as_str(),
            verdict["lack"]["code"].as_str()
        ),
        (Some("unfit"), Some("tool-missing"))
    );
    assert_eq!(verdict["ended"]["code"], 127);
}

/// The file is there for everybody, and no sandbox shows it.
#[test]
fn what_the_sandbox_hides_is_found_by_trying_and_not_by_words() {
    let scene = with_build(
        "#!/bin/sh\ngrep -q . /etc/issue 2>/dev/null || { echo 'tests: 2 failed'; exit 1; }\n",
        &[],
    );
    let checked =
        |more: &[&str]| scene.run(&[&["check", "--sandbox", "namespaces"], more].concat());
    let unfit = checked(&[]);
    if unfit.code == Some(3) || !std::path::Path::new("/etc/issue").is_file() {
        eprintln!("SKIPPED: what the sandbox hides, because there are no namespaces here: {unfit}");
        return;
    }
    assert_eq!(unfit.code, Some(8), "{unfit}");
    assert!(
        unfit
            .out
            .contains("unfit: the sandbox hides /etc/issue, which the build reads"),
        "{unfit}"
    );
    assert!(unfit.out.contains("`--readable /etc/issue`"), "{unfit}");
    assert_eq!(checked(&["--readable", "/etc/issue"]).code, Some(0));
    // A person at a terminal may have it written into their own configuration.
    let words = ["check", "--sandbox", "namespaces"];
    let home = scene.project.beside().join("home");
    let file = home.join("code-commit/config.toml");
    let here = [("XDG_CONFIG_HOME", home.to_str().unwrap())];
    if let Some(no) = typed::run(&scene, &words, &here, "no\n") {
        assert!(
            no.code == Some(8) && no.to_string().contains("into your own configuration?"),
            "{no}"
        );
        assert!(!file.exists());
        let yes = typed::run(&scene, &words, &here, "yes\n").unwrap();
        assert_eq!(
            files::text(&file),
            "[sandbox]\nreadable = [\"/etc/issue\"]\n",
            "{yes}"
        );
        let green = Ran::of(scene.command(&words, &[]).envs(here));
        assert_eq!(green.code, Some(0), "{green}");
    }
    // What no file of the host mends is red, however often it is tried.
    scene
        .project
        .write(
            "build.sh",
            b"#!/bin/sh\ncat /etc/issue /etc/deluser.conf; echo 'tests: 2 failed'; exit 1\n",
        )
        .unwrap();
    assert_eq!(checked(&[]).code, Some(1));
    let state = scene.project.root().join(".git/code-commit");
    assert!(!state.join("view-beside").exists() && scene.run(&["runs"]).out.is_empty());
}

#[test]
fn check_runs_the_commands_of_an_order_and_says_what_each_lacks() {
    let scene = order::Scene::with(&[]);
    let file = scene.beside("order.json");
    let checked = |more: &[&str]| {
        let args = [
            &[
                "check",
                "--sandbox",
                "off",
                "--order",
                file.to_str().unwrap(),
            ],
            more,
        ]
        .concat();
        Ran::of(&mut scene.program(&args))
    };
    let red = checked(&[]);
    assert_eq!(red.code, Some(1), "{red}");
    let out = &red.out;
    assert!(
        out.contains("green: `bash scripts/verify.sh` passes") && out.contains("got: hello you"),
        "{red}"
    );
    assert!(
        out.contains("red: `sh tests/run.sh` fails: exit code 3"),
        "{red}"
    );

    let script = "#!/bin/sh\necho x > made.txt\nno-such-tool --verify\n";
    scene
        .project
        .write("scripts/verify.sh", script.as_bytes())
        .unwrap();
    let unfit = checked(&[]);
    assert_eq!(unfit.code, Some(8), "{unfit}");
    let lack = "unfit: `bash scripts/verify.sh`: the program `no-such-tool` is not installed";
    assert!(
        unfit.out.contains(lack) && unfit.out.contains("red: `sh tests/run.sh`"),
        "{unfit}"
    );
    let told = checked(&["--json"]);
    let verdicts = told
        .out
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let verdicts: Vec<_> = verdicts
        .filter(|object| object.get("fitness").is_some())
        .collect();
    let said = verdicts
        .iter()
        .map(|verdict| (verdict["command"].as_str(), verdict["fitness"].as_str()));
    let expected = [
        (Some("bash scripts/verify.sh"), Some("unfit")),
        (Some("sh tests/run.sh"), Some("red")),
    ];
    assert_eq!(said.collect::<Vec<_>>(), expected);

    // Nothing was asked, and what the commands made is gone.
    assert_eq!(scene.project.status().unwrap(), " M scripts/verify.sh\n");
    assert!(scene.server.requests().is_empty() && scene.runs().is_empty());

    scene.place_order(&json!({ "acceptance_commands": ["no-such-program --all"] }));
    let missing = checked(&[]);
    assert!(
        missing.code == Some(8) && missing.err.contains("no program no-such-program"),
        "{missing}"
    );
}

#[test]
fn check_runs_the_check_command_of_the_specs_without_their_agent() {
    let scene = with_build("#!/bin/sh\nexit 0\n", &[]);
    let checked = |line: &str, more: &[&str]| {
        let config = json!({ "checkCommand": line }).to_string();
        scene
            .project
            .write(".cuggino.json", config.as_bytes())
            .unwrap();
        scene.run(&[&["check", "--spec"], more].concat())
    };
    for (line, code, said) in [
        (
            "cat README.md; echo x > made.txt",
            0,
            "green: `cat README.md; echo x > made.txt` passes",
        ),
        (
            "echo wrong; exit 3",
            1,
            "red: `echo wrong; exit 3` fails: exit code 3",
        ),
        (
            "no-such-tool",
            8,
            "unfit: `no-such-tool`: the program `no-such-tool` is not installed",
        ),
    ] {
        let ran = checked(line, &["--sandbox", "off"]);
        assert!(ran.code == Some(code) && ran.out.contains(said), "{ran}");
    }
    // In the sandbox of spec runs, which holds their configuration.
    let held = checked("echo > .cuggino.json", &[]);
    let is_held = held.code == Some(8) && held.out.contains("the sandbox refused a write");
    assert!(is_held || held.err.contains("does not work here"), "{held}");
    let both = scene.run(&["check", "--spec", "--order", "x.json"]);
    assert!(
        both.code == Some(2) && both.err.contains("cannot be used with"),
        "{both}"
    );

    scene.project.write(".cuggino.json", b"{}").unwrap();
    let none = scene.run(&["check", "--spec"]);
    assert!(
        none.code == Some(3) && none.err.contains("the specs have no check command"),
        "{none}"
    );
    assert_eq!(scene.project.status().unwrap(), "?? .cuggino.json\n");
}

#[test]
fn a_build_command_that_cannot_start_makes_the_project_unfit() {
    let scene = with_build("#!/bin/sh\nexit 0\n", &[]);
    std::fs::remove_file(scene.project.root().join("build.sh")).unwrap();
    let unfit = scene.run(&["check"]);
    assert!(
        unfit.code == Some(8) && unfit.err.contains("there is no build.sh"),
        "{unfit}"
    );
}

#[test]
fn a_run_on_an_unfit_machine_ends_after_one_call_and_goes_on_once_it_is_mended() {
    let scene = with_build(NEEDS_A_TOOL, &[MENDS_IT]);
    let ran = scene.commit(&[]);
    assert_eq!(
        (ran.code, scene.server.requests().len()),
        (Some(8), 1),
        "{ran}"
    );
    assert!(
        ran.out.contains(
            "Unfit: the build also fails without the changes: the program `no-such-tool`"
        ),
        "{ran}"
    );
    assert!(
        ran.err
            .contains("go on with the same settings: code-commit resume"),
        "{ran}"
    );
    // The reply was paid for: it is on disk, and stays there.
    assert_eq!(
        scene.project.status().unwrap(),
        " M src/greet.sh\n?? README.md\n"
    );
    assert!(
        files::names(scene.runs().pop().unwrap().join("undo/1"))
            .iter()
            .all(|name| !name.starts_with("undone"))
    );

    let tools = scene.project.beside().join("tools");
    files::write_program(&tools.join("no-such-tool"), "#!/bin/sh\nexit 0\n");
    let path = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap());
    let resumed = scene.ran(&mut scene.keyed(&["resume"], &[("PATH", &path)]));
    assert_eq!(
        (resumed.code, scene.server.requests().len()),
        (Some(0), 1),
        "{resumed}"
    );
    assert_eq!(scene.run(&["undo"]).code, Some(0));
    assert_eq!(scene.project.status().unwrap(), "");
}

#[test]
fn what_is_lacking_only_because_of_the_reply_is_for_the_model_to_repair() {
    let calls_a_tool = "^^^src/greet.sh\nno-such-tool\n^^^end\n";
    let build = "#!/bin/sh\nset -e\nsh src/greet.sh\n";
    let scene = with_build(build, &[calls_a_tool, MENDS_IT]);
    let ran = scene.commit(&[]);
    assert_eq!(
        (ran.code, scene.server.requests().len()),
        (Some(0), 2),
        "{ran}"
    );
    assert!(
        ran.err.contains("without the changes the build passes"),
        "{ran}"
    );
    assert_eq!(scene.run(&["undo"]).code, Some(0));
    assert_eq!(scene.project.status().unwrap(), "");
}

#[test]
fn no_check_asks_for_repairs_all_the_same() {
    let scene = with_build(NEEDS_A_TOOL, &[BREAKS_THE_BUILD, MENDS_IT]);
    let ran = scene.commit(&["--no-check", "--rounds", "2"]);
    assert_eq!(
        (ran.code, scene.server.requests().len()),
        (Some(1), 2),
        "{ran}"
    );
}

#[test]
fn changes_that_were_set_aside_by_a_killed_run_come_back() {
    // Without the change it waits forever, so that it can be killed there.
    let waits = "#!/bin/sh
        grep -q world src/greet.sh || { echo made > made.txt; test ! -p agent-config/door || read _ < agent-config/door; }
        no-such-tool
    ";
    let scene = with_build(waits, &[MENDS_IT]);
    let root = scene.project.root();
    let door = root.join("agent-config/door");
    mknodat(CWD, &door, FileType::Fifo, Mode::RWXU, 0).unwrap();
    let quiet = std::process::Stdio::null;
    let mut child = scene
        .keyed(&scene.flags(), &[])
        .stdout(quiet())
        .stderr(quiet())
        .spawn()
        .unwrap();
    while !root.join("made.txt").exists() {
        assert!(child.try_wait().unwrap().is_none(), "it came to an end");
        std::thread::yield_now();
    }
    assert!(
        !files::text(&root.join("src/greet.sh")).contains("world"),
        "the change is still there"
    );
    child.kill().unwrap();
    child.wait().unwrap();
    std::fs::remove_file(door).unwrap();
    let resumed = scene.run_keyed(&["resume"]);
    assert!(
        resumed
            .err
            .contains("was killed while it built the tree without its changes; they are back"),
        "{resumed}"
    );
    assert_eq!(
        (resumed.code, scene.server.requests().len()),
        (Some(8), 1),
        "{resumed}"
    );
    assert_eq!(
        scene.project.status().unwrap(),
        " M src/greet.sh\n?? README.md\n"
    );
    assert_eq!(scene.run(&["undo"]).code, Some(0));
    assert_eq!(scene.project.status().unwrap(), "");
}
