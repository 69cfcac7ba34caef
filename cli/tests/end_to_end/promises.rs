//! Loops × promises: what a user or a supervisor may count on holds for every loop, whatever its nature.
//!
//! `cargo test -p code-commit-cli --test end_to_end promises::table -- --nocapture` prints the table.

mod checks;
mod loops;

use crate::promises::checks::Verdict;
use crate::promises::loops::{LOOPS, Loop};

/// A loop, the promise that it does not keep yet, what is seen instead, and where below `runs/src` it is missing.
type Gap = (&'static str, &'static str, &'static str, &'static str);

/// The list may only shrink.
const GAPS: &[Gap] = &[];

/// One test for each loop and promise, so that they run side by side under their names.
macro_rules! cells {
    ($($of:ident)+; $promises:tt) => {
        $(cells!(@of $of $promises);)+
        const CELLS: &[&str] = &[$(stringify!($of)),+];
        cells!(@promises $promises);
    };
    (@of $of:ident [$($promise:ident)+]) => {
        mod $of {
            $(#[test]
            fn $promise() {
                super::check(stringify!($of), stringify!($promise), super::checks::$promise);
            })+
        }
    };
    (@promises [$($promise:ident)+]) => {
        const PROMISES: &[&str] = &[$(stringify!($promise)),+];
    };
}

cells! {
    commit implement order phase spec;
    [kill resume ctrl_c key json json_stopped dry_run runs show portable page undo clean]
}

/// A cell holds, unless it is a gap; then it must not.
fn check(of: &str, promise: &str, verdict: fn(&Loop) -> Verdict) {
    let row = LOOPS.iter().find(|row| row.name == of).unwrap();
    match (gap(of, promise), verdict(row)) {
        (None, Ok(())) => {}
        (None, Err(seen)) => panic!("{of} does not keep {promise}: {seen}"),
        (Some(_), Ok(())) => panic!("{of} keeps {promise} now: take it out of GAPS"),
        (Some((_, _, known, _)), Err(seen)) => {
            assert!(
                seen.contains(known),
                "{of}, {promise}: not the gap {known:?}: {seen}"
            );
        }
    }
}

fn gap(of: &str, promise: &str) -> Option<&'static Gap> {
    GAPS.iter().find(|gap| (gap.0, gap.1) == (of, promise))
}

#[test]
fn table() {
    let names: Vec<&str> = LOOPS.iter().map(|row| row.name).collect();
    assert_eq!(names, CELLS, "each loop has its tests");
    let cells = || {
        PROMISES
            .iter()
            .flat_map(|promise| names.iter().map(|of| (*of, *promise)))
    };
    for (of, promise, ..) in GAPS {
        let rows = GAPS
            .iter()
            .filter(|gap| (gap.0, gap.1) == (*of, *promise))
            .count();
        assert!(
            rows == 1 && cells().any(|cell| cell == (*of, *promise)),
            "{of}, {promise}"
        );
    }
    eprintln!(
        "| promise | {} |\n|---|{}",
        names.join(" | "),
        "---|".repeat(names.len())
    );
    for promise in PROMISES {
        let row: Vec<&str> = names
            .iter()
            .map(|of| gap(of, promise).map_or("✓", |_| "gap"))
            .collect();
        eprintln!("| {promise} | {} |", row.join(" | "));
    }
    GAPS.iter()
        .for_each(|(of, promise, _, lacks)| eprintln!("- {of}, {promise}: {lacks}"));
}
