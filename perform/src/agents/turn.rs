//! One turn of an agent: its prompt on disk, its work watched, its output on disk, what it may not touch put back.

use std::fs::File;
use std::io::{self, Write as _};

use agent::{Denial, End, Home, Kind, ModelUsage, Session, Spawn};
use logging::{Durability, RunFolder, Stamp};
use runner::Cancel;

use crate::agents::ears::Ears;
use crate::agents::executor::store;
use crate::agents::fault::fault;
use crate::agents::record::{Record, outline_of};
use crate::agents::role::Role;
use crate::agents::snapshot::{Before, COPIES, Changes, put_back_after};
use crate::agents::{AgentExecutor, AgentFact, AgentFault, Marked, Turned};
use crate::record::RecordError;

/// What is asked of whom.
pub(super) struct Request<'r> {
    pub(super) number: u32,
    pub(super) role: &'r str,
    pub(super) prompt: &'r str,
    pub(super) system: Option<&'r str>,
    pub(super) session: &'r Session,
}

impl Request<'_> {
    fn file(&self, what: &str) -> String {
        format!("{}-{}-{what}", self.number, self.role)
    }
}

/// The folder of a run for what was replaced after a turn.
#[must_use]
pub fn taken(number: u32) -> String {
    format!("taken-{number}")
}

impl AgentExecutor<'_> {
    pub(super) fn turn(
        &mut self,
        request: &Request<'_>,
        record: &mut Record<'_, AgentFact>,
    ) -> Result<AgentFact, AgentFault> {
        let role = self.role(request.role)?.clone();
        let whole = [request.system.unwrap_or_default(), request.prompt].concat();
        if record.folder().redactor().finds_key(&whole) {
            return Err(AgentFault::KeyInPrompt { number: request.number });
        }
        let prompt = store(record, &request.file("query.txt"), request.prompt, Durability::Written)?;
        record.note(&AgentFact::TurnBegins {
            number: request.number,
            role: request.role.to_owned(),
            prompt,
            at: Stamp::now().rfc3339(),
        })?;
        let kept = record.folder().path().join(COPIES);
        let taken = record.folder().path().join(taken(request.number));
        let before = Before::take(&role.watched, &mut self.kept, &kept, &taken)
            .map_err(fault("list", &role.watched.root))?;
        let ran = self.run(&role, request, record);
        // Also after a turn that could not be heard out: its agent has been at work all the same.
        let changes = before.compare(&mut self.kept)?;
        let (outcome, markers) = ran?;
        // A turn may also have been ended by what the agent said.
        if outcome.end == End::Interrupted && self.cancel.is_set() {
            return Ok(cut_off(request, outcome, &changes.put_back, record));
        }
        turned(request, outcome, markers, changes, record)
    }

    /// Puts back what the role may not touch where the last one of these facts is that its turn began: the run was killed in it, or
    /// could not put it back. To be called before such a run goes on; gives the paths.
    pub fn put_back_after(&self, facts: &[AgentFact], folder: &RunFolder) -> Result<Vec<String>, AgentFault> {
        let is_of_a_turn =
            |fact: &&AgentFact| matches!(fact, AgentFact::TurnBegins { .. } | AgentFact::Turned(_));
        let Some(AgentFact::TurnBegins { number, role, .. }) = facts.iter().rfind(is_of_a_turn) else {
            return Ok(Vec::new());
        };
        let at = folder.path();
        put_back_after(&self.role(role)?.watched, &at.join(COPIES), &at.join(taken(*number)))
    }

    fn run(
        &mut self,
        role: &Role,
        request: &Request<'_>,
        record: &Record<'_, AgentFact>,
    ) -> Result<(agent::Outcome, Vec<Marked>), AgentFault> {
        let name = request.role;
        let _guarded =
            (self.around)(name).map_err(|source| AgentFault::Guard { role: name.to_owned(), source })?;
        self.watch.begins(name, request.number);
        let file = request.file("output.jsonl");
        let mut log = record.folder().writer(&file)?;
        let enough = Cancel::new().map_err(|source| AgentFault::Guard { role: name.to_owned(), source })?;
        let used_before = used_before(role, request, record)?;
        let spawn =
            Spawn { used_before: used_before.as_ref(), enough: Some(enough.clone()), ..spawn(role, request) };
        let mut ears = Ears::new(name, &mut *self.watch, enough);
        let outcome = agent::run(&role.cli, &spawn, &self.cancel, &mut log, &mut |event| ears.hear(event))
            .map_err(|source| AgentFault::Agent { role: name.to_owned(), source })?;
        let markers = ears.finish().map_err(|source| AgentFault::Marker { role: name.to_owned(), source })?;
        log.flush()
            .and_then(|()| log.finish().map(drop))
            .map_err(|e| record.folder().error("write", &file, e))?;
        if let Some(path) = &role.log {
            dir::replace_with(path, |to| {
                io::copy(&mut File::open(record.folder().path().join(&file))?, to).map(drop)
            })
            .map_err(fault("write", path))?;
        }
        Ok((outcome, markers))
    }
}

/// What is known of a turn that Ctrl-C has ended; every text without keys.
fn cut_off(
    request: &Request<'_>,
    outcome: agent::Outcome,
    put_back: &[String],
    record: &Record<'_, AgentFact>,
) -> AgentFact {
    let redact = |text: &str| record.folder().redactor().redact(text).into_owned();
    AgentFact::CutOff {
        number: request.number,
        role: request.role.to_owned(),
        session: outcome.session.as_deref().map(redact),
        usage: outcome.usage.into_iter().map(|one| ModelUsage { model: redact(&one.model), ..one }).collect(),
        cost_usd: outcome.cost_usd,
        elapsed_ms: outcome.elapsed_ms,
        at: Stamp::now().rfc3339(),
        put_back: put_back.iter().map(|path| redact(path)).collect(),
    }
}

/// What came of it, on disk and as a fact; every text without keys.
fn turned(
    request: &Request<'_>,
    outcome: agent::Outcome,
    markers: Vec<Marked>,
    changes: Changes,
    record: &Record<'_, AgentFact>,
) -> Result<AgentFact, AgentFault> {
    let answer = store(record, &request.file("response.txt"), &outcome.text, Durability::Synced)?;
    let redact = |text: &str| record.folder().redactor().redact(text).into_owned();
    let redact_all = |texts: Vec<String>| texts.iter().map(|text| redact(text)).collect();
    let denial =
        |one: Denial| Denial { tool: redact(&one.tool), argument: one.argument.as_deref().map(redact) };
    record.folder().store(&request.file("stderr.txt"), &outcome.stderr, Durability::Written)?;
    Ok(AgentFact::Turned(Box::new(Turned {
        number: request.number,
        role: request.role.to_owned(),
        // A CLI may echo a part of its environment in an error.
        end: outcome.end.map_message(|text| redact(&text)),
        answer,
        markers: markers.into_iter().map(|one| Marked { content: redact(&one.content), ..one }).collect(),
        session: outcome.session.as_deref().map(redact),
        usage: outcome.usage.into_iter().map(|one| ModelUsage { model: redact(&one.model), ..one }).collect(),
        cost_usd: outcome.cost_usd,
        denials: outcome.denials.into_iter().map(denial).collect(),
        changed: redact_all(changes.allowed),
        gone: redact_all(changes.gone),
        put_back: redact_all(changes.put_back),
        elapsed_ms: outcome.elapsed_ms,
        at: Stamp::now().rfc3339(),
    })))
}

/// What the session that is gone on with had used, as the journal has it. Codex alone counts over all of its turns.
fn used_before(
    role: &Role,
    request: &Request<'_>,
    record: &Record<'_, AgentFact>,
) -> Result<Option<ModelUsage>, RecordError> {
    let Session::Resume(session) = request.session else { return Ok(None) };
    if role.cli.kind != Kind::Codex {
        return Ok(None);
    }
    let facts: Vec<AgentFact> = outline_of(record.folder())?;
    let mut sum = ModelUsage::default();
    for fact in &facts {
        if let AgentFact::Turned(turned) = fact
            && turned.session.as_ref() == Some(session)
        {
            turned.usage.iter().for_each(|usage| add(&mut sum, usage));
        }
    }
    Ok(Some(sum))
}

fn add(sum: &mut ModelUsage, more: &ModelUsage) {
    let plus = |sum: &mut Option<u64>, more: Option<u64>| {
        *sum = more.map_or(*sum, |more| Some(sum.unwrap_or(0).saturating_add(more)));
    };
    plus(&mut sum.input_tokens, more.input_tokens);
    plus(&mut sum.cache_read_tokens, more.cache_read_tokens);
    plus(&mut sum.cache_write_tokens, more.cache_write_tokens);
    plus(&mut sum.output_tokens, more.output_tokens);
    plus(&mut sum.reasoning_tokens, more.reasoning_tokens);
}

fn spawn<'r>(role: &'r Role, request: &Request<'r>) -> Spawn<'r> {
    let home = role.home.as_deref().map_or(Home::User, Home::Own);
    Spawn {
        system_prompt: request.system,
        session: request.session.clone(),
        model: role.model.as_deref(),
        permissions: role.permissions,
        env: role.env.clone(),
        extra_env: role.extra_env.clone(),
        key: role.key.clone(),
        home,
        timeout: role.timeout,
        idle_timeout: role.idle_timeout,
        ..Spawn::new(&role.cwd, request.prompt, &role.cwd, &role.confinement)
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the tests make an agent")]
mod tests;
