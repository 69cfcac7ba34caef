//! What turns have used, on record (S3 §Token Tracking): also that of one which never came to its end.

use agent::ModelUsage;
use perform::{AgentFact, AgentStep, Place};

use super::PhaseLoop;
use crate::{ABL, TOKENS, tokens};

impl PhaseLoop {
    /// Puts the last turn on record.
    pub(super) fn account(&self) -> AgentStep {
        let rows = self
            .turned
            .as_ref()
            .map(|turned| self.rows(&turned.at, turned.session.as_deref(), &turned.usage));
        append(&rows.unwrap_or_default())
    }

    /// The same for one that was cut off, before anything else is done.
    pub(super) fn account_of_lost(&self) -> Option<AgentStep> {
        (!self.lost.is_empty()).then(|| append(&self.lost))
    }

    /// A turn that has begun counts as lost until its end is heard of: a run that goes on after a kill hears of none.
    pub(super) fn lose(&mut self, fact: &AgentFact) {
        if let AgentFact::TurnBegins { at, .. } = fact {
            self.lost = self.rows(at, None, &[]);
        } else if let AgentFact::CutOff { at, session, usage, cost_usd, elapsed_ms, .. } = fact {
            self.used.add_cut_off(usage, *cost_usd, *elapsed_ms);
            self.lost = self.rows(at, session.as_deref(), usage);
        }
    }

    fn rows(&self, at: &str, session: Option<&str>, usage: &[ModelUsage]) -> String {
        let (name, role) = self.role();
        tokens::rows(&tokens::Turn {
            at,
            phase: self.inputs.phase,
            iteration: self.iteration,
            role: name,
            asked_model: &role.model,
            session,
            usage,
        })
    }
}

fn append(rows: &str) -> AgentStep {
    AgentStep::Append { place: Place::new(ABL, TOKENS), head: tokens::HEADER.into(), text: rows.into() }
}
