//! What both commit loops are: ask, apply, build; after a failure ask again, a bounded number of
//! times.

use std::collections::BTreeMap;
use std::sync::Arc;

use code_commit_engine::{
    Apply, ApplyAnswer, Ask, AskAnswer, Build, Built, Cause, Changed, Ended, Harness, NEEDED,
    Outcome, Present, Rejected, Restore, Text,
};

use crate::excerpt::shown;
use crate::same_failure::{At, Failure, notice};

/// A prompt has the beginning and the end of a build output that is longer than this, unless
/// [`Limits`] say otherwise. In bytes.
pub const BUILD_OUTPUT_BYTES: usize = 1024 * 1024;

/// A prompt names this many of the files that a build has changed.
const MOST_NAMED: usize = 50;

/// How far a run may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Model calls at most.
    pub rounds: u32,
    /// A build output of more bytes is shortened in the middle before it is sent.
    pub build_output_bytes: usize,
    /// What to do with the changes if the run fails.
    pub on_failure: OnFailure,
}

/// The tree that a failed run leaves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnFailure {
    /// The changes stay on disk, for the supervisor's `git diff` (S0, S1).
    #[default]
    Keep,
    /// Every file is restored as it was before the run.
    Restore,
}

impl Limits {
    /// This many rounds, [`BUILD_OUTPUT_BYTES`], changes kept.
    #[must_use]
    pub fn of_rounds(rounds: u32) -> Self {
        let (build_output_bytes, on_failure) = (BUILD_OUTPUT_BYTES, OnFailure::Keep);
        Self {
            rounds,
            build_output_bytes,
            on_failure,
        }
    }
}

/// Where the two loops differ: what the model is told.
pub(crate) trait Conversation {
    /// The first prompt.
    fn first(&self) -> String;

    /// The number of bytes at the beginning of every prompt that are the same in all of them.
    fn stable(&self) -> usize;

    /// Bytes of the files that the model may ask for once; 0 if it may not.
    fn need_bytes(&self) -> u64 {
        0
    }

    /// Takes in a reply whose changes are on disk, and the new content of the files that it edits.
    fn applied(&mut self, reply: &Arc<str>, edited: &[Present]);

    /// Takes in the content that a build gave to a file which the model knows. Whether later prompts show it.
    fn rebuilt(&mut self, file: &Present) -> bool;

    /// Takes in a file that the model has to see before it changes it. What the next prompt says of it besides.
    fn show(&mut self, file: &Present) -> String;

    /// The prompt after a build that failed: what the model had answered, and what the build printed.
    fn built(&mut self, reply: &Arc<str>, output: &str) -> String;

    /// The prompt after a reply that was not used, because it was refused, cut off or prose: the
    /// reply, and why.
    fn refused(&mut self, reply: &Arc<str>, reasons: &str) -> String;
}

pub(crate) fn run<H>(
    harness: &mut H,
    conversation: &mut impl Conversation,
    limits: &Limits,
) -> Result<Outcome, H::Stop>
where
    H: Harness<Ask> + Harness<Apply> + Harness<Build> + Harness<Restore>,
{
    let mut prompt = conversation.first();
    let stable = conversation.stable();
    let (mut changed, mut last_failure) = (false, None);
    let mut seen = BTreeMap::new();
    let mut need_bytes = conversation.need_bytes();
    let mut round = 1;
    let failed = loop {
        let reply = match harness.perform(Ask {
            round,
            prompt: prompt.into(),
            stable,
            system: 0,
        })? {
            AskAnswer::Unanswered(none) => break unavailable(round, none.cause),
            AskAnswer::Answered(answered) => match answered.for_person {
                Some(cause) => break unavailable(round, cause),
                None => answered.reply(),
            },
        };
        let answer = harness.perform(Apply {
            round,
            reply: reply.clone(),
            seen: seen.clone(),
            need_bytes,
        })?;
        let (at, output, besides) = match answer {
            ApplyAnswer::Rejected(Rejected {
                report,
                shown,
                problems,
                ..
            }) => {
                if problems.iter().any(|problem| problem.code == NEEDED) {
                    need_bytes = 0;
                }
                seen.extend(shown.iter().map(Present::known));
                (
                    At::Reply,
                    report,
                    shown.iter().map(|file| conversation.show(file)).collect(),
                )
            }
            ApplyAnswer::Applied(applied) => {
                changed = true;
                conversation.applied(&reply.text, &applied.edited);
                seen.extend(applied.changes.iter().map(known));
                let built = harness.perform(Build { round })?;
                if built.passed() {
                    return Ok(Outcome::Done { rounds: round });
                }
                if !built.ended.has_started() {
                    let cause = not_started(&built);
                    break Outcome::Unfit { round, cause };
                }
                let rebuilt = built
                    .present
                    .iter()
                    .filter(|file| conversation.rebuilt(file));
                seen.extend(rebuilt.map(Present::known));
                let hints = changed_by(&built);
                (
                    if applied.changed_nothing() {
                        At::Unchanged
                    } else {
                        At::Build
                    },
                    built.output,
                    hints,
                )
            }
        };
        let failure = Failure::after(last_failure.take(), output.as_str());
        let times = failure.times();
        last_failure = Some(failure);
        if round >= limits.rounds {
            break Outcome::AttemptsUsedUp { rounds: round };
        }
        let output = told(&output, limits, times, at, &besides);
        prompt = match at {
            At::Build | At::Unchanged => conversation.built(&reply.text, &output),
            At::Reply => conversation.refused(&reply.text, &output),
        };
        round += 1;
    };
    if changed && limits.on_failure == OnFailure::Restore {
        harness.perform(Restore)?;
    }
    Ok(failed)
}

/// What the model knows of a file that it has changed.
fn known(change: &Changed) -> (String, Option<String>) {
    (change.path.clone(), change.after_sha256.clone())
}

/// Why a build that did not start ends the run: no reply can repair that (exit code 8).
fn not_started(built: &Built) -> Cause {
    let code = if built.ended == Ended::NotExecutable {
        "not-executable"
    } else {
        "not-found"
    };
    Cause {
        code: code.to_owned(),
        message: format!("the build {}", built.ended),
        remedy: Some(
            "check that the file and the interpreter in its first line exist and are executable"
                .to_owned(),
        ),
    }
}

fn unavailable(round: u32, cause: Cause) -> Outcome {
    Outcome::ModelUnavailable { round, cause }
}

/// What the next prompt says of a failure, and what it shows besides.
fn told(output: &Text, limits: &Limits, times: u32, at: At, besides: &str) -> String {
    let shown = shown(
        output.as_str(),
        output.whole_bytes(),
        limits.build_output_bytes,
    );
    let told = if times > 1 {
        format!("{shown}{}", notice(times, at))
    } else {
        shown.into_owned()
    };
    let line_break = if besides.is_empty() || told.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    told + line_break + besides
}

/// The build's own changes, which no reply has made: the model's idea of these files is not what they are.
fn changed_by(built: &Built) -> String {
    let changed = built
        .changes
        .iter()
        .filter_map(|file| Some(format!("{} {}", file.letter()?, file.path)));
    let restored = built
        .put_back
        .iter()
        .map(|path| format!("{path} (not allowed: it was restored)"));
    let lines: Vec<String> = changed.chain(restored).collect();
    let named = lines
        .iter()
        .take(MOST_NAMED)
        .map(|line| format!("{line}\n"))
        .collect::<String>();
    match lines.len().saturating_sub(MOST_NAMED) {
        _ if lines.is_empty() => String::new(),
        0 => format!("[code-commit] The build itself changed:\n{named}"),
        more => format!("[code-commit] The build itself changed:\n{named}and {more} more\n"),
    }
}

#[cfg(test)]
mod tests;
