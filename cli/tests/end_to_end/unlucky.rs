//! What befalls people who do nothing wrong: odd files where inputs should be, few descriptors, a service that charges for nothing.

#![expect(
    clippy::disallowed_methods,
    reason = "replies are files, and a shell lowers the limit on descriptors"
)]

use std::process::{Command, Stdio};

use crate::harness::Scene;

#[test]
fn more_files_than_descriptors_are_undone() {
    let scene = Scene::with_replies([]);
    let reply: String = (0..300).map(|number| format!("^^^many/{number}\nx\n^^^end\n")).collect();
    let file = scene.project.beside().join("reply.txt");
    std::fs::write(&file, reply).unwrap();
    let applied = scene.run(&["apply", file.to_str().unwrap()]);
    assert_eq!(applied.code, Some(0), "{applied}");
    let undone = Command::new("sh")
        .args(["-c", "ulimit -n 64 && exec \"$0\" undo", env!("CARGO_BIN_EXE_code-commit")])
        .current_dir(scene.project.root())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(undone.status.code(), Some(0), "{}", String::from_utf8_lossy(&undone.stderr));
    assert_eq!(scene.project.status().unwrap(), "");
}
