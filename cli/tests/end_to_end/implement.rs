//! The first loop (S0).

use code_commit_fixtures::demo::{BREAKS_THE_BUILD, MENDS_IT, TOUCHES_GIT};
use code_commit_fixtures::server::{Script, Step};

use crate::scenes::commit::{KEY, Scene};
use crate::scenes::files;
use crate::scenes::program::Ran;

const SYSTEM: &str = "Answer in fences.\n";

fn scene(replies: &[&str]) -> Scene {
    let scene = Scene::new(Script::new(replies.iter().map(|reply| Step::text(reply))));
    scene
        .project
        .write("agent-config/gemini-system-prompt.txt", SYSTEM.as_bytes())
        .unwrap();
    scene
}

fn implement(scene: &Scene, more: &[&str]) -> Ran {
    let mut args = vec![
        "implement",
        "--base-url",
        scene.server.origin(),
        "--sandbox",
        "off",
    ];
    args.extend(more);
    scene.run_keyed(&args)
}

/// One file of the newest run below `logs/`.
fn logged(scene: &Scene, file: &str) -> String {
    let mut runs = files::entries(scene.project.root().join("logs"));
    runs.retain(|path| path.is_dir());
    files::text(&runs.pop().unwrap().join(file))
}

#[test]
fn thoughts_for_the_user_are_printed_and_appended_to_their_file() {
    let first = format!("&&&start\nfirst thought\n&&&end\n{BREAKS_THE_BUILD}");
    let scene = scene(&[&first, MENDS_IT]);
    scene
        .project
        .write("llm-user-output.txt", b"from an earlier run\n")
        .unwrap();
    let ran = implement(&scene, &[]);
    assert_eq!(ran.code, Some(0), "{ran}");
    assert!(ran.out.starts_with("first thought\n"), "{ran}");
    let kept = scene.project.read("llm-user-output.txt").unwrap();
    assert!(
        kept.starts_with("from an earlier run\nfirst thought\ngreet now takes its name"),
        "{kept}"
    );
}

#[test]
fn each_query_begins_with_the_bytes_of_the_one_before() {
    let thought = format!("%%%start\nI forgot the default.\n%%%end\n{BREAKS_THE_BUILD}");
    let scene = scene(&[&thought, TOUCHES_GIT, MENDS_IT]);
    assert_eq!(implement(&scene, &[]).code, Some(0));
    let queries = ["query-1.txt", "query-2.txt", "query-3.txt"].map(|file| logged(&scene, file));
    assert!(queries[1].starts_with(&queries[0]) && queries[2].starts_with(&queries[1]));
    assert!(queries[0].starts_with(SYSTEM));
    insta::assert_snapshot!(queries[2].strip_prefix(&queries[0]).unwrap(), @r#"
    The above query was provided, and you provided the following data in your response
    I forgot the default.
    ^^^src/greet.sh
    # greet NAME: says hello to somebody.
    greet() {
        echo "Hello, $1!"
    }
    ^^^end
    When the file repalcements were made, the build provided the following output:
    ok: a name is greeted
    FAILED: nobody is the world: expected 'Hello, world!', got 'Hello, !'
    exit code: 1
    You then provided the following data in your subsequent response
    ^^^src/greet.sh
    # greet NAME: says hello to somebody.
    greet() {
        echo "Hello, $1!"
    }
    ^^^end
    ^^^.git/hooks/pre-commit
    #!/bin/sh
    sh build.sh
    ^^^end
    When the file repalcements were made, the build provided the following output:
    The reply was not used and no file was changed, because:
    - `.git/hooks/pre-commit` is or looks like git's own folder; leave it unchanged.
    "#);
}

#[test]
fn the_log_has_the_names_of_the_seed() {
    let scene = scene(&[MENDS_IT]);
    assert_eq!(implement(&scene, &[]).code, Some(0));
    for file in [
        "query-1.txt",
        "query-1-response.json",
        "query-1-response.txt",
        "query-1-build.txt",
    ] {
        assert!(!logged(&scene, file).is_empty(), "{file}");
    }
}

#[test]
fn there_are_eight_rounds_and_no_ninth() {
    let scene = scene(&[BREAKS_THE_BUILD, TOUCHES_GIT].repeat(5));
    let ran = implement(&scene, &[]);
    assert_eq!(ran.code, Some(1), "{ran}");
    assert_eq!(scene.server.requests().len(), 8);
}

#[test]
fn gemini_2_5_pro_is_asked_and_another_model_that_answers_is_named() {
    let other = Step {
        served_model: Some("gemini-3.8-flash".to_owned()),
        ..Step::text(MENDS_IT)
    };
    let scene = Scene::new(Script::new([other]));
    scene
        .project
        .write("agent-config/gemini-system-prompt.txt", SYSTEM.as_bytes())
        .unwrap();
    let ran = implement(&scene, &[]);
    assert!(
        scene.server.requests()[0].path.contains("/gemini-2.5-pro:"),
        "{}",
        scene.server.requests()[0].path
    );
    assert!(
        ran.err
            .contains("warning: gemini-3.8-flash replied instead of gemini-2.5-pro"),
        "{ran}"
    );
}

#[test]
fn git_sees_no_record_and_the_file_of_the_seed_is_said_once_where_it_is_seen() {
    let talks = format!("&&&start\na thought\n&&&end\n{MENDS_IT}");
    let scene = scene(&[&talks, &talks, &talks]);
    let said = "warning: llm-user-output.txt is new and not ignored by git: add it to .gitignore";
    let ran = implement(&scene, &[]);
    assert!(ran.err.contains(said), "{ran}");
    assert!(!implement(&scene, &[]).err.contains(said));
    let status = scene.project.status().unwrap();
    assert!(
        status.contains("?? llm-user-output.txt") && !status.contains("logs"),
        "{status}"
    );
    std::fs::remove_file(scene.project.root().join("llm-user-output.txt")).unwrap();
    let ignore = scene.project.read(".gitignore").unwrap() + "*-output.txt\n";
    scene
        .project
        .write(".gitignore", ignore.as_bytes())
        .unwrap();
    assert!(!implement(&scene, &[]).err.contains(said));
}

#[test]
fn the_first_loop_hides_its_folder_of_keys_where_there_is_one() {
    let scene = scene(&[MENDS_IT, MENDS_IT]);
    let root = scene.project.root();
    scene.project.write(".gitignore", b"*.o\n").unwrap();
    assert_eq!(implement(&scene, &[]).code, Some(0));
    let hidden = "*.o\n/agent-config\n";
    assert_eq!(scene.project.read(".gitignore").unwrap(), hidden);
    for file in ["query.txt", "codeRollup.txt", "gemini-system-prompt.txt"] {
        std::fs::rename(root.join("agent-config").join(file), root.join(file)).unwrap();
    }
    std::fs::remove_dir_all(root.join("agent-config")).unwrap();
    scene.project.write(".gitignore", b"*.o\n").unwrap();
    std::fs::remove_file(root.join("README.md")).unwrap();
    assert_eq!(implement(&scene, &["--new"]).code, Some(0));
    assert_eq!(scene.project.read(".gitignore").unwrap(), "*.o\n");
}

#[test]
fn the_four_inputs_may_lie_at_the_root() {
    let scene = scene(&[MENDS_IT]);
    let root = scene.project.root();
    for file in ["query.txt", "codeRollup.txt", "gemini-system-prompt.txt"] {
        std::fs::rename(root.join("agent-config").join(file), root.join(file)).unwrap();
    }
    scene
        .project
        .write("gemini-key.txt", KEY.as_bytes())
        .unwrap();
    let args = [
        "implement",
        "--base-url",
        scene.server.origin(),
        "--sandbox",
        "off",
    ];
    let ran = scene.run(&args);
    assert_eq!(ran.code, Some(0), "{ran}");
    assert_eq!(
        scene.server.requests()[0].header("x-goog-api-key"),
        Some(KEY)
    );
}

#[test]
fn a_build_changes_no_input_that_lies_at_the_root() {
    let scene = scene(&[MENDS_IT]);
    let (root, inputs) = (
        scene.project.root(),
        ["query.txt", "codeRollup.txt", "gemini-system-prompt.txt"],
    );
    for file in inputs {
        std::fs::rename(root.join("agent-config").join(file), root.join(file)).unwrap();
    }
    scene
        .project
        .write("gemini-key.txt", KEY.as_bytes())
        .unwrap();
    let read = || inputs.map(|file| scene.project.read(file).unwrap());
    let (before, build) = (read(), scene.project.read("build.sh").unwrap());
    let evil = "\nfor file in query.txt codeRollup.txt gemini-system-prompt.txt; do echo evil >> $file; done\n";
    scene
        .project
        .write("build.sh", build.replacen('\n', evil, 1).as_bytes())
        .unwrap();
    scene
        .project
        .commit("a build that writes the next query")
        .unwrap();
    let ran = scene.run(&[
        "implement",
        "--base-url",
        scene.server.origin(),
        "--sandbox",
        "off",
    ]);
    assert_eq!(read(), before, "{ran}");
    assert!(inputs.iter().all(|file| ran.err.contains(file)), "{ran}");
}

#[test]
fn each_run_has_a_folder_named_by_the_time_at_which_it_began() {
    let scene = scene(&[MENDS_IT]);
    let clock = || {
        jiff::Timestamp::now()
            .strftime("%Y-%m-%d-%H-%M-%S")
            .to_string()
    };
    let before = clock();
    assert_eq!(implement(&scene, &[]).code, Some(0));
    let after = clock();
    let runs: Vec<_> = std::fs::read_dir(scene.project.root().join("logs"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .filter(|name| name != ".gitignore")
        .collect();
    let [run] = runs.as_slice() else {
        panic!("{runs:?}")
    };
    let run = run.to_str().unwrap();
    assert_eq!(run.len(), before.len(), "{run}");
    assert!(
        (before.as_str()..=after.as_str()).contains(&run),
        "{run} is not between {before} and {after}"
    );
}
