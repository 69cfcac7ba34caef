//! The cost of an answer, and whether it is worth keeping.

use code_commit_fleet_store::{Kept, Outcome};
use code_commit_llm::sse::Frames;
use code_commit_llm::{Advice, Answer, Dialect, Unread};

use crate::ask::{Question, cost};

/// Judges the whole body of an answer with status 200. It is read by the product's own readers.
pub(crate) fn judge(
    question: &Question,
    dialect: &dyn Dialect,
    content_type: &str,
    body: Vec<u8>,
) -> Outcome {
    let answer = if content_type.starts_with("text/event-stream") {
        streamed(dialect, &body)
    } else {
        dialect.read(body.clone(), &code_commit_llm::Request::default(), None)
    };
    // The service did work, and nobody knows how much.
    let Ok(Answer { reply, .. }) = answer else { return Outcome::Unknown };
    let usage = reply.usage;
    let tokens = |count: Option<u64>| count.and_then(|count| i64::try_from(count).ok());
    Outcome::Answered {
        // The program asks again after an answer of no use, and must not get the same one.
        kept: (reply.finish.advice() != Advice::Retry)
            .then(|| Kept { content_type: content_type.to_owned(), body }),
        cost: cost(&question.model, reply.served_model.as_deref(), &usage),
        input_tokens: tokens(usage.input_tokens),
        output_tokens: tokens(usage.output_tokens),
    }
}

fn streamed(dialect: &dyn Dialect, body: &[u8]) -> Result<Answer, Unread> {
    let mut reader = dialect.stream();
    let mut text = String::new();
    let mut frames = Frames::default();
    // Some gateways send empty events to keep the connection open.
    let mut take = |data: &str| if data.trim().is_empty() { Ok(()) } else { reader.take(data, &mut text) };
    frames.push(body, &mut take)?;
    frames.finish(&mut take)?;
    if reader.over().is_none() {
        return Err(Unread::BrokenOff);
    }
    Ok(reader.finish(text)?)
}
