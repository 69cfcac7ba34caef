//! Asking the model: the prompt on disk, the call, the answer on disk.

mod arriving;
mod call;
mod partial;
mod quota;

pub(crate) use quota::flag_value;

use std::time::Duration;

use code_commit_engine::{Answered, AskAnswer, Asked, Cause, Event, Problem, Stored, Unanswered};
use code_commit_llm::{CallError, Model, ModelId, Reply, Request, Waited, Watch};
use code_commit_logging::millis;
use code_commit_runner::Cancel;

use crate::Progress;
use crate::ask::quota::{NoAnswer, Patience, Quotas};
use crate::ask::{arriving::Arriving, call::Call, partial::Partial};
use crate::fault::{Fault, with_sources};
use crate::record::{Record, store};
use crate::reserve::Reserve;
use crate::spending::{self, CallSpending, OTHER_MODEL, Spending, now};

/// Settings of the model calls.
#[derive(Debug, Clone, Default)]
pub struct Asking {
    /// Stream the answer. Progress and idle detection need it.
    pub stream: bool,
    /// Chosen by the service if `None`.
    pub temperature: Option<f64>,
    /// Time limit of a whole call, retries included.
    pub call_limit: Option<Duration>,
    /// How long to wait for a quota to be reset before the run ends.
    pub wait: Duration,
    /// What the run may spend.
    pub spending: Spending,
}

impl Asking {
    fn request<'r>(&self, question: &Question<'r>) -> Request<'r> {
        let whole = ("", question.prompt);
        let (system, prompt) = question
            .prompt
            .split_at_checked(question.system)
            .unwrap_or(whole);
        Request {
            prompt,
            stable: question.stable.saturating_sub(system.len()),
            system: Some(system).filter(|system| !system.is_empty()),
            schema: question.schema,
            stream: self.stream,
            temperature: self.temperature,
            time_left: self.call_limit,
            ..Request::default()
        }
    }
}

#[derive(Debug)]
pub(crate) struct Question<'q> {
    pub(crate) round: u32,
    pub(crate) prompt: &'q str,
    /// The number of bytes at its beginning that later prompts repeat.
    pub(crate) stable: usize,
    /// The number of bytes at its beginning that are the system instruction.
    pub(crate) system: usize,
    /// The schema of the answer, if it must be JSON.
    pub(crate) schema: Option<&'q serde_json::Value>,
    pub(crate) files: &'q Files,
}

#[derive(Debug)]
pub(crate) struct Files {
    pub(crate) prompt: String,
    pub(crate) raw: String,
    pub(crate) reply: String,
}

pub(crate) struct Asker<'a> {
    pub(crate) model: &'a dyn Model,
    pub(crate) asking: &'a Asking,
    pub(crate) cancel: &'a Cancel,
}

impl Asker<'_> {
    /// Gives the answer; events during the call go to the record.
    pub(crate) fn ask(
        &self,
        question: &Question<'_>,
        record: &mut Record,
    ) -> Result<AskAnswer, Fault> {
        let Question {
            round,
            prompt,
            files,
            ..
        } = *question;
        if record.folder().redactor().finds_key(prompt) {
            return Err(Fault::KeyInPrompt { round });
        }
        // Stored before limits are checked: a run stopped by one resumes with this prompt.
        let query = store(record, &files.prompt, prompt)?;
        let began = now();
        let mut patience = Patience::new(self.asking.wait);
        loop {
            let mut quotas = Quotas::default();
            let no_answer = match self.ask_in_turn(question, &query.stored, &mut quotas, record)? {
                Ok(Paying {
                    reply,
                    cost_usd,
                    partial,
                }) => {
                    let answer =
                        answered(question, reply, cost_usd, millis(began.elapsed()), record)?;
                    partial.discard(record.folder());
                    return Ok(answer);
                }
                Err(no_answer) => no_answer,
            };
            let cause = self.cause(&no_answer, record);
            let Some(reset) = quotas.first_reset() else {
                return Ok(unanswered(round, cause));
            };
            if !patience.lasts(&reset, self.asking.spending.time_left()) {
                return Ok(unanswered(round, reset.told_in(cause)));
            }
            reset.wait(round, &cause, self.cancel, record)?;
        }
    }

    /// The answer of the first model of the round that has one, and its cost; else why the last one has none.
    fn ask_in_turn(
        &self,
        question: &Question<'_>,
        prompt: &Stored,
        quotas: &mut Quotas,
        record: &mut Record,
    ) -> Result<Result<Paying, NoAnswer>, Fault> {
        let (first, others) = code_commit_llm::choices(self.model, question.round);
        let mut model = first;
        let mut outcome = self.ask_one(model, question, prompt, record)?;
        for next in others {
            let why = match &outcome {
                Err(no_answer) => {
                    quotas.learn(no_answer);
                    no_answer
                        .asks_for_another_model()
                        .then(|| with_sources(no_answer))
                }
                Ok((reply, _)) => reply
                    .finish
                    .asks_for_another_model()
                    .then(|| reply.finish.explain()),
            };
            let Some(why) = why else { break };
            record.warn(passed_over(model.id(), &why, next.id()))?;
            model = next;
            outcome = self.ask_one(model, question, prompt, record)?;
        }
        outcome
            .as_ref()
            .map_or_else(|no_answer| quotas.learn(no_answer), |_| ());
        Ok(outcome.map(|(reply, partial)| {
            let served = reply.served_model.as_deref();
            let cost_usd = self
                .asking
                .spending
                .cost_usd(model.id(), served, &reply.usage);
            Paying {
                reply,
                cost_usd,
                partial,
            }
        }))
    }

    /// One model's answer, or why it gave none.
    fn ask_one(
        &self,
        model: &dyn Model,
        question: &Question<'_>,
        prompt: &Stored,
        record: &mut Record,
    ) -> Result<Result<(Reply, Partial), NoAnswer>, Fault> {
        let (round, spending) = (question.round, &self.asking.spending);
        let mut request = self.asking.request(question);
        let forecast = match spending.allow(model, &mut request, &mut Waiting(self.cancel)) {
            Ok(forecast) => forecast,
            Err(error) => return Ok(Err(NoAnswer::OverLimit(error))),
        };
        let reserve = Reserve::hold(record.folder().path())?;
        let prompt_bytes = question.prompt.len() as u64;
        record.tell(&Progress::AskBegins {
            round,
            prompt_bytes,
            model: model.id().to_string(),
        });
        let other = Some(model.id()).filter(|id| *id != self.model.id());
        record.note(&Event::Asked(Asked {
            round,
            model: other.map(ToString::to_string),
            prompt: prompt.clone(),
            at_most: spending::at_most(&forecast, model.id()),
        }))?;
        let mut call = Call {
            round,
            first: self.model.id(),
            record,
            cancel: self.cancel,
            began: now(),
            is_streamed: request.stream,
            arriving: Arriving::default(),
            failed: None,
            bill: CallSpending {
                spending,
                forecast,
                model: model.id(),
            },
            reserve,
            partial: Partial::of_round(round),
        };
        let answer = model.call(&request, &mut call);
        if let Some(error) = call.failed.take() {
            return Err(error.into());
        }
        let Call { partial, .. } = call;
        match answer {
            Err(CallError::Cancelled) => Err(Fault::Interrupted),
            Err(error) => Ok(Err(NoAnswer::Failed(error))),
            Ok(reply) => Ok(Ok((reply, partial))),
        }
    }

    /// A call that timed out because the run did is reported as the run's limit: a longer `call_limit` would not help.
    fn cause(&self, no_answer: &NoAnswer, record: &Record) -> Cause {
        match no_answer {
            NoAnswer::OverLimit(limit) => spending::cause(limit),
            NoAnswer::Failed(error) => {
                let is_timeout = matches!(error, CallError::Timeout { .. });
                let limit = is_timeout
                    .then(|| self.asking.spending.out_of_time())
                    .flatten();
                limit.map_or_else(|| cause(error, record), |limit| spending::cause(&limit))
            }
        }
    }
}

/// An answer, its cost, and the file with what of it was streamed.
struct Paying {
    reply: Reply,
    cost_usd: Option<f64>,
    partial: Partial,
}

/// The answer's files are on disk before the fact that names them.
fn answered(
    question: &Question<'_>,
    reply: Reply,
    cost_usd: Option<f64>,
    elapsed_ms: u64,
    record: &Record,
) -> Result<AskAnswer, Fault> {
    let folder = record.folder();
    // Nothing is decided from the raw answer: only the text must survive a power cut.
    let stored = folder.store_with(&question.files.raw, |out| reply.write_raw(out))?;
    let Reply {
        text,
        raw,
        finish,
        usage,
        served_model,
        ..
    } = reply;
    // As large as its text, which is copied next.
    drop(raw);
    let held_key = folder.redactor().finds_key(&text);
    Ok(AskAnswer::Answered(Answered {
        round: question.round,
        reply: store(record, &question.files.reply, &text)?,
        raw: stored,
        for_person: Cause::of_finish(&finish),
        finish,
        held_key,
        usage,
        served_model,
        cost_usd,
        elapsed_ms,
    }))
}

/// Which model did not answer, why, and who is asked instead.
fn passed_over(model: &ModelId, why: &str, next: &ModelId) -> Problem {
    let message = format!("{model} gave no reply ({why}); {next} is asked instead");
    Problem::new(OTHER_MODEL, message)
}

fn unanswered(round: u32, cause: Cause) -> AskAnswer {
    AskAnswer::Unanswered(Unanswered { round, cause })
}

fn cause(error: &CallError, record: &Record) -> Cause {
    let redact = |text: &str| record.folder().redactor().redact(text).into_owned();
    Cause {
        code: error.code().to_owned(),
        message: redact(&with_sources(error)),
        remedy: Some(redact(error.hint())),
    }
}

/// Makes a small request to the service cancellable, without reporting it.
struct Waiting<'c>(&'c Cancel);

impl Watch for Waiting<'_> {
    fn cancelled(&self) -> bool {
        self.0.is_set()
    }

    fn wait(&mut self, duration: Duration) -> Waited {
        if self.0.wait(duration) {
            Waited::Cancelled
        } else {
            Waited::Through
        }
    }
}

#[cfg(test)]
mod tests;
