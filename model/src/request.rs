//! A request.

use std::time::Duration;

/// One request. Everything is borrowed: the prompt is copied once, into the request body.
#[derive(Debug, Clone, Copy, Default)]
pub struct Request<'a> {
    /// The user turn.
    pub prompt: &'a str,
    /// The number of bytes at the beginning of the prompt that later calls will repeat: what a cache is good for.
    /// Zero if that is not known.
    pub stable: usize,
    /// The system instruction.
    pub system: Option<&'a str>,
    /// If `None`, the service decides, which services recommend for their newest models.
    pub temperature: Option<f64>,
    /// A JSON schema for the reply, which is then a single JSON text.
    pub schema: Option<&'a serde_json::Value>,
    /// Stream the reply: progress and idle detection need it.
    pub stream: bool,
    /// The maximum number of tokens that the model may write, including reasoning.
    pub max_output_tokens: Option<u64>,
    /// What the caller has left for the whole call, including retries; no retry starts that would
    /// exceed it.
    pub time_left: Option<Duration>,
}

impl<'a> Request<'a> {
    /// The beginning of the prompt that later calls will repeat, and the rest.
    pub fn stable_and_rest(&self) -> (&'a str, &'a str) {
        self.prompt
            .split_at_checked(self.stable)
            .unwrap_or(("", self.prompt))
    }
}
