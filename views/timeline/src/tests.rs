use code_commit_engine::Event;

use super::*;

/// The steps of these lines, written a second apart: round, milliseconds, kind, in words.
fn check(lines: &[&str]) -> String {
    let lines: Vec<(String, Event)> = lines
        .iter()
        .enumerate()
        .map(|(at, json)| {
            (
                format!("2026-11-21T09:30:{at:02}.000Z"),
                serde_json::from_str(json).unwrap(),
            )
        })
        .collect();
    let steps = RunView::of(lines.iter().map(|(at, line)| (at.as_str(), line)));
    let mut text = String::new();
    for step in &steps.all {
        let what = match &step.what {
            What::Call(call) => format!(
                "call {} {}{}",
                call.role.as_deref().unwrap_or("model"),
                call.served_model.as_deref().unwrap_or("?"),
                call.failed
                    .as_ref()
                    .map(|cause| format!(", {}", cause.code))
                    .unwrap_or_default()
            ),
            What::Change(change) if change.is_refused => {
                format!("refused {}", change.problems[0].code)
            }
            What::Change(change) => format!("changed {}", change.changes.len()),
            What::Command(command) => {
                format!(
                    "{} {}",
                    command.name,
                    if command.is_good { "good" } else { "bad" }
                )
            }
            What::Remark(remark) => format!("{:?}: {}", remark.tone, remark.text),
        };
        text.push_str(&format!("{} {} ms {what}\n", step.round, step.elapsed_ms()));
    }
    let cost = steps
        .cost_usd()
        .map_or("unknown".to_owned(), |cost| format!("{cost:.2}"));
    text + &format!(
        "{} rounds, {} ms, ${cost}",
        steps.rounds_asked(),
        steps.elapsed_ms()
    )
}

const ASKED: &str = r#"{"what":"asked","round":1,"prompt":{"file":"1-query.txt","bytes":9,"sha256":"a"},"at_most":{"tokens":9,"cost_usd":1.0}}"#;
const ANSWERED: &str = r#"{"what":"answered","round":1,"reply":{"file":"1-response.txt","bytes":9,"sha256":"b"},"raw":{"file":"1-response.json","bytes":9,"sha256":"c"},"finish":"complete","usage":{"input_tokens":10,"output_tokens":2},"served_model":"m","cost_usd":0.25,"elapsed_ms":900}"#;
const REJECTED: &str = r#"{"what":"rejected","round":1,"problems":[{"code":"dot-git","message":"no"}],"report":{"file":"1-build.txt","bytes":2,"sha256":"d"}}"#;
const BUILT: &str = r#"{"what":"built","round":2,"ended":{"how":"exited","code":0},"output":{"file":"2-build.txt","bytes":2,"sha256":"e"},"elapsed_ms":500}"#;

fn turn(role: &str, begins: bool) -> String {
    if begins {
        return format!(
            r#"{{"what":"turn-begins","number":1,"role":"{role}","prompt":{{"file":"p","bytes":1,"sha256":"p"}},"at":"","request":null}}"#
        );
    }
    format!(
        r#"{{"what":"turned","number":1,"role":"{role}","end":{{"end":"done","said":"ended","then":"use"}},"answer":{{"file":"a","bytes":1,"sha256":"a"}},"session":null,"usage":[{{"model":"g","cost_usd":null}}],"cost_usd":0.5,"changed":[],"elapsed_ms":1000,"at":""}}"#
    )
}

#[test]
fn a_call_lasts_from_its_prompt_to_its_answer_and_a_build_as_long_as_its_line_says() {
    insta::assert_snapshot!(check(&[ASKED, ANSWERED, REJECTED, BUILT]), @"
    1 1000 ms call model m
    1 0 ms refused dot-git
    2 500 ms build good
    1 rounds, 3000 ms, $0.25
    ");
}

#[test]
fn a_call_without_an_answer_is_a_step_of_unknown_cost() {
    insta::assert_snapshot!(check(&[ASKED, r#"{"what":"resumed","kept":0}"#, ASKED, ANSWERED]), @"
    1 1000 ms call model ?, cut-off
    1 0 ms Warning: the run was stopped, and continued here
    1 1000 ms call model m
    1 rounds, 3000 ms, $unknown
    ");
}

#[test]
fn a_round_of_agents_begins_when_the_first_role_works_again() {
    let lines: Vec<String> = ["builder", "builder", "verifier", "builder", "verifier"]
        .iter()
        .flat_map(|role| [turn(role, true), turn(role, false)])
        .collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    insta::assert_snapshot!(check(&lines), @"
    1 1000 ms call builder g
    1 1000 ms call builder g
    1 1000 ms call verifier g
    2 1000 ms call builder g
    2 1000 ms call verifier g
    2 rounds, 9000 ms, $2.50
    ");
}

#[test]
fn announced_iterations_are_the_rounds_of_a_spec() {
    let starts = r#"{"what":"announced","event":{"event":"IterationStart","iteration":3}}"#;
    let (begins, ends) = (turn("planner", true), turn("planner", false));
    let commit = r#"{"what":"checkpointed","repository":"project","message":"one\ntwo","checkpoint":{"checkpoint":"made","commit":"abc"}}"#;
    insta::assert_snapshot!(check(&[starts, &begins, &ends, commit]), @"
    3 1000 ms call planner g
    3 0 ms Good: committed as abc: one
    3 rounds, 3000 ms, $0.50
    ");
}

fn changed(path: &str, before: Option<&str>, after: Option<&str>) -> code_commit_engine::Changed {
    code_commit_engine::Changed {
        path: path.into(),
        action: code_commit_engine::Action::Write,
        before_sha256: before.map(str::to_owned),
        after_sha256: after.map(str::to_owned),
        created: before.is_none(),
        before_mode: None,
        after_mode: None,
    }
}

fn step(what: What) -> Step {
    Step {
        round: 1,
        from_ms: 0,
        to_ms: 0,
        what,
    }
}

#[test]
fn the_edits_of_a_run_lead_from_the_first_content_to_the_last() {
    let change = |changes| {
        step(What::Change(Change {
            changes,
            ..Change::default()
        }))
    };
    let build = |changes| {
        step(What::Command(Command {
            changes,
            ..Command::default()
        }))
    };
    let mut run = Run::default();
    run.steps.all = vec![
        change(vec![
            changed("a", Some("1"), Some("2")),
            changed("same", Some("1"), Some("2")),
        ]),
        build(vec![
            changed("a", Some("2"), Some("3")),
            changed("by build", None, Some("4")),
        ]),
        change(vec![changed("same", Some("2"), Some("1"))]),
    ];
    let edits: Vec<String> = run
        .edits()
        .iter()
        .map(|edit| {
            format!(
                "{} {} {:?} {:?} {}",
                edit.letter(),
                edit.path,
                edit.before,
                edit.after,
                edit.by_command
            )
        })
        .collect();
    assert_eq!(
        edits,
        [
            r#"M a Some("1") Some("3") false"#,
            r#"A by build None Some("4") true"#
        ]
    );
}

#[test]
fn a_run_whose_files_were_restored_has_no_edits() {
    let mut run = Run::default();
    let restored: Event = serde_json::from_str(r#"{"what":"restored","paths":["a"]}"#).unwrap();
    run.steps = RunView::of([("2026-11-21T09:30:00.000Z", &restored)]);
    let changes = vec![changed("a", Some("1"), Some("2"))];
    run.steps.all.insert(
        0,
        step(What::Change(Change {
            changes,
            ..Change::default()
        })),
    );
    assert_eq!(run.edits(), []);
}
