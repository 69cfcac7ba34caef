//! The world of a phase, in memory.

use std::collections::{BTreeMap, VecDeque};

use code_commit_engine::{
    Announced, Committed, Digest, Durability, Identified, Journaled, Listed, Live, ModelUsage,
    Named, NotCommitted, Recorded, Stop, Text, TurnEnd, Usage, Waited, WasRead, Wrote,
};

use super::*;
use crate::state::State;

/// What a verification leaves at the path of `failed_specs.md`.
#[derive(Clone, Copy)]
pub(super) enum Left {
    Nothing,
    Text(&'static str),
    Odd,
}

/// Gives the prepared answers, keeps the requests and the journal, and can stop the run.
#[derive(Clone, Default)]
pub(super) struct World {
    /// How turns end; all further turns end well.
    pub(super) turns: VecDeque<TurnAnswer>,
    /// What verifications leave; all further ones leave nothing.
    pub(super) left: VecDeque<Left>,
    /// Other files of the tests, by what they hold in each reading; the last one stays.
    pub(super) files: BTreeMap<&'static str, VecDeque<&'static str>>,
    pub(super) git_fails: bool,
    /// Somebody changes the source in each verifier's turn.
    pub(super) src_changes: bool,
    /// When the specs are edited, counted in looks at them from 1, with the new text of phase 1.
    pub(super) edits: Vec<(usize, &'static str)>,
    pub(super) looks: usize,
    /// The performed requests, one per line.
    pub(super) steps: Vec<String>,
    /// The prompts and their roles.
    pub(super) prompts: Vec<(Role, String)>,
    /// The last state.
    pub(super) state: State,
    /// The rows added to `tokens.csv`.
    pub(super) rows: String,
    pub(super) journal: Vec<Recorded>,
    /// The run is stopped after this many answers.
    pub(super) stop_after: Option<usize>,
    pub(super) texts: BTreeMap<String, String>,
}

/// The run was stopped.
#[derive(Debug)]
pub(super) struct Stopped;

impl World {
    pub(super) fn new(turns: &[TurnAnswer], left: &[Left]) -> Self {
        Self {
            turns: turns.to_vec().into(),
            left: left.to_vec().into(),
            ..Self::default()
        }
    }

    /// Runs the phase after these answers; returns its outcome and the final world.
    pub(super) fn run(self, inputs: &Inputs) -> (Option<Outcome>, Self) {
        let recorded = self.journal.clone();
        let mut harness = Journaled::new(self, recorded);
        let outcome = match phase(&mut harness, inputs) {
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
        assert!(self.steps.len() < 200, "no end: {:#?}", self.steps);
        Ok(())
    }

    fn text(&mut self, text: &str) -> Text {
        let file = self.texts.len().to_string();
        self.texts.insert(file.clone(), text.to_owned());
        Text::in_file(&file, text)
    }
}

pub(super) fn ended(how: &str, said: &str, then: TurnAdvice) -> TurnEnd {
    TurnEnd {
        how: how.to_owned(),
        said: said.to_owned(),
        then,
        asks_for_another: false,
    }
}

/// A turn with this end, and with a report if it ended well.
pub(super) fn turned(role: Role, end: TurnEnd) -> Turned {
    let usage = Usage {
        input_tokens: Some(1),
        output_tokens: Some(2),
        ..Usage::default()
    };
    Turned {
        number: 1,
        role: role.name().to_owned(),
        changed: if end.is_ok() {
            vec![format!("{}1.md", reports(role.name()))]
        } else {
            Vec::new()
        },
        end,
        answer: Text::in_file("answer", ""),
        session: None,
        usage: vec![ModelUsage {
            model: "m".to_owned(),
            usage,
            cost_usd: None,
        }],
        cost_usd: None,
        denials: Vec::new(),
        gone: Vec::new(),
        put_back: Vec::new(),
        went_on: false,
        markers: Vec::new(),
        elapsed_ms: 1,
        at: "t".to_owned(),
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
            self.texts
                .get(&text.stored.file)
                .map(String::as_str)
                .unwrap_or_default()
                .into(),
        );
        Ok(())
    }

    fn fetch_output(&mut self, text: &mut Text) -> Result<(), Stopped> {
        self.fetch(text)
    }

    fn recall(&mut self, _: &Digest) -> Option<String> {
        None
    }

    fn end(&mut self, _: &Outcome) -> Result<(), Stopped> {
        Ok(())
    }
}

fn named(At { place, file }: &At<Place>) -> code_commit_engine::Place {
    At::new(place.name().to_owned(), file)
}

fn path(At { place, file }: &At<Place>) -> String {
    format!("{}/{file}", place.name())
}

impl Live<List<Phases>> for World {
    fn perform(&mut self, List { role }: &List<Phases>) -> Result<Listed, Stopped> {
        self.step(format!("list {}", role.name()))?;
        Ok(Listed {
            role: role.name().to_owned(),
            list: self.text("a\n"),
            at: "t".to_owned(),
        })
    }
}

/// Nobody waits until then.
pub(super) const TOO_LONG: u64 = 1_000_000;

impl Live<Wait> for World {
    fn perform(&mut self, Wait { until_unix, .. }: &Wait) -> Result<Waited, Stopped> {
        self.step(format!("wait until {until_unix}"))?;
        Ok(Waited {
            until_unix: *until_unix,
            is_too_long: *until_unix == TOO_LONG,
        })
    }
}

impl Live<Turn<Phases>> for World {
    fn perform(
        &mut self,
        Turn {
            role,
            prompt,
            choice,
            goes_on,
            ..
        }: &Turn<Phases>,
    ) -> Result<TurnAnswer, Stopped> {
        let mut step = format!("turn {}", role.name());
        step.extend((*choice > 0).then(|| format!(" by agent {choice}")));
        step.extend(
            goes_on
                .iter()
                .map(|session| format!(" where {session} was cut off")),
        );
        self.step(step)?;
        self.prompts.push((*role, prompt.to_string()));
        let good = || {
            TurnAnswer::Turned(Box::new(turned(
                *role,
                ended("ok", "answered", TurnAdvice::Use),
            )))
        };
        let answer = self.turns.pop_front().unwrap_or_else(good);
        if let TurnAnswer::Turned(turned) = &answer {
            assert_eq!(turned.role, role.name(), "{:#?}", self.steps);
        }
        Ok(answer)
    }
}

impl Live<CommitAll<Phases>> for World {
    fn perform(&mut self, commit: &CommitAll<Phases>) -> Result<CommitAnswer, Stopped> {
        self.step(format!(
            "{} {} {}",
            if commit.is_mark { "mark" } else { "commit" },
            commit.repository.name(),
            commit.message
        ))?;
        if self.git_fails {
            return Ok(CommitAnswer::NotCommitted(NotCommitted {
                message: "no space left".to_owned(),
                changed: None,
            }));
        }
        Ok(CommitAnswer::Committed(Committed {
            repository: None,
            message: None,
            commit: None,
        }))
    }
}

impl World {
    /// The text of phase 1, if it was edited by now.
    fn edited(&self) -> Option<&'static str> {
        let edits = self.edits.iter().rev();
        edits
            .copied()
            .find(|(look, _)| *look <= self.looks)
            .map(|(_, text)| text)
    }
}

impl Live<Identify<Phases>> for World {
    fn perform(&mut self, Identify { place }: &Identify<Phases>) -> Result<Identified, Stopped> {
        if *place != Place::Specs {
            self.step(format!("identify {}", place.name()))?;
            let sha256 = if self.src_changes {
                format!("tree {}", self.prompts.len())
            } else {
                "tree".to_owned()
            };
            return Ok(Identified {
                place: place.name().to_owned(),
                sha256: Some(sha256),
            });
        }
        // Before each step: it would be every second line.
        self.quietly()?;
        self.looks += 1;
        let sha256 = self.edited().map(|text| Digest::of(text).sha256);
        Ok(Identified {
            place: place.name().to_owned(),
            sha256,
        })
    }
}

impl Live<Announce> for World {
    fn perform(&mut self, Announce(event): &Announce) -> Result<Announced, Stopped> {
        self.step(event.to_string())?;
        Ok(Announced {
            event: event.clone(),
        })
    }
}

impl Live<Read<Phases>> for World {
    fn perform(&mut self, Read(at): &Read<Phases>) -> Result<WasRead, Stopped> {
        self.step(format!("read {}", path(at)))?;
        let (text, odd) = if at.place == Place::Specs {
            (self.edited(), false)
        } else if let Some(texts) = self.files.get_mut(at.file.as_str()) {
            let next = (texts.len() > 1).then(|| texts.pop_front()).flatten();
            (next.or_else(|| texts.front().copied()), false)
        } else if at.file == crate::FAILED_SPECS {
            match self.left.pop_front().unwrap_or(Left::Nothing) {
                Left::Nothing => (None, false),
                Left::Text(text) => (Some(text), false),
                Left::Odd => (None, true),
            }
        } else {
            (None, false)
        };
        Ok(WasRead {
            place: named(at),
            text: text.map(|text| self.text(text)),
            odd,
        })
    }
}

impl Live<Replace<Phases>> for World {
    fn perform(&mut self, Replace { at, text }: &Replace<Phases>) -> Result<Wrote, Stopped> {
        let line = if at.file == STATE {
            let state: State = serde_json::from_str(text).unwrap();
            let State { current, .. } = &state;
            let line = format!("state {:?} {}", current.status, current.verifier_iteration);
            self.state = state;
            line
        } else {
            format!("write {}", path(at))
        };
        self.step(line)?;
        Ok(Wrote { place: named(at) })
    }
}

impl Live<Append<Phases>> for World {
    fn perform(&mut self, Append { at, head, text }: &Append<Phases>) -> Result<Wrote, Stopped> {
        self.step(format!("append {} {}", path(at), text.lines().count()))?;
        assert_eq!(*head, HEADER);
        self.rows.push_str(text);
        Ok(Wrote { place: named(at) })
    }
}

impl Live<Delete<Phases>> for World {
    fn perform(&mut self, Delete(at): &Delete<Phases>) -> Result<Wrote, Stopped> {
        self.step(format!("delete {}", path(at)))?;
        Ok(Wrote { place: named(at) })
    }
}
