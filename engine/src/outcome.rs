//! How a run ends.

use serde::{Deserialize, Serialize};

/// The end of a run, as the loop decides it. The program's exit code follows from it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum Outcome {
    /// What was asked for is there and the build passes.
    Done {
        /// The rounds it took.
        rounds: u32,
    },
    /// All rounds are used up and the build still fails.
    AttemptsUsedUp {
        /// The rounds it took.
        rounds: u32,
    },
    /// The same failure came so often that going on was pointless.
    Stuck {
        /// The rounds it took.
        rounds: u32,
        /// How often the last failure came in a row.
        times: u32,
    },
    /// Going on is of no use before a person has decided something.
    NeedsPerson {
        /// Which round it happened in.
        round: u32,
        /// What has to be decided.
        cause: Cause,
    },
    /// The model could not be reached, would not answer, or may not be asked again.
    ModelUnavailable {
        /// Which round it happened in.
        round: u32,
        /// Why.
        cause: Cause,
    },
}

/// Why a model gave no usable answer, in words for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cause {
    /// A stable kebab-case code.
    pub code: String,
    /// What happened.
    pub message: String,
    /// What can be done about it.
    pub remedy: Option<String>,
}
