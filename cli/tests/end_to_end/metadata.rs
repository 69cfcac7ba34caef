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
use crate::scenes::program::{Ran, must_have};

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

type Facts = BTreeMap<&'static str, String>;

/// What there is of each kind.
fn facts(root: &Path) -> Facts {
    let stat = |path: &str| fs::symlink_metadata(root.join(path)).ok();
    let mode = |path: &str| stat(path).map(|found| format!("{:o}", found.mode() & 0o7777));
    let attribute = |path: &str, name: &str| {
        let mut value = [0_u8; 128];
        let read = rustix::fs::lgetxattr(root.join(path), name, &mut value[..]);
        read.ok().map(|len| value[..len].to_vec())
    };
    let shown = |fact: &dyn std::fmt::Debug| format!("{fact:?}");
    let owner = |path: &str| stat(path).map(|found| (found.uid(), found.gid()));
    let time = |path: &str| stat(path).map(|found| found.mtime());
    let text = |path: &str| fs::read_to_string(root.join(path)).ok();
    let is_linked =
        stat("l1.txt").map(|found| found.ino()) == stat("l2.txt").map(|found| found.ino());
    let contents = ["a.txt", "b.txt", "c.txt", "l1.txt", "shared/x.txt"].map(text);
    BTreeMap::from([
        ("0 contents", shown(&contents)),
        ("1 bits of files", shown(&["a.txt", "b.txt"].map(mode))),
        ("2 bits of folders", shown(&mode("shared"))),
        (
            "3 attributes, edited in place",
            shown(&attribute("a.txt", NOTE)),
        ),
        ("3 attributes, replaced", shown(&attribute("b.txt", NOTE))),
        (
            "4 access list, edited in place",
            shown(&attribute("a.txt", ACCESS_LIST)),
        ),
        (
            "4 access list, replaced",
            shown(&attribute("b.txt", ACCESS_LIST)),
        ),
        ("5 owner", shown(&["a.txt", "c.txt"].map(owner))),
        ("6 time of what was restored", shown(&time("a.txt"))),
        ("7 time of what was not", shown(&time("still.txt"))),
        ("8 empty folders", shown(&["sticky", "made"].map(mode))),
        ("9 hard link", shown(&is_linked)),
        ("9 the other name", shown(&text("l2.txt"))),
    ])
}

/// What a way back loses.
fn lost(before: &Facts, root: &Path) -> String {
    let now = facts(root);
    let lost = before.iter().filter(|(kind, was)| now[*kind] != **was);
    let lost: Vec<&str> = lost.map(|(kind, _)| *kind).collect();
    lost.join("; ")
}

/// A reply, a build, its sandbox, and more flags.
type Asked<'a> = (&'a str, &'a str, &'a str, &'a [&'a str]);

/// A run whose reply, or whose build, changes what is adorned, once it has ended with this code.
fn ended((reply, build, sandbox, more): Asked<'_>, code: i32) -> Option<(Scene, Facts)> {
    let build = format!("#!/bin/sh\n{build}");
    let files = [&FILES[..], &[("build.sh", &*build)]].concat();
    let scene = Scene::with_files(&files, Script::new([Step::text(reply)]));
    scene.write("agent-config/query.txt", "change a\n");
    if !adorn(scene.project.root()) {
        return None;
    }
    scene.project.commit("all of it").unwrap();
    assert_eq!(scene.status(), "");
    let before = facts(scene.project.root());
    let flags = scene.flags_in(sandbox);
    let ran = scene.run_keyed(&[&flags[..], &["--verbose"], more].concat());
    has_view(sandbox, &ran).then(|| ran.exits(code))?;
    Some((scene, before))
}

/// Whether it had the view that `auto` stands for; says so if not.
fn has_view(sandbox: &str, ran: &Ran) -> bool {
    let has = sandbox != "auto" || ran.err.contains("sandbox: namespaces");
    if !has {
        eprintln!("SKIPPED: there is no view without namespaces: {ran}");
    }
    has
}

fn undone(scene: &Scene, before: &Facts) -> String {
    scene.run(&["undo"]).exits(0);
    lost(before, scene.project.root())
}

#[test]
fn undo_of_a_reply() {
    let Some((scene, before)) = ended((REPLY, "", "off", &[]), 0) else {
        return;
    };
    must_have(
        &scene.warnings("apply").join("\n"),
        "l1.txt: it was replaced",
    );
    insta::assert_snapshot!(undone(&scene, &before), @"6 time of what was restored");
}

#[test]
fn undo_of_a_build_in_a_view() {
    let Some((scene, before)) = ended((OTHER, DEEDS, "auto", &[]), 0) else {
        return;
    };
    insta::assert_snapshot!(undone(&scene, &before), @"6 time of what was restored");
}

#[test]
fn undo_of_a_build_in_the_tree() {
    let Some((scene, before)) = ended((OTHER, DEEDS, "off", &[]), 0) else {
        return;
    };
    insta::assert_snapshot!(undone(&scene, &before), @"6 time of what was restored; 9 hard link");
}

#[test]
fn restore_after_a_failure() {
    let build = format!("{DEEDS}exit 1\n");
    let restore = ["--rounds", "1", "--on-failure", "restore"];
    let Some((scene, before)) = ended((REPLY, &build, "auto", &restore), 1) else {
        return;
    };
    insta::assert_snapshot!(lost(&before, scene.project.root()), @"6 time of what was restored");
}

/// In a sandbox a build cannot write to them at all. The other name is not sealed: there the build's change stays.
#[test]
fn sealed_files() {
    let build = "echo built > a.txt\necho built > t; mv t b.txt\necho built > l1.txt\n";
    let mut protect = vec!["--rounds", "1"];
    protect.extend(
        ["a.txt", "b.txt", "l1.txt"]
            .iter()
            .flat_map(|file| ["--protect", file]),
    );
    let Some((scene, before)) = ended((OTHER, build, "off", &protect), 1) else {
        return;
    };
    insta::assert_snapshot!(lost(&before, scene.project.root()), @"9 hard link; 9 the other name");
}

/// What is lost by an order whose command does all that, and fails or passes, without a view and in one.
fn ordered(passes: bool, keep: bool, then: impl Fn(&order::Scene)) -> Option<String> {
    let mut all = String::new();
    for sandbox in ["off", "auto"] {
        let scene = order::Scene::with(&[&order::greet(order::GOOD)]);
        for (path, text) in FILES.iter().filter(|(path, _)| *path != ".gitignore") {
            scene.write(path, text.as_bytes());
        }
        if keep {
            scene.write("code-commit.toml", "[order]\nbyproducts = \"keep\"\n");
        }
        let code = i32::from(!passes);
        scene.write("deeds.sh", format!("{DEEDS}exit {code}\n"));
        scene.place_order(&json!({ "acceptance_commands": ["sh deeds.sh"] }));
        if !adorn(scene.root()) {
            return None;
        }
        scene.project.commit("all of it").unwrap();
        assert_eq!(scene.status(), "");
        let before = facts(scene.root());
        let ran = scene.run(&["--max-attempts", "1", "--sandbox", sandbox, "--verbose"]);
        has_view(sandbox, &ran).then(|| ran.exits(code))?;
        then(&scene);
        all += &format!("{sandbox}: {}\n", lost(&before, scene.root()));
    }
    Some(all)
}

/// In the tree, what a command edited in place comes back as a file of its own.
#[test]
fn the_rollback_of_an_order() {
    let Some(lost) = ordered(false, false, |_| {}) else {
        return;
    };
    insta::assert_snapshot!(lost, @r"
    off: 9 hard link
    auto:
    ");
}

#[test]
fn an_order_that_passes_and_restores_by_products() {
    let Some(lost) = ordered(true, false, |_| {}) else {
        return;
    };
    insta::assert_snapshot!(lost, @r"
    off: 9 hard link
    auto:
    ");
}

#[test]
fn undo_of_kept_by_products() {
    let undo = |scene: &order::Scene| drop(Ran::of(&mut scene.program(&["undo"])).exits(0));
    let Some(lost) = ordered(true, true, undo) else {
        return;
    };
    insta::assert_snapshot!(lost, @r"
    off: 6 time of what was restored; 9 hard link
    auto: 6 time of what was restored
    ");
}
