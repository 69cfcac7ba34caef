//! Plain data used by several answers.

use serde::{Deserialize, Serialize};

/// Something wrong with a reply, or a warning for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Problem {
    /// A stable kebab-case code.
    pub code: String,
    /// The file that it is about, as the reply names it, with unprintable characters escaped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The line of the reply, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// One sentence.
    pub message: String,
}

impl Problem {
    /// A problem that is not about a file.
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Self {
            code: code.to_owned(),
            path: None,
            line: None,
            message: message.into(),
        }
    }
}
