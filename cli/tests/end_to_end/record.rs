//! What the record is good for: resume, runs, show.

use code_commit_fixtures::demo::{BREAKS_THE_BUILD, MENDS_IT};

use crate::scenes::commit::Scene;
use crate::scenes::files;
use crate::scenes::program::{must_have, start_quietly};

#[test]
fn a_build_that_is_killed_with_its_harness_leaves_nothing() {
    for goes_on in [false, true] {
        let scene = Scene::with_replies([MENDS_IT]);
        let root = scene.project.root();
        // The first time it waits for ever, in the middle of its work; once the door is gone it does its work and passes.
        let build = "#!/bin/sh
            rm -rf tests; mkdir -p planted/.git src/new
            echo 'fsmonitor = ./run' > planted/.git/config
            echo hidden > src/new/hidden; echo formatted >> src/greet.sh
            echo '*' > src/.gitignore
            test ! -p agent-config/door || read _ < agent-config/door
        ";
        scene.write("build.sh", build.as_bytes());
        scene.project.commit("a build that waits").unwrap();
        let door = root.join("agent-config/door");
        files::make_pipe(&door);
        let mut child = start_quietly(&mut scene.keyed(&scene.flags(), &[]));
        while !root.join("src/.gitignore").exists() {
            assert!(child.try_wait().unwrap().is_none(), "it came to an end");
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        std::fs::remove_file(door).unwrap();
        let next = if goes_on {
            scene.run_keyed(&["resume"])
        } else {
            scene.run(&["undo"])
        };
        assert_eq!(next.code, Some(0), "{next}");
        next.err_has("was killed while a command of it ran; what that had changed was restored");
        let tree = scene.status();
        if goes_on {
            must_have(&tree, " D tests/");
            must_have(&tree, "?? src/new/");
            assert!(!root.join("src/.gitignore").exists() && !root.join("planted").exists());
            assert_eq!(scene.run(&["undo"]).code, Some(0));
        }
        assert_eq!(scene.status(), "", "undone");
        let left = [
            "src/new",
            "src/new/hidden",
            "planted",
            "planted/.git",
            "planted/.git/config",
        ]
        .map(|path| root.join(path).exists());
        assert_eq!(left, [false; 5], "{next}");
    }
}

#[test]
fn a_run_whose_journal_was_changed_is_listed_as_damaged() {
    let scene = Scene::with_replies([BREAKS_THE_BUILD, MENDS_IT]);
    assert_eq!(scene.commit(&[]).code, Some(0));
    let forged = scene
        .recorded("events.jsonl")
        .replacen("\"what\"", "\"that\"", 1);
    std::fs::File::create(scene.runs().pop().unwrap().join("events.jsonl"))
        .and_then(|mut file| std::io::Write::write_all(&mut file, forged.as_bytes()))
        .unwrap();
    let listed = scene.run(&["runs"]);
    listed.out_has("  damaged, rounds 0  ");
}

#[test]
fn an_empty_list_of_runs_is_not_taken_for_one_of_no_runs() {
    let scene = Scene::with_replies([MENDS_IT]);
    assert_eq!(scene.commit(&["--key", "k"]).code, Some(0));
    std::fs::File::create(scene.at(".git/code-commit/known-runs.json")).unwrap();
    let refused = scene.commit(&["--key", "k"]);
    assert_eq!((refused.code, scene.calls()), (Some(3), 1), "{refused}");
    refused.err_has("known-runs.json").err_has("remove it");
}

#[test]
fn a_killed_apply_is_not_listed_as_applied_and_not_meant_by_undo() {
    let scene = Scene::with_replies([MENDS_IT]);
    assert_eq!(scene.commit(&[]).code, Some(0));
    scene.write("reply", "^^^x.txt\nx\n^^^end\n");
    assert_eq!(scene.run(&["apply", "reply"]).code, Some(0));
    // As a harness leaves it that was killed before its set was in place.
    let applied = scene
        .runs()
        .into_iter()
        .find(|run| run.display().to_string().ends_with("-apply"))
        .unwrap();
    std::fs::remove_file(applied.join("backup/1/manifest.json")).unwrap();
    let listed = scene.run(&["runs"]);
    listed.out_has("-apply  nothing was done, rounds 0\n");
    assert!(scene.run(&["undo"]).out.contains("restored src/greet.sh"));
}

#[test]
fn a_run_whose_build_script_is_gone_does_not_go_on_to_pay_for_its_repair() {
    let scene = Scene::with_replies([BREAKS_THE_BUILD]);
    scene.commit(&["--max-calls", "1"]).exits(4);
    std::fs::remove_file(scene.at("build.sh")).unwrap();
    let resumed = scene.run_keyed(&["resume", "--max-calls", "9", "--force"]);
    assert_eq!((resumed.code, scene.calls()), (Some(3), 1), "{resumed}");
    resumed.err_has("there is no build.sh");
}
