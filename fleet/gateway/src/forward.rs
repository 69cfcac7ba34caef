//! A call of a vendor, passed through as it comes.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::Bytes;
use code_commit_fleet_store::Outcome;
use code_commit_llm::http::{Agent, Exchange, Head, Limits, Network, Next, Post};
use code_commit_llm::{Blind, CallError, Dialect, Request, Spend, Try, Waited, Watch, read_answer};
use tokio::sync::{mpsc, oneshot};

use crate::ask::Question;
use crate::metering;
use crate::service::Service;

/// The largest answer.
const LARGEST: u64 = 64 << 20;
/// Of an error's body; the important part is at the beginning.
const LONGEST_ERROR: usize = 1 << 20;

/// HTTP agents without a call. An agent makes one call at a time, because one that breaks off closes all of its connections.
#[derive(Debug, Default)]
pub(crate) struct Agents(Mutex<Vec<Agent>>);

impl Agents {
    fn take(&self) -> Agent {
        let idle = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        idle.unwrap_or_else(|| {
            Agent::new(
                Network::default(),
                Limits {
                    body: LARGEST,
                    ..Limits::default()
                },
            )
        })
    }

    fn keep(&self, agent: Agent) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(agent);
    }
}

/// A part of an answer's body.
#[derive(Debug)]
pub(crate) enum Piece {
    Bytes(Bytes),
    /// The body is whole.
    End,
    /// Nothing follows, and not because the body is whole.
    Cut,
}

/// Where the pieces of an answer go, as they come. The listener may be gone; the answer is still paid for.
pub(crate) type Relay = mpsc::UnboundedSender<Piece>;

/// Receives status and headers, or the reason why no answer begins.
pub(crate) type Begun = oneshot::Sender<Result<Head, CallError>>;

/// How a call ended.
pub(crate) struct Ended {
    pub(crate) outcome: Outcome,
    /// Why it failed, if the service said so.
    pub(crate) failure: Option<CallError>,
    /// The body is not whole.
    pub(crate) is_cut: bool,
}

/// A call of a vendor.
pub(crate) struct Call {
    pub(crate) service: Service,
    pub(crate) question: Question,
    /// Path and query.
    pub(crate) target: String,
    pub(crate) body: Arc<Vec<u8>>,
}

/// Makes the call. Blocks until the answer has ended, whether or not anybody waits for it.
pub(crate) fn forward(agents: &Agents, call: &Call, relay: &Relay, head: Begun) -> Ended {
    let agent = agents.take();
    let ended = exchange(&agent, call, relay, head);
    agents.keep(agent);
    ended
}

fn exchange(agent: &Agent, call: &Call, relay: &Relay, begun: Begun) -> Ended {
    let Call {
        service,
        question,
        target,
        body,
    } = call;
    let dialect = service.dialect(question.format, &question.model);
    let post = dialect.post(&Request::default(), None);
    // The product's own headers and key, around the program's own body.
    let post = post.map(|post| Post {
        url: service.base.join(target),
        body: Arc::clone(body),
        ..post
    });
    let mut exchange = match post.and_then(|post| agent.send(&post, None, &mut Blind)) {
        Ok(exchange) => exchange,
        Err(error) => {
            let outcome = if error.spend() == Spend::Nothing {
                refused(&error)
            } else {
                Outcome::Unknown
            };
            // The program may be gone.
            let _ = begun.send(Err(error));
            return Ended {
                outcome,
                failure: None,
                is_cut: true,
            };
        }
    };
    let head = exchange.head.clone();
    let _ = begun.send(Ok(head.clone()));
    if head.status != 200 {
        let body = exchange
            .read_beginning(LONGEST_ERROR, &mut Blind)
            .unwrap_or_default();
        let failure = dialect.failure(&head, &body);
        let _ = relay.send(Piece::Bytes(body.into()));
        return Ended {
            outcome: refused(&failure),
            failure: Some(failure),
            is_cut: false,
        };
    }
    let mut passing = Passing {
        relay,
        body: Vec::new(),
    };
    if question.is_free {
        let is_cut = exchange.read_to_end(LARGEST, &mut passing).is_err();
        return Ended {
            outcome: metering::nothing(),
            failure: None,
            is_cut,
        };
    }
    answer(&mut exchange, question, &*dialect, passing)
}

/// Whether another request for this model could fare better.
fn refused(error: &CallError) -> Outcome {
    let is_its_own = matches!(
        error,
        CallError::BadRequest { .. } | CallError::TooLarge { .. } | CallError::NotFound { .. }
    );
    if is_its_own {
        Outcome::Failed
    } else {
        Outcome::OutOfOrder
    }
}

/// Reads an answer as the client does that it is passed on to: what is of use to the one must be kept by the other.
fn answer(
    exchange: &mut Exchange<'_>,
    question: &Question,
    dialect: &dyn Dialect,
    mut passing: Passing<'_>,
) -> Ended {
    let request = Request {
        max_output_tokens: question.max_output,
        ..Request::default()
    };
    let first = Try {
        time_left: None,
        continuation: None,
        text: "",
    };
    match read_answer(exchange, dialect, &request, first, &mut passing) {
        Ok(answer) => {
            let content_type = exchange.head.header("content-type").unwrap_or_default();
            let outcome = metering::outcome(question, content_type, passing.body, &answer.reply);
            Ended {
                outcome,
                failure: None,
                is_cut: false,
            }
        }
        // The service did work, and nobody knows how much.
        Err(_) => {
            let is_whole = matches!(
                exchange.next(Some(Duration::ZERO), &mut passing),
                Ok(Next::End)
            );
            Ended {
                outcome: Outcome::Unknown,
                failure: None,
                is_cut: !is_whole,
            }
        }
    }
}

/// Passes a body on as it comes, and collects it.
struct Passing<'r> {
    relay: &'r Relay,
    body: Vec<u8>,
}

impl Watch for Passing<'_> {
    fn bytes(&mut self, bytes: &[u8]) {
        self.body.extend_from_slice(bytes);
        let _ = self.relay.send(Piece::Bytes(Bytes::copy_from_slice(bytes)));
    }

    /// Nothing is tried again here.
    fn wait(&mut self, _: Duration) -> Waited {
        Waited::Through
    }
}
