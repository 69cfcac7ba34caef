//! The note beside a roll-up: whether it is ours, and how to make it anew.

use std::io::Write as _;
use std::path::Path;

use anyhow::Context as _;
use code_commit_logging::sha256_hex;
use code_commit_settings::{Pattern, Settings};
use serde::{Deserialize, Serialize};

use crate::preflight::CODE_ROLLUP;

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
        let all = |patterns: &[Pattern]| patterns.iter().map(|one| one.0.clone()).collect();
        Self {
            include: all(&settings.rollup.include),
            exclude: all(&settings.rollup.exclude),
            budget: settings.rollup.budget.map(u64::from),
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Note {
    /// The hash of the roll-up that the note is about.
    sha256: String,
    /// That of the one before it, if it was ours: it is still there if the program was killed before it stored
    /// the new one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    replaces: Option<String>,
    options: Options,
}

/// Written before the roll-up: with a note that does not fit it, a roll-up counts as a person's own.
pub(super) fn store(root: &Path, text: &str, options: &Options) -> anyhow::Result<()> {
    let replaces = Stored::ours(root).map(|old| old.sha256);
    let note = Note {
        sha256: sha256_hex(text.as_bytes()),
        replaces,
        options: options.clone(),
    };
    write(
        &root.join(NOTE),
        format!("{}\n", serde_json::to_string_pretty(&note)?).as_bytes(),
    )
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
        let read = |file: &str, most| {
            code_commit_dir::read(&root.join(file), most, code_commit_dir::Links::Refused)
                .ok()
                .flatten()
        };
        let note: Note = serde_json::from_slice(&read(NOTE, MOST_BYTES)?).ok()?;
        let sha256 = sha256_hex(&read(CODE_ROLLUP, u64::MAX)?);
        let is_ours = sha256 == note.sha256 || Some(&sha256) == note.replaces.as_ref();
        is_ours.then_some(Self {
            options: note.options,
            sha256,
        })
    }

    /// Whether this one has the same text.
    pub fn is(&self, other: &str) -> bool {
        self.sha256 == sha256_hex(other.as_bytes())
    }
}

pub(super) fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    // Not synced: it can be made again.
    let written = code_commit_dir::replace_with(path, |file| file.write_all(bytes));
    written.with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rollup::RollUp;

    #[test]
    fn a_roll_up_stays_ours_when_the_program_is_killed_between_its_note_and_itself() {
        let root = tempfile::tempdir().unwrap();
        let options = |budget| Options {
            budget: Some(budget),
            ..Options::default()
        };
        let made = |text: &str| RollUp {
            text: text.to_owned(),
            ..RollUp::default()
        };
        made("one").keep(root.path(), &options(1)).unwrap();
        store(root.path(), "two", &options(2)).unwrap();
        let stored = Stored::ours(root.path()).unwrap();
        assert!(stored.is("one") && !stored.is("two") && stored.options == options(2));
        made("two").keep(root.path(), &options(2)).unwrap();
        assert!(Stored::ours(root.path()).unwrap().is("two"));
        made("by hand")
            .write(&root.path().join(CODE_ROLLUP))
            .unwrap();
        assert!(Stored::ours(root.path()).is_none());
        store(root.path(), "three", &options(3)).unwrap();
        assert!(
            Stored::ours(root.path()).is_none(),
            "what a person has made is not made ours by a note"
        );
    }
}
