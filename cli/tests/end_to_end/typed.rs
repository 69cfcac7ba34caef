//! The program on a terminal of its own, which script(1) makes.

use std::path::Path;
use std::process::Command;

use crate::scenes::commit::Scene;
use crate::scenes::program::{Ran, surrounded};

const SCRIPT: &str = "/usr/bin/script";

/// Runs the program with these words, which hold no blanks, and types `input`. Both streams are one, as on any terminal. None, and a
/// loud line, where script(1) is not installed.
pub fn run(
    scene: &Scene,
    words: &[&str],
    environment: &[(&str, &str)],
    input: &str,
) -> Option<Ran> {
    if !Path::new(SCRIPT).exists() {
        skipped();
        return None;
    }
    let line = format!("{} {}", env!("CARGO_BIN_EXE_code-commit"), words.join(" "));
    let mut script = Command::new(SCRIPT);
    script.args(["--quiet", "--return", "--command", &line, "/dev/null"]);
    surrounded(&mut script, &scene.keyed(&[], environment));
    let done = Ran::fed(&mut script, input);
    Some(done.map(|text| text.replace("\r\n", "\n")))
}

fn skipped() {
    eprintln!("SKIPPED: what needs a terminal, because {SCRIPT} is not installed");
}
