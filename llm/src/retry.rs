//! When to retry a failed attempt, and how long to wait first.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use crate::{Advice, Attempt, CallError, Finish, Progress, Reply, Spend, Usage, Waited, Watch};

/// The retry rules. The defaults follow the services' own clients, without their surprises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// Attempts of one call, the first included.
    pub max_tries: u32,
    /// Attempts that were, or may have been, paid for but brought nothing useful.
    pub max_wasted: u32,
    /// The maximum number of further requests for a reply that has to be continued.
    pub max_continuations: u32,
    /// The wait after the first failure; it doubles from there.
    pub first_wait: Duration,
    /// The longest wait that we choose ourselves.
    pub longest_wait: Duration,
    /// If a service asks us to wait longer than this, we give up.
    pub longest_hint: Duration,
    /// The seed for jitter: the same seed leads to the same waits.
    pub seed: u64,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            max_tries: 5,
            max_wasted: 3,
            max_continuations: 8,
            first_wait: Duration::from_secs(1),
            longest_wait: Duration::from_mins(1),
            longest_hint: Duration::from_mins(2),
            seed: 0,
        }
    }
}

impl Retry {
    /// Seeds the rules at random, so that clients that failed together do not retry
    /// together.
    #[must_use]
    pub fn seeded_at_random(self) -> Self {
        // The standard library's hash keys are random and differ in every process.
        Self {
            seed: RandomState::new().hash_one(()),
            ..self
        }
    }

    /// The wait after failure number `failures` (from 1): the longer of the service's hint and 1,
    /// 2, 4 … s, plus up to a quarter of it. `None` if the hint is too long.
    pub fn wait(&self, failures: u32, hint: Option<Duration>) -> Option<Duration> {
        if hint.is_some_and(|hint| hint > self.longest_hint) {
            return None;
        }
        let doubled = self.first_wait.saturating_mul(
            1_u32
                .checked_shl(failures.saturating_sub(1))
                .unwrap_or(u32::MAX),
        );
        let wait = doubled.min(self.longest_wait).max(hint.unwrap_or_default());
        let thousandths = u32::try_from(mix(self.seed, failures) % 250).unwrap_or_default();
        Some(wait + wait / 1000 * thousandths)
    }
}

/// `SplitMix64`: good enough to spread out the retries of clients that failed together.
fn mix(seed: u64, number: u32) -> u64 {
    let mut z = seed.wrapping_add(u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The result of one attempt.
#[derive(Debug)]
pub struct Tried {
    /// The answer, or why there is none.
    pub outcome: Result<Answer, CallError>,
    /// Its row in the journal, except for number and wait.
    pub attempt: Attempt,
    /// The service refused something that the next attempt does without, so that it is worth one.
    pub is_simplified: bool,
}

/// One attempt's answer.
#[derive(Debug)]
pub struct Answer {
    /// The answer; `usage` is that of this attempt.
    pub reply: Reply,
    /// The token for requesting the rest from the service.
    pub continuation: Option<String>,
}

/// The parameters of one attempt.
#[derive(Debug, Clone, Copy)]
pub struct Try<'a> {
    /// What the caller has left for it.
    pub time_left: Option<Duration>,
    /// The token of the answer to continue.
    pub continuation: Option<&'a str>,
    /// The part of that reply that has arrived so far.
    pub text: &'a str,
}

/// Calls `attempt` until it returns a reply, or an error that a retry cannot fix. Time is measured
/// by what attempts report plus the waits, so that nothing here reads a clock.
pub fn with_retry(
    retry: &Retry,
    time_left: Option<Duration>,
    watch: &mut dyn Watch,
    mut attempt: impl FnMut(Try<'_>, &mut dyn Watch) -> Tried,
) -> Result<Reply, CallError> {
    let mut call = Call {
        time_left,
        ..Call::new(retry)
    };
    loop {
        let next = call.next();
        let tried = attempt(next, watch);
        match call.judge(tried, watch) {
            Verdict::Done(reply) => return Ok(*reply),
            Verdict::Failed(error) => return Err(error),
            Verdict::Again(wait) => call.pause(wait, watch)?,
        }
    }
}

/// The state of a call between its attempts.
struct Call<'r> {
    retry: &'r Retry,
    time_left: Option<Duration>,
    elapsed: Duration,
    attempts: u32,
    failures: u32,
    wasted: u32,
    continuations: u32,
    continuation: Option<String>,
    text: String,
    /// The last part of a continued reply, without what is already in `text` and `usage`.
    part: Option<Reply>,
    usage: Usage,
}

enum Verdict {
    Done(Box<Reply>),
    Failed(CallError),
    Again(Duration),
}

impl<'r> Call<'r> {
    fn new(retry: &'r Retry) -> Self {
        Self {
            retry,
            time_left: None,
            elapsed: Duration::ZERO,
            attempts: 0,
            failures: 0,
            wasted: 0,
            continuations: 0,
            continuation: None,
            text: String::new(),
            part: None,
            usage: Usage::default(),
        }
    }

    fn next(&self) -> Try<'_> {
        Try {
            time_left: self.remaining(),
            continuation: self.continuation.as_deref(),
            text: &self.text,
        }
    }

    fn remaining(&self) -> Option<Duration> {
        self.time_left.map(|left| left.saturating_sub(self.elapsed))
    }

    fn judge(&mut self, tried: Tried, watch: &mut dyn Watch) -> Verdict {
        let Tried {
            outcome,
            mut attempt,
            is_simplified,
        } = tried;
        self.attempts += 1;
        self.elapsed += Duration::from_millis(attempt.duration_ms);
        attempt.number = self.attempts;
        let wait = match &outcome {
            Ok(answer) => self.wait_after_answer(answer),
            Err(_) if is_simplified => Some(Duration::ZERO),
            Err(error) => self.wait_after_failure(error, attempt.spend),
        };
        let wait = wait.filter(|_| watch.may_retry(&attempt));
        attempt.wait_ms = wait.and_then(|wait| u64::try_from(wait.as_millis()).ok());
        watch.attempt(&attempt);
        match (wait, outcome) {
            (Some(wait), Ok(answer)) => self.keep(answer, wait),
            (Some(wait), Err(_)) => Verdict::Again(wait),
            (None, Ok(answer)) => Verdict::Done(Box::new(self.complete(answer.reply))),
            (None, Err(error)) => self.give_up(error),
        }
    }

    /// How long to wait for the rest of an answer, or for a better one; `None` if it is good
    /// enough, or cannot get better.
    fn wait_after_answer(&mut self, answer: &Answer) -> Option<Duration> {
        if answer.continuation.is_some() {
            self.continuations += 1;
            let in_time = self.remaining().is_none_or(|left| !left.is_zero());
            return (in_time && self.continuations <= self.retry.max_continuations)
                .then_some(Duration::ZERO);
        }
        if answer.reply.finish.advice() != Advice::Retry || !self.text.is_empty() {
            return None;
        }
        self.failures += 1;
        self.wasted += 1;
        self.wait(None)
    }

    /// `spend` is that of the attempt: an error in the middle of a stream may have been paid for,
    /// the same error instead of a stream was not.
    fn wait_after_failure(&mut self, error: &CallError, spend: Spend) -> Option<Duration> {
        self.failures += 1;
        self.wasted += u32::from(spend == Spend::Unknown);
        if error.is_retryable() {
            self.wait(error.retry_after())
        } else {
            None
        }
    }

    /// A reply that will be continued is kept. One that will be replaced is not, but it was paid
    /// for.
    fn keep(&mut self, answer: Answer, wait: Duration) -> Verdict {
        self.usage += answer.reply.usage;
        if answer.continuation.is_some() {
            self.text.push_str(&answer.reply.text);
            self.continuation = answer.continuation;
            self.part = Some(Reply {
                text: String::new(),
                usage: Usage::default(),
                ..answer.reply
            });
        }
        Verdict::Again(wait)
    }

    /// If the time is up in the middle of a reply, the part that was paid for is not discarded.
    fn give_up(&mut self, error: CallError) -> Verdict {
        match self.part.take() {
            Some(part) if matches!(error, CallError::Timeout { .. }) && !self.text.is_empty() => {
                Verdict::Done(Box::new(self.complete(part)))
            }
            _ => Verdict::Failed(error),
        }
    }

    /// Combines the parts from earlier attempts with the last reply.
    fn complete(&mut self, mut reply: Reply) -> Reply {
        reply.attempts = self.attempts;
        reply.usage += self.usage;
        if !self.text.is_empty() {
            self.text.push_str(&reply.text);
            reply.text = std::mem::take(&mut self.text);
            if reply.finish == Finish::Empty {
                // The service's reason for the end applies to the whole reply.
                reply.finish = Finish::Complete;
            }
        }
        reply
    }

    /// The wait, if there is a try left and the wait ends within the caller's time.
    fn wait(&self, hint: Option<Duration>) -> Option<Duration> {
        if self.failures >= self.retry.max_tries || self.wasted >= self.retry.max_wasted {
            return None;
        }
        let wait = self.retry.wait(self.failures, hint)?;
        self.remaining()
            .is_none_or(|left| wait < left)
            .then_some(wait)
    }

    fn pause(&mut self, wait: Duration, watch: &mut dyn Watch) -> Result<(), CallError> {
        watch.progress(Progress::Restarted);
        if wait.is_zero() {
            return Ok(());
        }
        self.elapsed += wait;
        match watch.wait(wait) {
            Waited::Through => Ok(()),
            Waited::Cancelled => Err(CallError::Cancelled),
        }
    }
}

#[cfg(test)]
mod tests;
