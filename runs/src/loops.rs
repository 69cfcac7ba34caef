//! The table of loops.

use crate::life::{Facts, Row};
use crate::{commit, order, phase, spec};

/// One row for each loop of this program.
pub const LOOPS: &[Row] = &[
    Row::of::<commit::Commit<'_>>(commit::resume),
    Row {
        facts: Facts {
            kind: "implement",
            ..Facts::PLAIN
        },
        ..Row::of::<commit::Commit<'_>>(commit::resume)
    },
    Row {
        in_tree: order::in_tree,
        ..Row::of::<order::Order<'_>>(order::resume)
    },
    Row::of::<phase::Phase<'_>>(phase::resume),
    Row::of::<spec::Spec<'_>>(spec::resume),
];
