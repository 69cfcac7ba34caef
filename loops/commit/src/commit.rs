//! The default loop: one attempt and up to three repairs (S1).

use std::sync::Arc;

use code_commit_engine::{Apply, Ask, Build, Harness, Outcome, Present, Restore};
use code_commit_prompt::commit::{Failure, Task, initial, repair, stable_bytes};
use code_commit_prompt::edits::Form;
use code_commit_prompt::rollup::may_show;

use crate::changed::ChangedFiles;
use crate::rounds::{self, Conversation, Limits};

/// Model calls of one run: one attempt and three repairs (S1).
pub const COMMIT_ROUNDS: u32 = 4;

/// What a run is about; the same over all of its rounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inputs {
    /// What the user asks for.
    pub query: Arc<str>,
    /// `agent-config/codeRollup.txt`.
    pub codebase: Arc<str>,
    /// What may not be written, shown to the model.
    pub protected: Vec<String>,
    /// Whether the model may edit lines.
    pub form: Form,
    /// Bytes of the files that the model may ask for; 0 if it may not.
    pub need_bytes: u64,
}

/// S1: asks with the query and the codebase, applies the reply, builds, and sends what failed back.
///
/// # Errors
///
/// What stopped the harness. The run can be resumed.
pub fn commit<H>(harness: &mut H, inputs: &Inputs, limits: &Limits) -> Result<Outcome, H::Stop>
where
    H: Harness<Ask> + Harness<Apply> + Harness<Build> + Harness<Restore>,
{
    let mut repairs = Repairs {
        inputs,
        changed: ChangedFiles::default(),
        last_build: None,
    };
    rounds::run(harness, &mut repairs, limits)
}

/// Every prompt holds the query, the codebase as it was, and the newest replacement of each file.
struct Repairs<'i> {
    inputs: &'i Inputs,
    changed: ChangedFiles,
    /// What the last build printed, as the model was told.
    last_build: Option<String>,
}

impl<'i> Repairs<'i> {
    fn task(&self) -> Task<'i> {
        let Inputs {
            query,
            codebase,
            protected,
            form,
            ..
        } = self.inputs;
        Task {
            query,
            codebase,
            protected,
            form: *form,
        }
    }
}

impl Conversation for Repairs<'_> {
    fn first(&self) -> String {
        initial(&self.task()).text
    }

    fn stable(&self) -> usize {
        stable_bytes(&self.task())
    }

    fn need_bytes(&self) -> u64 {
        self.inputs.need_bytes
    }

    fn applied(&mut self, reply: &Arc<str>, edited: &[Present]) {
        self.changed.learn(reply, edited);
    }

    /// The roll-up's rules hold for what a build writes, too.
    fn rebuilt(&mut self, file: &Present) -> bool {
        let may_be_shown = may_show(&file.path, file.text.as_str());
        if may_be_shown {
            self.changed.rebuilt(file);
        }
        may_be_shown
    }

    fn show(&mut self, file: &Present) -> String {
        self.changed.rebuilt(file);
        String::new()
    }

    fn built(&mut self, _reply: &Arc<str>, output: &str) -> String {
        self.last_build = Some(output.into());
        repair(
            &self.task(),
            &Failure::Build(output),
            &self.changed.replacements(),
        )
    }

    fn refused(&mut self, _reply: &Arc<str>, reasons: &str) -> String {
        let failure = Failure::Reply {
            reasons,
            last_build: self.last_build.as_deref(),
        };
        repair(&self.task(), &failure, &self.changed.replacements())
    }
}
