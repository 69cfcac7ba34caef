//! Kills at any of a command's system calls, by strace.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use crate::scenes::program::{Ran, below};

pub fn strace_works() -> bool {
    let works =
        Ran::of(Command::new("strace").args(["-qq", "-o", "/dev/null", "true"])).code == Some(0);
    if !works {
        eprintln!("SKIPPED: kills at system calls because strace cannot trace here");
    }
    works
}

/// strace ends itself by the signal that ended its child.
pub fn is_killed(ended: ExitStatus) -> bool {
    ended.signal() == Some(9)
}

pub fn quietly(command: &mut Command) -> ExitStatus {
    command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap()
}

/// `command` under strace with these flags, which logs to `log`.
pub fn traced(log: &Path, command: &Command, words: &[&str]) -> Command {
    below(
        ["strace", "-qq", "-o", log.to_str().unwrap()]
            .iter()
            .chain(words),
        command,
    )
}

/// xorshift64*: the same places for the same seed.
pub struct Dice(u64);

impl Dice {
    pub fn of(seed: usize) -> Self {
        Self(seed as u64 ^ 0x9E37_79B9_7F4A_7C15)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let high = self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33;
        usize::try_from(high).unwrap() % bound
    }
}

/// Where a command can be killed: each of its system calls, by name and how often it was made by then.
pub fn places(log: &Path, command: &Command) -> Vec<(String, usize)> {
    places_with(log, command, "")
}

/// Those whose arguments contain this text.
pub fn places_with(log: &Path, command: &Command, text: &str) -> Vec<(String, usize)> {
    assert!(
        quietly(&mut traced(log, command, &["-e", "trace=all"]))
            .code()
            .is_some()
    );
    let mut made: BTreeMap<String, usize> = BTreeMap::new();
    let trace = fs::read_to_string(log).unwrap();
    let calls = trace
        .lines()
        .filter(|line| line.starts_with(|first: char| first.is_ascii_lowercase()));
    let calls = calls.filter_map(|line| line.split_once('('));
    let place = |(name, arguments): (&str, &str)| {
        let count = made.entry(name.to_owned()).or_default();
        *count += 1;
        arguments.contains(text).then(|| (name.to_owned(), *count))
    };
    calls.filter_map(place).collect()
}
