//! Where the query of a run comes from.

use std::io::Read as _;

use anyhow::Context as _;

use crate::exit::Failure;
use crate::preflight::Missing;

/// Standard input may be endless.
const MOST_BYTES: u64 = 1 << 20;

/// Where the query of a run comes from.
#[derive(Debug, Default)]
pub enum Query {
    /// `agent-config/query.txt`, or where S0 has it.
    #[default]
    File,
    /// The query file, edited before the run starts.
    Edited,
    /// Given with `-m`; the file is neither read nor written.
    Given {
        /// The flag, or standard input.
        by: &'static str,
        /// The query.
        text: Vec<u8>,
    },
}

impl Query {
    /// The value of `-m`; for `-`, what standard input holds.
    pub fn given(message: &str) -> Result<Self, Failure> {
        if message != "-" {
            return Ok(Self::Given {
                by: "-m",
                text: message.into(),
            });
        }
        let mut text = Vec::new();
        std::io::stdin()
            .lock()
            .take(MOST_BYTES + 1)
            .read_to_end(&mut text)
            .context("cannot read standard input")?;
        Ok(Self::Given {
            by: "standard input",
            text,
        })
    }

    /// The text of a given one; `None` if a file holds it.
    pub(crate) fn text(&self) -> Option<Result<String, Missing>> {
        let Self::Given { by, text } = self else {
            return None;
        };
        let refuse = |what: &str| Missing::new(format!("the query from {by} {what}"), HINT);
        if text.len() as u64 > MOST_BYTES {
            return Some(Err(refuse("has more than 1 MiB")));
        }
        let text = std::str::from_utf8(text).map_err(|_| refuse("is not UTF-8"));
        let text = text.and_then(|text| {
            if text.trim().is_empty() {
                Err(refuse("is empty"))
            } else {
                Ok(text.to_owned())
            }
        });
        Some(text)
    }

    /// What the record names as its origin; a file is named by its path.
    pub(super) fn origin(&self, file: String) -> String {
        match self {
            Self::File | Self::Edited => file,
            Self::Given { by, .. } => (*by).to_owned(),
        }
    }
}

const HINT: &str = "describe the change: code-commit -m \"…\"";
