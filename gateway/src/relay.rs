//! Calls of vendors, passed through as they come.

use std::io;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderName, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use code_commit_llm::http::{Agent, Exchange, Head, Post};
use code_commit_llm::{
    Advice, Blind, CallError, Dialect, Prices, Request, Spend, Try, Waited, Watch, read_answer,
    read_failure,
};
use futures_util::stream;
use tokio::sync::{mpsc, oneshot};

use crate::money::Nanodollars;
use crate::question::Question;
use crate::vendor::Vendor;

/// The largest answer.
pub(crate) const LARGEST: u64 = 64 << 20;
/// The slowest model says nothing for this long.
pub(crate) const SILENCE: Duration = Duration::from_mins(15);
/// Of an error's body; the important part is at the beginning.
const LONGEST_ERROR: usize = 1 << 20;

/// A call of a vendor.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) vendor: Vendor,
    pub(crate) question: Question,
    /// Path and query.
    pub(crate) target: String,
    pub(crate) body: Vec<u8>,
}

/// A kept answer.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) content_type: String,
    pub(crate) body: Vec<u8>,
}

/// How a call ended.
#[derive(Debug)]
pub(crate) enum Outcome {
    Answered {
        /// `None` if the answer is of no use: the program asks again, and must not get the same one.
        kept: Option<Kept>,
        /// `None` if the vendor did not say, or the price is unknown; the reservation is counted then.
        cost: Option<Nanodollars>,
        input_tokens: Option<u64>,
        output_tokens: Option<u64>,
    },
    /// The vendor refused it, so it charges nothing.
    Failed,
    /// It broke off: the reservation counts as spent.
    Unknown,
}

/// How a call ended, and what of its answer has not been passed on yet.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) outcome: Outcome,
    /// The vendor asks us to call this model no more for a while.
    pub(crate) retry_after: Option<Duration>,
    pub(crate) rest: Vec<u8>,
    /// The body is not whole.
    pub(crate) is_cut: bool,
}

/// A part of an answer's body.
#[derive(Debug)]
pub(crate) enum Piece {
    Bytes(Bytes),
    /// Nothing follows, and not because the body is whole.
    Cut,
}

/// Where the pieces of an answer go, as they come. The listener may be gone; the answer is still paid for.
pub(crate) type Relay = mpsc::UnboundedSender<Piece>;
/// Receives status and headers, or the reason why no answer begins.
pub(crate) type Begun = oneshot::Sender<Result<Head, CallError>>;

impl Ended {
    pub(crate) fn cut(outcome: Outcome) -> Self {
        Self {
            outcome,
            retry_after: None,
            rest: Vec::new(),
            is_cut: true,
        }
    }
}

/// Makes the call. Blocks until the answer has ended, whether or not anybody waits for it. The end of a whole answer is not passed
/// on: it is the caller's, once the answer is stored.
pub(crate) fn forward(
    agent: &Agent,
    prices: &Prices,
    call: &Call,
    relay: Relay,
    begun: Begun,
) -> Ended {
    let dialect = call
        .vendor
        .dialect(call.question.format, &call.question.model);
    // The product's own headers and key, around the program's own body.
    let post = dialect.post(&Request::default(), None).map(|post| Post {
        url: call.vendor.base.join(&call.target),
        body: call.body.clone(),
        ..post
    });
    let mut exchange = match post.and_then(|post| agent.send(post, None, &mut Blind)) {
        Ok(exchange) => exchange,
        Err(error) => {
            let outcome = match error.spend() {
                Spend::Nothing => Outcome::Failed,
                Spend::Usage | Spend::Unknown => Outcome::Unknown,
            };
            // The program may be gone.
            let _ = begun.send(Err(error));
            return Ended::cut(outcome);
        }
    };
    let head = exchange.head.clone();
    let is_refused = head.status != 200;
    let _ = begun.send(Ok(head.clone()));
    let mut passing = Passing {
        relay,
        body: Vec::new(),
        passed: 0,
    };
    if is_refused {
        let rest = exchange
            .read_beginning(LONGEST_ERROR, &mut Blind)
            .unwrap_or_default();
        let error = read_failure(&head, &rest, dialect.service());
        // A gateway before the service may have given up while it worked.
        let is_free = error.spend() == Spend::Nothing;
        return Ended {
            retry_after: error.retry_after(),
            outcome: if is_free {
                Outcome::Failed
            } else {
                Outcome::Unknown
            },
            rest,
            is_cut: false,
        };
    }
    let (outcome, is_cut) = if call.question.is_free {
        let read = exchange.read_to_end(LARGEST, &mut passing);
        (Outcome::Failed, read.is_err())
    } else {
        answer(
            &mut exchange,
            &call.question,
            prices,
            &*dialect,
            &mut passing,
        )
    };
    Ended {
        outcome,
        retry_after: None,
        rest: passing.rest(),
        is_cut,
    }
}

/// Reads an answer as the client does that it is passed on to: what is of use to the one must be kept by the other.
fn answer(
    exchange: &mut Exchange,
    question: &Question,
    prices: &Prices,
    dialect: &dyn Dialect,
    passing: &mut Passing,
) -> (Outcome, bool) {
    let request = Request {
        max_output_tokens: question.max_output,
        ..Request::default()
    };
    let first = Try {
        time_left: None,
        continuation: None,
        text: "",
    };
    match read_answer(exchange, dialect, &request, first, passing) {
        Ok(answer) => {
            let reply = &answer.reply;
            let content_type = exchange.head.header("content-type").unwrap_or_default();
            let kept = (reply.finish.advice() != Advice::Retry).then(|| Kept {
                content_type: content_type.to_owned(),
                body: passing.body.clone(),
            });
            let outcome = Outcome::Answered {
                kept,
                cost: question.cost(prices, reply.served_model.as_deref(), &reply.usage),
                input_tokens: reply.usage.input_tokens,
                output_tokens: reply.usage.output_tokens,
            };
            (outcome, false)
        }
        // The vendor did work, and nobody knows how much.
        Err(_) => {
            // The end may be all that has not come yet.
            let _ = exchange.next(Some(Duration::ZERO), passing);
            (Outcome::Unknown, !exchange.has_ended())
        }
    }
}

/// Passes a body on as it comes, and collects it. Its end stays here.
struct Passing {
    relay: Relay,
    body: Vec<u8>,
    passed: usize,
}

impl Passing {
    fn rest(&self) -> Vec<u8> {
        self.body.get(self.passed..).unwrap_or_default().to_vec()
    }
}

impl Watch for Passing {
    fn bytes(&mut self, bytes: &[u8]) {
        self.body.extend_from_slice(bytes);
        let end = end_of_known(&self.body, self.passed);
        if let Some(piece) = self
            .body
            .get(self.passed..end)
            .filter(|piece| !piece.is_empty())
        {
            let _ = self.relay.send(Piece::Bytes(Bytes::copy_from_slice(piece)));
            self.passed = end;
        }
    }

    /// Nothing is tried again here.
    fn wait(&mut self, _: Duration) -> Waited {
        Waited::Through
    }
}

/// Up to where a body may be passed on before it is stored: a stream without its last event, a message without its last sign.
fn end_of_known(body: &[u8], passed: usize) -> usize {
    const DATA: &[u8] = b"data:";
    // An event may have begun in an earlier piece.
    let from = passed.saturating_sub(DATA.len());
    let unknown = body.get(from..).unwrap_or_default();
    let last_event = unknown
        .windows(DATA.len())
        .rposition(|window| window == DATA);
    let last_sign = unknown.iter().rposition(|byte| !byte.is_ascii_whitespace());
    let is_stream = body.trim_ascii_start().first() != Some(&b'{');
    let end = if is_stream { last_event } else { last_sign };
    from.saturating_add(end.unwrap_or(0)).max(passed)
}

/// An answer as it comes.
pub(crate) fn response(head: &Head, pieces: mpsc::UnboundedReceiver<Piece>) -> Response {
    let status = StatusCode::from_u16(head.status).unwrap_or(StatusCode::BAD_GATEWAY);
    let body = stream::unfold(pieces, |mut pieces| async move {
        let piece = match pieces.recv().await? {
            Piece::Bytes(bytes) => Ok(bytes),
            Piece::Cut => Err(io::Error::other("the vendor's answer broke off")),
        };
        Some((piece, pieces))
    });
    let mut response = (status, Body::from_stream(body)).into_response();
    // Those that clients of the product read.
    let names = [
        header::CONTENT_TYPE,
        header::RETRY_AFTER,
        HeaderName::from_static("retry-after-ms"),
    ];
    for name in names {
        if let Some(value) = head
            .header(name.as_str())
            .and_then(|value| value.parse().ok())
        {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_event_of_a_stream_and_the_last_sign_of_a_message_are_held_back() {
        let known = |pieces: &[&str]| {
            let (mut body, mut passed) = (Vec::new(), 0);
            for piece in pieces {
                body.extend_from_slice(piece.as_bytes());
                passed = end_of_known(&body, passed);
            }
            String::from_utf8(body[..passed].to_vec()).unwrap()
        };
        assert_eq!(
            known(&["data: {\"a\":1}\n\n", "data: [DONE]\n\n"]),
            "data: {\"a\":1}\n\n"
        );
        assert_eq!(
            known(&["data: 1\n\nda", "ta: 2", "\n\n", "\n"]),
            "data: 1\n\n"
        );
        assert_eq!(known(&["{\"a\":", "1}", "\r\n"]), "{\"a\":1");
        assert_eq!(known(&["", "{"]), "");
    }
}
