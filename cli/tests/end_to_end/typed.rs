//! The program on a terminal of its own, which script(1) makes.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::scenes::commit::{KEY, Ran, Scene};

const SCRIPT: &str = "/usr/bin/script";

/// Runs the program with these words, which hold no blanks, and types `input`. Both streams are one, as on any terminal. None, and a
/// loud line, where script(1) is not installed.
pub fn run(scene: &Scene, words: &[&str], environment: &[(&str, &str)], input: &str) -> Option<Ran> {
    if !Path::new(SCRIPT).exists() {
        skipped();
        return None;
    }
    let line = format!("{} {}", env!("CARGO_BIN_EXE_code-commit"), words.join(" "));
    let mut child = Command::new(SCRIPT)
        .args(["--quiet", "--return", "--command", &line, "/dev/null"])
        .current_dir(scene.project.root())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", scene.project.beside())
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GEMINI_API_KEY", KEY)
        .envs(environment.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let done = child.wait_with_output().unwrap();
    let out = String::from_utf8_lossy(&done.stdout).replace("\r\n", "\n");
    Some(Ran { code: done.status.code(), out, err: String::new() })
}

fn skipped() {
    eprintln!("SKIPPED: what needs a terminal, because {SCRIPT} is not installed");
}
