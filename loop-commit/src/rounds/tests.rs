use llm::{Filter, Usage};
use logging::Stored;
use perform::{CallFact, Cause, Ended, Fact, Finish, Next, Outcome, Problem, Step, Text};

use super::*;
use crate::{CommitLoop, Inputs};

fn text(text: &str) -> Text {
    let stored = Stored { file: "f".to_owned(), bytes: text.len() as u64, sha256: String::new() };
    Text::new(stored, text.into())
}

fn answered(reply: &str, finish: Finish) -> Fact {
    Fact::Call(CallFact::Answered {
        round: 1,
        reply: text(reply),
        raw: text("{}").stored,
        finish,
        held_key: false,
        usage: Usage::default(),
        served_model: None,
        cost_usd: None,
        elapsed_ms: 1,
    })
}

fn applied() -> Fact {
    Fact::Applied { round: 1, changes: Vec::new(), warnings: Vec::new(), no_change: None }
}

/// A reply that wrote one file.
fn written(before: &str, after: &str) -> Fact {
    let change = apply::Changed {
        path: "a".to_owned(),
        action: if before == after { apply::Action::None } else { apply::Action::Write },
        before_sha256: Some(before.to_owned()),
        after_sha256: Some(after.to_owned()),
        created: false,
        before_mode: Some(0o644),
        after_mode: Some(0o644),
    };
    Fact::Applied { round: 1, changes: vec![change], warnings: Vec::new(), no_change: None }
}

fn rejected(report: &str) -> Fact {
    let problem = Problem { code: "x".to_owned(), path: None, line: None, message: report.to_owned() };
    Fact::Rejected { round: 1, problems: vec![problem], report: text(report) }
}

fn built(code: i32, output: &str) -> Fact {
    Fact::Built {
        round: 1,
        ended: Ended::Exited(code),
        seal_broken: false,
        output: text(output),
        elapsed_ms: 1,
    }
}

fn unanswered() -> Fact {
    let cause = Cause { code: "connect".to_owned(), message: "no route".to_owned(), remedy: None };
    Fact::Call(CallFact::Unanswered { round: 1, cause })
}

/// The steps that a run takes, one word each, when these facts happen.
fn check(limits: Limits, facts: &[Fact]) -> String {
    let inputs = Inputs { query: "Q".into(), codebase: "C".into(), protected: Vec::new() };
    let mut decide = CommitLoop::commit(inputs, limits);
    let mut steps = vec![word(&decide.next())];
    for fact in facts {
        decide.learn(fact);
        steps.push(word(&decide.next()));
    }
    steps.join(" → ")
}

fn word(next: &Next) -> String {
    match next {
        Next::Do(Step::Ask { round, .. }) => format!("ask {round}"),
        Next::Do(Step::Apply { round, .. }) => format!("apply {round}"),
        Next::Do(Step::Build { round }) => format!("build {round}"),
        Next::Do(Step::Restore) => "restore".to_owned(),
        Next::Stop(Outcome::Done { rounds }) => format!("done({rounds})"),
        Next::Stop(Outcome::AttemptsUsedUp { rounds }) => format!("used up({rounds})"),
        Next::Stop(Outcome::NeedsPerson { round, cause }) => format!("a person({round}, {})", cause.code),
        Next::Stop(Outcome::Stuck { rounds, times }) => format!("stuck({rounds}, {times})"),
        Next::Stop(Outcome::ModelUnavailable { round, cause }) => {
            format!("no model({round}, {})", cause.code)
        }
    }
}

const A: &str = "^^^a\none\n^^^end\n";
const TOUCHES_GIT: &str = "^^^.git/config\n^^^end\n";

#[test]
fn a_build_that_passes_at_once_ends_the_run() {
    let facts = [answered(A, Finish::Complete), applied(), built(0, "")];
    insta::assert_snapshot!(check(Limits::of_rounds(4), &facts), @"ask 1 → apply 1 → build 1 → done(1)");
}

#[test]
fn there_are_three_repairs_and_no_fourth() {
    let round = [answered(A, Finish::Complete), applied(), built(1, "no\n")];
    let facts: Vec<Fact> = round.iter().cycle().take(12).cloned().collect();
    insta::assert_snapshot!(check(Limits::of_rounds(4), &facts), @"ask 1 → apply 1 → build 1 → ask 2 → apply 2 → build 2 → ask 3 → apply 3 → build 3 → ask 4 → apply 4 → build 4 → used up(4)");
}

#[test]
fn a_reply_that_is_refused_counts_as_a_failed_build() {
    let facts =
        [answered(A, Finish::Complete), rejected("no such thing"), answered(A, Finish::Complete), applied()];
    insta::assert_snapshot!(check(Limits::of_rounds(4), &facts), @"ask 1 → apply 1 → ask 2 → apply 2 → build 2");
}

#[test]
fn a_reply_that_was_cut_off_is_judged_and_never_asked_for_in_the_same_words() {
    let facts = [answered(A, Finish::Truncated), rejected("The reply ended early.")];
    insta::assert_snapshot!(check(Limits::of_rounds(4), &facts), @"ask 1 → apply 1 → ask 2");
}

#[test]
fn an_answer_that_a_filter_kept_back_ends_the_run() {
    let blocked = answered("", Finish::Blocked { filter: Filter::Safety });
    insta::assert_snapshot!(check(Limits::of_rounds(4), &[blocked]), @"ask 1 → no model(1, blocked)");
    insta::assert_snapshot!(check(Limits::of_rounds(4), &[unanswered()]), @"ask 1 → no model(1, connect)");
}

#[test]
fn a_failed_run_puts_the_tree_back_only_where_that_is_asked_for() {
    let limits = Limits { rounds: 1, on_failure: OnFailure::Restore, ..Limits::of_rounds(4) };
    let restored = Fact::Restored { paths: Vec::new() };
    let facts = [answered(A, Finish::Complete), applied(), built(1, "no\n"), restored];
    insta::assert_snapshot!(check(limits, &facts), @"ask 1 → apply 1 → build 1 → restore → used up(1)");
    let nothing_applied = [answered(A, Finish::Complete), rejected("no")];
    insta::assert_snapshot!(check(limits, &nothing_applied), @"ask 1 → apply 1 → used up(1)");
}

#[test]
fn facts_of_another_state_change_nothing() {
    insta::assert_snapshot!(check(Limits::of_rounds(4), &[applied(), built(0, ""), rejected("x")]), @"ask 1 → ask 1 → ask 1 → ask 1");
}

#[test]
fn a_repair_prompt_lists_the_latest_replacement_of_each_file_only() {
    let inputs = Inputs { query: "Q".into(), codebase: "C".into(), protected: Vec::new() };
    let mut decide = CommitLoop::commit(inputs, Limits::of_rounds(4));
    let first = "^^^a\nold a\n^^^end\n^^^b\nonly b\n^^^end\n^^^c\nc\n^^^end\n";
    let second = "^^^a\nnew a\n^^^end\n^^^c\n^^^delete\n";
    for reply in [first, second] {
        for fact in [answered(reply, Finish::Complete), applied(), built(1, "no\n")] {
            decide.learn(&fact);
        }
    }
    let Next::Do(Step::Ask { round: 3, prompt }) = decide.next() else { panic!("not the second repair") };
    let (_, replacements) = prompt.split_once("\nC\n").unwrap();
    insta::assert_snapshot!(replacements, @r"
    --- FILE REPLACEMENT b ---
    only b
    --- FILE REPLACEMENT a ---
    new a
    --- FILE REMOVED c ---
    ");
}

#[test]
fn a_reply_that_was_refused_is_not_among_the_replacements() {
    let inputs = Inputs { query: "Q".into(), codebase: "C".into(), protected: Vec::new() };
    let mut decide = CommitLoop::commit(inputs, Limits::of_rounds(4));
    decide.learn(&answered(A, Finish::Complete));
    decide.learn(&rejected("the refusal"));
    let Next::Do(Step::Ask { prompt, .. }) = decide.next() else { panic!("no repair") };
    assert!(prompt.contains("\nthe refusal\n\nQ\n\nC\n"), "{prompt}");
    assert!(!prompt.contains("--- FILE REPLACEMENT"));
}

#[test]
fn after_a_reply_that_was_not_used_the_prompt_still_has_the_last_build_and_what_is_on_disk() {
    for (reply, finish) in
        [(TOUCHES_GIT, Finish::Complete), (A, Finish::Truncated), ("I would change a.\n", Finish::Complete)]
    {
        let inputs = Inputs { query: "Q".into(), codebase: "C".into(), protected: Vec::new() };
        let mut decide = CommitLoop::commit(inputs, Limits::of_rounds(4));
        for fact in [answered(A, Finish::Complete), applied(), built(1, "no type `B`\n")] {
            decide.learn(&fact);
        }
        for fact in [answered(reply, finish), rejected("the refusal")] {
            decide.learn(&fact);
        }
        let Next::Do(Step::Ask { round: 3, prompt }) = decide.next() else { panic!("not the second repair") };
        let told = "\nthe refusal\n\nBefore that reply, build.sh had printed:\nno type `B`\n\nQ\n\nC\n\n";
        let (_, replacements) = prompt.split_once(told).unwrap_or_else(|| panic!("{prompt}"));
        assert_eq!(replacements, "--- FILE REPLACEMENT a ---\none\n");
    }
}

#[test]
fn the_same_failure_is_told_to_the_model_and_ends_the_run_where_that_is_asked_for() {
    let round = [answered(A, Finish::Complete), applied(), built(1, "line 7: no\n")];
    let limits = Limits { same_failures: Some(2), ..Limits::of_rounds(4) };
    let facts: Vec<Fact> = round.iter().cycle().take(6).cloned().collect();
    insta::assert_snapshot!(check(limits, &facts), @"ask 1 → apply 1 → build 1 → ask 2 → apply 2 → build 2 → stuck(2, 2)");

    let inputs = Inputs { query: "Q".into(), codebase: "C".into(), protected: Vec::new() };
    let mut decide = CommitLoop::commit(inputs, Limits::of_rounds(4));
    for fact in &facts {
        decide.learn(fact);
    }
    let Next::Do(Step::Ask { round: 3, prompt }) = decide.next() else { panic!("not the second repair") };
    assert!(
        prompt.contains("line 7: no\n[code-commit] This is the same failure 2 times in a row."),
        "{prompt}"
    );
}

#[test]
fn a_model_whose_replies_cannot_be_used_is_not_told_that_a_change_of_its_did_not_help() {
    let inputs = Inputs { query: "Q".into(), codebase: "C".into(), protected: Vec::new() };
    let mut decide = CommitLoop::commit(inputs, Limits::of_rounds(4));
    for _ in 0..2 {
        decide.learn(&answered(A, Finish::Truncated));
        decide.learn(&rejected("the refusal"));
    }
    let Next::Do(Step::Ask { round: 3, prompt }) = decide.next() else { panic!("not the second repair") };
    assert!(
        prompt.contains("2 times in a row. None of these replies was used; do less in one reply"),
        "{prompt}"
    );
}

#[test]
fn a_model_that_changed_nothing_is_not_told_that_its_change_did_not_help() {
    let told = |reply: &str, second: Fact| {
        let inputs = Inputs { query: "Q".into(), codebase: "C".into(), protected: Vec::new() };
        let mut decide = CommitLoop::commit(inputs, Limits::of_rounds(4));
        for fact in [answered(A, Finish::Complete), written("0", "1"), built(1, "no\n")] {
            decide.learn(&fact);
        }
        for fact in [answered(reply, Finish::Complete), second, built(1, "no\n")] {
            decide.learn(&fact);
        }
        let Next::Do(Step::Ask { round: 3, prompt }) = decide.next() else { panic!("not the second repair") };
        let (_, notice) = prompt.split_once("no\n[code-commit] ").unwrap();
        notice.lines().next().unwrap().to_owned()
    };
    let nothing = "This is the same failure 2 times in a row. Your last reply changed nothing, and the build still fails.";
    let no_change = Some("all is well".to_owned());
    let said_so = Fact::Applied { round: 1, changes: Vec::new(), warnings: Vec::new(), no_change };
    assert_eq!(told("$$$start\nall is well\n$$$end\n", said_so), nothing);
    assert_eq!(told(A, written("1", "1")), nothing);
    assert_eq!(
        told(A, written("1", "2")),
        "This is the same failure 2 times in a row. What you changed did not reach its cause; look elsewhere."
    );
}

#[test]
fn a_build_that_breaks_the_seal_does_not_pass() {
    let ended = Ended::Exited(0);
    let built = Fact::Built { round: 1, ended, seal_broken: true, output: text("ok\n"), elapsed_ms: 1 };
    let facts = [answered(A, Finish::Complete), applied(), built];
    insta::assert_snapshot!(check(Limits::of_rounds(4), &facts), @"ask 1 → apply 1 → build 1 → ask 2");
}
