//! For people, or for programs.

use serde::Serialize;

/// How to print.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Out {
    pub(crate) is_json: bool,
}

impl Out {
    /// One fact.
    pub(crate) fn line(self, fact: &impl Serialize, words: impl FnOnce() -> String) {
        if !self.is_json {
            println!("{}", words());
        } else if let Ok(json) = serde_json::to_string(fact) {
            println!("{json}");
        }
    }
}

/// `$1.25`; small amounts with more digits.
pub(crate) fn usd(amount: f64) -> String {
    code_commit_llm::Money::from_usd(amount.max(0.0))
        .map_or_else(|_| format!("${amount}"), |money| money.to_string())
}

/// The beginning of a commit's hash.
pub(crate) fn short(commit: &str) -> &str {
    commit.get(..12).unwrap_or(commit)
}
