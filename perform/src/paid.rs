//! Answers that another record of the same work holds: who sends the same prompt again gets them and does
//! not pay twice. They are judged again like any answer, so the record need not be trusted.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fs::File;
use std::rc::Rc;

use code_commit_engine::{Answered, Ask, Digest, Recorded, Request as _, Usage};
use code_commit_llm::Reply;
use code_commit_logging::{FolderError, RunFolder};

use crate::Past;

/// The answers of earlier records, each to be used once.
#[derive(Debug, Clone, Default)]
pub struct Paid(Rc<RefCell<VecDeque<One>>>);

#[derive(Debug)]
struct One {
    prompt_sha256: String,
    answered: Answered,
    folder: RunFolder,
}

/// An answer to use again.
pub(crate) struct Again {
    /// Costs nothing this time.
    pub(crate) answered: Answered,
    pub(crate) text: String,
    /// The answer as the service sent it.
    pub(crate) raw: File,
}

impl Paid {
    /// Adds the answers of this record, but for those that another record of the same run has brought already:
    /// it may have been exported twice. Gives the number of those that were added.
    pub fn add(&self, folder: &RunFolder, past: &Past) -> usize {
        let mut answers = self.0.borrow_mut();
        let before = answers.len();
        for entry in &past.answers {
            if let Some(sha256) = prompt_of(entry)
                && let Ok(answered) = serde_json::from_value(entry.answer.clone())
                && !answers
                    .iter()
                    .any(|one| one.prompt_sha256 == sha256 && one.answered == answered)
            {
                answers.push_back(One {
                    prompt_sha256: sha256.to_owned(),
                    answered,
                    folder: folder.clone(),
                });
            }
        }
        answers.len() - before
    }

    /// How many are left.
    pub fn count(&self) -> usize {
        self.0.borrow().len()
    }

    /// Leaves out what this record has used already.
    pub fn use_up(&self, past: &Past) {
        let mut answers = self.0.borrow_mut();
        for sha256 in past.answers.iter().filter_map(prompt_of) {
            let at = answers.iter().position(|one| one.prompt_sha256 == sha256);
            at.and_then(|at| answers.remove(at));
        }
    }

    /// The answer to this prompt. One whose files have changed is left out.
    pub(crate) fn take(&self, prompt: &str) -> Option<Again> {
        let mut answers = self.0.borrow_mut();
        if answers.is_empty() {
            return None;
        }
        let sha256 = Digest::of(prompt).sha256;
        let at = answers.iter().position(|one| one.prompt_sha256 == sha256)?;
        let One {
            mut answered,
            folder,
            ..
        } = answers.remove(at)?;
        let text = folder.recall(&answered.reply.stored).ok()?;
        let (stored, raw) = folder.adopt(&answered.raw.file).ok()?;
        if stored.sha256 != answered.raw.sha256 {
            return None;
        }
        // An unknown cost would make the sum of the run unknown.
        answered.usage = Usage {
            input_tokens: Some(0),
            output_tokens: Some(0),
            ..Usage::default()
        };
        (answered.cost_usd, answered.elapsed_ms) = (Some(0.0), 0);
        Some(Again {
            answered,
            text,
            raw,
        })
    }
}

/// The hash of the prompt that this is the answer to.
fn prompt_of(entry: &Recorded) -> Option<&str> {
    let is_answer = entry.kind == Ask::KIND && entry.answers("answered");
    is_answer
        .then(|| entry.request.pointer("/prompt/sha256")?.as_str())
        .flatten()
}

/// A recorded answer in the form that the model's client gave it, for reuse.
///
/// # Errors
///
/// Fails if its text has changed.
pub fn reply_again(folder: &RunFolder, answered: Answered) -> Result<Reply, FolderError> {
    let text = folder.recall(&answered.reply.stored)?;
    let Answered {
        finish,
        usage,
        served_model,
        ..
    } = answered;
    Ok(Reply {
        finish,
        usage,
        served_model,
        ..Reply::of_text(text)
    })
}
