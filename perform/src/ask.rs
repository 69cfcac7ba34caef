//! Asking the model: the prompt on disk, the call, the answer on disk.

use std::time::{Duration, Instant};

use engine::{Answered, AskAnswer, Asked, Attempted, Cause, Note, Problem, Unanswered};
use guard::Guard;
use llm::{Attempt, CallError, Model, ModelId, Progress, Reply, Request, Waited, Watch};
use logging::{Durability, millis};
use parser::partial::Openers;
use runner::Cancel;

use crate::Event;
use crate::fault::{Fault, with_sources};
use crate::paid::{Again, Paid};
use crate::record::{Record, RecordError, store, to_engine};
use crate::reserve::Reserve;
use crate::spending::{self, CallSpending, Spending};
use crate::translate;

/// Settings of the model calls.
#[derive(Debug, Clone, Default)]
pub struct Asking {
    /// Stream the answer. Progress and idle detection need it.
    pub stream: bool,
    /// Chosen by the service if `None`.
    pub temperature: Option<f64>,
    /// Time limit of a whole call, retries included.
    pub call_limit: Option<Duration>,
    /// End a streamed answer as soon as it names a path that is certain to be refused.
    pub early_stop: bool,
    /// What the run may spend.
    pub spending: Spending,
    /// Answers that need not be paid for again.
    pub paid: Paid,
}

impl Asking {
    fn request<'r>(&self, question: &Question<'r>) -> Request<'r> {
        Request {
            prompt: question.prompt,
            stable: question.stable,
            schema: question.schema,
            stream: self.stream,
            temperature: self.temperature,
            time_left: self.call_limit,
            ..Request::default()
        }
    }
}

/// One question to the model.
#[derive(Debug)]
pub(crate) struct Question<'q> {
    pub(crate) round: u32,
    pub(crate) prompt: &'q str,
    /// The number of bytes at its beginning that later prompts repeat.
    pub(crate) stable: usize,
    /// The schema of the answer, if it must be JSON.
    pub(crate) schema: Option<&'q serde_json::Value>,
    /// The files for prompt and answer.
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
    /// Ends a streamed answer that names a path that this guard is certain to refuse.
    pub(crate) forbid: Option<&'a Guard>,
}

impl Asker<'_> {
    /// Gives the answer; events during the call go to the record.
    pub(crate) fn ask(&self, question: &Question<'_>, record: &mut Record<'_>) -> Result<AskAnswer, Fault> {
        let Question { round, prompt, files, .. } = *question;
        if record.folder().redactor().finds_key(prompt) {
            return Err(Fault::KeyInPrompt { round });
        }
        // Stored before limits are checked: a run stopped by one resumes with this prompt.
        let query = store(record, &files.prompt, prompt, Durability::Written)?;
        if let Some(again) = self.asking.paid.take(prompt) {
            record.note(&Note::Asked(Asked { round, prompt: query.stored }))?;
            // A file of answers goes on behind it.
            self.model.pass_over(1);
            return answered_before(question, again, record);
        }
        let (spending, began) = (&self.asking.spending, now());
        let mut asked = Some(Note::Asked(Asked { round, prompt: query.stored }));
        let mut models = llm::choices(self.model, round).into_iter().peekable();
        while let Some(model) = models.next() {
            let mut request = self.asking.request(question);
            let forecast = match spending.allow(model, &mut request, &mut Waiting(self.cancel)) {
                Ok(forecast) => forecast,
                Err(error) => return Ok(unanswered(round, spending::cause(&error))),
            };
            let reserve = Reserve::hold(record.folder().path())?;
            let prompt_bytes = prompt.len() as u64;
            record.tell(&Event::AskBegins { round, prompt_bytes, model: model.id().to_string() });
            asked.take().map_or(Ok(()), |asked| record.note(&asked))?;
            let bill = CallSpending { spending, forecast, model: model.id() };
            match self.call(model, &request, bill, round, reserve, record)? {
                Ok(reply) => {
                    let cost_usd = spending.cost_usd(model.id(), reply.served_model.as_deref(), &reply.usage);
                    return answered(question, reply, cost_usd, millis(began.elapsed()), record);
                }
                Err(CallError::Cancelled) => return Err(Fault::Interrupted),
                Err(error) => match models.peek() {
                    Some(next) if error.asks_for_another_model() => {
                        record.warn(passed_over(model.id(), &error, next.id()))?;
                    }
                    _ => return Ok(unanswered(round, self.cause(&error, record))),
                },
            }
        }
        // There is always a model, and the last one returns.
        Err(Fault::Interrupted)
    }

    /// One model's answer, or why it gave none.
    fn call(
        &self,
        model: &dyn Model,
        request: &Request<'_>,
        bill: CallSpending<'_>,
        round: u32,
        reserve: Reserve,
        record: &mut Record<'_>,
    ) -> Result<Result<Reply, CallError>, Fault> {
        let (first, openers, forbid) = (self.model.id(), Openers::default(), self.forbid);
        let (cancel, began) = (self.cancel, now());
        let mut call = Call {
            round,
            first,
            record,
            cancel,
            began,
            forbid,
            openers,
            is_streamed: request.stream,
            has_text: false,
            failed: None,
            bill,
            reserve,
        };
        let answer = model.call(request, &mut call);
        call.failed.take().map_or(Ok(answer), |error| Err(error.into()))
    }

    /// A call that timed out because the run did is reported as the run's limit: `--call-limit` would not help.
    fn cause(&self, error: &CallError, record: &Record<'_>) -> Cause {
        let is_timeout = matches!(error, CallError::Timeout { .. });
        let limit = is_timeout.then(|| self.asking.spending.out_of_time()).flatten();
        limit.map_or_else(|| cause(error, record), |limit| spending::cause(&limit))
    }
}

/// The answer's files are on disk before the fact that names them.
fn answered(
    question: &Question<'_>,
    reply: Reply,
    cost_usd: Option<f64>,
    elapsed_ms: u64,
    record: &Record<'_>,
) -> Result<AskAnswer, Fault> {
    let folder = record.folder();
    // Nothing is decided from the raw answer: only the text must survive a power cut.
    let stored = folder.store_with(&question.files.raw, Durability::Written, |out| reply.write_raw(out))?;
    let Reply { text, raw, finish, usage, served_model, .. } = reply;
    // As large as its text, which is copied next.
    drop(raw);
    let held_key = folder.redactor().finds_key(&text);
    let (finish, for_person) = translate::finish(&finish);
    Ok(AskAnswer::Answered(Answered {
        round: question.round,
        reply: store(record, &question.files.reply, &text, Durability::Synced)?,
        raw: to_engine(stored),
        finish,
        for_person,
        held_key,
        usage: translate::usage(usage),
        served_model,
        cost_usd,
        elapsed_ms,
    }))
}

/// Which model did not answer, why, and who is asked instead.
fn passed_over(model: &ModelId, error: &CallError, next: &ModelId) -> Problem {
    let message = format!("{model} gave no answer ({}); {next} is asked instead", with_sources(error));
    Problem { code: "other-model".to_owned(), path: None, line: None, message }
}

/// Copies the answer: the other record may be removed.
fn answered_before(question: &Question<'_>, again: Again, record: &Record<'_>) -> Result<AskAnswer, Fault> {
    let Again { answered, text, mut raw } = again;
    let folder = record.folder();
    let raw = folder
        .store_with(&question.files.raw, Durability::Written, |out| std::io::copy(&mut raw, out).map(drop))?;
    Ok(AskAnswer::Answered(Answered {
        round: question.round,
        reply: store(record, &question.files.reply, &text, Durability::Synced)?,
        raw: to_engine(raw),
        held_key: answered.held_key || folder.redactor().finds_key(&text),
        ..answered
    }))
}

fn unanswered(round: u32, cause: Cause) -> AskAnswer {
    AskAnswer::Unanswered(Unanswered { round, cause })
}

fn cause(error: &CallError, record: &Record<'_>) -> Cause {
    let redact = |text: &str| record.folder().redactor().redact(text).into_owned();
    Cause {
        code: error.code().to_owned(),
        message: redact(&with_sources(error)),
        remedy: Some(redact(error.hint())),
    }
}

/// What a call reports while it runs.
struct Call<'c, 'o> {
    round: u32,
    /// The first model of the run.
    first: &'c ModelId,
    record: &'c mut Record<'o>,
    cancel: &'c Cancel,
    began: Instant,
    forbid: Option<&'c Guard>,
    openers: Openers,
    is_streamed: bool,
    /// Text of the answer has arrived.
    has_text: bool,
    /// The record could not be kept; this stops the run, not the call.
    failed: Option<RecordError>,
    bill: CallSpending<'c>,
    /// Until the answer is written.
    reserve: Reserve,
}

impl Watch for Call<'_, '_> {
    fn progress(&mut self, progress: Progress<'_>) {
        match progress {
            Progress::Bytes(bytes) => {
                let (round, elapsed) = (self.round, self.began.elapsed());
                let is_thinking = self.is_streamed && !self.has_text;
                self.record.tell(&Event::Receiving { round, elapsed, bytes, is_thinking });
            }
            Progress::Text(_) => self.has_text = true,
            Progress::Restarted => {
                self.openers = Openers::default();
                self.has_text = false;
            }
            Progress::Connected | _ => {}
        }
    }

    fn may_retry(&mut self, attempt: &Attempt) -> bool {
        self.bill.allows_another(attempt)
    }

    fn attempt(&mut self, attempt: &Attempt) {
        let model = Some(self.bill.model).filter(|model| *model != self.first);
        let attempt = &Attempt { model: model.map(ToString::to_string), ..attempt.clone() };
        self.bill.add(attempt);
        if let Some(wait) = attempt.wait_ms {
            let reason = attempt.message.clone().unwrap_or_default();
            let reason = self.record.folder().redactor().redact(&reason).into_owned();
            self.record.tell(&Event::Waiting {
                round: self.round,
                wait: Duration::from_millis(wait),
                reason,
            });
        }
        // After a failure nothing more is noted, so that a resumed run counts only what the record holds.
        if self.failed.is_none() {
            self.reserve.give_a_line();
            let attempt = serde_json::to_value(attempt).unwrap_or_default();
            let note = Note::Attempted(Attempted { round: self.round, attempt });
            self.failed = self.record.note(&note).err();
        }
    }

    fn enough(&mut self, text_so_far: &str) -> bool {
        let Some(guard) = self.forbid else { return false };
        self.openers.read(text_so_far).into_iter().any(|path| guard.refused_for_good(path).is_some())
    }

    fn cancelled(&self) -> bool {
        self.cancel.is_set()
    }

    fn wait(&mut self, duration: Duration) -> Waited {
        if self.cancel.wait(duration) { Waited::Cancelled } else { Waited::Through }
    }
}

/// Makes a small request to the service cancellable, without reporting it.
struct Waiting<'c>(&'c Cancel);

impl Watch for Waiting<'_> {
    fn cancelled(&self) -> bool {
        self.0.is_set()
    }

    fn wait(&mut self, duration: Duration) -> Waited {
        if self.0.wait(duration) { Waited::Cancelled } else { Waited::Through }
    }
}

#[expect(clippy::disallowed_methods, reason = "the driver measures how long a call takes")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests;
