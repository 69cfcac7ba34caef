//! S2 §2.2, §6.1: which repositories an order is carried out in, and which are refused without a change.

use std::path::Path;

use serde_json::json;

use crate::scenes::order::{FILES, GOOD, Scene, greet};
use crate::scenes::program::Ran;

/// Refused with exit code 3 and these words, before any call and without a run folder.
#[track_caller]
fn check_refused(scene: &Scene, more: &[&str], words: &str) {
    let ran = scene.run(more);
    assert_eq!(ran.code, Some(3), "{ran}");
    assert!(ran.err.contains(words), "{}", ran.err);
    assert_eq!((scene.server.requests().len(), scene.runs().len()), (0, 0));
}

#[test]
fn a_tree_with_untracked_changed_or_staged_files_is_refused_and_stays_as_it_is() {
    let dirty: [fn(&Scene); 3] = [
        |scene| scene.project.write("untracked.txt", b"x").unwrap(),
        |scene| scene.project.write("src/other.txt", b"changed").unwrap(),
        |scene| {
            scene.project.write("staged.txt", b"x").unwrap();
            scene.project.git(&["add", "staged.txt"]).unwrap();
        },
    ];
    for make_dirty in dirty {
        let scene = Scene::with(&[&greet(GOOD)]);
        make_dirty(&scene);
        let before = scene.state();
        check_refused(&scene, &[], "is not clean");
        assert_eq!(scene.state(), before);
    }
}

#[test]
fn what_git_was_told_not_to_look_at_is_refused_and_stays_as_it_is() {
    let scene = Scene::with(&[]);
    scene
        .project
        .git(&["update-index", "--assume-unchanged", "src/greet.sh"])
        .unwrap();
    scene.project.write("src/greet.sh", b"mine\n").unwrap();
    check_refused(
        &scene,
        &[],
        "is told to treat these files as unchanged: src/greet.sh",
    );
}

#[test]
fn a_filter_of_the_repositorys_own_configuration_is_named_where_it_makes_files_look_changed() {
    let scene = Scene::with(&[&greet(GOOD)]);
    scene
        .project
        .git(&["config", "filter.loud.clean", "tr a-z A-Z"])
        .unwrap();
    scene
        .project
        .write(".gitattributes", b"*.sh filter=loud\n")
        .unwrap();
    scene.project.git(&["add", "--renormalize", "."]).unwrap();
    scene.project.commit("filtered").unwrap();
    assert_eq!(scene.project.status().unwrap(), "");
    // Else git would not look into a file that is as old as when it last did.
    scene
        .project
        .write(FILES[2].0, FILES[2].1.as_bytes())
        .unwrap();
    let place = "name it in yours (git config --global) and not in the repository's";
    let told = "filters of the repository's own configuration are not run, so that files which go through one look changed";
    check_refused(&scene, &[], &format!("{told}: {place}"));
    scene.place(".gitconfig", b"[filter \"loud\"]\n\tclean = tr a-z A-Z\n");
    check_refused(&scene, &[], place);
    scene
        .project
        .git(&["config", "--remove-section", "filter.loud"])
        .unwrap();
    let ran = scene.run(&[]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
}

#[test]
fn a_repository_without_a_commit_is_refused() {
    let scene = Scene::with(&[]);
    let empty = scene.beside("empty");
    std::fs::create_dir(&empty).unwrap();
    scene
        .project
        .git(&["init", "-q", empty.to_str().unwrap()])
        .unwrap();
    check_refused(
        &scene,
        &["--repo", empty.to_str().unwrap()],
        "has no commit yet",
    );
}

/// The tree of each is clean; a hard reset would end it all the same.
#[test]
fn a_repository_in_the_middle_of_a_merge_is_refused_and_goes_on_with_it() {
    let scene = Scene::with(&[]);
    let begin = |args: &[&str]| scene.project.git(args).unwrap();
    begin(&["checkout", "-q", "-b", "side"]);
    begin(&["commit", "-q", "--allow-empty", "-m", "side"]);
    begin(&["checkout", "-q", "-"]);
    begin(&["commit", "-q", "--allow-empty", "-m", "main"]);
    begin(&["merge", "-q", "--no-ff", "--no-commit", "side"]);
    let merge = scene.root().join(".git/MERGE_HEAD");
    assert!(merge.exists() && scene.project.status().unwrap().is_empty());
    check_refused(&scene, &[], "a merge is under way");
    assert!(merge.exists());
    begin(&["merge", "--abort"]);
    let head = begin(&["rev-parse", "HEAD"]);
    for (file, name) in [
        ("CHERRY_PICK_HEAD", "cherry-pick"),
        ("REVERT_HEAD", "revert"),
    ] {
        scene
            .project
            .write(&format!(".git/{file}"), head.as_bytes())
            .unwrap();
        check_refused(&scene, &[], &format!("a {name} is under way"));
        std::fs::remove_file(scene.root().join(".git").join(file)).unwrap();
    }
}

#[test]
fn an_out_folder_inside_of_the_repository_is_refused_also_through_a_link() {
    let scene = Scene::with(&[]);
    for out in [
        "out",
        "ignored/deep/out",
        ".",
        "src/../out",
        "none/../out",
        "../none/../project/out",
    ] {
        check_refused(&scene, &["--out", out], "lies inside of the repository");
    }
    let link = scene.beside("link");
    std::os::unix::fs::symlink(scene.root(), &link).unwrap();
    check_refused(
        &scene,
        &["--out", link.join("out").to_str().unwrap()],
        "lies inside of the repository",
    );
    assert_eq!(scene.project.status().unwrap(), "");
}

/// A link could lead to a file that the model may write; the fixed list in its place would be a silent surprise.
#[test]
fn a_verification_script_that_is_a_link_is_refused_and_not_passed_over() {
    let moves = [
        ("scripts/verify.sh", "src/verify.sh", "../src/verify.sh"),
        ("scripts", "tools", "tools"),
    ];
    for (from, to, link) in moves {
        let scene = Scene::with(&[&greet(GOOD)]);
        scene.project.git(&["mv", from, to]).unwrap();
        let place = scene.root().join(from);
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(link, place).unwrap();
        scene.project.git(&["add", "."]).unwrap();
        scene
            .project
            .git(&["commit", "-q", "-m", "a link"])
            .unwrap();
        let before = scene.state();
        check_refused(
            &scene,
            &[],
            &format!("scripts/verify.sh is not run: {from} is a symbolic link"),
        );
        assert_eq!(scene.state(), before);
        let checked = Ran::of(&mut scene.program(&[
            "order",
            "check",
            scene.beside("order.json").to_str().unwrap(),
        ]));
        assert!(
            checked.code == Some(1) && checked.out.contains("is a symbolic link"),
            "{}",
            checked.out
        );
    }
    let elsewhere = Scene::with(&[&greet(GOOD)]);
    std::os::unix::fs::symlink("src", elsewhere.root().join("linked")).unwrap();
    elsewhere.project.git(&["add", "."]).unwrap();
    elsewhere
        .project
        .git(&["commit", "-q", "-m", "another link"])
        .unwrap();
    assert_eq!(
        elsewhere.run(&[]).code,
        Some(0),
        "another link stands in nobody's way"
    );
}

/// Carries the order out in another work tree of the scene.
#[track_caller]
fn check_passes_in(scene: &Scene, tree: &Path) {
    let ran = scene.run(&["--repo", tree.to_str().unwrap()]);
    assert_eq!(ran.code, Some(0), "{ran}");
    assert_eq!(
        std::fs::read_to_string(tree.join("src/greet.sh")).unwrap(),
        GOOD
    );
}

#[test]
fn an_order_is_carried_out_in_a_linked_work_tree() {
    let scene = Scene::with(&[&greet(crate::scenes::order::BAD), &greet(GOOD)]);
    let linked = scene.beside("linked");
    scene
        .project
        .git(&[
            "worktree",
            "add",
            "-q",
            linked.to_str().unwrap(),
            "-b",
            "other",
        ])
        .unwrap();
    check_passes_in(&scene, &linked);
    assert_eq!(scene.project.status().unwrap(), "");
}

#[test]
fn an_order_is_carried_out_with_a_split_index_and_a_sparse_checkout() {
    for setting in [
        &["update-index", "--split-index"][..],
        &["sparse-checkout", "set", "--no-cone", "/*"],
    ] {
        let scene = Scene::with(&[&greet(crate::scenes::order::BAD), &greet(GOOD)]);
        scene.project.git(setting).unwrap();
        check_passes_in(&scene, scene.root());
        assert_eq!(scene.project.status().unwrap(), " M src/greet.sh\n");
    }
}

#[test]
fn an_order_is_carried_out_in_a_shallow_clone() {
    let scene = Scene::with(&[&greet(crate::scenes::order::BAD), &greet(GOOD)]);
    scene.project.write("later", b"x").unwrap();
    scene.project.commit("later").unwrap();
    let clone = scene.beside("clone");
    let from = format!("file://{}", scene.root().display());
    scene
        .project
        .git(&[
            "clone",
            "-q",
            "--depth",
            "1",
            &from,
            clone.to_str().unwrap(),
        ])
        .unwrap();
    check_passes_in(&scene, &clone);
}

#[test]
fn an_order_is_carried_out_with_a_detached_head_which_stays_detached() {
    let scene = Scene::with(&[&greet(crate::scenes::order::BAD), &greet(GOOD)]);
    scene.project.git(&["checkout", "-q", "--detach"]).unwrap();
    assert_eq!(scene.run(&[]).code, Some(0));
    assert_eq!(
        scene
            .project
            .git(&["rev-parse", "--symbolic-full-name", "HEAD"])
            .unwrap(),
        "HEAD\n"
    );
}

#[test]
fn an_order_is_carried_out_beside_submodules_and_never_inside_of_them() {
    let scene = Scene::with(&[]);
    let sub = Scene::with(&[
        &greet(crate::scenes::order::BAD),
        &crate::scenes::order::proposal("sub/src/other.txt", Some("other\n"), "x"),
        &greet(GOOD),
    ]);
    let from = scene.root().display().to_string();
    sub.project
        .git(&[
            "-c",
            "protocol.file.allow=always",
            "submodule",
            "add",
            "-q",
            &from,
            "sub",
        ])
        .unwrap();
    sub.project.commit("a submodule").unwrap();
    sub.place_order(&json!({ "allowed_files": ["src/greet.sh", "sub/src/other.txt"] }));
    let ran = sub.run(&["--max-attempts", "3"]);
    assert_eq!(ran.code, Some(0), "{ran}");
    assert_eq!(
        sub.summary()["attempts"][1]["failure_brief"]["stage"],
        "write_scope_violation"
    );
    assert_eq!(sub.project.read("sub/src/greet.sh").unwrap(), FILES[2].1);
}

#[test]
fn hooks_and_monitors_of_the_repository_are_not_started() {
    let scene = Scene::with(&[&greet(crate::scenes::order::BAD), &greet(GOOD)]);
    let trap = scene.beside("sprung");
    for hook in [
        "post-index-change",
        "post-checkout",
        "reference-transaction",
        "pre-commit",
    ] {
        scene
            .project
            .write(
                &format!(".git/hooks/{hook}"),
                format!("#!/bin/sh\ntouch {}\n", trap.display()).as_bytes(),
            )
            .unwrap();
        let path = scene.root().join(format!(".git/hooks/{hook}"));
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .unwrap();
    }
    scene
        .project
        .git(&[
            "config",
            "core.fsmonitor",
            &format!("touch {}", trap.display()),
        ])
        .unwrap();
    let _ = std::fs::remove_file(&trap);
    assert_eq!(scene.run(&["--commit"]).code, Some(0));
    assert!(!trap.exists());
}
