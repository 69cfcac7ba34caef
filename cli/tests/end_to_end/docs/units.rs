//! The units for systemd on the page about supervisors, as systemd itself reads them.

use std::fs;
use std::process::Command;

use crate::scenes::program::{Ran, search_path};

#[test]
fn systemd_finds_nothing_wrong_with_the_units_and_each_night_has_a_key_of_its_own() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/how-to/automation.md");
    let page = fs::read_to_string(page).unwrap();
    let blocks = page
        .split("```ini\n")
        .skip(1)
        .filter_map(|text| text.split("```").next());
    let program = env!("CARGO_BIN_EXE_code-commit");
    let blocks: Vec<String> = blocks
        .map(|text| text.replace("%h/.cargo/bin/code-commit", program))
        .collect();
    let [service, start, timer] = blocks.as_slice() else {
        panic!("{blocks:?}")
    };
    assert!(start.contains("$$(date +%%F)"), "{start}");
    let lines = service.lines().map(|line| {
        if line.starts_with("ExecStart=") {
            start.trim()
        } else {
            line
        }
    });
    let nightly: String = lines.map(|line| format!("{line}\n")).collect();
    let folder = tempfile::tempdir().unwrap();
    let units = [
        ("code-commit.service", service),
        ("code-commit-nightly.service", &nightly),
        ("code-commit-nightly.timer", timer),
    ];
    units
        .iter()
        .for_each(|(name, text)| fs::write(folder.path().join(name), text).unwrap());
    let mut command = Command::new("systemd-analyze");
    command
        .args(["verify", "--user", "--man=no"])
        .args(units.map(|(name, _)| folder.path().join(name)));
    command.env_clear().env("PATH", search_path());
    command
        .env("HOME", folder.path())
        .env("XDG_RUNTIME_DIR", folder.path());
    match command.output() {
        Err(error) => eprintln!("SKIPPED: no systemd-analyze is here: {error}"),
        Ok(done) => {
            let ran = Ran::from(done);
            assert!(ran.code == Some(0) && ran.err.is_empty(), "{ran}");
        }
    }
}
