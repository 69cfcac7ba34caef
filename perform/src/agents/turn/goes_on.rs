//! A turn that goes on in the session in which it was cut off, or with another agent.

use code_commit_engine::{AgentLoop, Named as _, Problem, Turn};

use super::cut_off::choice;
use super::file;
use crate::agents::fault::AgentFault;
use crate::agents::listing::is_untouched_since;
use crate::agents::role::Role;
use crate::agents::world::AgentWorld;
use crate::record::Past;
use crate::spending::OTHER_MODEL;

/// The code of a turn that is done anew.
const PAID_TWICE: &str = "paid-twice";

/// What the session is told. It knows the rest.
pub(super) const PROMPT: &str =
    "You were interrupted. Go on where you stopped; what you were asked to do has not changed.";

impl<C> AgentWorld<'_, C> {
    /// The session that a turn goes on with. Who works instead of somebody else, and what is done anew, is said.
    pub(super) fn goes_on<'t, P: AgentLoop>(
        &mut self,
        turn: &'t Turn<P>,
        role: &Role,
        past: &Past,
    ) -> Result<Option<&'t str>, AgentFault> {
        let (steps, name) = (past.steps(), turn.role.name());
        let last = steps
            .calls()
            .filter_map(|call| Some((call.begun.as_ref()?, call.turned.as_ref()?)))
            .last();
        let Some((begun, before)) = last.filter(|(begun, _)| begun.role == name) else {
            return Ok(None);
        };
        let is_other = choice(begun) != turn.choice;
        if before.end.asks_for_another && is_other {
            let message = format!(
                "{name}: the agent {}; {} works instead",
                before.end,
                role.worker(turn.choice)
            );
            self.record.warn(Problem::new(OTHER_MODEL, message))?;
        }
        let Some(session) = turn.goes_on.as_deref() else {
            return Ok(None);
        };
        let heard = self
            .record
            .folder()
            .path()
            .join(file(before.number, name, "output.jsonl"));
        if !is_other && is_untouched_since(&role.watched, &heard) {
            return Ok(Some(session));
        }
        let message = format!(
            "{name}: the agent was cut off, and files were changed since: its turn starts over and is paid for twice"
        );
        self.record.warn(Problem::new(PAID_TWICE, message))?;
        Ok(None)
    }
}
