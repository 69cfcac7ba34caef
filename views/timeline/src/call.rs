//! Calls of models and turns of agents, in one form.

use code_commit_engine::{Answered, Asked, Cause, ModelUsage, TurnBegins, Turned, Unanswered};

use crate::step::Call;

impl Call {
    pub(crate) fn asked(of: &Asked) -> Self {
        Self {
            prompt: Some(of.prompt.clone()),
            asked_model: of.model.clone(),
            at_most: Some(of.at_most),
            ..Self::default()
        }
    }

    pub(crate) fn begins(of: &TurnBegins) -> Self {
        let (role, prompt) = (Some(of.role.clone()), Some(of.prompt.clone()));
        Self {
            role,
            prompt,
            begun: Some(of.clone()),
            ..Self::default()
        }
    }

    pub(crate) fn answered(self, of: &Answered) -> Self {
        let usage = ModelUsage {
            model: of.served_model.clone().unwrap_or_default(),
            usage: of.usage,
            cost_usd: of.cost_usd,
        };
        Self {
            answer: Some(of.reply.stored.clone()),
            served_model: of.served_model.clone(),
            usage: vec![usage],
            cost_usd: of.cost_usd,
            failed: of.for_person.clone(),
            finish: Some(of.finish.code().to_owned()),
            is_over: true,
            elapsed_ms: of.elapsed_ms,
            ..self
        }
    }

    pub(crate) fn unanswered(self, of: &Unanswered) -> Self {
        Self {
            failed: Some(of.cause.clone()),
            is_over: true,
            ..self
        }
    }

    pub(crate) fn cut_off(self) -> Self {
        let cause = Cause {
            code: "cut-off".to_owned(),
            message: "its answer is not on record".to_owned(),
            remedy: None,
        };
        Self {
            failed: Some(cause),
            ..self
        }
    }

    pub(crate) fn turned(self, of: &Turned) -> Self {
        let failed = (!of.end.is_ok()).then(|| Cause {
            code: of.end.how.clone(),
            message: format!("the agent {}", of.end.said),
            remedy: None,
        });
        let parts: Option<f64> = of.usage.iter().map(|one| one.cost_usd).sum();
        let parts = parts.filter(|_| !of.usage.is_empty());
        let models: Vec<&str> = of.usage.iter().map(|one| &*one.model).collect();
        Self {
            role: Some(of.role.clone()),
            turned: Some(of.clone()),
            answer: Some(of.answer.stored.clone()),
            served_model: (!models.is_empty()).then(|| models.join(", ")),
            usage: of.usage.clone(),
            cost_usd: of.cost_usd.or(parts),
            failed,
            is_over: true,
            elapsed_ms: of.elapsed_ms,
            ..self
        }
    }

    /// Whether it was sent and nothing is known of it since: the run was killed, or still waits.
    pub fn is_in_flight(&self) -> bool {
        let is_retried = self.attempts.last().map(|last| last.wait_ms.is_some());
        !self.is_over && is_retried.unwrap_or(self.at_most.is_some())
    }
}
