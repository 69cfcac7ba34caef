//! Which run `resume` means, and what it refuses to go on with.

use std::fs::File;
use std::time::Duration;

use code_commit_fixtures::demo::MENDS_IT;
use code_commit_fixtures::server::{Hang, Script, Step};
use rustix::process::{Pid, Signal, kill_process};

use crate::disk_errors::injected;
use crate::scenes::commit::Scene;
use crate::scenes::files;
use crate::scenes::kills::{places, strace_works};
use crate::scenes::program::{Ran, start_quietly};

fn resume(scene: &Scene, more: &[&str]) -> Ran {
    scene.run_keyed(&[&["resume"], more].concat())
}

#[test]
fn resume_without_a_name_means_the_newest_run_and_names_older_ones_that_are_not_over() {
    let scene = Scene::stopped(&[MENDS_IT, MENDS_IT]);
    let old = scene.runs().pop().unwrap();
    assert_eq!(scene.commit(&["--new"]).code, Some(0));
    let journal = File::options()
        .append(true)
        .open(old.join("events.jsonl"))
        .unwrap();
    let long_ago = journal.metadata().unwrap().modified().unwrap() - Duration::from_hours(75);
    journal.set_modified(long_ago).unwrap();
    let refused = Ran::of(&mut scene.keyed(&["resume"], &[])).exits(7);
    assert_eq!(scene.calls(), 3);
    let older = format!(
        " help: older unfinished runs: {} (3 days ago); to continue one: code-commit resume RUN\n",
        files::name(&old)
    );
    refused.err_has(" is finished\n").err_has(&older);
    std::fs::remove_file(scene.at("README.md")).unwrap();
    assert_eq!(
        resume(&scene, &[&files::name(&old), "--force"]).code,
        Some(0)
    );
    assert_eq!(scene.calls(), 4);
    let over = resume(&scene, &[]).exits(7);
    assert!(!over.err.contains("older"), "{over}");
}

#[test]
fn a_run_whose_tree_has_changed_since_is_gone_on_with_only_by_force() {
    type Change = dyn Fn(&Scene, &str);
    let commit = |scene: &Scene, file: &str| {
        scene.write(file, "x");
        scene.git(&["add", file]);
        scene.git(&["commit", "-q", "-m", "mine"]);
    };
    let write = |scene: &Scene, file: &str| scene.write(file, "false\n");
    let remove = |scene: &Scene, file: &str| std::fs::remove_file(scene.at(file)).unwrap();
    let changes: [(&str, &Change); 5] = [
        ("src/greet.sh", &write),
        ("build.sh", &write),
        ("new", &write),
        ("tests/greet_test.sh", &remove),
        ("src/committed", &commit),
    ];
    for (file, change) in changes {
        let scene = Scene::stopped(&[MENDS_IT]);
        change(&scene, file);
        let refused = resume(&scene, &[]);
        let wanted = format!("was stopped: {file}\n");
        assert!(
            refused.code == Some(3) && refused.err.contains(&wanted),
            "{file}: {refused}"
        );
        refused.err_has("-commit --force");
        assert_eq!(scene.calls(), 2, "{file}");
        assert_ne!(resume(&scene, &["--force"]).code, Some(3), "{file}");
    }
}

#[test]
fn what_the_run_itself_has_written_may_be_committed_before_it_goes_on() {
    let scene = Scene::stopped(&[MENDS_IT]);
    scene.project.commit("as far as it came").unwrap();
    let resumed = resume(&scene, &[]);
    assert_eq!((resumed.code, scene.calls()), (Some(0), 3), "{resumed}");
}

#[test]
fn the_summary_of_a_run_that_was_killed_at_its_end_is_made_by_whatever_command_comes_next() {
    if !strace_works() {
        return;
    }
    let whole = Scene::with_replies([MENDS_IT]);
    let places = places(&whole.beside("strace"), &whole.keyed(&whole.flags(), &[]));
    let calls = places
        .iter()
        .filter(|(call, _)| call == "getdents64")
        .count();
    let mut made = 0;
    // Backwards, from the last call to the first one after the run's end.
    for number in (1..=calls).rev() {
        let scene = Scene::with_replies([MENDS_IT]);
        let args = scene.flags();
        let Some(ran) = injected(
            &scene,
            &format!("getdents64:signal=KILL:when={number}"),
            &args,
        ) else {
            return;
        };
        // strace ends as what it has killed.
        if ran.code.is_some() {
            continue;
        }
        let record = if scene.runs().is_empty() {
            Vec::new()
        } else {
            scene.record()
        };
        let has_ended = |(file, text): &(String, String)| {
            file == "events.jsonl" && text.contains("\"what\":\"ended\"")
        };
        if !record.iter().any(has_ended) {
            break;
        }
        if record.iter().any(|(file, _)| file == "summary.json") {
            continue;
        }
        made += 1;
        let command = ["runs", "show", "costs", "undo"][made % 4];
        assert_eq!(scene.run(&[command]).code, Some(0), "{command}");
        let summary = scene.json("summary.json");
        let files = summary["files"].as_array().unwrap().len();
        assert_eq!(
            (&summary["outcome"], &summary["rounds_asked"]),
            (&"done".into(), &1.into()),
            "{summary}"
        );
        assert_eq!(files, 2, "{summary}");
    }
    assert!(made > 0, "no kill hit the end of a run");
}

/// A reply without a word to the user.
fn mends_it_silently() -> String {
    MENDS_IT.split("&&&start").next().unwrap().to_owned()
}

#[test]
fn resuming_implement_makes_no_empty_file_for_words_to_the_user() {
    for signal in [Signal::INT, Signal::KILL] {
        let steps = [
            Step::text("").hang(Hang::BeforeHead),
            Step::text(&mends_it_silently()),
        ];
        let scene = Scene::new(Script::new(steps));
        scene.system_prompt();
        let args = scene.implement(&[]);
        let mut command = scene.keyed(&args, &[]);
        let mut child = start_quietly(&mut command);
        scene.server.wait_for_requests(1);
        kill_process(Pid::from_child(&child), signal).unwrap();
        child.wait().unwrap();
        let resumed = resume(&scene, &[]);
        assert_eq!(resumed.code, Some(0), "{signal:?}: {resumed}");
        assert!(!scene.at("llm-user-output.txt").exists(), "{signal:?}");
    }
}
