use code_commit_engine::{
    Action, Answered, Applied, Built, Cause, Changed, Ended, Finish, Problem, Rejected, Restored,
    Scripted, Stored, Text, Unanswered, Usage,
};

use code_commit_prompt::edits::Form;

use super::*;
use crate::{Inputs, commit};

/// One answer of a script.
#[derive(Clone)]
enum Says {
    Ask(AskAnswer),
    Apply(ApplyAnswer),
    Build(Built),
    Restore(Restored),
}

fn text(text: &str) -> Text {
    Text::in_file("f", text)
}

fn answered(reply: &str) -> Says {
    Says::Ask(AskAnswer::Answered(Answered {
        round: 1,
        reply: text(reply),
        raw: Stored {
            file: "raw".to_owned(),
            bytes: 2,
            sha256: String::new(),
        },
        finish: Finish::Complete,
        for_person: None,
        held_key: false,
        usage: Usage::default(),
        served_model: None,
        cost_usd: None,
        elapsed_ms: 1,
    }))
}

fn cause(code: &str) -> Cause {
    Cause {
        code: code.to_owned(),
        message: "no route".to_owned(),
        remedy: None,
    }
}

fn blocked() -> Says {
    let Says::Ask(AskAnswer::Answered(answered)) = answered("") else {
        unreachable!()
    };
    Says::Ask(AskAnswer::Answered(Answered {
        for_person: Some(cause("blocked")),
        ..answered
    }))
}

fn applied_as(changes: Vec<Changed>, no_change: Option<&str>) -> Says {
    let no_change = no_change.map(str::to_owned);
    Says::Apply(ApplyAnswer::Applied(Applied {
        round: 1,
        changes,
        warnings: Vec::new(),
        edited: Vec::new(),
        no_change,
    }))
}

/// A reply that wrote one file.
fn written(before: &str, after: &str) -> Says {
    let change = Changed {
        path: "a".to_owned(),
        action: if before == after {
            Action::None
        } else {
            Action::Write
        },
        before_sha256: Some(before.to_owned()),
        after_sha256: Some(after.to_owned()),
        created: false,
        before_mode: Some(0o644),
        after_mode: Some(0o644),
    };
    applied_as(vec![change], None)
}

fn applied() -> Says {
    written("0", "1")
}

fn rejected(report: &str) -> Says {
    let problems = vec![Problem::new("x", report)];
    Says::Apply(ApplyAnswer::Rejected(Rejected {
        round: 1,
        problems,
        report: text(report),
        shown: Vec::new(),
    }))
}

fn built(code: i32, output: &str) -> Says {
    let ended = Ended::Exited(code);
    Says::Build(Built {
        round: 1,
        ended,
        seal_broken: false,
        output: text(output),
        elapsed_ms: 1,
        changes: Vec::new(),
        present: Vec::new(),
        put_back: Vec::new(),
        ignored_bytes: 0,
    })
}

fn unanswered() -> Says {
    Says::Ask(AskAnswer::Unanswered(Unanswered {
        round: 1,
        cause: cause("connect"),
    }))
}

/// Runs S1 until the script is used up; what it asked for, and how it ended where it did.
fn run(limits: Limits, answers: &[Says]) -> (Scripted, Option<Outcome>) {
    let inputs = Inputs {
        query: "Q".into(),
        codebase: "C".into(),
        protected: Vec::new(),
        form: Form::Files,
        need_bytes: 0,
    };
    let mut script = Scripted::default();
    for answer in answers.iter().cloned() {
        script = match answer {
            Says::Ask(answer) => script.then(answer),
            Says::Apply(answer) => script.then(answer),
            Says::Build(answer) => script.then(answer),
            Says::Restore(answer) => script.then(answer),
        };
    }
    let outcome = commit(&mut script, &inputs, &limits).ok();
    (script, outcome)
}

/// What the run asks for, one word each, and its end.
fn check(limits: Limits, answers: &[Says]) -> String {
    let (script, outcome) = run(limits, answers);
    let request = |(kind, json, _): &(&str, serde_json::Value, _)| match json["round"].as_u64() {
        Some(round) => format!("{kind} {round}"),
        None => (*kind).to_owned(),
    };
    let end = outcome.map(|outcome| match outcome {
        Outcome::Done { rounds } => format!("done({rounds})"),
        Outcome::AttemptsUsedUp { rounds } => format!("used up({rounds})"),
        Outcome::NeedsPerson { round, cause } => format!("a person({round}, {})", cause.code),
        Outcome::Unfit { round, cause } => format!("unfit({round}, {})", cause.code),
        Outcome::ModelUnavailable { round, cause } => format!("no model({round}, {})", cause.code),
    });
    script
        .requests
        .iter()
        .map(request)
        .chain(end)
        .collect::<Vec<_>>()
        .join(" → ")
}

/// The prompt of this round, which is the last that the script came to.
fn prompt(round: u64, answers: &[Says]) -> String {
    let (script, _) = run(Limits::of_rounds(4), answers);
    let last = script.requests.last().unwrap();
    assert_eq!((last.0, last.1["round"].as_u64()), ("ask", Some(round)));
    script.last_text().to_owned()
}

const A: &str = "^^^a\none\n^^^end\n";
const TOUCHES_GIT: &str = "^^^.git/config\n^^^end\n";

#[test]
fn the_next_prompt_names_what_the_build_itself_changed() {
    let Says::Build(failed) = built(1, "failed\n") else {
        unreachable!()
    };
    let Says::Apply(ApplyAnswer::Applied(Applied { changes, .. })) = applied() else {
        unreachable!()
    };
    let by_build = changes.into_iter().map(|change| Changed {
        path: "gen.rs".to_owned(),
        created: true,
        ..change
    });
    let failed = Built {
        changes: by_build.collect(),
        put_back: vec![".gitignore".to_owned()],
        ..failed
    };
    let prompt = prompt(2, &[answered(A), applied(), Says::Build(failed)]);
    let (_, told) = prompt.split_once("failed\n").unwrap();
    insta::assert_snapshot!(told.lines().take(4).collect::<Vec<_>>().join("\n"), @r"
    [code-commit] The build itself changed:
    A gen.rs
    .gitignore (not allowed: it was restored)
    ");
}

#[test]
fn the_next_prompt_shows_what_the_build_made_of_a_file_unless_the_roll_up_would_leave_it_out() {
    let Says::Build(failed) = built(1, "failed\n") else {
        unreachable!()
    };
    let present = |path: &str, content: &str| Present {
        path: path.to_owned(),
        text: text(content),
    };
    let present = vec![
        present("a", "formatted\n"),
        present("server.pem", "secret\n"),
    ];
    let rebuilt = [
        answered(A),
        applied(),
        Says::Build(Built { present, ..failed }),
    ];
    let second = prompt(2, &rebuilt);
    assert!(
        second.ends_with("--- FILE REPLACEMENT a ---\nformatted\n"),
        "{second}"
    );
    let answers = [&rebuilt[..], &[answered(A), rejected("no\n")]].concat();
    let (script, _) = run(Limits::of_rounds(4), &answers);
    let seen: Vec<_> = script
        .requests
        .iter()
        .filter(|request| request.0 == "apply")
        .collect();
    assert_eq!(seen[0].1.get("seen"), None);
    let formatted = text("formatted\n").stored.sha256;
    assert_eq!(seen[1].1["seen"], serde_json::json!({ "a": formatted }));
}

#[test]
fn what_is_shown_beside_a_failure_begins_on_a_line_of_its_own() {
    let told = |output, besides| told(&text(output), &Limits::of_rounds(1), 1, At::Build, besides);
    assert_eq!(told("no", ""), "no");
    assert_eq!(told("no\n", ""), "no\n");
    assert_eq!(told("no", "b"), "no\nb");
    assert_eq!(told("no\n", "b"), "no\nb");
}

#[test]
fn a_build_that_passes_at_once_ends_the_run() {
    let facts = [answered(A), applied(), built(0, "")];
    insta::assert_snapshot!(check(Limits::of_rounds(4), &facts), @"ask 1 → apply 1 → build 1 → done(1)");
}

#[test]
fn no_model_is_asked_to_repair_a_build_that_could_not_be_started() {
    let Says::Build(failed) = built(127, "sh: no-such-tool: not found\n") else {
        unreachable!()
    };
    let red = [answered(A), applied(), Says::Build(failed.clone())];
    insta::assert_snapshot!(check(Limits::of_rounds(4), &red), @"ask 1 → apply 1 → build 1 → ask 2");
    for (ended, code) in [
        (Ended::NotFound, "not-found"),
        (Ended::NotExecutable, "not-executable"),
    ] {
        let unfit = Says::Build(Built {
            ended,
            ..failed.clone()
        });
        let facts = [answered(A), applied(), unfit];
        let restored = Says::Restore(Restored { paths: Vec::new() });
        let limits = Limits {
            on_failure: OnFailure::Restore,
            ..Limits::of_rounds(4)
        };
        assert_eq!(
            check(Limits::of_rounds(4), &facts),
            format!("ask 1 → apply 1 → build 1 → unfit(1, {code})")
        );
        assert_eq!(
            check(limits, &[&facts[..], &[restored]].concat()),
            format!("ask 1 → apply 1 → build 1 → restore → unfit(1, {code})")
        );
    }
}

#[test]
fn there_are_three_repairs_and_no_fourth() {
    let round = [answered(A), applied(), built(1, "no\n")];
    let facts: Vec<Says> = round.iter().cycle().take(12).cloned().collect();
    insta::assert_snapshot!(check(Limits::of_rounds(4), &facts), @"ask 1 → apply 1 → build 1 → ask 2 → apply 2 → build 2 → ask 3 → apply 3 → build 3 → ask 4 → apply 4 → build 4 → used up(4)");
}

#[test]
fn a_reply_that_is_refused_counts_as_a_failed_build() {
    let facts = [
        answered(A),
        rejected("no such thing"),
        answered(A),
        applied(),
    ];
    insta::assert_snapshot!(check(Limits::of_rounds(4), &facts), @"ask 1 → apply 1 → ask 2 → apply 2 → build 2");
}

#[test]
fn an_answer_that_a_filter_kept_back_ends_the_run() {
    insta::assert_snapshot!(check(Limits::of_rounds(4), &[blocked()]), @"ask 1 → no model(1, blocked)");
    insta::assert_snapshot!(check(Limits::of_rounds(4), &[unanswered()]), @"ask 1 → no model(1, connect)");
}

#[test]
fn a_failed_run_puts_the_tree_back_only_where_that_is_asked_for() {
    let limits = Limits {
        rounds: 1,
        on_failure: OnFailure::Restore,
        ..Limits::of_rounds(4)
    };
    let restored = Says::Restore(Restored { paths: Vec::new() });
    let facts = [answered(A), applied(), built(1, "no\n"), restored];
    insta::assert_snapshot!(check(limits, &facts), @"ask 1 → apply 1 → build 1 → restore → used up(1)");
    let nothing_applied = [answered(A), rejected("no")];
    insta::assert_snapshot!(check(limits, &nothing_applied), @"ask 1 → apply 1 → used up(1)");
}

#[test]
fn a_repair_prompt_lists_the_latest_replacement_of_each_file_only() {
    let first = "^^^a\nold a\n^^^end\n^^^b\nonly b\n^^^end\n^^^c\nc\n^^^end\n";
    let second = "^^^a\nnew a\n^^^end\n^^^c\n^^^delete\n";
    let rounds = [first, second].map(|reply| [answered(reply), applied(), built(1, "no\n")]);
    let prompt = prompt(3, &rounds.concat());
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
    let prompt = prompt(2, &[answered(A), rejected("the refusal")]);
    assert!(prompt.contains("\nthe refusal\n\nQ\n\nC\n"), "{prompt}");
    assert!(!prompt.contains("--- FILE REPLACEMENT"));
}

#[test]
fn after_a_reply_that_was_not_used_the_prompt_still_has_the_last_build_and_what_is_on_disk() {
    for reply in [TOUCHES_GIT, A, "I would change a.\n"] {
        let used = [answered(A), applied(), built(1, "no type `B`\n")];
        let prompt = prompt(
            3,
            &[&used[..], &[answered(reply), rejected("the refusal")]].concat(),
        );
        let told =
            "\nthe refusal\n\nBefore that reply, build.sh had printed:\nno type `B`\n\nQ\n\nC\n\n";
        let (_, replacements) = prompt
            .split_once(told)
            .unwrap_or_else(|| panic!("{prompt}"));
        assert_eq!(replacements, "--- FILE REPLACEMENT a ---\none\n");
    }
}

#[test]
fn a_reply_that_fails_as_the_one_before_is_told_so() {
    let round = [answered(A), applied(), built(1, "line 7: no\n")];
    let two = vec![round; 2].concat();
    let prompt = prompt(3, &two);
    let notice = "line 7: no\n[code-commit] This is the same failure 2 times in a row.";
    assert!(prompt.contains(notice), "{prompt}");
}

#[test]
fn a_model_whose_replies_cannot_be_used_is_not_told_that_a_change_of_its_did_not_help() {
    let round = [answered(A), rejected("the refusal")];
    let prompt = prompt(3, &[round.clone(), round].concat());
    let notice = "2 times in a row. None of these replies was used; do less in one reply";
    assert!(prompt.contains(notice), "{prompt}");
}

#[test]
fn a_model_that_changed_nothing_is_not_told_that_its_change_did_not_help() {
    let told = |reply: &str, second: Says| {
        let no = built(1, "no\n");
        let rounds = [
            answered(A),
            written("0", "1"),
            no.clone(),
            answered(reply),
            second,
            no,
        ];
        let prompt = prompt(3, &rounds);
        let (_, notice) = prompt.split_once("no\n[code-commit] ").unwrap();
        notice.lines().next().unwrap().to_owned()
    };
    let nothing = "This is the same failure 2 times in a row. Your last reply changed nothing, and the build still fails.";
    let said_so = applied_as(Vec::new(), Some("all is well"));
    assert_eq!(told("$$$start\nall is well\n$$$end\n", said_so), nothing);
    assert_eq!(told(A, written("1", "1")), nothing);
    assert_eq!(
        told(A, written("1", "2")),
        "This is the same failure 2 times in a row. What you changed did not reach its cause; look elsewhere."
    );
}

#[test]
fn a_build_that_breaks_the_seal_does_not_pass() {
    let Says::Build(passed) = built(0, "ok\n") else {
        unreachable!()
    };
    let answers = [
        answered(A),
        applied(),
        Says::Build(Built {
            seal_broken: true,
            ..passed
        }),
    ];
    insta::assert_snapshot!(check(Limits::of_rounds(4), &answers), @"ask 1 → apply 1 → build 1 → ask 2");
}

/// A whole replacement is in the reply itself; of an edit only the world knows what became of the file.
#[test]
fn a_repair_prompt_shows_an_edited_file_whole() {
    let reply = "^^^edit a.rs\n<<<<<<< SEARCH\nold\n=======\nnew\n>>>>>>> REPLACE\n^^^end\n^^^b.rs\nb\n^^^end\n";
    let Says::Apply(ApplyAnswer::Applied(applied)) = applied() else {
        unreachable!()
    };
    let edited = vec![Present {
        path: "a.rs".to_owned(),
        text: text("before\nnew\n"),
    }];
    let applied = Says::Apply(ApplyAnswer::Applied(Applied { edited, ..applied }));
    let (script, _) = run(
        Limits::of_rounds(4),
        &[answered(reply), applied, built(1, "no")],
    );
    let asked = script.last_text();
    let shown = "--- FILE REPLACEMENT a.rs ---\nbefore\nnew\n--- FILE REPLACEMENT b.rs ---\nb\n";
    assert!(asked.ends_with(shown), "{asked}");
}
