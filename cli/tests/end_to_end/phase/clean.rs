//! `clean` knows the runs of phases.

use crate::scenes::phase::Scene;

/// The program, for an agent's shell.
const PROGRAM: &str = env!("CARGO_BIN_EXE_code-commit");

/// The run folders, the oldest first.
fn runs(scene: &Scene) -> Vec<String> {
    let entries = std::fs::read_dir(scene.project(".abl/logs"))
        .unwrap()
        .map(Result::unwrap);
    let folders = entries.filter(|entry| entry.path().is_dir());
    let mut names: Vec<String> = folders
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// A first phase that was stopped at a limit and has passed then, and a second one whose harness was killed in its first turn.
fn with_runs() -> Scene {
    let scene = Scene::new(&[("builder-2", "kill -9 $PPID; exit 1")]);
    assert_eq!(scene.run(&["run", "--max-tokens", "10"]).code, Some(4));
    assert_eq!(scene.run(&["run"]).code, Some(0));
    scene.write(
        ".abl/specs/phase2.md",
        "# Phase 2: More\n\n- GET /more → 200\n",
    );
    assert_eq!(scene.run(&["run"]).code, None);
    assert_eq!(runs(&scene).len(), 3);
    scene
}

#[test]
fn runs_of_phases_that_are_over_go_and_one_that_can_go_on_stays() {
    let scene = with_runs();
    let all = runs(&scene);
    let kept = [".abl/logs/tokens.csv", ".abl/state.json"];
    let before = kept.map(|file| scene.read(file));
    let few = scene.code_commit(&["clean", "--keep", "2", "--dry-run"], &[]);
    assert!(
        few.out
            .starts_with(&format!("would remove  .abl/logs/{}", all[0])),
        "{few:?}"
    );
    let done = scene.code_commit(&["clean", "--keep", "0"], &[]);
    assert_eq!(
        (done.code, runs(&scene)),
        (Some(0), all[2..].to_vec()),
        "{done:?}"
    );
    let stays = format!("not over: code-commit resume {}\n2 runs removed, ", all[2]);
    assert!(done.out.contains(&stays), "{done:?}");
    assert_eq!(kept.map(|file| scene.read(file)), before);
    let ran = scene.run(&["2"]);
    assert!(
        ran.code == Some(0) && ran.err.contains("resuming"),
        "{ran:?}"
    );
    let done = scene.code_commit(&["clean", "--keep", "0", "--json"], &[]);
    assert!(done.out.contains("\"loop\":\"phase\""), "{done:?}");
    assert_eq!(runs(&scene), [""; 0]);
}

#[test]
fn a_run_whose_journal_cannot_be_read_stays() {
    let scene = with_runs();
    let newest = runs(&scene).pop().unwrap();
    scene.write(&format!(".abl/logs/{newest}/events.jsonl"), "junk\n");
    let done = scene.code_commit(&["clean", "--keep", "0"], &[]);
    assert!(
        done.out.contains("cannot tell whether it has ended"),
        "{done:?}"
    );
    assert_eq!(runs(&scene), [newest]);
}

#[test]
fn what_lies_behind_a_link_stays() {
    let scene = with_runs();
    let all = runs(&scene);
    let elsewhere = scene.at("elsewhere");
    std::fs::rename(scene.project(".abl/logs").join(&all[1]), &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, scene.project(".abl/logs").join(&all[1])).unwrap();
    let done = scene.code_commit(&["clean", "--keep", "0"], &[]);
    assert!(
        done.out
            .contains("a symlink leads there; remove it by hand"),
        "{done:?}"
    );
    assert_eq!(runs(&scene), all[1..]);
    assert!(elsewhere.join("events.jsonl").exists());
}

#[test]
fn nothing_is_removed_while_a_role_works() {
    let clean = format!("(cd ../; '{PROGRAM}' clean --keep 0; echo $?) > said 2>&1");
    let scene = Scene::new(&[("builder-2", &clean)]);
    assert_eq!(scene.run(&["run", "--max-tokens", "10"]).code, Some(4));
    std::fs::write(
        scene.at("bin/turns/verifier-1.sh"),
        clean.replace("../;", "../..;"),
    )
    .unwrap();
    assert_eq!(scene.run(&["run"]).code, Some(0));
    let said = scene.read(".abl/tests/said");
    assert!(
        said.contains("is in progress") && said.ends_with("\n3\n"),
        "{said}"
    );
    assert_eq!(runs(&scene).len(), 2);
}
