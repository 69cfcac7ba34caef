//! How a run ends.

use code_commit_model::{Advice, Finish};
use serde::{Deserialize, Serialize};

/// The end of a run, as the loop decides it. The program's exit code follows from it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "outcome", rename_all = "kebab-case")]
#[expect(
    missing_docs,
    reason = "`rounds` is how many it took, `round` the one in which it ended"
)]
pub enum Outcome {
    /// The work is done and the build passes.
    Done { rounds: u32 },
    /// All rounds are used up and the build still fails.
    AttemptsUsedUp { rounds: u32 },
    /// The run cannot continue before a person has decided something.
    NeedsPerson { round: u32, cause: Cause },
    /// The build command could not be started.
    Unfit { round: u32, cause: Cause },
    /// The model could not be reached, did not answer, or may not be asked again.
    ModelUnavailable { round: u32, cause: Cause },
}

/// What the end of a run holds for, each as a SHA-256 in hex: if one of them is another now, the verdict is
/// stale. Empty if the run ended without a verdict.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HoldsFor {
    /// The files that were judged, except ignored ones: paths, executable bits, contents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
    /// What was asked for: the query, the work order, the specs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub specification: Option<String>,
    /// What decided: the build, the commands, the agent that reviewed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decider: Option<String>,
}

impl HoldsFor {
    /// Whether there was no verdict.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl AsRef<Self> for Outcome {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl Outcome {
    /// Its name, as JSON has it under `outcome`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Done { .. } => "done",
            Self::AttemptsUsedUp { .. } => "attempts-used-up",
            Self::NeedsPerson { .. } => "needs-person",
            Self::Unfit { .. } => "unfit",
            Self::ModelUnavailable { .. } => "model-unavailable",
        }
    }

    /// Why it ended before a verdict, if it did.
    pub fn cause(&self) -> Option<&Cause> {
        match self {
            Self::Done { .. } | Self::AttemptsUsedUp { .. } => None,
            Self::NeedsPerson { cause, .. }
            | Self::Unfit { cause, .. }
            | Self::ModelUnavailable { cause, .. } => Some(cause),
        }
    }

    /// The round in which it ended.
    pub fn round(&self) -> u32 {
        match self {
            Self::Done { rounds } | Self::AttemptsUsedUp { rounds } => *rounds,
            Self::NeedsPerson { round, .. }
            | Self::Unfit { round, .. }
            | Self::ModelUnavailable { round, .. } => *round,
        }
    }
}

/// Why a run cannot continue, in words for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Cause {
    /// A stable kebab-case code.
    pub code: String,
    /// What happened.
    pub message: String,
    /// What can be done about it.
    pub remedy: Option<String>,
}

impl Cause {
    /// The cause if the user has to do something about how an answer ended.
    pub fn of_finish(finish: &Finish) -> Option<Self> {
        (finish.advice() == Advice::TellPerson).then(|| Self {
            code: finish.code().to_owned(),
            message: finish.explain(),
            remedy: Some(finish.hint().to_owned()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_of_an_outcome_is_what_json_says() {
        let cause = Cause {
            code: "c".into(),
            message: "m".into(),
            remedy: None,
        };
        for outcome in [
            Outcome::Done { rounds: 1 },
            Outcome::AttemptsUsedUp { rounds: 1 },
            Outcome::NeedsPerson {
                round: 1,
                cause: cause.clone(),
            },
            Outcome::Unfit {
                round: 1,
                cause: cause.clone(),
            },
            Outcome::ModelUnavailable { round: 1, cause },
        ] {
            assert_eq!(
                serde_json::to_value(&outcome).unwrap()["outcome"],
                outcome.code()
            );
        }
    }
}
