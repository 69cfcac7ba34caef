//! The table of loops.

use crate::driver::{Loop as _, LoopKind};
use crate::{commit, order, phase, spec};

/// Each loop of this program.
pub const LOOPS: &[LoopKind] = &[
    commit::Commit::KIND,
    LoopKind {
        name: "implement",
        ..commit::Commit::KIND
    },
    order::Order::KIND,
    phase::Phase::KIND,
    spec::Spec::KIND,
];
