//! The world of a run, in memory.

use std::collections::{BTreeMap, VecDeque};

use code_commit_engine::{
    Announced, CheckpointResult, Checkpointed, Digest, Durability, Ended, Identified, Journaled,
    LimitReached, Live, Marked, Named, Recorded, ShellRan, Stop, Surveyed, Text, TurnAdvice,
    TurnAnswer, TurnEnd, Turned, Waited, WasRead, Wrote,
};

use super::*;

/// How a turn ends, by its code, and its markers: `DONE all`. Changes of a turn that is `restored` were
/// restored, and one of `specs` changes a spec.
pub(super) type Says = (&'static str, &'static [&'static str]);

/// Answers that all is well, except for turns; keeps the requests and the journal, and can stop the
/// run.
#[derive(Clone, Default)]
pub(super) struct World {
    /// How turns end. The run is stopped after the last one.
    pub(super) turns: VecDeque<(&'static str, Vec<&'static str>)>,
    /// The performed requests, one per line.
    pub(super) steps: Vec<String>,
    /// The prompts.
    pub(super) prompts: Vec<String>,
    /// The events.
    pub(super) told: Vec<PhaseEvent>,
    /// The last content of each file, by path.
    pub(super) files: BTreeMap<String, String>,
    pub(super) journal: Vec<Recorded>,
    /// The run is stopped after this many answers.
    pub(super) stop_after: Option<usize>,
    /// How many turns there have been when a place is changed by a person: `specs`, `project`.
    pub(super) edits: Vec<(usize, &'static str)>,
}

/// The run was stopped.
#[derive(Debug)]
pub(super) struct Stopped;

impl World {
    pub(super) fn new(turns: &[Says]) -> Self {
        let turns = turns
            .iter()
            .map(|(end, markers)| (*end, markers.to_vec()))
            .collect();
        Self {
            turns,
            ..Self::default()
        }
    }

    /// Runs after these answers; returns the outcome and the final world.
    pub(super) fn run(self, inputs: &Inputs) -> (Option<Outcome>, Self) {
        let recorded = self.journal.clone();
        let mut harness = Journaled::new(self, recorded);
        let outcome = match spec(&mut harness, inputs) {
            Ok(outcome) => Some(outcome),
            Err(Stop::Fault(Stopped)) => None,
            Err(stop) => panic!("{stop:?}"),
        };
        (outcome, harness.into_world())
    }

    fn quietly(&self) -> Result<(), Stopped> {
        let is_last = self
            .stop_after
            .is_some_and(|most| self.journal.len() >= most);
        if is_last { Err(Stopped) } else { Ok(()) }
    }

    fn step(&mut self, line: String) -> Result<(), Stopped> {
        self.quietly()?;
        self.steps.push(line);
        assert!(self.steps.len() < 1000, "no end: {:#?}", self.steps);
        Ok(())
    }
}

pub(super) fn limit(code: &str) -> Cause {
    Cause {
        code: code.to_owned(),
        message: "the run has used what it may".to_owned(),
        remedy: None,
    }
}

/// Nobody waits until then.
const TOO_LONG: u64 = 1_000_000;

fn ended(how: &str) -> TurnEnd {
    let (how, said, then) = match how {
        "ok" => (how, "answered", TurnAdvice::Use),
        "daily-quota" => (how, "has used up its quota", TurnAdvice::WaitUntil(99)),
        "long-quota" => (
            "daily-quota",
            "has used up its quota",
            TurnAdvice::WaitUntil(TOO_LONG),
        ),
        "overloaded" => (how, "found its service overloaded", TurnAdvice::Stop),
        "lost-session" => (how, "no longer knows the session", TurnAdvice::Renew),
        "no-result" => (how, "ended without a result", TurnAdvice::Stop),
        "interrupted" => (how, "was interrupted", TurnAdvice::Repeat),
        "permission-denied" => (how, "was denied tools that it needed", TurnAdvice::Stop),
        "bad-key" => (how, "could not log in to its service", TurnAdvice::Stop),
        "timeout" => (how, "ran out of time", TurnAdvice::Stop),
        "out-of-time" => (
            "timeout",
            "ran out of time",
            TurnAdvice::Limit(limit("limit-time")),
        ),
        other => panic!("no turn ends as {other}"),
    };
    TurnEnd {
        how: how.to_owned(),
        said: said.to_owned(),
        then,
        asks_for_another: ["daily-quota", "overloaded"].contains(&how),
    }
}

pub(crate) fn turned(number: u32, role: Role, how: &str, markers: &[&str]) -> Turned {
    let marker = |line: &&str| {
        let (name, content) = line.split_once(' ').unwrap_or((line, ""));
        Marked {
            name: name.to_owned(),
            content: content.to_owned(),
        }
    };
    Turned {
        number,
        role: role.name().to_owned(),
        end: ended(how),
        answer: Text::in_file("answer", ""),
        markers: markers.iter().map(marker).collect(),
        session: Some(format!("session-{number}")),
        usage: Vec::new(),
        cost_usd: None,
        denials: Vec::new(),
        changed: vec!["src.txt".to_owned()],
        gone: Vec::new(),
        put_back: Vec::new(),
        went_on: false,
        elapsed_ms: 1,
        at: String::new(),
    }
}

impl code_commit_engine::World for World {
    type Fault = Stopped;

    fn record(&mut self, entry: &Recorded, _durability: Durability) -> Result<(), Stopped> {
        self.journal.push(entry.clone());
        Ok(())
    }

    fn fetch(&mut self, text: &mut Text) -> Result<(), Stopped> {
        text.fill(
            if text.stored.file == "plan" {
                "# Plan\n"
            } else {
                ""
            }
            .into(),
        );
        Ok(())
    }

    fn fetch_output(&mut self, text: &mut Text) -> Result<(), Stopped> {
        text.fill("printed".into());
        Ok(())
    }

    fn recall(&mut self, _: &Digest) -> Option<String> {
        None
    }

    fn end(&mut self, _: &Outcome) -> Result<(), Stopped> {
        Ok(())
    }
}

fn wrote(at: &At<Place>) -> Wrote {
    Wrote {
        place: At::new(at.place.name().to_owned(), &at.file),
    }
}

impl Live<Turn<Specs>> for World {
    fn perform(&mut self, turn: &Turn<Specs>) -> Result<TurnAnswer, Stopped> {
        let Some((how, markers)) = self.turns.front().cloned() else {
            return Err(Stopped);
        };
        let mut step = turn.role.name().to_owned();
        step.extend((turn.choice > 0).then(|| format!(" by agent {}", turn.choice)));
        step.extend(
            turn.goes_on
                .iter()
                .map(|session| format!(" where {session} was cut off")),
        );
        self.step(step)?;
        self.turns.pop_front();
        self.prompts.push(turn.prompt.to_string());
        if how == "limit-cost" {
            return Ok(TurnAnswer::LimitReached(LimitReached { cause: limit(how) }));
        }
        let number = u32::try_from(self.prompts.len()).unwrap();
        let end = if ["restored", "specs"].contains(&how) {
            "ok"
        } else {
            how
        };
        let mut turned = turned(number, turn.role, end, &markers);
        turned
            .changed
            .extend((how == "specs").then(|| ".specs/a.md".to_owned()));
        turned
            .put_back
            .extend((how == "restored").then(|| "src.txt".to_owned()));
        Ok(TurnAnswer::Turned(Box::new(turned)))
    }
}

impl Live<Shell> for World {
    fn perform(&mut self, Shell { name, line }: &Shell) -> Result<ShellRan, Stopped> {
        self.step(format!("{name}: {line}"))?;
        let (name, output) = ((*name).to_owned(), Text::in_file("output", "printed"));
        Ok(ShellRan {
            number: 1,
            name,
            ended: Ended::Exited(0),
            output,
            elapsed_ms: 1,
        })
    }
}

impl Live<Survey<Specs>> for World {
    fn perform(&mut self, Survey { repository }: &Survey<Specs>) -> Result<Surveyed, Stopped> {
        self.step("survey".to_owned())?;
        let (repository, head) = (repository.name().to_owned(), Some("abc".to_owned()));
        let uncommitted = vec![Uncommitted {
            path: "mine.txt".to_owned(),
            sha256: None,
        }];
        Ok(Surveyed {
            repository,
            head,
            uncommitted,
        })
    }
}

impl Live<Checkpoint<Specs>> for World {
    fn perform(&mut self, checkpoint: &Checkpoint<Specs>) -> Result<Checkpointed, Stopped> {
        let Checkpoint {
            repository,
            message,
            spare,
        } = checkpoint;
        let spare: String = spare
            .iter()
            .map(|file| format!(" without {}", file.path))
            .collect();
        self.step(format!("checkpoint{spare}: {message}"))?;
        let checkpoint = CheckpointResult::Failed {
            error: "git is gone".to_owned(),
        };
        Ok(Checkpointed {
            repository: repository.name().to_owned(),
            message: message.clone(),
            checkpoint,
        })
    }
}

impl Live<Identify<Specs>> for World {
    fn perform(&mut self, Identify { place }: &Identify<Specs>) -> Result<Identified, Stopped> {
        // Before each turn: it would be every second line.
        self.quietly()?;
        let edits = self
            .edits
            .iter()
            .filter(|(turns, what)| *what == place.name() && *turns <= self.prompts.len());
        Ok(Identified {
            place: place.name().to_owned(),
            sha256: Some(edits.count().to_string()),
        })
    }
}

impl Live<Wait> for World {
    fn perform(
        &mut self,
        Wait {
            until_unix,
            at_least_secs,
            ..
        }: &Wait,
    ) -> Result<Waited, Stopped> {
        self.step(format!(
            "wait until {until_unix}, at least {at_least_secs} s"
        ))?;
        Ok(Waited {
            until_unix: *until_unix,
            is_too_long: *until_unix == TOO_LONG,
        })
    }
}

impl Live<Announce> for World {
    fn perform(&mut self, Announce(event): &Announce) -> Result<Announced, Stopped> {
        self.step(format!("({})", event["event"].as_str().unwrap()))?;
        self.told.push(PhaseEvent::of_json(event).unwrap());
        Ok(Announced {
            event: event.clone(),
        })
    }
}

impl Live<Read<Specs>> for World {
    fn perform(&mut self, Read(at): &Read<Specs>) -> Result<WasRead, Stopped> {
        self.step(format!("read {}", Files::path(at)))?;
        let text = Some(Text::in_file("plan", "# Plan\n"));
        Ok(WasRead {
            place: wrote(at).place,
            text,
            odd: false,
        })
    }
}

impl Live<Replace<Specs>> for World {
    fn perform(&mut self, Replace { at, text }: &Replace<Specs>) -> Result<Wrote, Stopped> {
        self.step(format!("write {}", Files::path(at)))?;
        self.files.insert(Files::path(at), text.to_string());
        Ok(wrote(at))
    }
}

impl Live<Delete<Specs>> for World {
    fn perform(&mut self, Delete(at): &Delete<Specs>) -> Result<Wrote, Stopped> {
        self.step(format!("delete {}", Files::path(at)))?;
        Ok(wrote(at))
    }
}
