//! The table of loops.

use crate::life::{Facts, Row};
use crate::{commit, order, phase, replay, spec};

/// One row for each loop of this program.
pub const LOOPS: &[Row] = &[
    Row::of::<commit::Commit<'_>>(commit::resume, replay::commit),
    Row {
        facts: Facts {
            kind: "implement",
            ..Facts::PLAIN
        },
        ..Row::of::<commit::Commit<'_>>(commit::resume, replay::commit)
    },
    Row {
        in_tree: order::in_tree,
        ..Row::of::<order::Order<'_>>(order::resume, order::replay)
    },
    Row::of::<phase::Phase<'_>>(phase::resume, phase::replay),
    Row::of::<spec::Spec<'_>>(spec::resume, spec::replay),
];
