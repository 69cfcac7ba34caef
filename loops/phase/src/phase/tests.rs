mod world;

use code_commit_engine::{Cause, LimitReached, TurnEnd};

use super::*;
use crate::reports;
use world::{Left, TOO_LONG, World, ended, turned};

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
        text: format!("# Phase {number}: {title}\n"),
        completed: false,
    };
    Inputs {
        phase: 1,
        project: None,
        builder: role("src"),
        verifier: role("tests"),
        iterations: 2,
        start: Start {
            specs: vec![spec(1, "A"), spec(2, "B")],
            ..Start::default()
        },
    }
}

/// Runs a phase; returns its requests and how it ended, one per line, and the final world.
fn run(turns: &[TurnAnswer], left: &[Left]) -> (String, World) {
    let (outcome, world) = World::new(turns, left).run(&inputs());
    (
        format!("{}\n{:?}\n", world.steps.join("\n"), outcome.unwrap()),
        world,
    )
}

/// Runs the phase, which must pass after so many iterations; returns the final world.
#[track_caller]
fn passes(world: World, rounds: u32) -> World {
    let (outcome, world) = world.run(&inputs());
    let passed = Some(Outcome::Done { rounds });
    assert_eq!(outcome, passed, "{:#?}", world.steps);
    world
}

fn ends(role: Role, end: TurnEnd) -> TurnAnswer {
    TurnAnswer::Turned(Box::new(turned(role, end)))
}

/// Ended well.
fn good(role: Role) -> TurnAnswer {
    ends(role, ended("ok", "answered", TurnAdvice::Use))
}

fn limit(code: &str) -> Cause {
    Cause {
        code: code.to_owned(),
        message: "the run has used what it may".to_owned(),
        remedy: None,
    }
}

const FAILS: Left = Left::Text("SPEC: a → b\nINPUT: c\nOBSERVED: d\n");

#[test]
fn a_failed_verification_goes_back_to_the_builder_and_a_good_one_passes() {
    let (log, _) = run(&[], &[FAILS]);
    insta::assert_snapshot!(log, @"
    state Building 1
    list builder
    write abl/project_map.txt
    turn builder
    append abl/logs/tokens.csv 1
    commit src phase1/build/step-1
    state Verifying 1
    identify src
    delete tests/failed_specs.md
    list verifier
    write abl/project_map.txt
    turn verifier
    append abl/logs/tokens.csv 1
    read tests/failed_specs.md
    read tests/verifier_reports/1.md
    commit tests phase1/verify/step-1
    state ContractsFailed 1
    state Building 2
    list builder
    write abl/project_map.txt
    turn builder
    append abl/logs/tokens.csv 1
    commit src phase1/build/step-2
    state Verifying 2
    identify src
    delete tests/failed_specs.md
    list verifier
    write abl/project_map.txt
    turn verifier
    append abl/logs/tokens.csv 1
    read tests/failed_specs.md
    read tests/verifier_reports/1.md
    delete tests/failed_specs.md
    identify tests
    identify src
    commit src phase1/passed
    state Completed 2
    Done { rounds: 2 }
    ");
}

#[test]
fn at_the_last_iteration_a_person_is_needed() {
    let (log, world) = run(&[], &[FAILS, FAILS]);
    let end: Vec<&str> = log.lines().rev().take(3).collect();
    assert!(end[0].starts_with("NeedsPerson"), "{log}");
    let before = ["state Stuck 2", "commit tests phase1/verify/step-2"];
    assert_eq!(end[1..], before);
    let tree = world.state.stuck_on.and_then(|stuck| stuck.tree);
    assert_eq!(tree.as_deref(), Some("tree"));
}

#[test]
fn a_phase_that_was_built_already_begins_with_its_verification() {
    let start = Start {
        iteration: 2,
        builder_done: true,
        failures: Some("as it stands".into()),
        ..inputs().start
    };
    let (outcome, world) = World::default().run(&Inputs { start, ..inputs() });
    assert_eq!(world.steps[..2], ["state Verifying 2", "identify src"]);
    let prompt = &world.prompts[0].1;
    assert!(prompt.contains("as it stands"), "{prompt}");
    assert_eq!(outcome, Some(Outcome::Done { rounds: 2 }));
}

const EDITED: &str = "# Phase 1: A\n\n- a → b\n";

#[test]
fn specs_that_are_edited_while_the_builder_works_are_built_before_they_are_verified() {
    let world = World {
        edits: vec![(2, EDITED)],
        ..World::default()
    };
    let world = passes(world, 1);
    let roles: Vec<Role> = world.prompts.iter().map(|(role, _)| *role).collect();
    let expected = [Role::Builder, Role::Builder, Role::Verifier];
    assert_eq!(roles, expected, "{:#?}", world.steps);
    let event = r#"{"event":"SpecsChanged","phases":[1]}"#.to_owned();
    assert!(world.steps.contains(&event), "{:#?}", world.steps);
    assert!(world.prompts[0].1.contains("This is a first build"));
    let has_edit = |(_, prompt): &(Role, String)| prompt.contains("- a → b");
    let edited: Vec<bool> = world.prompts.iter().map(has_edit).collect();
    assert_eq!(edited, [false, true, true]);
}

#[test]
fn a_turn_that_was_cut_off_is_not_repeated_for_specs_that_were_edited_meanwhile() {
    let turns = [cut_off("t1", None, false)];
    let world = World {
        edits: vec![(2, EDITED)],
        ..World::new(&turns, &[])
    };
    let world = passes(world, 1);
    let old = world
        .prompts
        .iter()
        .filter(|(_, prompt)| !prompt.contains("- a → b"))
        .count();
    assert_eq!((old, world.prompts.len()), (1, 3), "{:#?}", world.steps);
}

#[test]
fn a_verdict_by_specs_that_were_edited_meanwhile_is_void() {
    for left in [&[][..], &[FAILS]] {
        let world = World {
            edits: vec![(3, EDITED)],
            ..World::new(&[], left)
        };
        let world = passes(world, 1);
        assert_eq!(world.prompts.len(), 4, "{:#?}", world.steps);
        assert!(
            !world.prompts[2].1.contains("OBSERVED"),
            "failures by the old specs are nobody's business"
        );
        let is_commit = |step: &&String| step.starts_with("commit");
        let commits = world.steps.iter().filter(is_commit).count();
        assert_eq!(commits, 3, "{:#?}", world.steps);
        let pass = &world.state.passes[&1];
        let specs = [(1, EDITED), (2, "# Phase 2: B\n")];
        assert_eq!(pass.specification, Some(specs_sha256(specs, None, 1)));
        assert_eq!(pass.tree.as_deref(), Some("tree"));
    }
}

#[test]
fn a_spec_that_is_gone_is_a_persons_business() {
    let mut inputs = inputs();
    inputs.start.specs_identity = Some("before".to_owned());
    let (outcome, world) = World::default().run(&inputs);
    let Some(Outcome::NeedsPerson { cause, .. }) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!((cause.code.as_str(), world.prompts.len()), ("spec-gone", 0));
}

#[test]
fn a_source_that_changed_while_it_was_judged_is_not_committed_as_passed() {
    let world = World {
        src_changes: true,
        ..World::default()
    };
    let (_, world) = world.run(&inputs());
    let last: Vec<_> = world.steps.iter().rev().take(2).collect();
    assert_eq!(last, ["state Completed 1", "mark src phase1/passed"]);
    let tree = world.state.passes[&1].tree.as_deref();
    assert_eq!(tree, Some("tree 1"), "as it was judged");
}

#[test]
fn a_phase_whose_work_is_not_committed_has_not_passed() {
    let start = Start {
        iteration: 1,
        builder_done: true,
        ..inputs().start
    };
    let world = World {
        git_fails: true,
        ..World::default()
    };
    let (outcome, world) = world.run(&Inputs { start, ..inputs() });
    assert_eq!(world.steps.last().unwrap(), "commit src phase1/passed");
    assert!(
        matches!(outcome, Some(Outcome::NeedsPerson { round: 1, .. })),
        "{outcome:?}"
    );
}

#[test]
fn a_malformed_entry_goes_to_the_builder_as_it_is_and_a_list_without_entries_passes() {
    let (log, world) = run(&[], &[Left::Text("SPEC: a → b\nOBSERVED: d\n")]);
    assert_eq!(world.prompts.len(), 4, "{log}");
    assert!(world.prompts[2].1.contains("SPEC: a → b\nOBSERVED: d\n"));
    let (log, world) = run(&[], &[Left::Text("All contracts hold.\n")]);
    assert!(log.ends_with("Done { rounds: 1 }\n"), "{log}");
    assert_eq!(world.prompts.len(), 2, "{log}");
}

#[test]
fn an_odd_file_of_failures_is_never_a_pass() {
    let (log, world) = run(&[], &[Left::Odd]);
    assert!(
        log.contains("odd-failures") && !log.contains("passed"),
        "{log}"
    );
    assert_eq!(world.prompts.len(), 2, "nobody is asked once more: {log}");
    // The run was killed before the file was read, and the file was removed.
    let turned = turned(Role::Verifier, ended("ok", "answered", TurnAdvice::Use));
    let changed = vec![
        "verifier_reports/1.md".to_owned(),
        "failed_specs.md/x".to_owned(),
    ];
    let left = TurnAnswer::Turned(Box::new(Turned { changed, ..turned }));
    let (log, _) = run(&[good(Role::Builder), left], &[]);
    assert!(
        log.contains("odd-failures") && !log.contains("passed"),
        "{log}"
    );
}

#[test]
fn a_turn_that_ends_badly_is_not_asked_for_again() {
    for then in [
        TurnAdvice::WaitUntil(TOO_LONG),
        TurnAdvice::Renew,
        TurnAdvice::Stop,
    ] {
        let turn = ends(Role::Builder, ended("quota", "is used up", then));
        let (log, world) = run(&[turn], &[]);
        assert_eq!(world.prompts.len(), 1, "{log}");
        assert!(!log.contains("\ncommit "), "{log}");
        let cause = r#"code: "quota", message: "the builder is used up""#;
        assert!(log.contains(cause), "{log}");
    }
}

#[test]
fn a_limit_is_waited_out_in_the_session_that_it_cut_off_and_others_work_before() {
    let limited = |session: Option<&str>| {
        let wait = TurnAdvice::WaitUntil(99);
        let end = TurnEnd {
            asks_for_another: true,
            ..ended("rate-limited", "was rate limited", wait)
        };
        let turned = Turned {
            session: session.map(str::to_owned),
            ..turned(Role::Builder, end)
        };
        TurnAnswer::Turned(Box::new(turned))
    };
    let turns = [limited(Some("s-1")), limited(None), good(Role::Builder)];
    let builder = |line: &&String| line.starts_with("turn builder") || line.starts_with("wait");
    let steps = |inputs: &Inputs| {
        let (outcome, world) = World::new(&turns, &[]).run(inputs);
        assert_eq!(outcome, Some(Outcome::Done { rounds: 1 }));
        world
            .steps
            .iter()
            .filter(builder)
            .cloned()
            .collect::<Vec<_>>()
            .join("\n")
    };
    insta::assert_snapshot!(steps(&inputs()), @"
    turn builder
    wait until 99
    turn builder where s-1 was cut off
    wait until 99
    turn builder
    ");
    let mut two = inputs();
    // The stronger one is for repairs only.
    (two.start.builder.others, two.start.builder.stronger) = (1, 1);
    insta::assert_snapshot!(steps(&two), @"
    turn builder
    turn builder by agent 1
    wait until 99
    turn builder where s-1 was cut off
    ");
}

#[test]
fn a_turn_that_the_time_of_the_run_cut_off_ends_the_phase_at_its_limit() {
    let out_of_time = |then| {
        let late = ends(Role::Builder, ended("timed-out", "ran out of time", then));
        run(&[late.clone(), late], &[]).0
    };
    let log = out_of_time(TurnAdvice::Limit(limit("limit-time")));
    insta::assert_snapshot!(log, @r#"
    state Building 1
    list builder
    write abl/project_map.txt
    turn builder
    append abl/logs/tokens.csv 1
    ModelUnavailable { round: 1, cause: Cause { code: "limit-time", message: "the run has used what it may", remedy: Some("check the result, raise the limit, then: code-commit phase run") } }
    "#);
    let log = out_of_time(TurnAdvice::Stop);
    let cause = r#"code: "timed-out", message: "the builder ran out of time""#;
    assert!(log.contains(cause), "{log}");
}

/// A turn of the builder that was cut off.
fn cut_off(at: &str, session: Option<&str>, is_counted: bool) -> TurnAnswer {
    let mut turned = turned(
        Role::Builder,
        ended("interrupted", "was interrupted", TurnAdvice::Repeat),
    );
    (turned.at, turned.session) = (at.to_owned(), session.map(str::to_owned));
    turned.usage.retain(|_| is_counted);
    TurnAnswer::Turned(Box::new(turned))
}

#[test]
fn every_turn_that_was_cut_off_leaves_a_row_before_it_is_made_again() {
    let turns = [
        cut_off("t1", None, false),
        cut_off("t2", None, false),
        cut_off("t3", Some("s"), false),
        cut_off("t4", Some("s"), true),
    ];
    let (log, world) = run(&turns, &[]);
    let row = "append abl/logs/tokens.csv 1\n";
    let anew = format!("turn builder\n{row}").repeat(3);
    let went_on = format!("turn builder where s was cut off\n{row}").repeat(2);
    let tries = format!("{anew}{went_on}commit src");
    assert!(log.contains(&tries), "no try is used up: {log}");
    assert_eq!(world.prompts[..5], vec![world.prompts[0].clone(); 5]);
    insta::assert_snapshot!(world.rows, @"
    t1,1,1,builder,m (no usage reported),,,,,
    t2,1,1,builder,m (no usage reported),,,,,
    t3,1,1,builder,m (no usage reported),,,,,s
    t4,1,1,builder,m,1,2,,3,s
    t,1,1,builder,m,1,2,,3,
    t,1,1,verifier,m,1,2,,3,
    ");
}

#[test]
fn a_turn_that_was_cut_off_leaves_its_row_also_where_a_limit_ends_the_run() {
    let reached = TurnAnswer::LimitReached(LimitReached {
        cause: limit("limit-tokens"),
    });
    let (log, world) = run(&[cut_off("t1", None, false), reached], &[]);
    assert!(world.rows.starts_with("t1,"), "{}", world.rows);
    let (_, end) = log
        .split_once("append abl/logs/tokens.csv 1\nturn builder\n")
        .unwrap();
    insta::assert_snapshot!(end, @r#"ModelUnavailable { round: 1, cause: Cause { code: "limit-tokens", message: "the run has used what it may", remedy: Some("check the result, raise the limit, then: code-commit phase run") } }"#);
}

/// A verifier's turn that changed these files besides its report.
fn wrote(files: &[&str]) -> TurnAnswer {
    let mut turned = turned(Role::Verifier, ended("ok", "answered", TurnAdvice::Use));
    turned
        .changed
        .extend(files.iter().map(|&file| file.to_owned()));
    TurnAnswer::Turned(Box::new(turned))
}

const ENTRY: &str = "SPEC: a → b\nINPUT: c\nOBSERVED: d\n";

#[test]
fn failures_in_the_wrong_place_count_and_are_put_into_the_right_one() {
    let turns = [
        good(Role::Builder),
        wrote(&["x/Failed_Specs.txt"]),
        good(Role::Builder),
        wrote(&[]),
    ];
    let world = World {
        files: [
            ("verifier_reports/1.md", ["All is tested.\n"].into()),
            ("x/Failed_Specs.txt", [ENTRY].into()),
        ]
        .into(),
        ..World::new(&turns, &[])
    };
    let world = passes(world, 2);
    let log = world.steps.join("\n");
    let (_, first) = log.split_once("read tests/failed_specs.md\n").unwrap();
    let (first, second) = first.split_once("state Building 2\n").unwrap();
    insta::assert_snapshot!(first, @"
    read tests/verifier_reports/1.md
    read tests/x/Failed_Specs.txt
    write tests/failed_specs.md
    delete tests/x/Failed_Specs.txt
    commit tests phase1/verify/step-1
    state ContractsFailed 1
    ");
    let (_, second) = second
        .split_once("read tests/verifier_reports/1.md\n")
        .unwrap();
    insta::assert_snapshot!(second, @"
    delete tests/failed_specs.md
    identify tests
    identify src
    commit src phase1/passed
    state Completed 2
    ");
    assert!(world.prompts[2].1.contains(ENTRY), "the builder is told");
    assert_eq!(world.state.tests[&1], "tree");
    let judged_by = world.state.passes[&1].decider.clone();
    assert_eq!(judged_by, Some(decider("", Some("tree"))));
}

#[test]
fn a_report_that_grows_fails_no_later_iteration_by_what_it_said_in_an_earlier_one() {
    let grown = "SPEC: a → b\nINPUT: c\nOBSERVED: d\n\nNow it holds.\n";
    let world = World {
        files: [("verifier_reports/1.md", [ENTRY, grown].into())].into(),
        ..World::new(&[], &[FAILS])
    };
    passes(world, 2);
    let world = World {
        files: [("verifier_reports/1.md", [ENTRY].into())].into(),
        ..World::new(&[], &[FAILS])
    };
    let (outcome, world) = world.run(&inputs());
    assert!(
        matches!(outcome, Some(Outcome::NeedsPerson { .. })),
        "written again, it counts: {:#?}",
        world.steps
    );
}

#[test]
fn from_any_prefix_of_the_answers_the_loop_goes_on_with_the_same_requests() {
    let turns = [cut_off("t1", None, false)];
    for left in [&[][..], &[FAILS], &[FAILS, FAILS], &[Left::Odd]] {
        let world = |stop_after| World {
            stop_after,
            edits: vec![(3, EDITED)],
            ..World::new(&turns, left)
        };
        let (whole, never_stopped) = world(None).run(&inputs());
        for stop in 0..never_stopped.journal.len() {
            let (none, mut world) = world(Some(stop)).run(&inputs());
            assert_eq!(none, None, "stopped after {stop}");
            world.stop_after = None;
            let (outcome, world) = world.run(&inputs());
            assert_eq!(outcome, whole, "stopped after {stop}");
            assert_eq!(world.steps, never_stopped.steps, "stopped after {stop}");
            assert_eq!(world.prompts, never_stopped.prompts, "stopped after {stop}");
            assert_eq!(world.rows, never_stopped.rows, "stopped after {stop}");
        }
    }
}
