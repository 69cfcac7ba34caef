//! Roles that do odd things, and files that are not as they should be.

use std::os::unix::fs::symlink;

use crate::scenes::files;
use crate::scenes::phase::Scene;
use crate::scenes::program::tool;

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
fn a_half_made_repository_of_a_role_is_completed_and_the_users_own_gets_no_commit() {
    for role in [".abl/tests", "src"] {
        let scene = Scene::new(&[("verifier-1", "fails 404")]);
        scene.git(".", &["init", "-q", "-b", "main"]);
        scene.commit(".", &["-m", "mine", "--allow-empty"]);
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
fn a_pipe_among_the_specs_is_refused_and_a_link_is_no_spec() {
    let scene = Scene::new(&[]);
    symlink("/etc/passwd", scene.project(".abl/specs/phase2.md")).unwrap();
    assert_eq!(scene.run(&["run"]).code, Some(0));
    assert_eq!(scene.run(&["run"]).out.trim(), "Every phase has passed.");
    let pipe = scene.project(".abl/specs/phase3.md");
    files::make_pipe(&pipe);
    let ran = scene.run(&["run"]).exits(3);
    ran.err_has("not a regular file");
}

#[test]
fn a_second_run_at_the_same_time_is_refused() {
    let scene = Scene::new(&[("builder-1", "say working; read -r line < \"$here/go\"")]);
    files::make_pipe(&scene.at("bin/go"));
    let mut second = None;
    let mut first = scene.started(&["run", "--sandbox", "off"]);
    for line in first.lines() {
        if line.contains("working") && second.is_none() {
            second = Some(scene.run(&["run"]));
            std::fs::write(scene.at("bin/go"), "go\n").unwrap();
        }
    }
    assert_eq!(first.wait(), Some(0));
    second.unwrap().exits(3);
    assert_eq!((scene.turns("builder"), scene.turns("verifier")), (1, 1));
}
