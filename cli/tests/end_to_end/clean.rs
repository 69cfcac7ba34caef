//! `clean`: old runs make room, and nothing else does.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::time::{Duration, SystemTime};

use code_commit_fixtures::demo::MENDS_IT;
use code_commit_fixtures::server::{Script, Step};

use crate::scenes::commit::Scene;

const NOTHING: &str = "$$$start\nIt is right as it is.\n$$$end\n";

/// So many runs of the default loop, each one over.
fn with_runs(count: usize) -> Scene {
    let scene = Scene::with_replies(
        std::iter::once(MENDS_IT).chain(std::iter::repeat_n(NOTHING, count - 1)),
    );
    for _ in 0..count {
        assert_eq!(scene.commit(&[]).code, Some(0));
    }
    scene
}

/// As if nothing had been written in this run for so many days.
fn age(run: &Path, days: u64) {
    let journal = std::fs::File::options()
        .append(true)
        .open(run.join("events.jsonl"))
        .unwrap();
    journal
        .set_modified(SystemTime::now() - Duration::from_hours(24 * days))
        .unwrap();
}

#[test]
fn the_newest_runs_are_kept_and_the_others_are_gone_from_disk_and_list() {
    let scene = with_runs(3);
    let [first, second, third] = scene.runs().try_into().unwrap();
    let would = scene.run(&["clean", "--keep", "1", "--dry-run"]);
    assert_eq!((would.code, scene.runs().len()), (Some(0), 3), "{would}");
    let done = scene.run(&["clean", "--keep", "1"]).exits(0);
    let said: Vec<&str> = done.out.lines().collect();
    assert!(
        said[0].starts_with("removed       agent-config/logs/[STAMP]-commit"),
        "{done}"
    );
    assert!(
        said[2].starts_with("2 runs removed, ") && said[2].ends_with(" kB; 1 left"),
        "{done}"
    );
    assert_eq!(
        would
            .out
            .replace("would remove", "removed     ")
            .replace("would be removed", "removed"),
        done.out
    );
    assert!(!first.exists() && !second.exists() && third.exists());
    assert_eq!(scene.run(&["runs"]).out.lines().count(), 1);
    let state = scene.read(".git/code-commit/known-runs.json");
    assert_eq!(state.matches("\"folder\"").count(), 1, "{state}");
    let again = scene.run(&["clean", "--keep", "1"]);
    assert_eq!(
        (again.code, again.out.as_str()),
        (Some(0), "0 runs removed, 0 B; 1 left\n")
    );
}

#[test]
fn with_both_limits_a_run_goes_only_if_both_let_it_go() {
    let scene = with_runs(4);
    let runs = scene.runs();
    age(&runs[0], 9);
    age(&runs[1], 3);
    age(&runs[3], 9);
    scene
        .run(&["clean", "--keep", "1", "--older-than", "5"])
        .exits(0);
    assert_eq!(scene.runs(), runs[1..]);
    assert_eq!(scene.run(&["clean", "--older-than", "5"]).code, Some(0));
    assert_eq!(scene.runs(), runs[1..3]);
}

#[test]
fn each_loop_keeps_its_own() {
    let scene = with_runs(2);
    scene.system_prompt();
    scene.write("reply.txt", "^^^a.txt\n1\n^^^end\n");
    assert_eq!(scene.run(&["apply", "reply.txt"]).code, Some(0));
    let other = Scene::new(Script::new([Step::text(NOTHING)]));
    let args = other.implement(&["--rounds", "1"]);
    assert_eq!(scene.run_keyed(&args).code, Some(0));
    let done = scene.run(&["clean", "--keep", "1", "--json"]);
    let lines = done.objects();
    let [run, sum] = lines.as_slice() else {
        panic!("{done}")
    };
    assert_eq!(
        (&run["loop"], &run["done"], &run["why"]),
        (&"commit".into(), &"removed".into(), &().into())
    );
    assert!(
        run["bytes"].as_u64().unwrap() > 0 && run["bytes"] == sum["bytes"],
        "{done}"
    );
    let sum = sum.as_object().unwrap();
    let counts = ["removed", "stay", "failed"].map(|key| sum[key].as_u64().unwrap());
    assert_eq!(
        (counts, &sum["event"], &sum["dry_run"]),
        ([1, 3, 0], &"cleaned".into(), &false.into())
    );
}

#[test]
fn nothing_is_removed_through_a_link_or_that_is_no_record() {
    let scene = with_runs(2);
    let [first, second] = scene.runs().try_into().unwrap();
    let elsewhere = scene.beside("elsewhere");
    std::fs::rename(&first, &elsewhere).unwrap();
    symlink(&elsewhere, &first).unwrap();
    std::fs::remove_dir_all(&second).unwrap();
    scene.write(second.join("mine.txt").to_str().unwrap(), "of another\n");
    let done = scene.run(&["clean", "--keep", "0"]).exits(0);
    done.out_has("a symlink leads there; remove it by hand");
    done.out_has("it is not a run folder; remove it by hand");
    assert!(elsewhere.join("events.jsonl").exists() && second.join("mine.txt").exists());
}

/// A folder that the project brought along stands in no list.
#[test]
fn what_was_not_made_here_stays() {
    let scene = with_runs(1);
    let planted = "agent-config/logs/2020-01-01-00-00-00-commit/events.jsonl";
    scene.write(planted, "");
    assert_eq!(scene.run(&["clean", "--keep", "0"]).code, Some(0));
    assert_eq!(scene.runs().len(), 1);
    assert!(scene.at(planted).exists());
}

#[test]
fn a_folder_that_cannot_be_removed_is_named_and_the_others_go() {
    let scene = with_runs(2);
    let [first, second] = scene.runs().try_into().unwrap();
    let undo = first.join("backup");
    std::fs::set_permissions(&undo, std::fs::Permissions::from_mode(0o555)).unwrap();
    if std::fs::create_dir(undo.join("x")).is_ok() {
        eprintln!("SKIPPED: a folder that cannot be removed, because root may remove any");
        return;
    }
    let done = scene.run(&["clean", "--keep", "0"]);
    std::fs::set_permissions(&undo, std::fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(done.code, Some(1), "{done}");
    done.err_has("error: cannot remove agent-config/logs/");
    assert!(first.exists() && !second.exists(), "{done}");
}
