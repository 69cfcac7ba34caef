//! What a run is given, and the prompts that follow from it.

use code_commit_prompt::edits::Form;
use code_commit_prompt::order::{Allowed, Attempt, Context, Failure, Prompt, Task};

use crate::artifacts::FailureBrief;
use crate::order::WorkOrder;

/// The results of the preflight; the same in all attempts.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "those without are the fields of `RunSummary`")]
pub struct Inputs {
    pub order: WorkOrder,
    pub work_order_path: String,
    pub repo_path: String,
    pub baseline_commit: String,
    /// The tree before the first attempt.
    pub tree_hash_before: String,
    pub run_id: String,
    pub max_attempts: u32,
    /// Whether the changes are committed if the order passes.
    pub commit: bool,
    /// The allowed files with their hashes.
    pub allowed: Vec<Allowed>,
    /// The context files as the prompt shows them.
    pub context: Vec<Context>,
    /// How the model may give its changes.
    pub form: Form,
}

impl Inputs {
    /// The prompt of the first attempt; the preflight checks whether it may be sent.
    pub fn first_prompt(&self) -> String {
        self.prompt_of(1, None).text
    }

    /// Names the run, so that its commit can be found if the harness was killed before the journal
    /// recorded it.
    pub(crate) fn commit_message(&self) -> String {
        let WorkOrder { id, title, .. } = &self.order;
        format!("{title}\n\nWork order: {id}\nRun: {}\n", self.run_id)
    }

    pub(crate) fn prompt_of(&self, number: u32, failure: Option<&FailureBrief>) -> Prompt {
        let Self {
            order,
            allowed,
            context,
            max_attempts,
            form,
            ..
        } = self;
        let acceptance = order.acceptance_texts();
        let task = Task {
            title: &order.title,
            intent: &order.intent,
            allowed,
            forbidden: &order.forbidden,
            acceptance_commands: &acceptance,
            notes: order.notes.as_deref(),
            context,
            form: *form,
        };
        let failure = failure.map(|brief| Failure {
            stage: brief.stage.as_str(),
            command: brief.command.as_deref(),
            exit_code: brief.exit_code,
            excerpt: &brief.primary_error_excerpt,
            reminder: &brief.constraints_reminder,
        });
        code_commit_prompt::order::prompt(
            &task,
            &Attempt {
                number,
                of: *max_attempts,
                failure,
            },
        )
    }
}
