//! The harness is killed, and the next `phase run` goes on.

use crate::scene::Scene;

/// The agent kills the harness, its parent, without warning.
const KILL: &str = "kill -9 $PPID; sleep 5";

#[test]
fn a_kill_in_any_turn_costs_that_turn_and_no_other() {
    for (name, builder, verifier) in
        [("builder-1", 3, 2), ("verifier-1", 2, 3), ("builder-2", 3, 2), ("verifier-2", 2, 3)]
    {
        let fails = ("fails 404", if name == "verifier-1" { "verifier-2" } else { "verifier-1" });
        let scene = Scene::new(&[(fails.1, fails.0), (name, KILL)]);
        let killed = scene.run(&["run"]);
        assert_eq!(killed.code, None, "{name}: {killed:?}");
        let ran = scene.run(&["run"]);
        assert_eq!(ran.code, Some(0), "{name}: {ran:?}");
        assert!(ran.err.contains("going on with"), "{name}: {}", ran.err);
        assert_eq!((scene.turns("builder"), scene.turns("verifier")), (builder, verifier), "{name}");
        assert_eq!(
            scene.read(".abl/logs/tokens.csv").lines().count(),
            5,
            "{name}: a header and four turns that came to their end"
        );
        assert_eq!(scene.commits("src").last().unwrap(), "phase1/passed", "{name}");
    }
}

#[test]
fn a_kill_between_any_two_facts_costs_no_turn() {
    let scene = Scene::new(&[("verifier-1", "fails 404")]);
    assert_eq!(scene.run(&["run"]).code, Some(0));
    let journal =
        scene.files(".abl/logs").into_iter().find(|(path, _)| path.ends_with("events.jsonl")).unwrap();
    let lines: Vec<&str> = journal.1.split_inclusive('\n').collect();
    let turned = |kept: usize| lines[..kept].iter().filter(|line| line.contains("\"turned\"")).count();
    for kept in 0..lines.len() {
        // As a kill right after this line would have left it; the commit that says "passed" had not been made.
        std::fs::write(&journal.0, lines[..kept].concat()).unwrap();
        let git = |args: &[&str]| {
            std::process::Command::new("git").args(args).current_dir(scene.project("src")).status().unwrap()
        };
        if scene.commits("src").last().unwrap() == "phase1/passed" {
            assert!(git(&["reset", "-q", "--hard", "HEAD~1"]).success());
        }
        let state = scene.read(".abl/state.json").replace("completed\": [\n    1\n  ]", "completed\": []");
        scene.write(".abl/state.json", &state);
        let before = scene.turns("builder") + scene.turns("verifier");
        let ran = scene.run(&["1"]);
        assert_eq!(ran.code, Some(0), "{kept}: {ran:?}");
        let paid = scene.turns("builder") + scene.turns("verifier") - before;
        // The stand-in fails only its very first verification. What it wrote then is gone by now, unless it was read.
        let was_read = lines[..kept].iter().any(|line| line.contains("was-read"));
        let expected = match turned(kept) {
            0 => 2,
            2 if was_read => 2,
            1 | 3 => 1,
            _ => 0,
        };
        assert_eq!(paid, expected, "turns after {kept} lines, {} turns among them", turned(kept));
    }
}
