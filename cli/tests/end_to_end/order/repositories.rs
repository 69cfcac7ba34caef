//! S2 §2.2, §6.1: which repositories an order is carried out in, and which are refused without a change.

use std::path::Path;

use serde_json::json;

use crate::scenes::order::{BAD, FILES, GOOD, Scene, greet, proposal};
use crate::scenes::program::Ran;

/// Refused with exit code 3 and these words, before any call and without a run folder.
#[track_caller]
fn check_refused(scene: &Scene, more: &[&str], words: &str) {
    let ran = scene.run(more).exits(3);
    ran.err_has(words);
    assert_eq!((scene.calls(), scene.runs().len()), (0, 0));
}

#[test]
fn a_tree_with_untracked_changed_or_staged_files_is_refused_and_stays_as_it_is() {
    let dirty: [fn(&Scene); 3] = [
        |scene| scene.write("untracked.txt", "x"),
        |scene| scene.write("src/other.txt", "changed"),
        |scene| {
            scene.write("staged.txt", "x");
            scene.git(&["add", "staged.txt"]);
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
    scene.git(&["update-index", "--assume-unchanged", "src/greet.sh"]);
    scene.write("src/greet.sh", "mine\n");
    check_refused(
        &scene,
        &[],
        "is told to treat these files as unchanged: src/greet.sh",
    );
}

#[test]
fn a_filter_of_the_repositorys_own_configuration_is_named_where_it_makes_files_look_changed() {
    let scene = Scene::with(&[&greet(GOOD)]);
    scene.git(&["config", "filter.loud.clean", "tr a-z A-Z"]);
    scene.write(".gitattributes", "*.sh filter=loud\n");
    scene.git(&["add", "--renormalize", "."]);
    scene.project.commit("filtered").unwrap();
    assert_eq!(scene.status(), "");
    // Else git would not look into a file that is as old as when it last did.
    scene.write(FILES[2].0, FILES[2].1.as_bytes());
    let place = "name it in yours (git config --global) and not in the repository's";
    let told = "filters of the repository's own configuration are not run, so that files which go through one look changed";
    check_refused(&scene, &[], &format!("{told}: {place}"));
    scene.place(".gitconfig", b"[filter \"loud\"]\n\tclean = tr a-z A-Z\n");
    check_refused(&scene, &[], place);
    scene.git(&["config", "--remove-section", "filter.loud"]);
    scene.run(&[]).exits(0);
}

#[test]
fn a_repository_without_a_commit_is_refused() {
    let scene = Scene::with(&[]);
    let empty = scene.beside("empty");
    std::fs::create_dir(&empty).unwrap();
    scene.git(&["init", "-q", empty.to_str().unwrap()]);
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
    let begin = |args: &[&str]| scene.git(args);
    begin(&["checkout", "-q", "-b", "side"]);
    begin(&["commit", "-q", "--allow-empty", "-m", "side"]);
    begin(&["checkout", "-q", "-"]);
    begin(&["commit", "-q", "--allow-empty", "-m", "main"]);
    begin(&["merge", "-q", "--no-ff", "--no-commit", "side"]);
    let merge = scene.root().join(".git/MERGE_HEAD");
    assert!(merge.exists() && scene.status().is_empty());
    check_refused(&scene, &[], "a merge is under way");
    assert!(merge.exists());
    begin(&["merge", "--abort"]);
    let head = begin(&["rev-parse", "HEAD"]);
    for (file, name) in [
        ("CHERRY_PICK_HEAD", "cherry-pick"),
        ("REVERT_HEAD", "revert"),
    ] {
        scene.write(&format!(".git/{file}"), head.as_bytes());
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
    assert_eq!(scene.status(), "");
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
        scene.git(&["mv", from, to]);
        let place = scene.root().join(from);
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(link, place).unwrap();
        scene.git(&["add", "."]);
        scene.git(&["commit", "-q", "-m", "a link"]);
        let before = scene.state();
        check_refused(
            &scene,
            &[],
            &format!("scripts/verify.sh is not run: {from} is a symbolic link"),
        );
        assert_eq!(scene.state(), before);
        let checked = Ran::of(&mut scene.check()).exits(1);
        checked.out_has("is a symbolic link");
    }
    let elsewhere = Scene::with(&[&greet(GOOD)]);
    std::os::unix::fs::symlink("src", elsewhere.root().join("linked")).unwrap();
    elsewhere.git(&["add", "."]);
    elsewhere.git(&["commit", "-q", "-m", "another link"]);
    assert_eq!(
        elsewhere.run(&[]).code,
        Some(0),
        "another link stands in nobody's way"
    );
}

/// Carries the order out in another work tree of the scene.
#[track_caller]
fn check_passes_in(scene: &Scene, tree: &Path) {
    scene.run(&["--repo", tree.to_str().unwrap()]).exits(0);
    assert_eq!(
        std::fs::read_to_string(tree.join("src/greet.sh")).unwrap(),
        GOOD
    );
}

#[test]
fn an_order_is_carried_out_in_a_linked_work_tree() {
    let scene = Scene::with(&[&greet(BAD), &greet(GOOD)]);
    let linked = scene.linked();
    check_passes_in(&scene, &linked);
    assert_eq!(scene.status(), "");
}

#[test]
fn an_order_is_carried_out_with_a_split_index_and_a_sparse_checkout() {
    for setting in [
        &["update-index", "--split-index"][..],
        &["sparse-checkout", "set", "--no-cone", "/*"],
    ] {
        let scene = Scene::with(&[&greet(BAD), &greet(GOOD)]);
        scene.git(setting);
        check_passes_in(&scene, scene.root());
        assert_eq!(scene.status(), " M src/greet.sh\n");
    }
}

#[test]
fn an_order_is_carried_out_in_a_shallow_clone() {
    let scene = Scene::with(&[&greet(BAD), &greet(GOOD)]);
    scene.write("later", "x");
    scene.project.commit("later").unwrap();
    let clone = scene.beside("clone");
    let from = format!("file://{}", scene.root().display());
    scene.git(&[
        "clone",
        "-q",
        "--depth",
        "1",
        &from,
        clone.to_str().unwrap(),
    ]);
    check_passes_in(&scene, &clone);
}

#[test]
fn an_order_is_carried_out_with_a_detached_head_which_stays_detached() {
    let scene = Scene::with(&[&greet(BAD), &greet(GOOD)]);
    scene.git(&["checkout", "-q", "--detach"]);
    assert_eq!(scene.run(&[]).code, Some(0));
    assert_eq!(
        scene.git(&["rev-parse", "--symbolic-full-name", "HEAD"]),
        "HEAD\n"
    );
}

#[test]
fn an_order_is_carried_out_beside_submodules_and_never_inside_of_them() {
    let scene = Scene::with(&[]);
    let sub = Scene::with(&[
        &greet(BAD),
        &proposal("sub/src/other.txt", Some("other\n"), "x"),
        &greet(GOOD),
    ]);
    sub.add_submodule(&scene, "sub");
    sub.place_order(&json!({ "allowed_files": ["src/greet.sh", "sub/src/other.txt"] }));
    sub.run(&["--max-attempts", "3"]).exits(0);
    assert_eq!(
        sub.summary()["attempts"][1]["failure_brief"]["stage"],
        "write_scope_violation"
    );
    assert_eq!(sub.read("sub/src/greet.sh"), FILES[2].1);
}

#[test]
fn hooks_and_monitors_of_the_repository_are_not_started() {
    let scene = Scene::with(&[&greet(BAD), &greet(GOOD)]);
    let trap = scene.beside("sprung");
    for hook in [
        "post-index-change",
        "post-checkout",
        "reference-transaction",
        "pre-commit",
    ] {
        scene.write(
            &format!(".git/hooks/{hook}"),
            format!("#!/bin/sh\ntouch {}\n", trap.display()),
        );
        let path = scene.root().join(format!(".git/hooks/{hook}"));
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .unwrap();
    }
    scene.git(&[
        "config",
        "core.fsmonitor",
        &format!("touch {}", trap.display()),
    ]);
    let _ = std::fs::remove_file(&trap);
    assert_eq!(scene.run(&["--commit"]).code, Some(0));
    assert!(!trap.exists());
}
