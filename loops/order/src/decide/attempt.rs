//! One attempt and its artifacts (S2 §7).

use code_commit_engine::{
    Answered, Ask, AskAnswer, Broke, Cause, Condition, Ended, Harness, Keep, Look, Measure, Ran,
    Run, Unanswered, Write, WriteAnswer,
};
use code_commit_parser::proposal::{self, Limits};
use code_commit_prompt::order::Prompt;
use serde::Serialize;

use crate::artifacts::{
    AttemptRecord, CmdResult, FailureBrief, FileWrite, Stage, WriteProposal, WriteResult,
};
use crate::brief;
use crate::context::shown;
use crate::inputs::Inputs;
use crate::order::WorkOrder;

/// The project's own verification script, if it has one (S2 §6.5).
pub const VERIFY_SCRIPT: &str = "scripts/verify.sh";
const RUN_SCRIPT: &[&str] = &["bash", VERIFY_SCRIPT];
/// The commands for projects without such a script (S2 §6.5).
const VERIFICATION: [&[&str]; 3] = [
    &["python", "-m", "compileall", "-q", "."],
    &["python", "-m", "pip", "--version"],
    &["python", "-m", "pytest", "-q"],
];

/// The commands that verify an attempt, whatever the order says (S2 §6.5).
pub fn verification(has_script: bool) -> &'static [&'static [&'static str]] {
    if has_script {
        &[RUN_SCRIPT]
    } else {
        &VERIFICATION
    }
}

const PROPOSAL: &str = "proposed_writes.json";

/// Why an attempt, or the preparation of the first one, ends early.
pub(super) enum Halt<S> {
    Stop(S),
    /// It failed: none of its changes stay in the tree.
    Failed(FailureBrief),
    /// The model cannot be asked, so a further attempt is pointless.
    Unavailable(Cause),
}

#[derive(Debug, Default)]
pub(super) struct Attempt {
    number: u32,
    answer: Option<Answered>,
    touched: Vec<String>,
    write_ok: bool,
    errors: Vec<String>,
    verify: Vec<CmdResult>,
    acceptance: Vec<CmdResult>,
    pub(super) brief: Option<FailureBrief>,
}

impl Attempt {
    pub(super) fn number(number: u32) -> Self {
        Self {
            number,
            ..Self::default()
        }
    }

    /// Asks, writes, verifies, runs the acceptance commands and checks the postconditions; returns
    /// the tree's hash.
    pub(super) fn make<H>(
        &mut self,
        harness: &mut H,
        inputs: &Inputs,
        prompt: Prompt,
    ) -> Result<String, Halt<H::Stop>>
    where
        H: Harness<Ask> + Harness<Write> + Harness<Run> + Harness<Look> + Harness<Measure>,
    {
        let order = &inputs.order;
        self.ask(harness, prompt)?;
        let has_script = self.write(harness, inputs)?;
        for (number, words) in (1..).zip(verification(has_script)) {
            let argv: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            let result =
                CmdResult::of(&self.run(harness, inputs, &format!("verify_{number}"), argv)?);
            let failed = (result.exit_code != 0).then(|| {
                brief::of_command(
                    Stage::VerifyFailed,
                    &result.command.join(" "),
                    &result,
                    order,
                )
            });
            self.verify.push(result);
            failed.map_or(Ok(()), |brief| Err(Halt::Failed(brief)))?;
        }
        for (number, command) in (1..).zip(&order.acceptance_commands) {
            let log = &format!("acceptance_{number}");
            let result = CmdResult::of(&self.run(harness, inputs, log, command.argv.clone())?);
            let failed = (result.exit_code != 0)
                .then(|| brief::of_command(Stage::AcceptanceFailed, &command.text, &result, order));
            self.acceptance.push(result);
            failed.map_or(Ok(()), |brief| Err(Halt::Failed(brief)))?;
        }
        conditions(
            harness,
            Stage::AcceptanceFailed,
            &order.postconditions,
            order,
        )?;
        let measured = harness.perform(Measure).map_err(Halt::Stop)?;
        Ok(measured
            .done()
            .map_err(|broke| Halt::broke(broke, order))?
            .tree_sha256)
    }

    fn ask<H: Harness<Ask>>(
        &mut self,
        harness: &mut H,
        prompt: Prompt,
    ) -> Result<(), Halt<H::Stop>> {
        let Prompt {
            text,
            stable,
            system,
        } = prompt;
        let ask = Ask {
            round: self.number,
            prompt: text.into(),
            stable,
            system,
        };
        match harness.perform(ask).map_err(Halt::Stop)? {
            AskAnswer::Unanswered(Unanswered { cause, .. })
            | AskAnswer::Answered(Answered {
                for_person: Some(cause),
                ..
            }) => Err(Halt::Unavailable(cause)),
            AskAnswer::Answered(answered) => {
                self.answer = Some(answered);
                Ok(())
            }
        }
    }

    /// Whether the project now has its own verification script.
    fn write<H: Harness<Write>>(
        &mut self,
        harness: &mut H,
        inputs: &Inputs,
    ) -> Result<bool, Halt<H::Stop>> {
        let Some(reply) = self.answer.as_ref().map(Answered::reply) else {
            return Ok(false);
        };
        let [shown_whole, shown_in_part] = shown(&inputs.context);
        let write = Write {
            attempt: self.number,
            reply,
            shown_whole,
            shown_in_part,
        };
        let written = harness.perform(write).map_err(Halt::Stop)?;
        match written
            .done()
            .map_err(|broke| Halt::broke(broke, &inputs.order))?
        {
            WriteAnswer::Written(written) => {
                self.touched = written.touched;
                self.write_ok = true;
                Ok(written.verify_script)
            }
            WriteAnswer::Refused(refused) => {
                self.errors = refused
                    .problems
                    .iter()
                    .map(|problem| problem.message.clone())
                    .collect();
                self.touched = refused.touched;
                Err(Halt::Failed(brief::refused(
                    refused.why,
                    &refused.problems,
                    &inputs.order,
                )))
            }
        }
    }

    fn run<H: Harness<Run>>(
        &self,
        harness: &mut H,
        inputs: &Inputs,
        log: &str,
        argv: Vec<String>,
    ) -> Result<Ran, Halt<H::Stop>> {
        let ran = harness
            .perform(Run {
                log: self.file(log),
                argv,
            })
            .map_err(Halt::Stop)?;
        ran.done()
            .map_err(|broke| Halt::broke(broke, &inputs.order))
    }

    /// Whether the tree may differ from the baseline.
    pub(super) fn has_written(&self) -> bool {
        self.write_ok
    }

    pub(super) fn keep<H: Harness<Keep>>(&self, harness: &mut H) -> Result<(), H::Stop> {
        let mut keep = |name: &str, json: String| {
            harness
                .perform(Keep {
                    file: self.file(name),
                    text: json.into(),
                })
                .map(drop)
        };
        if let Some(proposal) = self.proposal() {
            keep(PROPOSAL, json(&proposal))?;
        }
        let write_result = WriteResult {
            write_ok: self.write_ok,
            touched_files: self.touched.clone(),
            errors: self.errors.clone(),
        };
        keep("write_result.json", json(&write_result))?;
        keep("verify_result.json", json(&self.verify))?;
        keep("acceptance_result.json", json(&self.acceptance))?;
        self.brief
            .as_ref()
            .map_or(Ok(()), |brief| keep("failure_brief.json", json(brief)))
    }

    pub(super) fn record(&self, baseline_commit: &str) -> AttemptRecord {
        AttemptRecord {
            attempt_index: self.number,
            baseline_commit: baseline_commit.to_owned(),
            proposal_path: self
                .proposal()
                .map(|_| self.file(PROPOSAL))
                .unwrap_or_default(),
            touched_files: self.touched.clone(),
            write_ok: self.write_ok,
            verify: self.verify.clone(),
            acceptance: self.acceptance.clone(),
            failure_brief: self.brief.clone(),
        }
    }

    fn proposal(&self) -> Option<WriteProposal> {
        let reply = self.answer.as_ref()?.reply.share();
        let proposal = proposal::parse(reply.as_bytes(), &Limits::default()).ok()?;
        let writes = proposal.writes.into_iter().map(FileWrite::from);
        Some(WriteProposal {
            summary: proposal.summary,
            writes: writes.collect(),
        })
    }

    fn file(&self, name: &str) -> String {
        format!("attempt_{}/{name}", self.number)
    }
}

/// Fails if any of these does not hold.
pub(super) fn conditions<H: Harness<Look>>(
    harness: &mut H,
    stage: Stage,
    conditions: &[Condition],
    order: &WorkOrder,
) -> Result<(), Halt<H::Stop>> {
    if conditions.is_empty() {
        return Ok(());
    }
    let looked = harness
        .perform(Look {
            conditions: conditions.to_vec(),
        })
        .map_err(Halt::Stop)?;
    let failed = looked
        .done()
        .map_err(|broke| Halt::broke(broke, order))?
        .failed;
    if failed.is_empty() {
        Ok(())
    } else {
        Err(Halt::Failed(brief::conditions(stage, &failed, order)))
    }
}

impl<S> Halt<S> {
    fn broke(Broke { message }: Broke, order: &WorkOrder) -> Self {
        Self::Failed(brief::plain(Stage::Exception, &message, order))
    }

    pub(super) fn brief(self, order: &WorkOrder) -> Option<FailureBrief> {
        match self {
            Self::Stop(_) => None,
            Self::Failed(brief) => Some(brief),
            Self::Unavailable(cause) => Some(brief::plain(Stage::Exception, &cause.message, order)),
        }
    }
}

impl CmdResult {
    pub(super) fn of(ran: &Ran) -> Self {
        Self {
            command: ran.argv.clone(),
            exit_code: if ran.seal_broken {
                -1
            } else {
                exit_code(ran.ended)
            },
            stdout_trunc: ran.stdout.text.clone(),
            stderr_trunc: ran.stderr.text.clone(),
            stdout_path: ran.stdout.file.clone(),
            stderr_path: ran.stderr.file.clone(),
            duration_seconds: seconds(ran.elapsed_ms),
        }
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a command runs for less than 10⁵ years"
)]
fn seconds(millis: u64) -> f64 {
    millis as f64 / 1e3
}

fn exit_code(ended: Ended) -> i32 {
    match ended {
        Ended::Exited(code) => code,
        Ended::Signaled(signal) => -signal,
        Ended::TimedOut => 124,
        Ended::TooMuchOutput | Ended::TooMuchMemory | Ended::TooManyProcesses => -9,
        Ended::NotFound | Ended::NotExecutable | Ended::Interrupted => -1,
    }
}

/// Indented, with a final newline.
pub(super) fn json(value: &impl Serialize) -> String {
    // Structs of strings and numbers always have a JSON form.
    serde_json::to_string_pretty(value).unwrap_or_default() + "\n"
}
