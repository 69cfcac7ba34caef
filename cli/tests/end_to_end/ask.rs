//! A query on the command line, a first run without any preparation, and roll-ups that are rewritten.

use std::fs::File;

use code_commit_fixtures::demo::MENDS_IT;
use code_commit_fixtures::server::{Script, Step};

use crate::scenes::commit::Scene;
use crate::scenes::program::Ran;

const ROLLUP: &str = "agent-config/codeRollup.txt";

/// The demo's project as a stranger has it: no settings folder, nothing about it in `.gitignore`.
fn fresh(replies: &[&str]) -> Scene {
    let scene = Scene::new(Script::new(replies.iter().map(|reply| Step::text(reply))));
    std::fs::remove_dir_all(scene.project.root().join("agent-config")).unwrap();
    scene.project.write(".gitignore", b"/target\n").unwrap();
    scene.project.commit("a project of its own").unwrap();
    scene
}

/// Everything in the root, and what is new to git.
fn tree(scene: &Scene) -> (Vec<std::ffi::OsString>, String) {
    let entries = std::fs::read_dir(scene.project.root()).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    (names, scene.project.status().unwrap())
}

fn with_input(scene: &Scene, input: &[u8]) -> Ran {
    let file = scene.project.beside().join("input");
    std::fs::write(&file, input).unwrap();
    let args = [&scene.flags()[..], &["-m", "-"]].concat();
    scene.ran(scene.keyed(&args, &[]).stdin(File::open(file).unwrap()))
}

fn origin(scene: &Scene) -> String {
    let plan: serde_json::Value = serde_json::from_str(&scene.recorded("run.json")).unwrap();
    plan["query_from"].as_str().unwrap().to_owned()
}

#[test]
fn a_first_run_needs_a_key_and_a_query_and_nothing_else() {
    let scene = fresh(&[MENDS_IT]);
    let ran = scene.commit(&["-m", "Greet whoever is named."]);
    assert_eq!(ran.code, Some(0), "{ran}");
    insta::assert_snapshot!(ran.err.lines().take(5).collect::<Vec<_>>().join("\n"), @r"
    warning: the price of gemini/gemini-test is not known, so its cost cannot be shown or limited; put it into [[price]] of your configuration
    agent-config/codeRollup.txt: 4 files, 555 B
    .gitignore: added /agent-config, where keys and logs are kept
    sandbox: OFF, commands run with all your rights (asked for)
    round 1/4  asking gemini/gemini-test (3.0 kB)
    ");
    assert_eq!(
        scene.project.read(".gitignore").unwrap(),
        "/target\n/agent-config\n"
    );
    assert!(!scene.project.root().join("agent-config/query.txt").exists());
    assert_eq!(
        scene.project.status().unwrap(),
        " M .gitignore\n M src/greet.sh\n?? README.md\n"
    );
    let prompt = scene.recorded("1-query.txt");
    assert!(
        prompt.contains("\nGreet whoever is named.\n\n--- FILE .gitignore ---\n"),
        "{prompt}"
    );
    assert_eq!(origin(&scene), "-m");
}

#[test]
fn a_given_query_takes_the_place_of_the_file_which_stays_as_it_is() {
    let scene = Scene::with_replies([MENDS_IT, MENDS_IT]);
    let before = scene.project.read("agent-config/query.txt").unwrap();
    assert_eq!(scene.commit(&["-m", "Be kind."]).code, Some(0));
    assert!(
        scene
            .recorded("1-query.txt")
            .contains("\nBe kind.\n\n--- FILE")
    );
    assert!(!scene.recorded("1-query.txt").contains(before.trim()));
    assert_eq!(
        scene.project.read("agent-config/query.txt").unwrap(),
        before
    );
    let listed = scene.run(&["runs"]);
    assert!(listed.out.contains("Be kind."), "{listed}");
    assert_eq!(scene.run(&["undo"]).code, Some(0));
    assert_eq!(scene.commit(&[]).code, Some(0));
    assert_eq!(origin(&scene), "agent-config/query.txt");
}

#[test]
fn a_query_is_read_from_standard_input() {
    let scene = fresh(&[MENDS_IT]);
    let ran = with_input(&scene, "Grüße\nalle.\n".as_bytes());
    assert_eq!(ran.code, Some(0), "{ran}");
    assert!(
        scene
            .recorded("1-query.txt")
            .contains("\nGrüße\nalle.\n\n--- FILE")
    );
    assert_eq!(origin(&scene), "standard input");
}

#[test]
fn a_given_query_that_is_no_text_is_refused_and_nothing_is_made() {
    let scene = fresh(&[]);
    let before = tree(&scene);
    let mut said = String::new();
    let too_long = vec![b'x'; (1 << 20) + 1];
    let inputs: [&[u8]; 3] = [b" \n", b"ab\xff", &too_long];
    for ran in inputs
        .map(|input| with_input(&scene, input))
        .into_iter()
        .chain([scene.commit(&["-m", " "])])
    {
        assert_eq!(ran.code, Some(3), "{ran}");
        said += &ran.err;
    }
    insta::assert_snapshot!(said, @r#"
    error: the query from standard input is empty
     help: describe the change: code-commit -m "…"
    error: the query from standard input is not UTF-8
     help: describe the change: code-commit -m "…"
    error: the query from standard input has more than 1 MiB
     help: describe the change: code-commit -m "…"
    error: the query from -m is empty
     help: describe the change: code-commit -m "…"
    "#);
    assert_eq!((tree(&scene), scene.server.requests().len()), (before, 0));
}

#[test]
fn a_folder_of_a_project_does_not_become_a_project_of_its_own() {
    let scene = Scene::with_replies([MENDS_IT]);
    let src = scene.project.root().join("src");
    let ran = scene.ran(
        scene
            .keyed(&[&scene.flags()[..], &["-m", "Greet."]].concat(), &[])
            .current_dir(&src),
    );
    assert!(
        ran.code == Some(3) && ran.err.contains("cd [ROOT]"),
        "{ran}"
    );
    assert!(!src.join("agent-config").exists());
}

#[test]
fn a_roll_up_of_ours_is_rewritten_when_a_run_begins() {
    let scene = Scene::with_replies([MENDS_IT, MENDS_IT]);
    scene
        .project
        .write("src/new.sh", b"# committed after the roll-up\n")
        .unwrap();
    scene.project.commit("more").unwrap();
    let ran = scene.commit(&["--verbose"]);
    assert_eq!(ran.code, Some(0), "{ran}");
    assert!(
        ran.err
            .contains("agent-config/codeRollup.txt: rewritten, 5 files, "),
        "{ran}"
    );
    assert!(
        scene
            .recorded("1-query.txt")
            .contains("# committed after the roll-up\n")
    );
    assert_eq!(scene.run(&["undo"]).code, Some(0));
    let same = scene.commit(&["--verbose"]);
    assert!(
        !same.err.contains("rewritten") && !same.err.contains("is older"),
        "{same}"
    );
}

#[test]
fn a_roll_up_that_a_person_or_a_script_made_is_used_as_it_is() {
    for edits in [true, false] {
        let scene = Scene::with_replies([MENDS_IT]);
        if edits {
            let text = scene.project.read(ROLLUP).unwrap() + "\nmind the gap\n";
            scene.project.write(ROLLUP, text.as_bytes()).unwrap();
        } else {
            scene.disown_rollup();
        }
        let theirs = scene.project.read(ROLLUP).unwrap();
        scene
            .project
            .write("src/new.sh", b"# committed after the roll-up\n")
            .unwrap();
        scene.project.commit("more").unwrap();
        assert_eq!(scene.commit(&[]).code, Some(0));
        assert_eq!(scene.project.read(ROLLUP).unwrap(), theirs);
        assert!(scene.recorded("1-query.txt").ends_with(&theirs));
    }
}

#[test]
fn patterns_choose_what_a_roll_up_holds_and_a_run_makes_it_anew_with_them() {
    let scene = Scene::with_replies([MENDS_IT]);
    assert_eq!(
        scene
            .run(&["rollup", "--include", "*.sh", "--exclude", "/tests/"])
            .code,
        Some(0)
    );
    let headers = |text: &str| {
        let paths = text
            .lines()
            .filter_map(|line| line.strip_prefix("--- FILE ")?.strip_suffix(" ---"));
        paths.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(
        headers(&scene.project.read(ROLLUP).unwrap()),
        ["build.sh", "src/greet.sh"]
    );
    scene.project.write("src/new.sh", b"# new\n").unwrap();
    scene.project.write("src/new.txt", b"new\n").unwrap();
    scene.project.commit("more").unwrap();
    assert_eq!(scene.commit(&[]).code, Some(0));
    assert_eq!(
        headers(&scene.recorded("1-query.txt")).get(1..).unwrap(),
        ["build.sh", "src/greet.sh", "src/new.sh"]
    );
}
