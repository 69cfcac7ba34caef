//! One turn of an agent: writes its prompt to disk, watches it, writes its output, and restores what it may
//! not touch.

use std::fs::File;
use std::io::{self, Write as _};
use std::time::Duration;

use code_commit_agent::{End, Home, Kind, Session, Spawn};
use code_commit_engine::{
    AgentLoop, Amount, Denial, Event, LimitReached, Marked, ModelUsage, Named as _, Turn,
    TurnAdvice, TurnAnswer, TurnBegins, Turned, Usage,
};
use code_commit_logging::Stamp;
use code_commit_runner::Cancel;
use serde_json::Value;

use crate::agents::fault::{AgentFault, fault};
use crate::agents::listener::Listener;
use crate::agents::role::Role;
use crate::agents::watched::Changes;
use crate::agents::world::{AgentWorld, Cast};
use crate::record::Past;

struct Asked<'a> {
    number: u32,
    role: &'static str,
    prompt: &'a str,
    system: Option<&'a str>,
    session: Session,
    /// What that session has used, if its CLI counts it.
    used_before: Option<Usage>,
    choice: u32,
    /// As the loop requested it.
    request: Value,
    /// What was left of the run's limits.
    remaining: Amount,
}

impl Asked<'_> {
    fn file(&self, what: &str) -> String {
        file(self.number, self.role, what)
    }
}

fn file(number: u32, role: &str, what: &str) -> String {
    format!("{number}-{role}-{what}")
}

/// The folder in a run folder for what was replaced after a turn.
#[must_use]
pub fn taken(number: u32) -> String {
    format!("left-by-turn-{number}")
}

impl<C> AgentWorld<'_, C> {
    pub(super) fn turn<P: AgentLoop>(&mut self, turn: &Turn<P>) -> Result<TurnAnswer, AgentFault>
    where
        C: Cast<P>,
    {
        if let Some(cause) = self.used.passed(&self.limits) {
            return Ok(TurnAnswer::LimitReached(LimitReached { cause }));
        }
        let past = Past::read(self.record.folder().path())?;
        let begun = past
            .steps()
            .calls()
            .filter(|call| call.prompt.is_some())
            .count();
        let number = u32::try_from(begun).unwrap_or(u32::MAX).saturating_add(1);
        let role = self.cast.role(turn.role).clone();
        let goes_on = self.goes_on(turn, &role, &past)?;
        let asked = Asked {
            number,
            role: turn.role.name(),
            prompt: goes_on.map_or(&*turn.prompt, |_| goes_on::PROMPT),
            system: turn.system.as_deref(),
            session: match goes_on {
                Some(session) => Session::Resume(session.to_owned()),
                None => self.new_session(number),
            },
            used_before: goes_on
                .and_then(|session| used_before(&role, turn.choice, session, &past)),
            choice: turn.choice,
            request: serde_json::to_value(turn).unwrap_or_default(),
            remaining: self.used.remaining(&self.limits),
        };
        let turned = self.watched(&asked, &role)?;
        if turned.end.is_ok() {
            self.waited = Duration::ZERO;
        }
        Ok(TurnAnswer::Turned(Box::new(turned)))
    }

    /// A new name for each turn, if the world names sessions: CLIs reject a used one.
    fn new_session(&self, number: u32) -> Session {
        let Some(stem) = self.session.as_deref() else {
            return Session::None;
        };
        let end = stem.len().saturating_sub(4);
        let stem = stem.get(..end).unwrap_or_default();
        Session::New(format!("{stem}{:04x}", number % 0x1_0000))
    }

    fn watched(&mut self, asked: &Asked<'_>, role: &Role) -> Result<Turned, AgentFault> {
        let whole = [asked.system.unwrap_or_default(), asked.prompt].concat();
        if self.record.folder().redactor().finds_key(&whole) {
            return Err(AgentFault::KeyInPrompt {
                number: asked.number,
            });
        }
        let prompt = self.store(&asked.file("query.txt"), asked.prompt)?;
        self.record.note(&Event::TurnBegins(TurnBegins {
            number: asked.number,
            role: asked.role.to_owned(),
            prompt: prompt.stored,
            at: Stamp::now().rfc3339(),
            request: asked.request.clone(),
            remaining: asked.remaining,
        }))?;
        let folder = self.record.folder().path().to_owned();
        let (who, left) = (format!("the {} agent", asked.role), taken(asked.number));
        let warning = self.copies.open(&role.watched, &who, left, &folder)?;
        warning.map_or(Ok(()), |warning| self.record.warn(warning))?;
        let ran = self.run(asked, role);
        // Also if the turn's output could not be read to the end: the agent has worked.
        let changes = self.copies.close()?;
        for warning in &changes.warnings {
            self.record.warn(warning.clone())?;
        }
        let (outcome, markers) = ran?;
        let turned = self.turned(asked, outcome, markers, changes)?;
        self.watch.ends(asked.role, &turned.markers)?;
        Ok(turned)
    }

    fn run(
        &mut self,
        asked: &Asked<'_>,
        role: &Role,
    ) -> Result<(code_commit_agent::Outcome, Vec<Marked>), AgentFault> {
        let name = asked.role;
        let guard = |source| AgentFault::Guard {
            role: name.to_owned(),
            source,
        };
        let _guarded = (self.around)(name).map_err(guard)?;
        self.watch.begins(name, asked.number);
        let file = asked.file("output.jsonl");
        let mut log = self.record.folder().writer(&file)?;
        let enough = Cancel::new().map_err(guard)?;
        let worker = role.worker(asked.choice);
        let spawn = Spawn {
            enough: Some(enough.clone()),
            ..spawn(role, asked)
        };
        let mut ears = Listener::new(name, &mut *self.watch, enough);
        let outcome =
            code_commit_agent::run(&worker.cli, &spawn, &self.cancel, &mut log, &mut |event| {
                ears.hear(event);
            })
            .map_err(|source| AgentFault::Agent {
                role: name.to_owned(),
                source,
            })?;
        let markers = ears.finish().map_err(|source| AgentFault::Marker {
            role: name.to_owned(),
            source,
        })?;
        let folder = self.record.folder();
        log.flush()
            .and_then(|()| log.finish().map(drop))
            .map_err(|error| folder.error("write", &file, error))?;
        if let Some(path) = &role.log {
            code_commit_dir::replace_with(path, |to| {
                io::copy(&mut File::open(folder.path().join(&file))?, to).map(drop)
            })
            .map_err(fault("write", path))?;
        }
        Ok((outcome, markers))
    }

    /// Stores the result and turns it into an answer; keys are redacted.
    fn turned(
        &mut self,
        asked: &Asked<'_>,
        outcome: code_commit_agent::Outcome,
        markers: Vec<Marked>,
        changes: Changes,
    ) -> Result<Turned, AgentFault> {
        let answer = self.store(&asked.file("response.txt"), &outcome.text)?;
        let folder = self.record.folder();
        folder.store(&asked.file("stderr.txt"), &outcome.stderr)?;
        let redact = |text: &str| folder.redactor().redact(text).into_owned();
        let redact_all = |texts: Vec<String>| texts.iter().map(|text| redact(text)).collect();
        let denial = |one: code_commit_agent::Denial| Denial {
            tool: redact(&one.tool),
            argument: one.argument.as_deref().map(redact),
        };
        // The agent itself may also have ended the turn, with a marker.
        let was_cut_off = outcome.end == End::Interrupted && self.cancel.is_set();
        // A turn that will be repeated has no markers yet.
        let markers = markers.into_iter().filter(|_| !was_cut_off);
        let markers = markers.map(|one| Marked {
            content: redact(&one.content),
            ..one
        });
        let usage = outcome.usage.into_iter().map(|one| ModelUsage {
            model: redact(&one.model),
            ..one
        });
        let mut turned = Turned {
            number: asked.number,
            role: asked.role.to_owned(),
            // A CLI may echo its environment in an error.
            end: turn_end(&outcome.end.map_message(|text| redact(&text)), was_cut_off),
            answer,
            markers: markers.collect(),
            session: outcome.session.as_deref().map(redact),
            usage: usage.collect(),
            cost_usd: outcome.cost_usd,
            denials: outcome.denials.into_iter().map(denial).collect(),
            changed: redact_all(changes.allowed),
            gone: redact_all(changes.gone),
            put_back: redact_all(changes.put_back),
            went_on: matches!(asked.session, Session::Resume(_)),
            elapsed_ms: outcome.elapsed_ms,
            at: Stamp::now().rfc3339(),
        };
        self.used.add(&turned, asked.remaining);
        if let Some(cause) = self.used.cut_off(&turned, &self.limits) {
            turned.end.then = TurnAdvice::Limit(cause);
        }
        Ok(turned)
    }
}

/// Usage of the continued session so far, from the journal. Only Codex reports totals over all turns.
fn used_before(role: &Role, choice: u32, session: &str, past: &Past) -> Option<Usage> {
    let is_of_session = |turned: &Turned| turned.session.as_deref() == Some(session);
    let mut sum = Usage::default();
    for call in past.steps().calls() {
        if call.turned.as_ref().is_some_and(is_of_session) {
            sum += call.tokens();
        }
    }
    (role.worker(choice).cli.kind == Kind::Codex).then_some(sum)
}

fn spawn<'r>(role: &'r Role, asked: &Asked<'r>) -> Spawn<'r> {
    let home = role.home.as_deref().map_or(Home::User, Home::Own);
    let worker = role.worker(asked.choice);
    Spawn {
        system_prompt: asked.system,
        session: asked.session.clone(),
        used_before: asked.used_before,
        model: worker.model.as_deref(),
        permissions: role.permissions,
        env: role.env.clone(),
        extra_env: worker.extra_env.clone(),
        key: worker.key.clone(),
        home,
        timeout: role.timeout,
        idle_timeout: role.idle_timeout,
        ..Spawn::new(&role.cwd, asked.prompt, &role.cwd, &role.confinement)
    }
}

mod cut_off;
mod ends;
mod goes_on;

pub(crate) use ends::turn_end;

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the tests make an agent")]
mod tests;
