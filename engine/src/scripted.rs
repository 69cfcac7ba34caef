//! A harness for tests of loops: it gives prepared answers in order, and keeps the requests.

use std::any::Any;
use std::collections::VecDeque;

use serde_json::Value;

use crate::{Answer, Harness, Request, Stops};

/// Answers from a script, without processes and files.
#[derive(Default)]
pub struct Scripted {
    answers: VecDeque<Box<dyn Any>>,
    /// The requests: kind, JSON, and long text.
    pub requests: Vec<(&'static str, Value, Option<String>)>,
}

/// The next answer in the script is not of the requested type, or there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[error("the script has no answer to `{0}` in its next place")]
pub struct NoSuchAnswer(pub &'static str);

impl Scripted {
    /// Adds the next answer.
    #[must_use]
    pub fn then(mut self, answer: impl Answer) -> Self {
        self.answers.push_back(Box::new(answer));
        self
    }

    /// The kinds of the requests, in order.
    pub fn kinds(&self) -> Vec<&'static str> {
        self.requests.iter().map(|(kind, ..)| *kind).collect()
    }

    /// The long text of the last request that had one: a prompt, an artifact.
    pub fn last_text(&self) -> &str {
        self.requests
            .iter()
            .rev()
            .find_map(|(.., text)| text.as_deref())
            .unwrap_or_default()
    }
}

impl Stops for Scripted {
    type Stop = NoSuchAnswer;
}

impl<R: Request> Harness<R> for Scripted {
    fn perform(&mut self, request: R) -> Result<R::Answer, NoSuchAnswer> {
        let json = serde_json::to_value(&request).unwrap_or_default();
        self.requests
            .push((R::KIND, json, request.text().map(str::to_owned)));
        let answer = self
            .answers
            .pop_front()
            .and_then(|answer| answer.downcast::<R::Answer>().ok());
        answer.map(|answer| *answer).ok_or(NoSuchAnswer(R::KIND))
    }
}
