//! What else a restored tree has besides contents: modes, extended attributes, access lists, owners, times, empty
//! folders and hard links, for every way back. Each snapshot says what that way loses. A restored file has a new time
//! on purpose: what was built from the changed one must not look newer.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::Path;
use std::time::{Duration, SystemTime};

use code_commit_fixtures::server::{Script, Step};
use rustix::fs::XattrFlags;
use serde_json::json;

use crate::scenes::commit::Scene;
use crate::scenes::order;
use crate::scenes::program::Ran;

const NOTE: &str = "user.note";
const ACCESS_LIST: &str = "system.posix_acl_access";
/// Changed: `a` in place, `b` by a rename, `l1` under one of its two names; `c` is another user's.
const FILES: [(&str, &str); 7] = [
    ("a.txt", "a\n"),
    ("b.txt", "b\n"),
    ("c.txt", "c\n"),
    ("l1.txt", "l\n"),
    ("still.txt", "still\n"),
    ("shared/x.txt", "x\n"),
    (".gitignore", "/agent-config\n"),
];
/// What a command does.
const DEEDS: &str = "echo built > a.txt\necho built > t; mv t b.txt\necho built > l1.txt\necho built > c.txt\nrm -rf shared sticky\nmkdir -p made/empty\n";
const REPLY: &str = "^^^a.txt\nnew\n^^^end\n^^^b.txt\nnew\n^^^end\n^^^c.txt\nnew\n^^^end\n^^^l1.txt\nnew\n^^^end\n^^^shared/x.txt\n^^^delete\n";

/// Changes nothing of it.
const OTHER: &str = "^^^other.txt\nnew\n^^^end\n";

/// An access list with one named user, as the kernel stores it: version 2, then tag, permissions and ID of each entry.
fn access_list() -> Vec<u8> {
    let entries: [(u16, u16, u32); 5] = [
        (0x01, 6, u32::MAX),
        (0x02, 4, 4321),
        (0x04, 4, u32::MAX),
        (0x10, 4, u32::MAX),
        (0x20, 0, u32::MAX),
    ];
    let mut list = 2_u32.to_le_bytes().to_vec();
    for (tag, permissions, id) in entries {
        list.extend(tag.to_le_bytes());
        list.extend(permissions.to_le_bytes());
        list.extend(id.to_le_bytes());
    }
    list
}

/// Gives the files and folders of a project everything that may get lost. False, and a line that says so, where the
/// file system keeps none of it.
fn adorn(root: &Path) -> bool {
    let set = |path: &str, name: &str, value: &[u8]| {
        rustix::fs::setxattr(root.join(path), name, value, XattrFlags::empty())
    };
    if set("a.txt", NOTE, b"mine").is_err() || set("a.txt", ACCESS_LIST, &access_list()).is_err() {
        eprintln!(
            "SKIPPED: no extended attributes or access lists on {}",
            root.display()
        );
        return false;
    }
    set("b.txt", NOTE, b"mine").unwrap();
    set("b.txt", ACCESS_LIST, &access_list()).unwrap();
    fs::hard_link(root.join("l1.txt"), root.join("l2.txt")).unwrap();
    fs::create_dir(root.join("sticky")).unwrap();
    for (path, mode) in [("shared", 0o2775), ("sticky", 0o1777)] {
        fs::set_permissions(root.join(path), Permissions::from_mode(mode)).unwrap();
    }
    if rustix::process::geteuid().is_root() {
        chown(root.join("c.txt"), Some(1234), Some(1234)).unwrap();
    }
    let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    for path in ["a.txt", "still.txt", "l2.txt"] {
        fs::File::options()
            .append(true)
            .open(root.join(path))
            .unwrap()
            .set_modified(old)
            .unwrap();
    }
    true
}

/// What there is of each kind.
fn facts(root: &Path) -> BTreeMap<&'static str, String> {
    let stat = |path: &str| fs::symlink_metadata(root.join(path)).ok();
    let mode = |path: &str| stat(path).map(|found| format!("{:o}", found.mode() & 0o7777));
    let attribute = |path: &str, name: &str| {
        let mut value = [0_u8; 128];
        let read = rustix::fs::lgetxattr(root.join(path), name, &mut value[..]);
        read.ok().map(|len| value[..len].to_vec())
    };
    let owner = |path: &str| stat(path).map(|found| (found.uid(), found.gid()));
    let time = |path: &str| stat(path).map(|found| found.mtime());
    let text = |path: &str| fs::read_to_string(root.join(path)).ok();
    let is_linked =
        stat("l1.txt").map(|found| found.ino()) == stat("l2.txt").map(|found| found.ino());
    BTreeMap::from([
        (
            "0 contents",
            format!(
                "{:?}",
                ["a.txt", "b.txt", "c.txt", "l1.txt", "shared/x.txt"].map(text)
            ),
        ),
        (
            "1 bits of files",
            format!("{:?}", ["a.txt", "b.txt"].map(mode)),
        ),
        ("2 bits of folders", format!("{:?}", mode("shared"))),
        (
            "3 attributes, edited in place",
            format!("{:?}", attribute("a.txt", NOTE)),
        ),
        (
            "3 attributes, replaced",
            format!("{:?}", attribute("b.txt", NOTE)),
        ),
        (
            "4 access list, edited in place",
            format!("{:?}", attribute("a.txt", ACCESS_LIST)),
        ),
        (
            "4 access list, replaced",
            format!("{:?}", attribute("b.txt", ACCESS_LIST)),
        ),
        ("5 owner", format!("{:?}", ["a.txt", "c.txt"].map(owner))),
        (
            "6 time of what was restored",
            format!("{:?}", time("a.txt")),
        ),
        ("7 time of what was not", format!("{:?}", time("still.txt"))),
        (
            "8 empty folders",
            format!("{:?} {:?}", mode("sticky"), mode("made")),
        ),
        ("9 hard link", format!("{is_linked}")),
        ("9 the other name", format!("{:?}", text("l2.txt"))),
    ])
}

/// What a way back loses.
fn lost(before: &BTreeMap<&'static str, String>, root: &Path) -> String {
    let now = facts(root);
    let lost: Vec<&str> = before
        .iter()
        .filter(|(kind, was)| now[*kind] != **was)
        .map(|(kind, _)| *kind)
        .collect();
    lost.join("; ")
}

type Facts = BTreeMap<&'static str, String>;

/// A project whose build, or whose reply, changes what is adorned.
fn project(reply: &str, build: &str) -> Option<(Scene, Facts)> {
    let build = format!("#!/bin/sh\n{build}");
    let files = [&FILES[..], &[("build.sh", &*build)]].concat();
    let scene = Scene::with_files(&files, Script::new([Step::text(reply)]));
    scene
        .project
        .write("agent-config/query.txt", b"change a\n")
        .unwrap();
    if !adorn(scene.project.root()) {
        return None;
    }
    scene.project.commit("all of it").unwrap();
    assert_eq!(scene.project.status().unwrap(), "");
    let before = facts(scene.project.root());
    Some((scene, before))
}

fn run(scene: &Scene, sandbox: &str, more: &[&str]) -> Option<Ran> {
    let model = [
        "--model",
        "gemini-test",
        "--base-url",
        scene.server.origin(),
        "--sandbox",
        sandbox,
        "--verbose",
    ];
    let ran = scene.run_keyed(&[&model[..], more].concat());
    if sandbox == "auto" && !ran.err.contains("sandbox: namespaces") {
        eprintln!("SKIPPED: there is no view without namespaces: {ran}");
        return None;
    }
    Some(ran)
}

fn undone(scene: &Scene, before: &Facts) -> String {
    let undone = scene.run(&["undo"]);
    assert_eq!(undone.code, Some(0), "{undone}");
    lost(before, scene.project.root())
}

#[test]
fn undo_of_a_reply() {
    let Some((scene, before)) = project(REPLY, "") else {
        return;
    };
    let Some(ran) = run(&scene, "off", &[]) else {
        return;
    };
    assert_eq!(ran.code, Some(0), "{ran}");
    let warnings = scene.warnings("apply");
    assert!(
        warnings
            .iter()
            .any(|text| text.contains("l1.txt: it was replaced")),
        "{ran}"
    );
    insta::assert_snapshot!(undone(&scene, &before), @"6 time of what was restored");
}

#[test]
fn undo_of_a_build_in_a_view() {
    let Some((scene, before)) = project(OTHER, DEEDS) else {
        return;
    };
    let Some(ran) = run(&scene, "auto", &[]) else {
        return;
    };
    assert_eq!(ran.code, Some(0), "{ran}");
    insta::assert_snapshot!(undone(&scene, &before), @"6 time of what was restored");
}

#[test]
fn undo_of_a_build_in_the_tree() {
    let Some((scene, before)) = project(OTHER, DEEDS) else {
        return;
    };
    let Some(ran) = run(&scene, "off", &[]) else {
        return;
    };
    assert_eq!(ran.code, Some(0), "{ran}");
    insta::assert_snapshot!(undone(&scene, &before), @"6 time of what was restored; 9 hard link");
}

#[test]
fn restore_after_a_failure() {
    let Some((scene, before)) = project(REPLY, &format!("{DEEDS}exit 1\n")) else {
        return;
    };
    let Some(ran) = run(
        &scene,
        "auto",
        &["--rounds", "1", "--on-failure", "restore"],
    ) else {
        return;
    };
    assert_eq!(ran.code, Some(1), "{ran}");
    insta::assert_snapshot!(lost(&before, scene.project.root()), @"6 time of what was restored");
}

/// In a sandbox a build cannot write to them at all. The other name is not sealed: there the build's change stays.
#[test]
fn sealed_files() {
    let build = "echo built > a.txt\necho built > t; mv t b.txt\necho built > l1.txt\n";
    let Some((scene, before)) = project(OTHER, build) else {
        return;
    };
    let protect = [
        "--protect",
        "a.txt",
        "--protect",
        "b.txt",
        "--protect",
        "l1.txt",
        "--rounds",
        "1",
    ];
    let Some(ran) = run(&scene, "off", &protect) else {
        return;
    };
    assert_eq!(ran.code, Some(1), "{ran}");
    insta::assert_snapshot!(lost(&before, scene.project.root()), @"9 hard link; 9 the other name");
}

/// An order whose command does all that, and fails or passes.
fn ordered(
    reply: &str,
    passes: bool,
    sandbox: &str,
    keep: bool,
) -> Option<(order::Scene, Facts, Ran)> {
    let answer = order::greet(reply);
    let scene = order::Scene::scripted(&order::FILES, Script::new([Step::text(&answer)]));
    for (path, text) in FILES.iter().filter(|(path, _)| *path != ".gitignore") {
        scene.project.write(path, text.as_bytes()).unwrap();
    }
    if keep {
        scene
            .project
            .write("code-commit.toml", b"[order]\nbyproducts = \"keep\"\n")
            .unwrap();
    }
    scene
        .project
        .write(
            "deeds.sh",
            format!("{DEEDS}exit {}\n", i32::from(!passes)).as_bytes(),
        )
        .unwrap();
    scene.place_order(&json!({ "acceptance_commands": ["sh deeds.sh"] }));
    if !adorn(scene.root()) {
        return None;
    }
    scene.project.commit("all of it").unwrap();
    assert_eq!(scene.project.status().unwrap(), "");
    let before = facts(scene.root());
    let ran = scene.run(&["--max-attempts", "1", "--sandbox", sandbox, "--verbose"]);
    if sandbox == "auto" && !ran.err.contains("sandbox: namespaces") {
        eprintln!("SKIPPED: there is no view without namespaces: {ran}");
        return None;
    }
    Some((scene, before, ran))
}

/// In the tree, what a command edited in place comes back as a file of its own.
#[test]
fn the_rollback_of_an_order() {
    let mut all = String::new();
    for sandbox in ["off", "auto"] {
        let Some((scene, before, ran)) = ordered(order::GOOD, false, sandbox, false) else {
            return;
        };
        assert_eq!(ran.code, Some(1), "{ran}");
        all += &format!("{sandbox}: {}\n", lost(&before, scene.root()));
    }
    insta::assert_snapshot!(all, @r"
    off: 9 hard link
    auto:
    ");
}

#[test]
fn an_order_that_passes_and_restores_by_products() {
    let mut all = String::new();
    for sandbox in ["off", "auto"] {
        let Some((scene, before, ran)) = ordered(order::GOOD, true, sandbox, false) else {
            return;
        };
        assert_eq!(ran.code, Some(0), "{ran}");
        all += &format!("{sandbox}: {}\n", lost(&before, scene.root()));
    }
    insta::assert_snapshot!(all, @r"
    off: 9 hard link
    auto:
    ");
}

#[test]
fn undo_of_kept_by_products() {
    let mut all = String::new();
    for sandbox in ["off", "auto"] {
        let Some((scene, before, ran)) = ordered(order::GOOD, true, sandbox, true) else {
            return;
        };
        assert_eq!(ran.code, Some(0), "{ran}");
        let undone = Ran::of(&mut scene.program(&["undo"]));
        all += &format!(
            "{sandbox}: {:?} {}\n",
            undone.code,
            lost(&before, scene.root())
        );
    }
    insta::assert_snapshot!(all, @r"
    off: Some(0) 6 time of what was restored; 9 hard link
    auto: Some(0) 6 time of what was restored
    ");
}
