//! The cost of an answer, and whether it is worth keeping.

use code_commit_fleet_store::{Kept, Nanodollars, Outcome};
use code_commit_llm::{Advice, Reply};

use crate::ask::{Question, cost};

/// Of an answer that the product's client accepts.
pub(crate) fn outcome(
    question: &Question,
    content_type: &str,
    body: Vec<u8>,
    reply: &Reply,
) -> Outcome {
    let usage = reply.usage;
    let tokens = |count: Option<u64>| count.and_then(|count| i64::try_from(count).ok());
    Outcome::Answered {
        // The program asks again after an answer of no use, and must not get the same one.
        kept: (reply.finish.advice() != Advice::Retry).then(|| Kept {
            content_type: content_type.to_owned(),
            body,
        }),
        cost: cost(&question.model, reply.served_model.as_deref(), &usage),
        input_tokens: tokens(usage.input_tokens),
        output_tokens: tokens(usage.output_tokens),
    }
}

/// Of an answer that is not billed.
pub(crate) fn nothing() -> Outcome {
    Outcome::Answered {
        kept: None,
        cost: Some(Nanodollars::default()),
        input_tokens: None,
        output_tokens: None,
    }
}
