//! Notices that a person edits the specs while the phase is worked on.

use code_commit_engine::{Announce, At, Cause, Harness, Identify, Outcome, Read};
use serde_json::{Value, json};

use super::{Halt, Work};
use crate::{Phases, Place, spec};

/// The name of the event.
const CHANGED: &str = "SpecsChanged";

impl<H> Work<'_, H>
where
    H: Harness<Identify<Phases>> + Harness<Read<Phases>> + Harness<Announce>,
{
    /// Called before each turn and each verdict: if the specs of this phase are others than they were, nothing
    /// counts that was judged by the old ones.
    pub(super) fn heed_specs(&mut self) -> Result<(), Halt<H::Stop>> {
        let identify = Identify {
            place: Place::Specs,
        };
        let now = self.harness.perform(identify).map_err(Halt::Stop)?.sha256;
        if std::mem::replace(&mut self.specs_identity, now.clone()) == now {
            return Ok(());
        }
        let mut changed = Vec::new();
        let up_to_this = self
            .specs
            .iter()
            .take_while(|spec| spec.number <= self.inputs.phase)
            .count();
        for index in 0..up_to_this {
            changed.extend(self.read_spec(index)?);
        }
        if changed.is_empty() {
            return Ok(());
        }
        self.harness
            .perform(Announce(json!({ "event": CHANGED, "phases": changed })))
            .map_err(Halt::Stop)?;
        self.failures = None;
        Err(Halt::SpecsChanged)
    }

    /// Reads a spec again; gives its number if it is another one.
    fn read_spec(&mut self, index: usize) -> Result<Option<u32>, Halt<H::Stop>> {
        let Some(spec) = self.specs.get_mut(index) else {
            return Ok(None);
        };
        let (number, file) = (spec.number, format!("phase{}.md", spec.number));
        let read = Read(At::new(Place::Specs, file.as_str()));
        let Some(text) = self.harness.perform(read).map_err(Halt::Stop)?.text else {
            let message = format!("the spec {file} is gone, or is no longer a regular file");
            let remedy = Some(format!("restore {file}, then: code-commit phase run"));
            let cause = Cause {
                code: "spec-gone".to_owned(),
                message,
                remedy,
            };
            return Err(Halt::End(Outcome::NeedsPerson {
                round: self.iteration,
                cause,
            }));
        };
        if text.as_str() == spec.text {
            return Ok(None);
        }
        if let Some(title) = spec::title(text.as_str(), number) {
            title.clone_into(&mut spec.title);
        }
        text.as_str().clone_into(&mut spec.text);
        Ok(Some(number))
    }
}

/// The phases whose specs have changed, if an event of a phase says so.
pub fn specs_changed(event: &Value) -> Option<Vec<u64>> {
    let phases = event.get("phases").filter(|_| event["event"] == CHANGED)?;
    Some(
        phases
            .as_array()?
            .iter()
            .filter_map(Value::as_u64)
            .collect(),
    )
}
