//! A model that repeats the replies of an earlier run in order, whatever the prompts are.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::{Attempt, CallError, Model, ModelId, Progress, Reply, Request, Spend, Watch};

/// The replies of a run. The caller knows where they are stored.
#[derive(Debug)]
pub struct Recorded {
    id: ModelId,
    replies: Vec<Reply>,
    next: AtomicUsize,
}

impl Recorded {
    /// The replies of the run named by `id`, in order.
    pub fn new(id: ModelId, replies: Vec<Reply>) -> Self {
        Self {
            id,
            replies,
            next: AtomicUsize::new(0),
        }
    }
}

impl Model for Recorded {
    fn id(&self) -> &ModelId {
        &self.id
    }

    fn pass_over(&self, attempts: usize) {
        self.next.fetch_add(attempts, Ordering::Relaxed);
    }

    fn call(&self, request: &Request<'_>, watch: &mut dyn Watch) -> Result<Reply, CallError> {
        let at = self.next.fetch_add(1, Ordering::Relaxed);
        let reply = self.replies.get(at).ok_or(CallError::NothingLeft {
            given: self.replies.len(),
        })?;
        watch.progress(Progress::Connected);
        if request.stream {
            watch.progress(Progress::Text(&reply.text));
        }
        let mut attempt = Attempt {
            number: 1,
            ..Attempt::default()
        };
        attempt.note_reply(reply);
        // It was paid for when it was recorded.
        attempt.spend = Spend::Nothing;
        watch.attempt(&attempt);
        Ok(Reply {
            attempts: 1,
            ..reply.clone()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Blind;

    #[test]
    fn replies_come_in_order_and_then_no_more() {
        let id = "recorded/2026-11-21-10-00-00-commit".parse().unwrap();
        let model = Recorded::new(
            id,
            vec![Reply::of_text("one".into()), Reply::of_text("two".into())],
        );
        let ask = || model.call(&Request::default(), &mut Blind);
        assert_eq!(ask().unwrap().text, "one");
        assert_eq!(ask().unwrap().text, "two");
        assert_eq!(ask().unwrap_err().to_string(), "no reply is left of 2");
    }
}
