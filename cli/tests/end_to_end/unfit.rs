//! Builds that cannot be started: `check`, and runs that end instead of asking a model to repair them.

use code_commit_fixtures::demo::{BREAKS_THE_BUILD, MENDS_IT};
use code_commit_fixtures::server::Script;
use serde_json::{Value, json};

use crate::scenes::commit::{Scene, texts};
use crate::scenes::program::Ran;
use crate::scenes::{files, order};

/// The build is there, and its interpreter is not.
const NEEDS_A_SHELL: &str = "#!/no/such/shell\nexit 0\n";

/// The demo's project with this build, committed.
fn with_build(build: &str, replies: &[&str]) -> Scene {
    let scene = Scene::new(Script::new(texts(replies)));
    scene.write("build.sh", build.as_bytes());
    scene.project.commit("another build").unwrap();
    assert_eq!(scene.run(&["rollup"]).code, Some(0));
    scene
}

/// The verdicts of a check, each with what was checked.
fn verdicts(told: &Ran) -> Vec<(Option<String>, String)> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    told.objects()
        .iter()
        .filter_map(|object| Some((text(&object["command"]), text(&object["fitness"])?)))
        .collect()
}

#[test]
fn check_says_whether_the_build_passes_and_whether_it_can_be_started() {
    let scene = with_build("#!/bin/sh\necho gen > gen.txt\nexit 0\n", &[]);
    let green = scene.run(&["check", "--sandbox", "off"]).exits(0);
    green.out_has("green: the build passes");

    let red = "#!/bin/sh\necho gen > gen.txt; echo it is wrong; no-such-tool --verify\n";
    scene.write("build.sh", red.as_bytes());
    let red = scene.run(&["check", "--sandbox", "off"]).exits(1);
    red.out_has("red: the build fails: exit code 127");
    assert!(red.out.starts_with("it is wrong\n"), "{red}");

    scene.write("build.sh", NEEDS_A_SHELL.as_bytes());
    let unfit = scene.run(&["check", "--sandbox", "off"]).exits(8);
    unfit.err_has("build.sh needs /no/such/shell");

    // Nothing was asked, nothing is recorded, and what the build made is gone.
    assert_eq!(scene.status(), " M build.sh\n");
    assert!(scene.run(&["runs"]).out.is_empty() && scene.server.requests().is_empty());
}

#[test]
fn check_of_an_order_says_which_of_its_commands_pass_already() {
    let scene = order::Scene::with(&[]);
    let checked = |more: &[&str]| Ran::of(scene.check().args(["--sandbox", "off"]).args(more));
    let red = checked(&[]).exits(0);
    red.out_has("green already: `bash scripts/verify.sh` passes");
    red.out_has("red: `sh tests/run.sh` fails: exit code 3");

    let waits = "sh -c 'echo x > made.txt; exec sleep 600'";
    scene.place_order(&json!({ "acceptance_commands": [waits, "./no-such-program --all"] }));
    let checked = |more: &[&str]| checked(&[&["--timeout-seconds", "1"], more].concat());
    let unfit = checked(&[]).exits(0);
    unfit.out_has("unfit: `./no-such-program --all` was not found");
    let expected = [
        ("bash scripts/verify.sh", "green"),
        (waits, "hangs"),
        ("./no-such-program --all", "unfit"),
    ];
    let expected = expected.map(|(command, said)| (Some(command.to_owned()), said.to_owned()));
    assert_eq!(verdicts(&checked(&["--json"])), expected);

    // Nothing was asked, and what the commands made is gone.
    assert_eq!(scene.status(), "");
    assert!(scene.server.requests().is_empty() && scene.runs().is_empty());
}

#[test]
fn check_runs_the_check_command_of_the_specs_without_their_agent() {
    let scene = with_build("#!/bin/sh\nexit 0\n", &[]);
    let checked = |line: &str, more: &[&str]| {
        let config = json!({ "checkCommand": line }).to_string();
        scene.write(".cuggino.json", config.as_bytes());
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
    ] {
        let ran = checked(line, &["--sandbox", "off"]);
        assert!(ran.code == Some(code) && ran.out.contains(said), "{ran}");
    }
    // In the sandbox of spec runs, which holds their configuration.
    let held = checked("echo > .cuggino.json", &[]);
    assert!(
        held.code == Some(1) || held.err.contains("does not work here"),
        "{held}"
    );

    scene.write(".cuggino.json", "{}");
    let none = scene.run(&["check", "--spec"]).exits(3);
    none.err_has("the specs have no check command");
    assert_eq!(scene.status(), "?? .cuggino.json\n");
}

#[test]
fn a_run_whose_build_cannot_be_started_ends_and_goes_on_once_it_can() {
    let scene = with_build("#!/bin/sh\nexit 0\n", &[BREAKS_THE_BUILD, MENDS_IT]);
    let beside = scene.project.beside();
    let (shell, mended) = (beside.join("shell"), beside.join("mended"));
    let there = || std::os::unix::fs::symlink("/bin/sh", &shell).unwrap();
    there();
    // Its first execution takes its interpreter away.
    let [shell_path, mended_path] = [&shell, &mended].map(|path| path.display());
    let build = format!("#!{shell_path}\nrm {shell_path}\ntest -e {mended_path}\n");
    scene.write("build.sh", build.as_bytes());
    scene.project.commit("another build").unwrap();
    let ran = scene.commit(&[]);
    assert_eq!((ran.code, scene.calls()), (Some(8), 2), "{ran}");
    let unfit = "unfit: the build is not a program that can be started";
    ran.out_has(unfit);
    ran.out_has("code-commit resume");
    // The reply was paid for: it is on disk, and stays there.
    assert_eq!(scene.status(), " M src/greet.sh\n?? README.md\n");

    there();
    files::write(&mended, "");
    let resumed = scene.run_keyed(&["resume"]);
    assert_eq!((resumed.code, scene.calls()), (Some(0), 2), "{resumed}");
    assert_eq!(scene.run(&["undo"]).code, Some(0));
    assert_eq!(scene.status(), "");
}
