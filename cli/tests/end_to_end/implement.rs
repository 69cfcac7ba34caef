//! The first loop (S0).

use code_commit_fixtures::demo::{BREAKS_THE_BUILD, MENDS_IT};
use code_commit_fixtures::server::{Script, Step};

use crate::scenes::commit::{KEY, Scene, texts};
use crate::scenes::program::{Ran, must_have};

fn scene(replies: &[&str]) -> Scene {
    let scene = Scene::new(Script::new(texts(replies)));
    scene.system_prompt();
    scene
}

fn implement(scene: &Scene, more: &[&str]) -> Ran {
    scene.run_keyed(&scene.implement(more))
}

#[test]
fn thoughts_for_the_user_are_printed_and_appended_to_their_file() {
    let first = format!("&&&start\nfirst thought\n&&&end\n{BREAKS_THE_BUILD}");
    let scene = scene(&[&first, MENDS_IT]);
    scene.write("llm-user-output.txt", "from an earlier run\n");
    let ran = implement(&scene, &[]).exits(0);
    assert!(ran.out.starts_with("first thought\n"), "{ran}");
    let kept = scene.read("llm-user-output.txt");
    assert!(
        kept.starts_with("from an earlier run\nfirst thought\ngreet now takes its name"),
        "{kept}"
    );
}

#[test]
fn gemini_2_5_pro_is_asked_and_another_model_that_answers_is_named() {
    let other = Step {
        served_model: Some("gemini-3.8-flash".to_owned()),
        ..Step::text(MENDS_IT)
    };
    let scene = Scene::new(Script::new([other]));
    scene.system_prompt();
    let ran = implement(&scene, &[]);
    must_have(&scene.server.requests()[0].path, "/gemini-2.5-pro:");
    ran.err_has("warning: gemini-3.8-flash replied instead of gemini-2.5-pro");
}

#[test]
fn git_sees_no_record_and_the_file_of_the_seed_is_said_once_where_it_is_seen() {
    let talks = format!("&&&start\na thought\n&&&end\n{MENDS_IT}");
    let scene = scene(&[&talks, &talks, &talks]);
    let said = "warning: llm-user-output.txt is new and not ignored by git: add it to .gitignore";
    let ran = implement(&scene, &[]);
    ran.err_has(said);
    assert!(!implement(&scene, &[]).err.contains(said));
    let status = scene.status();
    must_have(&status, "?? llm-user-output.txt");
    assert!(!status.contains("logs"), "{status}");
    std::fs::remove_file(scene.at("llm-user-output.txt")).unwrap();
    let ignore = scene.read(".gitignore") + "*-output.txt\n";
    scene.write(".gitignore", ignore.as_bytes());
    assert!(!implement(&scene, &[]).err.contains(said));
}

#[test]
fn the_first_loop_hides_its_folder_of_keys_where_there_is_one() {
    let scene = scene(&[MENDS_IT, MENDS_IT]);
    let root = scene.project.root();
    scene.write(".gitignore", "*.o\n");
    assert_eq!(implement(&scene, &[]).code, Some(0));
    let hidden = "*.o\n/agent-config\n";
    assert_eq!(scene.read(".gitignore"), hidden);
    for file in ["query.txt", "codeRollup.txt", "gemini-system-prompt.txt"] {
        std::fs::rename(root.join("agent-config").join(file), root.join(file)).unwrap();
    }
    std::fs::remove_dir_all(root.join("agent-config")).unwrap();
    scene.write(".gitignore", "*.o\n");
    std::fs::remove_file(root.join("README.md")).unwrap();
    assert_eq!(implement(&scene, &["--new"]).code, Some(0));
    assert_eq!(scene.read(".gitignore"), "*.o\n");
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
    scene.write("gemini-key.txt", KEY.as_bytes());
    let read = || inputs.map(|file| scene.read(file));
    let (before, build) = (read(), scene.read("build.sh"));
    let evil = "\nfor file in query.txt codeRollup.txt gemini-system-prompt.txt; do echo evil >> $file; done\n";
    scene.write("build.sh", build.replacen('\n', evil, 1).as_bytes());
    scene
        .project
        .commit("a build that writes the next query")
        .unwrap();
    let ran = scene.run(&scene.implement(&[]));
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
    let runs: Vec<_> = std::fs::read_dir(scene.at("logs"))
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
