//! Loops × promises: what a user or a supervisor may count on holds for every loop, whatever its nature.

mod checks;
mod loops;

use crate::promises::loops::{LOOPS, Loop};

/// One test for each loop and promise, so that they run side by side under their names.
macro_rules! cells {
    ($($of:ident)+; $promises:tt) => {
        $(cells!(@of $of $promises);)+
        const CELLS: &[&str] = &[$(stringify!($of)),+];
    };
    (@of $of:ident [$($promise:ident)+]) => {
        mod $of {
            $(#[test]
            fn $promise() {
                super::check(stringify!($of), super::checks::$promise);
            })+
        }
    };
}

cells! {
    commit implement order phase spec;
    [kill resume ctrl_c key json json_stopped dry_run runs show portable page undo clean]
}

fn check(of: &str, promise: fn(&Loop)) {
    promise(LOOPS.iter().find(|row| row.name == of).unwrap());
}

#[test]
fn each_loop_has_its_tests() {
    let names: Vec<&str> = LOOPS.iter().map(|row| row.name).collect();
    assert_eq!(names, CELLS);
}
