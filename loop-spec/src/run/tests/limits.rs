//! Runs that may not use everything.

use perform::AgentLimits;

use super::*;

/// The code with which a run under `limits` ends in which every turn uses this much.
fn limited(limits: AgentLimits, cost_usd: Option<f64>, tokens: Option<u64>) -> (String, u32) {
    let used = |fact: AgentFact| {
        let AgentFact::Turned(mut turned) = fact else { return fact };
        turned.cost_usd = cost_usd;
        turned.elapsed_ms = 60_000;
        let usage = |count| agent::ModelUsage {
            input_tokens: Some(count),
            output_tokens: Some(1),
            ..Default::default()
        };
        turned.usage = tokens.map(usage).into_iter().collect();
        AgentFact::Turned(turned)
    };
    let mut decide = SpecLoop::new(Inputs { limits, ..Inputs::new(ID, "X") });
    let mut turns = 0;
    loop {
        let step = match decide.next() {
            Next::Do(step) => step,
            Next::Stop(Outcome::ModelUnavailable { cause, .. }) => return (cause.code, turns),
            Next::Stop(_) => return ("done".to_owned(), turns),
        };
        let fact = answer(&step, &mut |number, role| {
            turns = number;
            let said = match role {
                "planning" => "PLAN_COMPLETE ready",
                "implementing" => "DONE all",
                _ => "APPROVED good",
            };
            used(turned(number, role, End::Ok, &[said]))
        });
        decide.learn(&fact);
    }
}

#[test]
fn no_turn_begins_past_a_limit_or_where_nobody_can_tell() {
    let limits = AgentLimits::default();
    let ended = |limits, cost, tokens| {
        let (code, turns) = limited(limits, cost, tokens);
        format!("{code} after {turns}")
    };
    let cost = AgentLimits { max_cost_usd: Some(0.5), ..limits };
    let tokens = AgentLimits { max_tokens: Some(202), ..limits };
    let time = AgentLimits { max_time_ms: Some(90_000), ..limits };
    assert_eq!(ended(limits, None, None), "done after 3");
    assert_eq!(ended(cost, Some(0.1), None), "done after 3");
    assert_eq!(ended(cost, Some(0.25), None), "limit-cost after 2");
    assert_eq!(ended(cost, None, Some(1)), "limit-cost after 1");
    assert_eq!(ended(cost, Some(f64::NAN), Some(1)), "limit-cost after 1");
    assert_eq!(ended(tokens, None, Some(100)), "limit-tokens after 2");
    assert_eq!(ended(tokens, None, None), "limit-tokens after 1");
    assert_eq!(ended(time, None, None), "limit-time after 2");
}

/// What is done, turns and retries, in a run of 90 seconds whose turns end so after 60.
fn told_of(end: &End) -> String {
    let limits = AgentLimits { max_time_ms: Some(90_000), ..AgentLimits::default() };
    let mut decide = SpecLoop::new(Inputs { limits, ..Inputs::new(ID, "X") });
    let mut lines = Vec::new();
    loop {
        match decide.next() {
            Next::Do(step) => {
                lines.extend(line(&step));
                let fact = answer(&step, &mut |number, role| turned(number, role, end.clone(), &[]));
                decide.learn(&match fact {
                    AgentFact::Turned(turned) => {
                        AgentFact::Turned(Box::new(Turned { elapsed_ms: 60_000, ..*turned }))
                    }
                    other => other,
                });
            }
            Next::Stop(Outcome::ModelUnavailable { cause, .. }) => {
                return format!("{}\n= {}", lines.join("\n"), cause.code);
            }
            Next::Stop(outcome) => panic!("{outcome:?}"),
        }
    }
}

#[test]
fn a_turn_that_the_time_of_the_run_cut_off_ends_the_run_at_its_limit() {
    insta::assert_snapshot!(told_of(&End::TimedOut { idle: false }), @"
    (IterationStart)
    (PlanningStart)
    planning
    (RetryStart)
    planning
    = limit-time
    ");
    insta::assert_snapshot!(told_of(&End::TimedOut { idle: true }), @"
    (IterationStart)
    (PlanningStart)
    planning
    (RetryStart)
    planning
    = timed-out
    ");
}

#[test]
fn what_a_turn_that_was_cut_off_has_used_counts_when_the_run_goes_on() {
    let goes_on = |limits: AgentLimits| {
        let mut decide = SpecLoop::new(Inputs::new(ID, "X"));
        for _ in 0..2 {
            let Next::Do(step) = decide.next() else { panic!("there is more") };
            decide.learn(&answer(&step, &mut |_, _| panic!("no turn yet")));
        }
        let (number, role, session, at) = (1, "planning".to_owned(), None, String::new());
        let usage =
            vec![agent::ModelUsage { input_tokens: Some(100), output_tokens: Some(1), ..Default::default() }];
        let (cost_usd, elapsed_ms) = (None, 60_000);
        decide.learn(&AgentFact::CutOff {
            number,
            role,
            session,
            usage,
            cost_usd,
            elapsed_ms,
            at,
            put_back: Vec::new(),
        });
        decide.limit(limits);
        while let Next::Do(step) = decide.next() {
            if matches!(step, AgentStep::Turn { .. }) {
                return "a turn".to_owned();
            }
            decide.learn(&answer(&step, &mut |_, _| panic!("no turn")));
        }
        match decide.next() {
            Next::Stop(Outcome::ModelUnavailable { cause, .. }) => cause.code,
            other => panic!("{other:?}"),
        }
    };
    let limits = AgentLimits::default();
    assert_eq!(goes_on(AgentLimits { max_tokens: Some(101), ..limits }), "limit-tokens");
    assert_eq!(goes_on(AgentLimits { max_tokens: Some(102), ..limits }), "a turn");
    assert_eq!(goes_on(AgentLimits { max_time_ms: Some(60_000), ..limits }), "limit-time");
    assert_eq!(goes_on(AgentLimits { max_cost_usd: Some(0.01), ..limits }), "a turn", "nobody can tell");
}

#[test]
fn a_quota_that_stays_used_up_is_waited_for_at_growing_intervals_and_not_for_ever() {
    let used_up = || (End::Quota { message: "limit".into(), resets_unix: Some(1) }, &[][..]);
    let patient = Inputs { patience: Patience::Wait, ..Inputs::new(ID, "X") };
    let mut turns = vec![used_up(), used_up(), PLANNED];
    turns.extend((0..11).map(|_| used_up()));
    let told = play(patient, &turns);
    let waits: Vec<&str> =
        told.lines().filter_map(|line| line.strip_prefix("wait until 1, at least ")).collect();
    assert_eq!(waits.join(" "), "1 s 2 s 1 s 2 s 4 s 8 s 16 s 32 s 64 s 128 s 256 s 512 s");
    let end = "= quota: implementing: the agent has used up its quota, also after 10 waits";
    assert_eq!(told.lines().last(), Some(end));
}

#[test]
fn a_wait_for_a_quota_renews_no_tries() {
    let used_up = || (End::Quota { message: "limit".into(), resets_unix: Some(1) }, &[][..]);
    let lost = || (End::NoResult, &[][..]);
    let patient = Inputs { patience: Patience::Wait, ..Inputs::new(ID, "X") };
    insta::assert_snapshot!(play(patient, &[used_up(), lost(), used_up(), lost()]), @"
    (IterationStart)
    (PlanningStart)
    planning
    (QuotaWaitStart)
    wait until 1, at least 1 s
    planning
    (RetryStart)
    planning
    (QuotaWaitStart)
    wait until 1, at least 1 s
    planning
    = no-result: planning: the agent ended without a result
    ");
}
