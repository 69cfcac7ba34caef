//! One attempt: what is known of it so far, and the artifacts that it leaves (S2 §7).

use parser::proposal::{self, Limits};
use perform::{Answer, OrderStep, Problem};
use serde::Serialize;

use super::keep;
use crate::artifacts::{AttemptRecord, CmdResult, FailureBrief, FileWrite, WriteProposal, WriteResult};
use crate::order::Command;

/// The fixed list for projects without a script of their own (S2 §6.5).
const VERIFICATION: [&[&str]; 3] = [
    &["python", "-m", "compileall", "-q", "."],
    &["python", "-m", "pip", "--version"],
    &["python", "-m", "pytest", "-q"],
];
/// What is run where there is one.
const RUN_SCRIPT: &[&str] = &["bash", perform::VERIFY_SCRIPT];

#[derive(Debug, Default)]
pub(super) struct Attempt {
    pub(super) number: u32,
    pub(super) answer: Option<Answer>,
    touched: Vec<String>,
    write_ok: bool,
    errors: Vec<String>,
    pub(super) verify: Vec<CmdResult>,
    pub(super) acceptance: Vec<CmdResult>,
    pub(super) brief: Option<FailureBrief>,
}

impl Attempt {
    pub(super) fn number(number: u32) -> Self {
        Self { number, ..Self::default() }
    }

    /// The same attempt with nothing known but the answer, which was paid for.
    pub(super) fn again(&mut self) {
        let answer = self.answer.take();
        *self = Self { answer, ..Self::number(self.number) };
    }

    pub(super) fn written(&mut self, touched: &[String]) {
        self.touched = touched.to_vec();
        self.write_ok = true;
    }

    pub(super) fn refused(&mut self, touched: &[String], problems: &[Problem]) {
        self.touched = touched.to_vec();
        self.errors = problems.iter().map(|problem| problem.message.clone()).collect();
    }

    /// Whether anything can differ from the baseline.
    pub(super) fn has_written(&self) -> bool {
        self.write_ok
    }

    pub(super) fn verification(&self, has_script: bool) -> Vec<OrderStep> {
        let script = [RUN_SCRIPT];
        let commands: &[&[&str]] = if has_script { &script } else { &VERIFICATION };
        let argv = commands.iter().map(|words| words.iter().map(|word| (*word).to_owned()).collect());
        self.runs("verify", argv)
    }

    pub(super) fn acceptance(&self, commands: &[Command]) -> Vec<OrderStep> {
        self.runs("acceptance", commands.iter().map(|command| command.argv.clone()))
    }

    fn runs(&self, what: &str, commands: impl Iterator<Item = Vec<String>>) -> Vec<OrderStep> {
        let log = |number| self.file(&format!("{what}_{number}"));
        (1..)
            .zip(commands)
            .map(|(number, argv): (u32, _)| OrderStep::Run { log: log(number), argv })
            .collect()
    }

    /// Every artifact of the attempt.
    pub(super) fn artifacts(&self) -> Vec<OrderStep> {
        let write_result = WriteResult {
            write_ok: self.write_ok,
            touched_files: self.touched.clone(),
            errors: self.errors.clone(),
        };
        let mut steps = Vec::new();
        steps.extend(self.proposal().map(|proposal| keep(self.file(PROPOSAL), json(&proposal))));
        steps.push(keep(self.file("write_result.json"), json(&write_result)));
        steps.push(keep(self.file("verify_result.json"), json(&self.verify)));
        steps.push(keep(self.file("acceptance_result.json"), json(&self.acceptance)));
        steps.extend(self.brief.as_ref().map(|brief| keep(self.brief_file(), json(brief))));
        steps
    }

    pub(super) fn record(&self, baseline_commit: &str) -> AttemptRecord {
        AttemptRecord {
            attempt_index: self.number,
            baseline_commit: baseline_commit.to_owned(),
            proposal_path: self.proposal().map(|_| self.file(PROPOSAL)).unwrap_or_default(),
            touched_files: self.touched.clone(),
            write_ok: self.write_ok,
            verify: self.verify.clone(),
            acceptance: self.acceptance.clone(),
            failure_brief: self.brief.clone(),
        }
    }

    /// The answer, if it is a proposal.
    fn proposal(&self) -> Option<WriteProposal> {
        let answer = self.answer.as_ref()?;
        let proposal = proposal::parse(answer.reply.as_bytes(), &Limits::default()).ok()?;
        let writes = proposal.writes.iter().map(|write| FileWrite {
            path: write.path.to_string(),
            base_sha256: write.base_sha256.to_string(),
            content: write.content.to_string(),
        });
        Some(WriteProposal { summary: proposal.summary.to_string(), writes: writes.collect() })
    }

    /// Where the reason is kept for which it failed.
    pub(super) fn brief_file(&self) -> String {
        self.file("failure_brief.json")
    }

    fn file(&self, name: &str) -> String {
        format!("attempt_{}/{name}", self.number)
    }
}

const PROPOSAL: &str = "proposed_writes.json";

/// Indented, with a final newline.
pub(super) fn json(value: &impl Serialize) -> String {
    // Plain structs of strings and numbers: there is nothing in them that JSON has not.
    serde_json::to_string_pretty(value).unwrap_or_default() + "\n"
}
