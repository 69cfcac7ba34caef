use agent::{End, ModelUsage};
use logging::Stored;
use perform::{Loop, Text};

use super::*;

fn text(text: &str) -> Text {
    Text::new(Stored { file: "f".into(), bytes: 0, sha256: String::new() }, text.into())
}

fn inputs() -> Inputs {
    let role = |workspace: &str| RoleInputs {
        prompt: "Phase <<PHASE>>.".into(),
        workspace: workspace.into(),
        commands: Vec::new(),
        model: "m".into(),
    };
    let spec = |number: u32, title: &str| PhaseSpec {
        number,
        title: title.into(),
        text: format!("# Phase {number}: {title}\n").into(),
        completed: false,
    };
    Inputs {
        phase: 1,
        specs: vec![spec(1, "A"), spec(2, "B")],
        project: None,
        builder: role("src"),
        verifier: role("tests"),
        limits: Limits { iterations: 2, tries: 2 },
        start: Start::default(),
    }
}

/// What the world answers: ends of turns, and `failed_specs.md` after each verification.
struct World<'w> {
    ends: &'w [(&'w str, End, bool)],
    failed: &'w [Option<&'w str>],
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the vocabulary has words for other loops, too")]
/// Runs the loop against `world` and writes down every step; `facts` gets what it was told.
fn run(world: &World<'_>, facts: &mut Vec<AgentFact>) -> String {
    let mut decide = PhaseLoop::new(inputs());
    let (mut ends, mut failed) = (world.ends.iter(), world.failed.iter());
    let mut log = String::new();
    loop {
        let step = match decide.next() {
            Next::Do(step) => step,
            Next::Stop(outcome) => return log + &format!("{outcome:?}\n"),
        };
        log.push_str(&format!("{}\n", short(&step)));
        let fact = match &step {
            AgentStep::List { role } => {
                AgentFact::Listed { role: role.clone(), list: text("a\n"), at: "t".into() }
            }
            AgentStep::Turn { number, role, .. } => {
                let (who, end, has_report) = ends.next().cloned().unwrap_or((role, End::Ok, true));
                assert_eq!(who, role, "{log}");
                AgentFact::Turned(Box::new(turned(*number, role, end, has_report)))
            }
            AgentStep::Commit { repository, message } => AgentFact::Committed {
                repository: repository.clone(),
                message: message.clone(),
                commit: "c".into(),
            },
            AgentStep::Read(place) => {
                let text = failed.next().copied().flatten().map(text);
                AgentFact::WasRead { place: place.clone(), text, odd: false }
            }
            AgentStep::Write { place, .. } | AgentStep::Append { place, .. } | AgentStep::Delete(place) => {
                AgentFact::Wrote { place: place.clone() }
            }
            other => panic!("a phase has no such step: {other:?}"),
        };
        decide.learn(&fact);
        facts.push(fact);
    }
}

fn turned(number: u32, role: &str, end: End, has_report: bool) -> Turned {
    Turned {
        number,
        role: role.to_owned(),
        end,
        answer: text("done"),
        session: None,
        usage: vec![ModelUsage {
            model: "m".into(),
            input_tokens: Some(1),
            output_tokens: Some(2),
            ..ModelUsage::default()
        }],
        cost_usd: None,
        denials: Vec::new(),
        changed: if has_report { vec![format!("{role}_reports/1.md")] } else { vec!["main.rs".into()] },
        gone: Vec::new(),
        put_back: Vec::new(),
        markers: Vec::new(),
        elapsed_ms: 1,
        at: "t".into(),
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the vocabulary has words for other loops, too")]
fn short(step: &AgentStep) -> String {
    match step {
        AgentStep::List { role } => format!("list {role}"),
        AgentStep::Turn { number, role, .. } => format!("turn {number} {role}"),
        AgentStep::Commit { repository, message } => format!("commit {repository} {message}"),
        AgentStep::Read(place) => format!("read {}/{}", place.place, place.file),
        AgentStep::Write { place, text } if place.file == STATE => {
            let state: State = serde_json::from_str(text).unwrap();
            format!("state {:?} {}", state.current.status, state.current.verifier_iteration)
        }
        AgentStep::Write { place, .. } => format!("write {}/{}", place.place, place.file),
        AgentStep::Append { place, text, .. } => format!("append {} {}", place.file, text.lines().count()),
        AgentStep::Delete(place) => format!("delete {}/{}", place.place, place.file),
        other => panic!("a phase has no such step: {other:?}"),
    }
}

const FAILS: Option<&str> = Some("SPEC: a → b\nINPUT: c\nOBSERVED: d\n");

#[test]
fn a_failed_verification_goes_back_to_the_builder_and_a_good_one_passes() {
    let world = World { ends: &[], failed: &[FAILS, None] };
    insta::assert_snapshot!(run(&world, &mut Vec::new()), @"
    state Building 1
    list builder
    write abl/project_map.txt
    turn 1 builder
    append logs/tokens.csv 1
    commit src phase1/build/step-1
    state Verifying 1
    delete tests/failed_specs.md
    list verifier
    write abl/project_map.txt
    turn 2 verifier
    append logs/tokens.csv 1
    read tests/failed_specs.md
    commit tests phase1/verify/step-1
    state ContractsFailed 1
    state Building 2
    list builder
    write abl/project_map.txt
    turn 3 builder
    append logs/tokens.csv 1
    commit src phase1/build/step-2
    state Verifying 2
    delete tests/failed_specs.md
    list verifier
    write abl/project_map.txt
    turn 4 verifier
    append logs/tokens.csv 1
    read tests/failed_specs.md
    delete tests/failed_specs.md
    commit src phase1/passed
    state Completed 2
    Done { rounds: 2 }
    ");
}

#[test]
fn at_the_last_iteration_a_person_is_needed() {
    let log = run(&World { ends: &[], failed: &[FAILS, FAILS] }, &mut Vec::new());
    let end: Vec<&str> = log.lines().rev().take(3).collect();
    assert!(end[0].starts_with("NeedsPerson"), "{log}");
    assert_eq!(end[1..], ["state Stuck 2", "commit tests phase1/verify/step-2"]);
}

#[test]
fn a_malformed_entry_goes_back_once_and_then_counts_as_a_failure() {
    let malformed = Some("SPEC: a → b\nOBSERVED: d\n");
    let log = run(&World { ends: &[], failed: &[malformed, malformed, None] }, &mut Vec::new());
    assert_eq!(log.matches("turn").count(), 5, "{log}");
    assert!(log.contains("commit tests phase1/verify/step-1"), "{log}");
}

#[test]
fn failures_that_nobody_can_make_sense_of_are_never_a_pass_and_never_deleted() {
    for odd in ["FAILED SPEC: GET / -> 404\n", "INPUT: a\nOBSERVED: b\n"] {
        let mut facts = Vec::new();
        let log =
            run(&World { ends: &[], failed: &[Some(odd), Some(odd), Some(odd), Some(odd)] }, &mut facts);
        assert!(log.lines().last().unwrap().starts_with("NeedsPerson"), "{log}");
        assert!(log.contains("commit tests phase1/verify/step-2") && !log.contains("passed"), "{log}");
        assert_eq!(log.matches("delete").count(), 2, "only before each verification begins: {log}");
        let (mut decide, mut heard) = (PhaseLoop::new(inputs()), 0);
        for fact in &facts {
            if let Next::Do(AgentStep::Turn { role, prompt, .. }) = decide.next() {
                heard += usize::from(role == BUILDER && prompt.contains(odd.trim_end()));
            }
            decide.learn(fact);
        }
        assert_eq!(heard, 1, "the builder is told of it in the second iteration: {odd}");
    }
}

#[test]
fn a_builder_without_a_report_is_asked_again_and_then_verified_all_the_same() {
    let ends = [("builder", End::Ok, false), ("builder", End::Ok, false)];
    let log = run(&World { ends: &ends, failed: &[None] }, &mut Vec::new());
    assert!(log.contains("turn 3 verifier") && log.ends_with("Done { rounds: 1 }\n"), "{log}");
}

#[test]
fn a_builder_that_never_reported_hears_of_it_in_its_next_iteration() {
    let ends = [("builder", End::Ok, false), ("builder", End::Ok, false)];
    let mut facts = Vec::new();
    run(&World { ends: &ends, failed: &[FAILS, None] }, &mut facts);
    let mut decide = PhaseLoop::new(inputs());
    let mut prompts = Vec::new();
    for fact in &facts {
        if let Next::Do(AgentStep::Turn { prompt, .. }) = decide.next() {
            prompts.push(prompt.contains("wrote no report into `builder_reports/`"));
        }
        decide.learn(fact);
    }
    assert_eq!(prompts, [false, true, false, true, false], "builder twice, verifier, builder, verifier");
}

#[test]
fn a_report_that_was_only_removed_is_no_report() {
    let mut turned = turned(1, BUILDER, End::Ok, true);
    assert!(has_report(&turned));
    turned.gone = turned.changed.clone();
    assert!(!has_report(&turned));
}

#[test]
fn a_verifier_without_a_report_never_passes_a_phase() {
    let ends = [("builder", End::Ok, true), ("verifier", End::Ok, false), ("verifier", End::Ok, false)];
    let log = run(&World { ends: &ends, failed: &[None, None] }, &mut Vec::new());
    assert!(!log.contains("passed") && log.contains("no-report"), "{log}");
}

#[test]
fn what_cannot_pass_is_not_tried_again() {
    for end in [
        End::Quota { message: "m".into(), resets_unix: None },
        End::Auth { message: "m".into() },
        End::PermissionDenied,
    ] {
        let log = run(&World { ends: &[("builder", end, true)], failed: &[] }, &mut Vec::new());
        assert_eq!(log.matches("turn").count(), 1, "{log}");
        assert!(log.contains("ModelUnavailable") && log.contains("append logs/tokens.csv 1"), "{log}");
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the vocabulary has words for other loops, too")]
/// The code with which a phase ends whose builder ran out of time after so long, and may not be asked again.
fn out_of_time_after(elapsed_ms: u64) -> String {
    let mut decide = PhaseLoop::new(Inputs { limits: Limits { iterations: 2, tries: 1 }, ..inputs() });
    decide.limit(AgentLimits { max_time_ms: Some(60_000), ..AgentLimits::default() });
    loop {
        let step = match decide.next() {
            Next::Do(step) => step,
            Next::Stop(Outcome::ModelUnavailable { cause, .. }) => return cause.code,
            Next::Stop(outcome) => panic!("{outcome:?}"),
        };
        decide.learn(&match step {
            AgentStep::List { role } => AgentFact::Listed { role, list: text(""), at: "t".into() },
            AgentStep::Turn { number, role, .. } => {
                let late = turned(number, &role, End::TimedOut { idle: false }, false);
                AgentFact::Turned(Box::new(Turned { elapsed_ms, ..late }))
            }
            AgentStep::Write { place, .. } | AgentStep::Append { place, .. } => AgentFact::Wrote { place },
            other => panic!("{other:?} is not to be done"),
        });
    }
}

#[test]
fn a_turn_that_the_time_of_the_run_cut_off_ends_the_phase_at_its_limit() {
    assert_eq!(out_of_time_after(60_000), "limit-time");
    assert_eq!(out_of_time_after(59_999), "timed-out");
}

/// A phase whose builder is at work.
fn at_work() -> PhaseLoop {
    let mut decide = PhaseLoop::new(inputs());
    let place = || Place::new("abl", "any");
    decide.learn(&AgentFact::Wrote { place: place() });
    decide.learn(&AgentFact::Listed { role: BUILDER.into(), list: text(""), at: "t".into() });
    decide.learn(&AgentFact::Wrote { place: place() });
    assert_eq!(next(&decide), "turn 1 builder");
    decide
}

/// What is done next; of rows the text.
fn next(decide: &PhaseLoop) -> String {
    match decide.next() {
        Next::Do(AgentStep::Append { text, .. }) => text.to_string(),
        Next::Do(step) => short(&step),
        Next::Stop(outcome) => format!("{outcome:?}"),
    }
}

fn begins(at: &str) -> AgentFact {
    AgentFact::TurnBegins { number: 1, role: BUILDER.into(), prompt: text(""), at: at.into() }
}

fn cut_off(usage: Vec<ModelUsage>) -> AgentFact {
    let (session, at) = (Some("s".to_owned()), "t3".to_owned());
    let (number, role, cost_usd, elapsed_ms) = (1, BUILDER.to_owned(), None, 9);
    AgentFact::CutOff { number, role, session, usage, cost_usd, elapsed_ms, at, put_back: Vec::new() }
}

#[test]
fn every_turn_that_was_cut_off_leaves_a_row_before_it_is_made_again() {
    let mut decide = at_work();
    let wrote = AgentFact::Wrote { place: Place::new("abl", crate::TOKENS) };
    for (fact, row) in [
        (begins("t1"), "t1,1,1,builder,m (no usage reported),,,,,\n"),
        (begins("t2"), "t2,1,1,builder,m (no usage reported),,,,,\n"),
        (cut_off(Vec::new()), "t3,1,1,builder,m (no usage reported),,,,,s\n"),
        (cut_off(turned(1, BUILDER, End::Ok, true).usage), "t3,1,1,builder,m,1,2,,3,s\n"),
    ] {
        decide.learn(&fact);
        assert_eq!(next(&decide), row);
        decide.learn(&wrote);
        assert_eq!(next(&decide), "turn 1 builder");
    }
    decide.learn(&begins("t4"));
    decide.learn(&AgentFact::Turned(Box::new(turned(1, BUILDER, End::Ok, true))));
    assert_eq!(next(&decide), "t,1,1,builder,m,1,2,,3,\n", "it came to its end");
}

#[test]
fn what_a_turn_that_was_cut_off_has_used_counts_when_the_run_goes_on() {
    let goes_on = |usage, limits| {
        let mut decide = at_work();
        decide.learn(&begins("t1"));
        decide.learn(&cut_off(usage));
        decide.learn(&AgentFact::Wrote { place: Place::new("abl", crate::TOKENS) });
        decide.limit(limits);
        next(&decide)
    };
    let said = || turned(1, BUILDER, End::Ok, true).usage;
    let tokens = |most| AgentLimits { max_tokens: Some(most), ..AgentLimits::default() };
    assert!(goes_on(said(), tokens(3)).contains("limit-tokens"));
    assert_eq!(goes_on(said(), tokens(4)), "turn 1 builder");
    assert_eq!(goes_on(Vec::new(), tokens(1)), "turn 1 builder", "nobody can tell");
    let time = |most| AgentLimits { max_time_ms: Some(most), ..AgentLimits::default() };
    assert!(goes_on(Vec::new(), time(9)).contains("limit-time"));
    assert_eq!(goes_on(Vec::new(), time(10)), "turn 1 builder");
}

#[test]
fn a_turn_that_was_cut_off_leaves_its_row_also_where_a_limit_ends_the_run() {
    let mut decide = at_work();
    decide.learn(&begins("t1"));
    decide.limit(AgentLimits { max_tokens: Some(0), ..AgentLimits::default() });
    assert!(next(&decide).starts_with("t1,"), "{}", next(&decide));
    decide.learn(&AgentFact::Wrote { place: Place::new("abl", crate::TOKENS) });
    assert!(next(&decide).contains("limit-tokens"), "{}", next(&decide));
}

#[test]
fn from_any_prefix_of_the_facts_the_loop_goes_on_with_the_same_steps() {
    let world = World { ends: &[("builder", End::NoResult, false)], failed: &[FAILS, None] };
    let mut facts = Vec::new();
    run(&world, &mut facts);
    for kept in 0..=facts.len() {
        let (mut whole, mut resumed) = (PhaseLoop::new(inputs()), PhaseLoop::new(inputs()));
        facts[..kept].iter().for_each(|fact| whole.learn(fact));
        let json: Vec<String> =
            facts[..kept].iter().map(|fact| serde_json::to_string(fact).unwrap()).collect();
        for (line, fact) in json.iter().zip(&facts) {
            let read: AgentFact = serde_json::from_str(line).unwrap();
            // Texts lie in files of their own.
            resumed.learn(if matches!(fact, AgentFact::Listed { .. } | AgentFact::WasRead { .. }) {
                fact
            } else {
                &read
            });
        }
        assert_eq!(whole.next(), resumed.next(), "after {kept} facts");
    }
}

#[test]
fn a_fact_that_nobody_waits_for_changes_nothing() {
    let mut decide = PhaseLoop::new(inputs());
    let before = decide.next();
    decide.learn(&AgentFact::WasRead { place: Place::new(TESTS, FAILED_SPECS), text: None, odd: false });
    decide.learn(&AgentFact::Turned(Box::new(turned(9, BUILDER, End::Ok, true))));
    assert_eq!(decide.next(), before);
}
