//! File systems without hard links, symlinks, modes or renames that replace nothing.

use std::fs::File;
use std::path::Path;
use std::process::Command;

use code_commit_fixtures::demo::{BREAKS_THE_BUILD, MENDS_IT};

use crate::scenes::commit::{KEY, Scene};
use crate::scenes::program::{Ran, program, tool};

/// A mounted file system; unmounted when dropped.
struct Disk(tempfile::TempDir);

impl Disk {
    fn new(kind: &str) -> Option<Self> {
        let scratch = tempfile::tempdir().unwrap();
        let at = |name: &str| scratch.path().join(name);
        ["below", "mounted"]
            .iter()
            .for_each(|name| std::fs::create_dir(at(name)).unwrap());
        File::create(at("image"))
            .unwrap()
            .set_len(64 << 20)
            .unwrap();
        let words: &[&[&str]] = match kind {
            "vfat" => &[
                &["mkfs.vfat", "image"],
                &["mount", "-o", "loop", "image", "mounted"],
            ],
            _ => &[&["bindfs", "-o", "xattr-none", "below", "mounted"]],
        };
        for words in words {
            match tool(words[0], scratch.path(), scratch.path(), &words[1..]).output() {
                Ok(done) if done.status.success() => {}
                done => {
                    let why =
                        done.map(|done| String::from_utf8_lossy(&done.stderr).trim().to_owned());
                    eprintln!("SKIPPED: runs on {kind}, because {}: {why:?}", words[0]);
                    return None;
                }
            }
        }
        Some(Self(scratch))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount")
            .arg("-l")
            .arg(self.0.path().join("mounted"))
            .status();
    }
}

fn runs_and_is_undone(kind: &str) {
    let Some(disk) = Disk::new(kind) else { return };
    let scene = Scene::with_replies([BREAKS_THE_BUILD, MENDS_IT, BREAKS_THE_BUILD, MENDS_IT]);
    let (root, home) = (
        disk.0.path().join("mounted/project"),
        scene.project.beside(),
    );
    let git =
        |folder: &Path, args: &[&str]| tool("git", folder, home, args).status().unwrap().success();
    assert!(git(
        scene.project.root(),
        &["clone", "-q", ".", root.to_str().unwrap()]
    ));
    for sandbox in ["off", "auto"] {
        let flags = scene.flags_in(sandbox);
        let args = [&["-m", "greet"][..], &flags].concat();
        let ran = Ran::of(&mut program(&root, home, &args, &[("GEMINI_API_KEY", KEY)]));
        if ran.err.contains("no sandbox works here") {
            return eprintln!("SKIPPED: a sandbox on {kind}: {ran}");
        }
        assert!(
            ran.code == Some(0) && ran.out.contains("done after 2 rounds"),
            "{kind}, {sandbox}: {ran}"
        );
        assert!(
            root.join("README.md").exists() && !git(&root, &["diff", "--quiet"]),
            "{kind}, {sandbox}"
        );
        let undone = Ran::of(&mut program(&root, home, &["undo"], &[]));
        assert_eq!(undone.code, Some(0), "{kind}, {sandbox}: {undone}");
        assert!(
            !root.join("README.md").exists() && git(&root, &["diff", "--quiet"]),
            "{kind}: {undone}"
        );
    }
}

#[test]
fn a_run_on_vfat_is_like_any_other_and_can_be_undone() {
    runs_and_is_undone("vfat");
}

#[test]
fn a_run_on_fuse_is_like_any_other_and_can_be_undone() {
    runs_and_is_undone("fuse");
}
