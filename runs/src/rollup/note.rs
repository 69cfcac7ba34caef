//! The note beside a roll-up: whether it is ours, and how to make it anew.

use std::path::Path;

use logging::sha256_hex;
use serde::{Deserialize, Serialize};
use settings::{Setting, Settings};

use super::RollUp;
use crate::preflight::CODE_ROLLUP;

/// The note's file.
const NOTE: &str = "agent-config/codeRollup.json";
/// A longer note is not ours.
const MOST_BYTES: u64 = 1 << 20;

/// What a roll-up is to hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// Only what these gitignore patterns match; everything if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub include: Vec<String>,
    /// Not what these match.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<String>,
    /// Its tokens at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<u64>,
}

impl Options {
    /// Those of the configuration.
    pub fn of(settings: &Settings) -> Self {
        let all = |lists: &[Setting<Vec<String>>]| lists.iter().flat_map(|list| list.value.clone()).collect();
        Self {
            include: all(&settings.rollup_include),
            exclude: all(&settings.rollup_exclude),
            budget: settings.rollup_budget.value,
        }
    }
}

/// How a roll-up was made.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Note {
    /// The hash of the roll-up that the note is about.
    sha256: String,
    options: Options,
}

pub(super) fn store(root: &Path, text: &str, options: &Options) -> anyhow::Result<()> {
    let note = Note { sha256: sha256_hex(text.as_bytes()), options: options.clone() };
    super::write(&root.join(NOTE), format!("{}\n", serde_json::to_string_pretty(&note)?).as_bytes())
}

/// A roll-up that `code-commit rollup` made, and that nobody has changed since.
#[derive(Debug)]
pub struct Stored {
    /// How it was made.
    pub options: Options,
    sha256: String,
}

impl Stored {
    /// The stored roll-up if it is ours. That of a person or of a script has no note, or one that does not fit
    /// it.
    pub fn ours(root: &Path) -> Option<Self> {
        let read = |file: &str, most| dir::read(&root.join(file), most, dir::Links::Refused).ok().flatten();
        let Note { sha256, options } = serde_json::from_slice(&read(NOTE, MOST_BYTES)?).ok()?;
        let text = read(CODE_ROLLUP, u64::MAX)?;
        (sha256 == sha256_hex(&text)).then_some(Self { options, sha256 })
    }

    /// Whether this one has the same text.
    pub fn is(&self, other: &RollUp) -> bool {
        self.sha256 == sha256_hex(other.text.as_bytes())
    }
}
