//! What both commit loops are: ask, apply, build; after a failure ask again, a bounded number of
//! times.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use code_commit_engine::{
    Apply, ApplyAnswer, Ask, AskAnswer, Build, BuildBaseline, Built, Cause, Changed, Doubt, Ended,
    Harness, Outcome, Present, Rejected, Restore, Text,
};

use code_commit_prompt::commit::Repair;

use crate::excerpt::{failing_part, middle_left_out};
use crate::stuck::{At, Failure, notice};

/// A prompt has the beginning and the end of a build output that is longer than this, unless
/// [`Limits`] say otherwise. In bytes.
pub const BUILD_OUTPUT_BYTES: usize = 1024 * 1024;

/// A green build that took longer than this many milliseconds is not repeated without the run's changes.
const QUICK_BUILD_MS: u64 = 30_000;

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
    /// Give up after this many rounds with the same failure.
    pub same_failures: Option<u32>,
    /// What to do if the machine lacks what the build needs.
    pub on_unfit: OnUnfit,
    /// Whether a build that was green before the run is doubted, and a run ends when replies repeat. Runs of older
    /// versions did neither.
    pub earned: bool,
    /// What of a build's output a repair sends.
    pub repair: Repair,
}

/// What to do if the build also fails without the run's changes, because the machine or the project lacks
/// something.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnUnfit {
    /// End: no model can repair a machine.
    #[default]
    End,
    /// Ask for a repair, as after any failure.
    GoOn,
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
    /// This many rounds, [`BUILD_OUTPUT_BYTES`], changes kept, no giving up early.
    #[must_use]
    pub fn of_rounds(rounds: u32) -> Self {
        let (build_output_bytes, on_failure) = (BUILD_OUTPUT_BYTES, OnFailure::Keep);
        Self {
            rounds,
            build_output_bytes,
            on_failure,
            same_failures: None,
            on_unfit: OnUnfit::End,
            earned: false,
            repair: Repair::Whole,
        }
    }
}

/// Where the two loops differ: what the model is told.
pub(crate) trait Conversation {
    /// The first prompt.
    fn first(&self) -> String;

    /// The number of bytes at the beginning of every prompt that are the same in all of them.
    fn stable(&self) -> usize;

    /// The number of bytes at the beginning of every prompt that are the system instruction. S0 and S1 have none: all of
    /// their text is the prompt.
    fn system(&self) -> usize {
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
    H: Harness<Ask> + Harness<Apply> + Harness<Build> + Harness<BuildBaseline> + Harness<Restore>,
    H: Harness<Doubt>,
{
    let mut prompt = conversation.first();
    let (stable, system) = (conversation.stable(), conversation.system());
    let (mut changed, mut last_failure) = (false, None);
    let mut seen = BTreeMap::new();
    let mut cleared = Cleared::new(limits.on_unfit);
    let mut round = 1;
    let failed = loop {
        let reply = match harness.perform(Ask {
            round,
            prompt: prompt.into(),
            stable,
            system,
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
        })?;
        let (at, output, besides) = match answer {
            ApplyAnswer::Rejected(Rejected { report, shown, .. }) => {
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
                    cleared.doubt(harness, limits, &built)?;
                    return Ok(Outcome::Done { rounds: round });
                }
                if let Some(cause) = cleared.unfit(harness, &built)? {
                    break Outcome::Unfit { round, cause };
                }
                let rebuilt = built
                    .present
                    .iter()
                    .filter(|file| conversation.rebuilt(file));
                seen.extend(rebuilt.map(Present::known));
                let hints = built.hints.clone() + &changed_by(&built);
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
        let failure = Failure::after(last_failure.take(), output.as_str(), &reply.text);
        let (times, repeats) = (failure.times(), limits.earned && failure.repeats());
        last_failure = Some(failure);
        if repeats || limits.same_failures.is_some_and(|most| times >= most) {
            break Outcome::Stuck {
                rounds: round,
                times,
                repeats,
            };
        }
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

/// What is known of the build without the run's changes.
struct Cleared {
    on_unfit: OnUnfit,
    /// What a build lacked that it did not without them.
    lacks: Vec<Cause>,
    ended: Option<Ended>,
}

impl Cleared {
    fn new(on_unfit: OnUnfit) -> Self {
        Self {
            on_unfit,
            lacks: Vec::new(),
            ended: None,
        }
    }

    /// What the machine lacks, if that explains the failure. The output alone does not: a reply may have
    /// added a dependency, or call a program that does not exist.
    fn unfit<H: Harness<BuildBaseline>>(
        &mut self,
        harness: &mut H,
        built: &Built,
    ) -> Result<Option<Cause>, H::Stop> {
        let Some(lack) = built
            .lack
            .as_ref()
            .filter(|lack| !self.lacks.contains(lack))
        else {
            return Ok(None);
        };
        if self.on_unfit == OnUnfit::GoOn {
            return Ok(None);
        }
        let baseline = harness.perform(BuildBaseline { round: built.round })?;
        self.ended = baseline.ended;
        if baseline.lack.as_ref() == Some(lack) {
            return Ok(baseline.lack);
        }
        self.lacks.push(lack.clone());
        Ok(None)
    }

    /// Doubts a green build that was green before the run, too. That is tried once, and only where it is cheap: quick, and
    /// without changes of the build that would have to be set aside.
    fn doubt<H>(&self, harness: &mut H, limits: &Limits, built: &Built) -> Result<(), H::Stop>
    where
        H: Harness<BuildBaseline> + Harness<Doubt>,
    {
        let is_quick = built.elapsed_ms <= QUICK_BUILD_MS && built.changes.is_empty();
        let is_cheap = self.on_unfit == OnUnfit::End && is_quick;
        let ended = match self.ended {
            None if limits.earned && is_cheap => {
                harness.perform(BuildBaseline { round: built.round })?.ended
            }
            known => known.filter(|_| limits.earned),
        };
        if ended == Some(Ended::Exited(0)) {
            let said = "this build passed before the change, too: it does not show that the change does what was asked";
            harness.perform(Doubt::new("green-before", said))?;
        }
        Ok(())
    }
}

/// What the model knows of a file that it has changed.
fn known(change: &Changed) -> (String, Option<String>) {
    (change.path.clone(), change.after_sha256.clone())
}

fn unavailable(round: u32, cause: Cause) -> Outcome {
    Outcome::ModelUnavailable { round, cause }
}

/// What the next prompt says of a failure, and what it shows besides.
fn told(output: &Text, limits: &Limits, times: u32, at: At, besides: &str) -> String {
    let (text, limit) = (output.as_str(), limits.build_output_bytes);
    let part = match (limits.repair, at) {
        (Repair::Focused, At::Build | At::Unchanged) => failing_part(text),
        (Repair::Focused, At::Reply) | (Repair::Whole, _) => Cow::Borrowed(text),
    };
    let whole_bytes = if part.len() < text.len() {
        part.len()
    } else {
        output.whole_bytes()
    };
    let shown = middle_left_out(&part, whole_bytes, limit);
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
