//! Roles that do odd things, and files that are not as they should be.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;

use crate::scenes::full_disk::{has_not_begun, on_a_full_disk};
use crate::scenes::kills::{is_killed, places_with, quietly, strace_works, traced};
use crate::scenes::phase::Scene;
use crate::scenes::program::tool;

/// A phase whose verifier does this to its failures.
fn odd_failures(lines: &str) -> (Option<i32>, Vec<String>, String) {
    let scene = Scene::new(&[("verifier-1", lines)]);
    let ran = scene.run(&["run"]);
    let again = scene.run(&["run"]);
    assert_eq!(again.code, Some(0), "a person can go on: {again:?}");
    (ran.code, scene.commits("src"), ran.out)
}

#[test]
fn a_role_that_stashes_or_cleans_the_work_tree_leaves_the_record_of_its_run() {
    for lines in ["git -C .. stash -q -u", "git -C .. clean -qfd"] {
        let scene = Scene::new(&[("builder-1", lines)]);
        let git = |words: &[&str]| {
            let mut git = tool("git", scene.project.root(), &scene.at("home"), words);
            assert!(git.status().unwrap().success(), "{words:?}");
        };
        git(&["init", "-q"]);
        git(&["add", ".abl", "prompts", ".gitignore"]);
        let who = ["-c", "user.name=a", "-c", "user.email=a@b"];
        git(&[&who[..], &["commit", "-q", "-m", "first"]].concat());
        let ran = scene.run(&["run"]);
        assert_eq!(ran.code, Some(0), "{lines}: {ran}");
    }
}

#[test]
fn failures_that_are_no_regular_file_are_never_a_pass() {
    for lines in [
        "fails 404; mv failed_specs.md real.md; ln -s real.md failed_specs.md",
        "mkdir -p failed_specs.md; echo SPEC: x > failed_specs.md/a",
        "mkdir -p failed_specs.md",
        "rm -rf failed_specs.md; mkfifo failed_specs.md",
        "rm -rf failed_specs.md; truncate -s 20G failed_specs.md",
    ] {
        let (code, commits, out) = odd_failures(lines);
        assert_eq!(code, Some(4), "{lines}: {out}");
        assert!(out.contains("not a regular file"), "{lines}: {out}");
        assert_eq!(
            commits.last().unwrap(),
            "phase1/passed",
            "{lines}: only the second run passes"
        );
    }
}

#[test]
fn odd_failures_of_a_try_that_crashed_are_no_pass_of_the_next() {
    let scene = Scene::new(&[(
        "verifier-1",
        "fails 404; mv failed_specs.md real.md; ln -s real.md failed_specs.md; exit 7",
    )]);
    let ran = scene.run(&["run"]);
    assert_eq!(ran.code, Some(4), "{ran:?}");
    assert!(ran.out.contains("the verifier crashed"), "{ran:?}");
    assert_eq!(scene.commits("src"), ["phase1/build/step-1"], "not passed");
    assert_eq!(scene.turns("verifier"), 1);
}

#[test]
fn an_entry_in_markdown_is_a_failure() {
    let scene = Scene::new(&[(
        "verifier-1",
        "printf '1. **SPEC**: GET / → 200\\n   **INPUT**: GET /\\n   **OBSERVED**: 404\\n' > failed_specs.md",
    )]);
    assert_eq!(scene.run(&["run"]).code, Some(0));
    assert_eq!(scene.commits(".abl/tests"), ["phase1/verify/step-1"]);
    assert_eq!(
        (scene.turns("builder"), scene.turns("verifier")),
        (2, 2),
        "nothing was sent back"
    );
}

#[test]
fn what_a_role_leaves_in_its_folder_does_not_stop_the_harness() {
    let mess = "mkfifo pipe; ln -s ../.abl/tests planted; ln -s / root; ln -s loop loop; mkdir -p a/b; ln -s .. a/b/up; \
        git init -q nested; touch nested/file; git init -q whole; touch whole/file; git -C whole add file; \
        git -C whole -c user.name=a -c user.email=a@a commit -qm x; printf 'x' > \"$(printf 'bad\\377name')\"; touch -- '-rf' 'new\nline'; mkdir empty";
    let scene = Scene::new(&[("builder-1", mess), ("verifier-1", mess)]);
    let ran = scene.run(&["run"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(
        scene.commits("src"),
        ["phase1/build/step-1", "phase1/passed"]
    );
    for folder in ["nested", "whole"] {
        assert!(
            ran.err
                .contains(&format!("{folder} in src is a repository of its own")),
            "{}",
            ran.err
        );
    }
    let committed = scene.git("src", &["ls-tree", "-r", "HEAD"]);
    assert!(
        !committed.iter().any(|line| line.starts_with("160000")),
        "{committed:?}"
    );
    let map = scene.read(".abl/project_map.txt");
    assert!(
        !map.contains("planted/") && !map.contains("root/"),
        "links are not followed: {map}"
    );
}

#[test]
fn a_role_that_deletes_its_folder_is_survived() {
    let scene = Scene::new(&[("builder-1", "rm -rf ../src")]);
    let first = scene.run(&["run"]);
    assert!(matches!(first.code, Some(0 | 4 | 70)), "{first:?}");
    let again = scene.run(&["run"]);
    assert_eq!(again.code, Some(0), "{first:?} {again:?}");
    assert_eq!(scene.commits("src").last().unwrap(), "phase1/passed");
}

#[test]
fn an_agent_that_prints_a_hundred_megabytes_is_heard_out() {
    let flood = "head -c 100000000 /dev/zero | tr '\\0' x; echo; yes '{\"type\":\"noise\"}' | head -c 10000000; echo";
    let scene = Scene::new(&[("builder-1", flood)]);
    let ran = scene.run(&["run"]);
    assert_eq!(ran.code, Some(0), "{}", ran.out);
    assert_eq!(scene.turns("builder"), 1);
    assert!(
        ran.err.len() < 1 << 20,
        "{} bytes on the terminal",
        ran.err.len()
    );
}

#[test]
fn a_configuration_that_is_not_right_is_refused_with_its_name() {
    let scene = Scene::new(&[]);
    for bad in [
        "directories: [",
        "directories: {src: ../..}",
        "directories: {src: a, tests: a}",
        "models: {builder: [1]}",
        "loop: -1",
    ] {
        scene.write(".abl/abl.config.yaml", bad);
        let ran = scene.run(&["run"]);
        assert_eq!(ran.code, Some(3), "{bad}: {ran:?}");
        assert!(ran.err.contains("abl.config.yaml"), "{bad}: {}", ran.err);
    }
    assert_eq!(scene.turns("builder"), 0);
    std::fs::remove_file(scene.project(".abl/abl.config.yaml")).unwrap();
    std::fs::write(scene.project(".abl/abl.config.yaml"), [0xff, 0xfe, 0]).unwrap();
    assert_eq!(scene.run(&["run"]).code, Some(3));
}

#[test]
fn links_of_a_cloned_project_lead_no_role_and_no_record_anywhere() {
    let scene = Scene::new(&[]);
    std::fs::write(scene.at("theirs"), "theirs").unwrap();
    std::fs::create_dir_all(scene.project(".abl/logs")).unwrap();
    symlink("../../../theirs", scene.project(".abl/logs/builder.log")).unwrap();
    assert_eq!(scene.run(&["run"]).code, Some(0));
    assert_eq!(
        std::fs::read_to_string(scene.at("theirs")).unwrap(),
        "theirs"
    );
    symlink(".", scene.project("all")).unwrap();
    scene.write(".abl/abl.config.yaml", "directories: {src: all}\n");
    assert_eq!(scene.run(&["run"]).code, Some(3));
    std::fs::remove_dir_all(scene.project(".abl/specs")).unwrap();
    symlink("..", scene.project(".abl/specs")).unwrap();
    for action in ["init", "check", "run"] {
        let ran = scene.run(&[action]);
        assert_eq!(ran.code, Some(3), "{action}: {ran:?}");
        assert!(
            ran.err.contains(".abl/specs is a link"),
            "{action}: {}",
            ran.err
        );
    }
    assert_eq!(scene.turns("builder"), 1);
}

#[test]
fn a_file_in_the_place_of_a_folder_is_a_refusal() {
    let scene = Scene::new(&[]);
    for (place, actions) in [("src", &["run"][..]), (".abl", &["init", "run"])] {
        let _ = std::fs::remove_dir_all(scene.project(place));
        scene.write(place, "a file");
        for action in actions {
            let ran = scene.run(&[action]);
            assert_eq!(ran.code, Some(3), "{place}, {action}: {ran:?}");
            assert!(
                !ran.err.contains("bug in code-commit"),
                "{place}, {action}: {}",
                ran.err
            );
        }
    }
    assert_eq!(scene.turns("builder"), 0);
}

#[test]
fn a_half_made_repository_of_a_role_is_completed_and_the_users_own_gets_no_commit() {
    for role in [".abl/tests", "src"] {
        let scene = Scene::new(&[("verifier-1", "fails 404")]);
        scene.git(".", &["init", "-q", "-b", "main"]);
        scene.git(
            ".",
            &[
                "-c",
                "user.name=a",
                "-c",
                "user.email=a@a",
                "commit",
                "-qm",
                "mine",
                "--allow-empty",
            ],
        );
        scene.write("private.txt", "not for a commit");
        std::fs::create_dir_all(scene.project(role).join(".git/hooks")).unwrap();
        let ran = scene.run(&["run"]);
        assert_eq!(ran.code, Some(0), "{role}: {ran:?}");
        assert_eq!(scene.commits("."), ["mine"], "{role}");
        assert_eq!(
            scene.commits(".abl/tests"),
            ["phase1/verify/step-1"],
            "{role}"
        );
        let built = [
            "phase1/build/step-1",
            "phase1/build/step-2",
            "phase1/passed",
        ];
        assert_eq!(scene.commits("src"), built, "{role}");
    }
}

#[test]
fn a_damaged_repository_of_a_role_is_refused_and_left_as_it_is() {
    let scene = Scene::new(&[]);
    scene.git(".", &["init", "-q", "-b", "main"]);
    assert_eq!(scene.run(&["run"]).code, Some(0));
    std::fs::remove_file(scene.project("src/.git/HEAD")).unwrap();
    scene.write(
        ".abl/specs/phase2.md",
        "# Phase 2: More\n\n- GET /more → 200\n",
    );
    let ran = scene.run(&["run"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.err.contains("src/.git is damaged"), "{}", ran.err);
    assert!(!scene.project("src/.git/HEAD").exists() && scene.commits(".").is_empty());
}

#[test]
fn a_kill_while_a_roles_repository_is_made_leaves_nothing_that_the_next_run_cannot_complete() {
    if !strace_works() {
        return;
    }
    let scene = Scene::new(&[]);
    scene.git(".", &["init", "-q", "-b", "main"]);
    assert_eq!(scene.run(&["run"]).code, Some(0));
    let (git_dir, log) = (scene.project(".abl/tests/.git"), scene.at("trace"));
    let run = || scene.command(&["phase", "run", "--sandbox", "off"], &[]);
    std::fs::remove_dir_all(&git_dir).unwrap();
    let mut places = places_with(&log, &run(), "/.abl/tests/.git");
    places.retain(|(call, _)| ["mkdir", "rename", "unlinkat"].contains(&call.as_str()));
    assert!(places.len() > 15, "{places:?}");
    for (call, count) in places {
        std::fs::remove_dir_all(&git_dir).unwrap();
        let kill = format!("inject={call}:signal=KILL:when={count}");
        assert!(
            is_killed(quietly(&mut traced(&log, &run(), &["-e", &kill]))),
            "{call} {count}"
        );
        assert_eq!(scene.run(&["run"]).code, Some(0), "{call} {count}");
        let top = scene.git(".abl/tests", &["rev-parse", "--show-toplevel"]);
        assert_eq!(
            top,
            [scene.project(".abl/tests").to_str().unwrap()],
            "{call} {count}"
        );
        assert!(!git_dir.join("code-commit-init").exists(), "{call} {count}");
    }
}

#[test]
fn a_pipe_among_the_specs_is_refused_and_a_link_is_no_spec() {
    let scene = Scene::new(&[]);
    symlink("/etc/passwd", scene.project(".abl/specs/phase2.md")).unwrap();
    assert_eq!(scene.run(&["run"]).code, Some(0));
    assert_eq!(scene.run(&["run"]).out.trim(), "Every phase has passed.");
    let pipe = scene.project(".abl/specs/phase3.md");
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    let ran = scene.run(&["run"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.err.contains("not a regular file"), "{}", ran.err);
}

#[test]
fn a_second_run_at_the_same_time_is_refused() {
    let scene = Scene::new(&[("builder-1", "say working; read -r line < \"$here/go\"")]);
    assert!(
        std::process::Command::new("mkfifo")
            .arg(scene.at("bin/go"))
            .status()
            .unwrap()
            .success()
    );
    let mut second = None;
    let mut first = scene.started(&["run", "--sandbox", "off"]);
    for line in first.lines() {
        if line.contains("working") && second.is_none() {
            second = Some(scene.run(&["run"]));
            std::fs::write(scene.at("bin/go"), "go\n").unwrap();
        }
    }
    assert_eq!(first.wait(), Some(0));
    let second = second.unwrap();
    assert_eq!(second.code, Some(3), "{second:?}");
    assert_eq!((scene.turns("builder"), scene.turns("verifier")), (1, 1));
}

#[test]
fn what_was_not_committed_is_kept_where_a_role_has_changed_or_removed_it() {
    let scene = Scene::new(&[("builder-1", "rm notes; echo new > person.txt")]);
    scene.write("src/person.txt", "precious\n");
    scene.write("src/notes", "mine\n");
    let ran = scene.run(&["run"]);
    let warning = "the builder agent changed or removed notes, person.txt, not committed before; the old content is in ";
    let (_, place) = ran
        .err
        .split_once(warning)
        .unwrap_or_else(|| panic!("{ran:?}"));
    let place = format!(".abl/logs/{}", place.lines().next().unwrap());
    assert_eq!(scene.read(&format!("{place}/person.txt")), "precious\n");
}

#[test]
fn a_disk_that_is_full_when_the_record_begins_refuses_the_run_and_the_next_one_begins() {
    let scene = Scene::new(&[]);
    let run = scene.command(&["phase", "run", "--sandbox", "off"], &[]);
    let Some(done) = on_a_full_disk(&run, &scene.project(".abl/logs")) else {
        return;
    };
    has_not_begun(&done);
    assert_eq!(scene.turns("builder"), 0);
    assert_eq!(scene.run(&["run"]).code, Some(0));
}

#[test]
fn a_number_behind_run_is_answered_with_the_command_for_that_phase() {
    let scene = Scene::new(&[]);
    let ran = scene.run(&["run", "2"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(
        ran.err.contains("to run that phase: code-commit phase 2\n"),
        "{ran:?}"
    );
}

#[test]
fn a_project_whose_path_is_no_utf8_is_refused() {
    let scene = Scene::new(&[]);
    let odd = scene.at("").join(OsStr::from_bytes(b"odd\xff"));
    std::fs::rename(scene.at("project"), &odd).unwrap();
    let done = scene
        .command(&["phase", "run"], &[])
        .current_dir(&odd)
        .output()
        .unwrap();
    std::fs::rename(&odd, scene.at("project")).unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(3), "{said}");
    assert!(
        said.contains("odd\u{fffd} is not UTF-8") && scene.turns("builder") == 0,
        "{said}"
    );
}
