//! A query on the command line, a first run without any preparation, and roll-ups that are rewritten.

use std::fs::File;

use code_commit_fixtures::demo::MENDS_IT;
use code_commit_fixtures::server::Script;

use crate::scenes::commit::{Scene, texts};
use crate::scenes::program::{Ran, must_have};

const ROLLUP: &str = "agent-config/codeRollup.txt";

/// The demo's project as a stranger has it: no settings folder, nothing about it in `.gitignore`.
fn fresh(replies: &[&str]) -> Scene {
    let scene = Scene::new(Script::new(texts(replies)));
    std::fs::remove_dir_all(scene.at("agent-config")).unwrap();
    scene.write(".gitignore", "/target\n");
    scene.project.commit("a project of its own").unwrap();
    scene
}

/// Everything in the root, and what is new to git.
fn tree(scene: &Scene) -> (Vec<std::ffi::OsString>, String) {
    let entries = std::fs::read_dir(scene.project.root()).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    (names, scene.status())
}

fn with_input(scene: &Scene, input: &[u8]) -> Ran {
    let file = scene.beside("input");
    std::fs::write(&file, input).unwrap();
    let args = [&scene.flags()[..], &["-m", "-"]].concat();
    scene.ran(scene.keyed(&args, &[]).stdin(File::open(file).unwrap()))
}

fn origin(scene: &Scene) -> String {
    let plan = scene.json("run.json");
    plan["query_from"].as_str().unwrap().to_owned()
}

#[test]
fn a_first_run_needs_a_key_and_a_query_and_nothing_else() {
    let scene = fresh(&[MENDS_IT]);
    let ran = scene.commit(&["-m", "Greet whoever is named."]).exits(0);
    insta::assert_snapshot!(ran.err.lines().take(5).collect::<Vec<_>>().join("\n"), @r"
    warning: the price of gemini/gemini-test is not known, so its cost cannot be shown or limited; put it into [[price]] of your configuration
    agent-config/codeRollup.txt: 4 files, 555 B
    .gitignore: added /agent-config, where keys and logs are kept
    sandbox: OFF, commands run with all your rights (asked for)
    round 1/4  asking gemini/gemini-test (3.0 kB)
    ");
    assert_eq!(scene.read(".gitignore"), "/target\n/agent-config\n");
    assert!(!scene.at("agent-config/query.txt").exists());
    assert_eq!(
        scene.status(),
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
    let before = scene.read("agent-config/query.txt");
    assert_eq!(scene.commit(&["-m", "Be kind."]).code, Some(0));
    must_have(&scene.recorded("1-query.txt"), "\nBe kind.\n\n--- FILE");
    assert!(!scene.recorded("1-query.txt").contains(before.trim()));
    assert_eq!(scene.read("agent-config/query.txt"), before);
    let listed = scene.run(&["runs"]);
    listed.out_has("Be kind.");
    assert_eq!(scene.run(&["undo"]).code, Some(0));
    assert_eq!(scene.commit(&[]).code, Some(0));
    assert_eq!(origin(&scene), "agent-config/query.txt");
}

#[test]
fn a_query_is_read_from_standard_input() {
    let scene = fresh(&[MENDS_IT]);
    with_input(&scene, "Grüße\nalle.\n".as_bytes()).exits(0);
    must_have(&scene.recorded("1-query.txt"), "\nGrüße\nalle.\n\n--- FILE");
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
    assert_eq!((tree(&scene), scene.calls()), (before, 0));
}

#[test]
fn a_folder_of_a_project_does_not_become_a_project_of_its_own() {
    let scene = Scene::with_replies([MENDS_IT]);
    let src = scene.at("src");
    let ran = scene
        .ran(
            scene
                .keyed(&[&scene.flags()[..], &["-m", "Greet."]].concat(), &[])
                .current_dir(&src),
        )
        .exits(3);
    ran.err_has("cd [ROOT]");
    assert!(!src.join("agent-config").exists());
}

#[test]
fn a_roll_up_of_ours_is_rewritten_when_a_run_begins() {
    let scene = Scene::with_replies([MENDS_IT, MENDS_IT]);
    scene.write("src/new.sh", "# committed after the roll-up\n");
    scene.project.commit("more").unwrap();
    let ran = scene.commit(&["--verbose"]).exits(0);
    ran.err_has("agent-config/codeRollup.txt: rewritten, 5 files, ");
    must_have(
        &scene.recorded("1-query.txt"),
        "# committed after the roll-up\n",
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
            let text = scene.read(ROLLUP) + "\nmind the gap\n";
            scene.write(ROLLUP, text.as_bytes());
        } else {
            scene.disown_rollup();
        }
        let theirs = scene.read(ROLLUP);
        scene.write("src/new.sh", "# committed after the roll-up\n");
        scene.project.commit("more").unwrap();
        assert_eq!(scene.commit(&[]).code, Some(0));
        assert_eq!(scene.read(ROLLUP), theirs);
        assert!(scene.recorded("1-query.txt").ends_with(&theirs));
    }
}

#[test]
fn patterns_choose_what_a_roll_up_holds_and_a_run_makes_it_anew_with_them() {
    let scene = Scene::with_replies([MENDS_IT]);
    scene
        .run(&["rollup", "--include", "*.sh", "--exclude", "/tests/"])
        .exits(0);
    let headers = |text: &str| {
        let paths = text
            .lines()
            .filter_map(|line| line.strip_prefix("--- FILE ")?.strip_suffix(" ---"));
        paths.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(headers(&scene.read(ROLLUP)), ["build.sh", "src/greet.sh"]);
    scene.write("src/new.sh", "# new\n");
    scene.write("src/new.txt", "new\n");
    scene.project.commit("more").unwrap();
    assert_eq!(scene.commit(&[]).code, Some(0));
    assert_eq!(
        headers(&scene.recorded("1-query.txt")).get(1..).unwrap(),
        ["build.sh", "src/greet.sh", "src/new.sh"]
    );
}
