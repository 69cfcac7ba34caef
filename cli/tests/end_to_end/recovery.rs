//! What a killed or stopped command leaves, and what the next one makes of it.

use std::collections::BTreeMap;
use std::process::Command;

use code_commit_fixtures::demo::MENDS_IT;

use crate::scenes::commit::Scene;
use crate::scenes::files;
use crate::scenes::kills::{quietly, strace_works, traced};
use crate::scenes::size::every;

/// Calls that change what is on disk.
const CHANGES: &str =
    "trace=/^(mkdir|rename|unlink|rmdir|link|symlink|fsync|fdatasync|ftruncate|connect)";

/// Sends a signal at each [`every`]th of a command's calls that change something, in a scene of its own each; `judge` sees what is left.
/// Without the calls after the first connection: that is to the model.
fn at_each_change(
    signal: &str,
    scene: impl Fn() -> Scene,
    command: impl Fn(&Scene) -> Command,
    mut judge: impl FnMut(&Scene, &str),
) {
    if !strace_works() {
        return;
    }
    let whole = scene();
    let log = whole.beside("strace");
    quietly(&mut traced(&log, &command(&whole), &["-e", CHANGES]));
    let (trace, mut counts) = (files::text(&log), BTreeMap::new());
    let mut places = Vec::new();
    for line in trace.lines().take_while(|line| !line.contains("AF_INET")) {
        let Some((call, _)) = line.split_once('(') else {
            continue;
        };
        let count: &mut usize = counts.entry(call).or_default();
        *count += 1;
        if !line.contains("= -1 ") {
            places.push((line, call, *count));
        }
    }
    assert!(places.len() > 1, "it changed nothing: {trace}");
    for (line, call, count) in places.into_iter().step_by(every()) {
        let (scene, inject) = (
            scene(),
            format!("inject={call}:signal={signal}:when={count}"),
        );
        quietly(&mut traced(&log, &command(&scene), &["-e", &inject]));
        judge(&scene, line);
    }
}

/// What a project and its state hold besides what belongs there.
fn left_over(scene: &Scene) -> Vec<String> {
    let own = [
        "known-runs.json",
        // The next write replaces it.
        ".known-runs.json.new",
        "lock",
        "runs",
        "view",
        "under-way.json",
        "caches",
        "bearings",
        "trusted",
    ];
    let is_stale = |name: &String| !own.contains(&name.as_str()) && !name.starts_with("20");
    let below = |folder: &str| {
        files::entries(scene.at(folder))
            .into_iter()
            .map(files::name)
    };
    let logs = below("agent-config/logs").chain(below(".git/code-commit/runs"));
    below(".git/code-commit")
        .chain(logs)
        .filter(is_stale)
        .collect()
}

#[test]
fn a_clean_that_was_killed_leaves_no_half_of_a_run() {
    at_each_change(
        "KILL",
        || {
            let scene = Scene::with_replies([MENDS_IT]);
            assert_eq!(scene.commit(&[]).code, Some(0));
            scene
        },
        |scene| scene.command(&["clean", "--keep", "0"], &[]),
        |scene, place| {
            if let Some(run) = scene
                .runs()
                .pop()
                .filter(|run| files::name(run).starts_with("20"))
            {
                assert_eq!(
                    scene.run(&["show"]).code,
                    Some(0),
                    "{place}: half of {run:?} is there"
                );
            }
            let cleaned = scene.run(&["clean", "--keep", "0"]);
            assert_eq!(
                (cleaned.code, scene.runs().len()),
                (Some(0), 0),
                "{place}: {cleaned}"
            );
            assert_eq!(left_over(scene), [""; 0], "{place}");
        },
    );
}
