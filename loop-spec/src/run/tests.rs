//! Facts in, steps out.

#![expect(clippy::wildcard_enum_match_arm, reason = "a test names what it looks for")]

use agent::{End, Session};
use logging::Stored;
use perform::{Marked, Text};
use proptest::prelude::*;

use super::*;
use crate::{CommitScope, Patience};
use perform::{Checkpoint, Ended, Turned};

mod limits;

const ID: &str = "0190a0a0-0000-7000-8000-000000000000";

fn text(text: &str) -> Text {
    Text::new(Stored { file: "f".to_owned(), bytes: 0, sha256: String::new() }, text.into())
}

/// A turn that ended like this, with these markers: `DONE all`.
fn turned(number: u32, role: &str, end: End, markers: &[&str]) -> AgentFact {
    let marker = |line: &&str| {
        let (name, content) = line.split_once(' ').unwrap_or((line, ""));
        Marked { name: name.to_owned(), content: content.to_owned() }
    };
    AgentFact::Turned(Box::new(Turned {
        number,
        role: role.to_owned(),
        end,
        answer: text(""),
        markers: markers.iter().map(marker).collect(),
        session: Some(format!("session-{number}")),
        usage: Vec::new(),
        cost_usd: None,
        denials: Vec::new(),
        changed: vec!["src.txt".to_owned()],
        gone: Vec::new(),
        put_back: Vec::new(),
        elapsed_ms: 1,
        at: String::new(),
    }))
}

/// What a step ends in where nothing goes wrong.
fn answer(step: &AgentStep, turn: &mut dyn FnMut(u32, &str) -> AgentFact) -> AgentFact {
    match step {
        AgentStep::Turn { number, role, .. } => turn(*number, role),
        AgentStep::Shell { number, name, .. } => AgentFact::Ran {
            number: *number,
            name: name.clone(),
            ended: Ended::Exited(0),
            output: text("printed"),
            elapsed_ms: 1,
        },
        AgentStep::Survey { repository } => AgentFact::Surveyed {
            repository: repository.clone(),
            head: Some("abc".to_owned()),
            uncommitted: Vec::new(),
        },
        AgentStep::Checkpoint { repository, message, .. } => AgentFact::Checkpointed {
            repository: repository.clone(),
            message: message.clone(),
            checkpoint: Checkpoint::Nothing,
        },
        AgentStep::Wait { until_unix, .. } => AgentFact::Waited { until_unix: *until_unix },
        AgentStep::Announce(event) => AgentFact::Announced { event: event.clone() },
        AgentStep::Read(place) => {
            AgentFact::WasRead { place: place.clone(), text: Some(text("# Plan\n")), odd: false }
        }
        AgentStep::Write { place, .. } | AgentStep::Append { place, .. } | AgentStep::Delete(place) => {
            AgentFact::Wrote { place: place.clone() }
        }
        AgentStep::List { .. } | AgentStep::Commit { .. } => panic!("the loop does not ask for {step:?}"),
    }
}

fn line(step: &AgentStep) -> Option<String> {
    Some(match step {
        AgentStep::Turn { role, session, .. } => match session {
            Session::Resume(id) => format!("{role} goes on with {id}"),
            Session::New(_) | Session::None => role.clone(),
        },
        AgentStep::Shell { name, line, .. } => format!("{name}: {line}"),
        AgentStep::Survey { .. } => "survey".to_owned(),
        AgentStep::Checkpoint { message, .. } => format!("checkpoint: {message}"),
        AgentStep::Wait { until_unix, at_least_secs } => {
            format!("wait until {until_unix}, at least {at_least_secs} s")
        }
        AgentStep::Announce(event) => format!("({})", event.get("event")?.as_str()?),
        AgentStep::Write { place, .. } if place.place == crate::ISSUES => "keep the issue".to_owned(),
        _ => return None,
    })
}

/// Lets the turns be these, in order; gives what was done, and the outcome.
fn play(inputs: Inputs, turns: &[(End, &[&str])]) -> String {
    let mut decide = SpecLoop::new(inputs);
    let mut turns = turns.iter();
    let mut lines = Vec::new();
    loop {
        match decide.next() {
            Next::Do(step) => {
                lines.extend(line(&step));
                let mut turn = |number, role: &str| {
                    let (end, markers) = turns.next().expect("a turn more");
                    turned(number, role, end.clone(), markers)
                };
                decide.learn(&answer(&step, &mut turn));
            }
            Next::Stop(outcome) => {
                lines.push(match outcome {
                    Outcome::ModelUnavailable { cause, .. } => format!("= {}: {}", cause.code, cause.message),
                    other => {
                        format!("= {}", serde_json::to_value(&other).unwrap()["outcome"].as_str().unwrap())
                    }
                });
                return lines.join("\n");
            }
        }
    }
}

const PLANNED: (End, &[&str]) = (End::Ok, &["PLAN_COMPLETE"]);
const DONE_ALL: (End, &[&str]) = (End::Ok, &["DONE all"]);
const APPROVED: (End, &[&str]) = (End::Ok, &["APPROVED"]);

#[test]
fn setup_runs_after_planning_and_check_before_everything_else() {
    let inputs = Inputs {
        setup: Some("npm ci".into()),
        check: Some("npm test".into()),
        commit: Some(CommitScope::Run),
        max_iterations: 2,
        ..Inputs::new(ID, "X")
    };
    let turns = [
        PLANNED,
        (End::Ok, &["PROGRESS one"]),
        DONE_ALL,
        (End::Ok, &["REQUEST_CHANGES no"]),
        PLANNED,
        DONE_ALL,
        APPROVED,
    ];
    insta::assert_snapshot!(play(inputs, &turns), @"
    survey
    (IterationStart)
    (PlanningStart)
    planning
    setup: npm ci
    check: npm test
    (ImplementingStart)
    implementing
    checkpoint: one
    check: npm test
    (ImplementingStart)
    implementing
    checkpoint: all
    check: npm test
    (ReviewingStart)
    reviewing
    (IterationStart)
    (PlanningStart)
    planning
    setup: npm ci
    check: npm test
    (ImplementingStart)
    implementing
    checkpoint: all
    check: npm test
    (ReviewingStart)
    reviewing
    (LoopApproved)
    = done
    ");
}

#[test]
fn a_quota_is_waited_for_or_ends_the_run() {
    let used_up = (End::Quota { message: "limit".into(), resets_unix: Some(99) }, &[][..]);
    let turns = [PLANNED, used_up, DONE_ALL, APPROVED];
    let patient = Inputs { patience: Patience::Wait, ..Inputs::new(ID, "X") };
    insta::assert_snapshot!(play(patient, &turns), @"
    (IterationStart)
    (PlanningStart)
    planning
    (ImplementingStart)
    implementing
    (QuotaWaitStart)
    wait until 99, at least 1 s
    implementing
    (ReviewingStart)
    reviewing
    (LoopApproved)
    = done
    ");
    insta::assert_snapshot!(play(Inputs::new(ID, "X"), &turns), @"
    (IterationStart)
    (PlanningStart)
    planning
    (ImplementingStart)
    implementing
    = quota: implementing: the agent has used up its quota: limit
    ");
}

#[test]
fn a_lost_session_is_tried_once_more_in_a_fresh_one() {
    let turns = [PLANNED, (End::Ok, &[][..]), (End::LostSession, &[]), (End::LostSession, &[])];
    insta::assert_snapshot!(play(Inputs::new(ID, "X"), &turns), @"
    (IterationStart)
    (PlanningStart)
    planning
    (ImplementingStart)
    implementing
    (RetryStart)
    implementing goes on with session-2
    (RetryStart)
    implementing
    = lost-session: implementing: the agent does not know the session any more
    ");
}

#[test]
fn what_another_try_cannot_help_ends_the_run_at_once() {
    let auth = End::Auth { message: "not logged in".into() };
    insta::assert_snapshot!(play(Inputs::new(ID, "X"), &[(auth, &[])]), @"
    (IterationStart)
    (PlanningStart)
    planning
    = auth: planning: the agent could not log in to its service: not logged in
    ");
}

#[test]
fn a_turn_that_a_kill_cut_off_gets_a_number_and_a_session_of_its_own() {
    let mut decide = SpecLoop::new(Inputs::new(ID, "X"));
    for _ in 0..2 {
        let Next::Do(step) = decide.next() else { panic!("there is more") };
        decide.learn(&answer(&step, &mut |_, _| panic!("no turn yet")));
    }
    let session = |decide: &SpecLoop| match decide.next() {
        Next::Do(AgentStep::Turn { number, session: Session::New(id), .. }) => (number, id),
        other => panic!("{other:?}"),
    };
    assert_eq!(session(&decide), (1, "0190a0a0-0000-7000-8000-000000000001".to_owned()));
    decide.learn(&AgentFact::TurnBegins {
        number: 1,
        role: "planning".into(),
        prompt: text(""),
        at: String::new(),
    });
    assert_eq!(session(&decide), (2, "0190a0a0-0000-7000-8000-000000000002".to_owned()));
}

/// Plays these turns to their end; the facts.
fn facts_of(decide: &mut SpecLoop, turns: &[(End, &[&str])]) -> Vec<AgentFact> {
    let (mut facts, mut turns) = (Vec::new(), turns.iter());
    while let Next::Do(step) = decide.next() {
        facts.push(answer(&step, &mut |number, role| {
            let (end, markers) = turns.next().expect("a turn more");
            turned(number, role, end.clone(), markers)
        }));
        decide.learn(facts.last().unwrap());
    }
    facts
}

#[test]
fn a_run_that_ended_for_want_of_an_agent_asks_for_the_turn_that_had_no_end() {
    let auth = End::Auth { message: "not logged in".into() };
    let mut decide = SpecLoop::new(Inputs::new(ID, "X"));
    let facts = facts_of(&mut decide, &[PLANNED, (auth, &[])]);
    let mut again = SpecLoop::new(Inputs::new(ID, "X"));
    facts.iter().chain([&AgentFact::Resumed]).for_each(|fact| again.learn(fact));
    assert!(
        matches!(again.next(), Next::Do(AgentStep::Turn { number: 3, ref role, .. }) if role == "implementing")
    );
    facts_of(&mut again, &[DONE_ALL, APPROVED]);
    assert!(matches!(again.next(), Next::Stop(Outcome::Done { rounds: 1 })), "{:?}", again.next());
}

#[test]
fn a_persons_review_is_what_the_first_plan_answers_and_no_later_one() {
    let review = Some("mine\n\n".to_owned());
    let inputs = Inputs { review, commit: Some(CommitScope::Run), ..Inputs::new(ID, "X") };
    let mut decide = SpecLoop::new(inputs);
    let first = decide.next();
    assert!(
        matches!(&first, Next::Do(AgentStep::Write { place, text }) if place.file.ends_with("review.md") && &**text == "mine\n"),
        "{first:?}"
    );
    let mut prompts = Vec::new();
    let mut turns = [PLANNED, DONE_ALL, APPROVED].into_iter();
    while let Next::Do(step) = decide.next() {
        if let AgentStep::Turn { prompt, .. } = &step {
            prompts.push(prompt.contains("# Review\n"));
        }
        decide.learn(&answer(&step, &mut |number, role| {
            let (end, markers) = turns.next().expect("a turn more");
            turned(number, role, end, markers)
        }));
    }
    assert_eq!(prompts, [true, false, false]);
}

#[test]
fn the_last_review_is_told_where_the_iterations_are_used_up() {
    let inputs = Inputs { max_iterations: 1, ..Inputs::new(ID, "X") };
    let turns = [PLANNED, DONE_ALL, (End::Ok, &["REQUEST_CHANGES no"][..])];
    let told = |facts: Vec<AgentFact>| {
        let events = facts.into_iter().filter_map(|fact| match fact {
            AgentFact::Announced { event } => PhaseEvent::of_json(&event),
            _ => None,
        });
        events.last().unwrap()
    };
    // What the file says goes before what the marker says.
    let written = told(facts_of(&mut SpecLoop::new(inputs), &turns));
    assert_eq!(written, PhaseEvent::LoopMaxIterations { iteration: 1, review: "# Plan".to_owned() });
}

fn end() -> impl Strategy<Value = End> {
    prop_oneof![
        6 => Just(End::Ok),
        1 => Just(End::LostSession),
        1 => Just(End::NoResult),
        1 => Just(End::PermissionDenied),
        1 => Just(End::Quota { message: String::new(), resets_unix: Some(5) }),
    ]
}

fn markers() -> impl Strategy<Value = Vec<&'static str>> {
    let all = vec![
        "NOTE x",
        "SPEC_ISSUE x",
        "PLAN_COMPLETE",
        "PROGRESS x",
        "DONE x",
        "APPROVED",
        "REQUEST_CHANGES x",
    ];
    proptest::collection::vec(proptest::sample::select(all), 0..4)
}

proptest! {
    /// Whatever agents do: the iterations are limited, the session's files go unless the run can be gone on with, the last event is told
    /// last, and a run that goes on from its facts asks for the same.
    #[test]
    fn whatever_agents_do_a_run_ends_in_order(turns in proptest::collection::vec((end(), markers()), 40)) {
        let inputs = Inputs { max_iterations: 3, commit: Some(CommitScope::All), ..Inputs::new(ID, "X") };
        let mut decide = SpecLoop::new(inputs.clone());
        let (mut facts, mut steps, mut turns) = (Vec::new(), Vec::new(), turns.into_iter());
        while let Next::Do(step) = decide.next() {
            let Some((end, markers)) = (if matches!(step, AgentStep::Turn { .. }) { turns.next() } else { Some((End::Ok, Vec::new())) }) else { return Ok(()) };
            let fact = answer(&step, &mut |number, role| turned(number, role, end.clone(), &markers));
            decide.learn(&fact);
            facts.push(fact);
            steps.push(step);
        }
        let is_terminal = |step: &AgentStep| match step {
            AgentStep::Announce(event) => PhaseEvent::of_json(event).is_some_and(|event| event.is_terminal()),
            _ => false,
        };
        let before_last = steps.iter().rev().skip(1);
        prop_assert!(!before_last.clone().any(is_terminal));
        let goes_on = matches!(decide.next(), Next::Stop(Outcome::ModelUnavailable { .. }));
        let last = steps.iter().rev().skip_while(|step| is_terminal(step)).take(4);
        let deleted = last.filter(|step| matches!(step, AgentStep::Delete(_))).count();
        prop_assert!(deleted == 4 || goes_on, "files stay only for a run that can be gone on with");
        let iterations = steps.iter().filter(|step| line(step).as_deref() == Some("(IterationStart)")).count();
        prop_assert!((1..=3).contains(&iterations));
        let mut again = SpecLoop::new(inputs);
        for (fact, step) in facts.iter().zip(&steps) {
            prop_assert_eq!(&again.next(), &Next::Do(step.clone()));
            again.learn(fact);
        }
        prop_assert_eq!(again.next(), decide.next());
    }
}
