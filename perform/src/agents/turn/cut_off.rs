//! A turn that was cut off because its harness was killed.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use code_commit_engine::{
    AgentLoop, Recorded, Request as _, Turn, TurnAdvice, TurnAnswer, TurnBegins, TurnEnd, Turned,
};

use serde_json::Value;

use super::{file, taken};
use crate::agents::fault::AgentFault;
use crate::agents::watched::put_back_after;
use crate::agents::world::{AgentWorld, Cast};
use crate::record::Past;

impl<C> AgentWorld<'_, C> {
    /// Called before resuming a run whose harness was killed in a turn: restores what the role may not touch.
    /// Gives the restored paths and the answer that the turn was cut off; it is not recorded yet, so all of
    /// this can be repeated.
    pub fn cut_off<P: AgentLoop>(
        &mut self,
        past: &Past,
        role_of: impl Fn(&str) -> Option<P::Role>,
    ) -> Result<(Vec<String>, Option<Recorded>), AgentFault>
    where
        C: Cast<P>,
    {
        let steps = past.steps();
        let open = steps.calls().last().filter(|call| call.turned.is_none());
        let begun = open.and_then(|call| call.begun.as_ref());
        let Some((begun, role)) = begun.and_then(|begun| Some((begun, role_of(&begun.role)?)))
        else {
            return Ok((Vec::new(), None));
        };
        let folder = self.record.folder().path().to_owned();
        let role = self.cast.role(role);
        let file = |what: &str| file(begun.number, &begun.role, what);
        let heard = folder.join(file("output.jsonl"));
        let output = File::open(&heard).ok().map(BufReader::new);
        let kind = role.worker(choice(begun)).cli.kind;
        let session = output.and_then(|output| code_commit_agent::session_in(kind, output));
        let put_back = put_back_after(&role.watched, taken(begun.number), &folder)?;
        let end = TurnEnd {
            how: "lost".to_owned(),
            said: "was interrupted when the harness stopped".to_owned(),
            then: TurnAdvice::Repeat,
            asks_for_another: false,
        };
        let turned = Turned {
            number: begun.number,
            role: begun.role.clone(),
            end,
            answer: self.store(&file("response.txt"), "")?,
            markers: Vec::new(),
            session,
            usage: Vec::new(),
            cost_usd: None,
            denials: Vec::new(),
            changed: Vec::new(),
            gone: Vec::new(),
            put_back: put_back.clone(),
            went_on: false,
            elapsed_ms: lasted(&folder.join(file("query.txt")), &heard),
            at: begun.at.clone(),
        };
        self.used.add(&turned, begun.remaining);
        let answer = serde_json::to_value(TurnAnswer::Turned(Box::new(turned))).unwrap_or_default();
        let kind = Turn::<P>::KIND.to_owned();
        let entry = Recorded {
            kind,
            request: begun.request.clone(),
            answer,
        };
        Ok((put_back, Some(entry)))
    }
}

/// The agent that worked, by its number.
pub(super) fn choice(begun: &TurnBegins) -> u32 {
    let choice = begun.request.get("choice").and_then(Value::as_u64);
    choice
        .and_then(|choice| choice.try_into().ok())
        .unwrap_or_default()
}

/// From the prompt of a turn to its last event, in milliseconds: nothing later is known of a turn that was cut
/// off with the harness.
fn lasted(prompt: &Path, events: &Path) -> u64 {
    let modified = |file: &Path| file.metadata().and_then(|found| found.modified());
    let (Ok(from), Ok(to)) = (modified(prompt), modified(events)) else {
        return 0;
    };
    to.duration_since(from)
        .map_or(0, code_commit_logging::millis)
}
