//! The default loop: one attempt and up to three repairs (S1).

use std::sync::Arc;

use prompt::commit::{Failure, Task, initial, repair};

use crate::changed::ChangedFiles;
use crate::rounds::{Conversation, Limits, Rounds};

/// Model calls of one run: one attempt and three repairs (S1).
pub const COMMIT_ROUNDS: u32 = 4;

/// What a run is about; the same over all of its rounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inputs {
    /// `agent-config/query.txt`.
    pub query: Arc<str>,
    /// `agent-config/codeRollup.txt`.
    pub codebase: Arc<str>,
    /// What may not be written, shown to the model.
    pub protected: Vec<String>,
}

/// S1 as a value.
pub type CommitLoop = Rounds<Repairs>;

/// Every prompt holds the query, the codebase as it was, and the newest replacement of each file.
#[derive(Debug)]
pub struct Repairs {
    inputs: Inputs,
    changed: ChangedFiles,
    /// What the last build printed, as it was told.
    last_build: Option<Box<str>>,
}

impl CommitLoop {
    /// A run of S1.
    #[must_use]
    pub fn commit(inputs: Inputs, limits: Limits) -> Self {
        Self::new(Repairs { inputs, changed: ChangedFiles::default(), last_build: None }, limits)
    }
}

impl Repairs {
    fn task(&self) -> Task<'_> {
        let Inputs { query, codebase, protected } = &self.inputs;
        Task { query, codebase, protected }
    }
}

impl Conversation for Repairs {
    fn first(&self) -> Arc<str> {
        initial(&self.task()).text.into()
    }

    fn applied(&mut self, reply: &Arc<str>) {
        self.changed.learn(reply);
    }

    fn built(&mut self, _reply: &Arc<str>, output: &str) -> Arc<str> {
        self.last_build = Some(output.into());
        repair(&self.task(), &Failure::Build(output), &self.changed.replacements()).into()
    }

    fn refused(&mut self, _reply: &Arc<str>, reasons: &str) -> Arc<str> {
        let failure = Failure::Reply { reasons, last_build: self.last_build.as_deref() };
        repair(&self.task(), &failure, &self.changed.replacements()).into()
    }
}
