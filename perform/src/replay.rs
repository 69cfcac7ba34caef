//! The world of a replay: answers of the model and the build come from the record; the harness's own work is
//! repeated in a scratch tree and compared.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use code_commit_engine::{
    Apply, ApplyAnswer, Ask, AskAnswer, BaselineBuilt, Build, BuildBaseline, Built, Changed,
    Commit, CommitAnswer, Difference, Digest, Live, Outcome, Problem, Recorded, Request, Restore,
    Restored, Text, World,
};
use code_commit_logging::RunFolder;

use serde_json::Value;

use crate::fault::Fault;
use crate::intake::{Intake, Rules, Shown};
use crate::record::{Past, Texts};

/// Why a replay ended before the recorded run did.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayFault {
    /// The result differs from the record.
    #[error(transparent)]
    Differs(Difference),
    /// The record ends here.
    #[error("the record ends before round {round} does")]
    RecordEnds {
        /// The round that was not recorded.
        round: u32,
    },
    /// The round up to which to replay is reached.
    #[error("round {round} is reached")]
    Reached {
        /// The round.
        round: u32,
    },
    /// The scratch tree could not be used.
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// Brings the scratch tree to the state that the recorded run found before its write in a round, since no
/// build runs that could change it.
pub type AsFound<'f> = Box<dyn FnMut(u32) -> io::Result<()> + 'f>;

/// A world that performs nothing: it stops at the first request that the record does not answer.
#[derive(Debug)]
pub struct RecordOnly {
    texts: Texts,
    /// The request that the record did not answer: its kind, and the request.
    pub pending: Option<(&'static str, Value)>,
    round: u32,
    /// How the recorded run ended.
    end: Option<Outcome>,
}

impl RecordOnly {
    /// For the run in this folder, whose journal holds `past`.
    pub fn new(folder: RunFolder, past: &Past) -> Self {
        Self {
            texts: past.texts(folder),
            pending: None,
            round: 0,
            end: past.outcome().cloned(),
        }
    }

    fn ends<A>(&self) -> Result<A, ReplayFault> {
        Err(ReplayFault::RecordEnds { round: self.round })
    }
}

impl World for RecordOnly {
    type Fault = ReplayFault;

    fn record(&mut self, _: &Recorded, _is_synced: bool) -> Result<(), ReplayFault> {
        self.ends()
    }

    fn fetch(&mut self, text: &mut Text) -> Result<(), ReplayFault> {
        Ok(self.texts.fetch(text).map_err(Fault::from)?)
    }

    fn fetch_output(&mut self, text: &mut Text) -> Result<(), ReplayFault> {
        Ok(self.texts.fetch_output(text).map_err(Fault::from)?)
    }

    fn recall(&mut self, digest: &Digest) -> Option<String> {
        self.texts.recall(digest)
    }

    fn end(&mut self, now: &Outcome) -> Result<(), ReplayFault> {
        let json = |outcome: &Outcome| serde_json::to_string(outcome).unwrap_or_default();
        match &self.end {
            None => Err(ReplayFault::RecordEnds { round: now.round() }),
            Some(recorded) if recorded == now => Ok(()),
            Some(recorded) => {
                let (then, now_json) = (json(recorded), json(now));
                Err(ReplayFault::Differs(Difference::between(
                    now.round(),
                    "the end",
                    &then,
                    &now_json,
                )))
            }
        }
    }
}

impl<R: Request> Live<R> for RecordOnly {
    fn perform(&mut self, request: &R) -> Result<R::Answer, ReplayFault> {
        self.round = request.round().unwrap_or(self.round);
        self.pending = Some((R::KIND, serde_json::to_value(request).unwrap_or_default()));
        self.ends()
    }

    fn replayed(&mut self, request: &R, _: &R::Answer) -> Result<(), ReplayFault> {
        self.round = request.round().unwrap_or(self.round);
        Ok(())
    }
}

/// The world of a commit loop's replay.
pub struct Replayed<'f> {
    /// The scratch tree.
    pub rules: Rules,
    /// Where pre-images of the scratch tree go.
    undo: PathBuf,
    /// Replay up to the prompt of this round, and no further.
    until: Option<u32>,
    as_found: AsFound<'f>,
    /// The code that the model was sent.
    codebase: Arc<str>,
    only: RecordOnly,
}

impl<'f> Replayed<'f> {
    /// A replay in this scratch tree of a run whose model was sent this code.
    pub fn new(
        only: RecordOnly,
        rules: Rules,
        undo: PathBuf,
        as_found: AsFound<'f>,
        codebase: Arc<str>,
    ) -> Self {
        Self {
            rules,
            undo,
            until: None,
            as_found,
            codebase,
            only,
        }
    }

    /// Ends the replay at the prompt of this round.
    #[must_use]
    pub fn until(self, round: u32) -> Self {
        Self {
            until: Some(round),
            ..self
        }
    }
}

impl World for Replayed<'_> {
    type Fault = ReplayFault;

    fn record(&mut self, entry: &Recorded, is_synced: bool) -> Result<(), ReplayFault> {
        World::record(&mut self.only, entry, is_synced)
    }

    fn fetch(&mut self, text: &mut Text) -> Result<(), ReplayFault> {
        self.only.fetch(text)
    }

    fn fetch_output(&mut self, text: &mut Text) -> Result<(), ReplayFault> {
        self.only.fetch_output(text)
    }

    fn recall(&mut self, digest: &Digest) -> Option<String> {
        self.only.recall(digest)
    }

    fn end(&mut self, outcome: &Outcome) -> Result<(), ReplayFault> {
        self.only.end(outcome)
    }
}

impl Live<Ask> for Replayed<'_> {
    fn perform(&mut self, ask: &Ask) -> Result<AskAnswer, ReplayFault> {
        self.reached(ask.round)?;
        self.only.perform(ask)
    }

    fn replayed(&mut self, ask: &Ask, _: &AskAnswer) -> Result<(), ReplayFault> {
        self.reached(ask.round)
    }
}

impl Live<Apply> for Replayed<'_> {
    fn perform(&mut self, apply: &Apply) -> Result<ApplyAnswer, ReplayFault> {
        self.only.perform(apply)
    }

    /// Judges and applies the reply again.
    fn replayed(&mut self, apply: &Apply, recorded: &ApplyAnswer) -> Result<(), ReplayFault> {
        let Apply { round, reply, seen } = apply;
        (self.as_found)(*round).map_err(Fault::file("look at", &self.rules.root))?;
        let shown = Shown::Prompts {
            codebase: &self.codebase,
            seen,
        };
        let now = match self
            .rules
            .take_in(reply, shown, &self.undo.join(round.to_string()))?
        {
            Intake::Applied { applied, .. } => written(&applied.changes),
            Intake::Rejected { problems, .. } => listed(&problems),
        };
        let then = match recorded {
            ApplyAnswer::Applied(applied) => written(&applied.changes),
            ApplyAnswer::Rejected(rejected) => listed(&rejected.problems),
        };
        let what = "what the reply changed";
        if then == now {
            Ok(())
        } else {
            Err(ReplayFault::Differs(Difference::between(
                *round, what, &then, &now,
            )))
        }
    }
}

impl Live<Build> for Replayed<'_> {
    fn perform(&mut self, build: &Build) -> Result<Built, ReplayFault> {
        self.only.perform(build)
    }
}

impl Live<BuildBaseline> for Replayed<'_> {
    fn perform(&mut self, build: &BuildBaseline) -> Result<BaselineBuilt, ReplayFault> {
        self.only.perform(build)
    }
}

impl Live<Restore> for Replayed<'_> {
    fn perform(&mut self, restore: &Restore) -> Result<Restored, ReplayFault> {
        self.only.perform(restore)
    }
}

impl Live<Commit> for Replayed<'_> {
    fn perform(&mut self, commit: &Commit) -> Result<CommitAnswer, ReplayFault> {
        self.only.perform(commit)
    }
}

impl Replayed<'_> {
    fn reached(&self, round: u32) -> Result<(), ReplayFault> {
        if self.until == Some(round) {
            Err(ReplayFault::Reached { round })
        } else {
            Ok(())
        }
    }
}

/// Every path with its hashes.
fn written(changes: &[Changed]) -> String {
    let hash = |hash: &Option<String>| hash.clone().unwrap_or_else(|| "nothing".to_owned());
    let line = |change: &Changed| {
        format!(
            "{}: {} -> {}\n",
            change.path,
            hash(&change.before_sha256),
            hash(&change.after_sha256)
        )
    };
    changes.iter().map(line).collect()
}

fn listed(problems: &[Problem]) -> String {
    problems
        .iter()
        .map(|problem| format!("{}: {}\n", problem.code, problem.message))
        .collect()
}
