use code_commit_engine::{Stored, Text, TurnAdvice, TurnAnswer, TurnEnd, Turned};
use code_commit_logging::Redactor;
use serde::Serialize;
use serde_json::json;

use super::*;

/// The calls of a run with this `run.json` and these facts.
fn calls(run: &str, facts: &[impl Serialize]) -> Vec<Call> {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("run.json"), run).unwrap();
    let mut journal = Journal::create(
        &folder.path().join(code_commit_perform::JOURNAL),
        Redactor::default(),
    )
    .unwrap();
    facts.iter().for_each(|fact| journal.append(fact).unwrap());
    super::calls(folder.path(), &today()).unwrap()
}

fn today() -> Today {
    Today::of(&code_commit_settings::Settings::default())
}

fn stored() -> Stored {
    Stored {
        file: "f".into(),
        bytes: 0,
        sha256: String::new(),
    }
}

fn text() -> Text {
    Text::in_file("f", "")
}

fn asked() -> Value {
    let at_most = json!({ "tokens": 70_000, "cost_usd": 0.25 });
    json!({ "what": "asked", "round": 1, "prompt": stored(), "at_most": at_most })
}

fn answered(usage: Usage, cost_usd: Option<f64>) -> Value {
    json!({
        "what": "answered", "round": 1, "reply": stored(), "raw": stored(), "finish": "complete",
        "usage": usage, "served_model": null, "cost_usd": cost_usd, "elapsed_ms": 1,
    })
}

fn used(input: u64, output: u64) -> Usage {
    Usage {
        input_tokens: Some(input),
        output_tokens: Some(output),
        ..Usage::default()
    }
}

#[test]
fn each_call_of_an_order_is_counted_also_one_whose_answer_never_came() {
    let unanswered =
        json!({ "what": "unanswered", "round": 3, "cause": { "code": "c", "message": "m" } });
    let lost = json!({ "what": "attempted", "round": 3, "attempt": { "error": "idle", "spend": "unknown" } });
    let facts = [
        asked(),
        answered(used(10, 2), Some(0.5)),
        asked(),
        asked(),
        lost,
        unanswered,
        asked(),
    ];
    let calls = calls(r#"{"loop":"order","model":"openai/gpt-own"}"#, &facts);
    let totals: Vec<_> = calls
        .iter()
        .map(|call| (call.total, call.cost_usd, call.at_most_usd))
        .collect();
    let lost = (None, None, Some(0.25));
    assert_eq!(totals, [(Some(12), Some(0.5), None), lost, lost, lost]);
    assert!(
        calls
            .iter()
            .all(|call| call.origin == "order" && call.model == "gpt-own"),
        "{calls:?}"
    );
}

#[test]
fn an_attempt_that_cannot_be_read_counts_as_the_most_it_can_have_cost() {
    for attempt in [
        json!("damaged"),
        json!({ "error": "idle" }),
        json!({ "spend": 7 }),
    ] {
        let attempted = json!({ "what": "attempted", "round": 3, "attempt": attempt });
        let calls = calls(
            r#"{"loop":"order","model":"openai/gpt-own"}"#,
            &[asked(), attempted],
        );
        assert_eq!(
            calls
                .iter()
                .map(|call| call.at_most_usd)
                .collect::<Vec<_>>(),
            [Some(0.25)],
            "{attempt}"
        );
    }
}

fn turned(usage: Vec<ModelUsage>, cost_usd: Option<f64>) -> Value {
    let end = TurnEnd {
        how: "ok".into(),
        said: "answered".into(),
        then: TurnAdvice::Use,
        asks_for_another: false,
    };
    let turned = TurnAnswer::Turned(Box::new(Turned {
        number: 1,
        role: "planning".into(),
        end,
        answer: text(),
        markers: Vec::new(),
        session: None,
        usage,
        cost_usd,
        denials: Vec::new(),
        changed: Vec::new(),
        gone: Vec::new(),
        put_back: Vec::new(),
        went_on: false,
        elapsed_ms: 1,
        at: String::new(),
    }));
    serde_json::to_value(turned).unwrap()
}

fn begins() -> Value {
    json!({ "what": "turn-begins", "number": 1, "role": "planning", "prompt": stored(), "at": "", "request": {} })
}

fn model(name: &str, cost_usd: Option<f64>) -> ModelUsage {
    let (input_tokens, output_tokens) = (Some(3), Some(4));
    let usage = Usage {
        input_tokens,
        output_tokens,
        ..Usage::default()
    };
    ModelUsage {
        model: name.into(),
        usage,
        cost_usd,
    }
}

#[test]
fn a_turn_counts_for_each_of_its_models_and_one_that_says_nothing_counts_as_unknown() {
    let begins = begins();
    let two = vec![model("a", None), model("b", None)];
    let facts = [
        begins.clone(),
        turned(two, None),
        begins,
        turned(Vec::new(), None),
    ];
    let calls = calls(r#"{"loop":"spec"}"#, &facts);
    let said: Vec<_> = calls
        .iter()
        .map(|call| (call.model.as_str(), call.total))
        .collect();
    assert_eq!(said, [("a", Some(7)), ("b", Some(7)), (UNNAMED, None)]);
    assert!(
        calls
            .iter()
            .all(|call| call.role.as_deref() == Some("planning"))
    );
}

#[test]
fn a_turn_that_was_cut_off_counts_once_with_what_is_known_of_it() {
    let facts = [
        begins(),
        turned(vec![model("a", None)], None),
        begins(),
        turned(Vec::new(), None),
    ];
    let calls = calls(r#"{"loop":"spec"}"#, &facts);
    let said: Vec<_> = calls
        .iter()
        .map(|call| (call.model.as_str(), call.total))
        .collect();
    assert_eq!(said, [("a", Some(7)), (UNNAMED, None)]);
}

#[test]
fn what_an_agent_says_of_a_whole_turn_is_counted_once() {
    let costs = |usage, whole| {
        let calls = calls(r#"{"loop":"spec"}"#, &[turned(usage, Some(whole))]);
        calls
            .into_iter()
            .map(|call| (call.model, call.cost_usd))
            .collect::<Vec<_>>()
    };
    let call = |model: &str, cost| (model.to_owned(), cost);
    assert_eq!(costs(vec![], 0.5), [call(UNNAMED, Some(0.5))]);
    // The price list has this model, but the agent's figure takes precedence.
    assert_eq!(
        costs(vec![model("gemini-2.5-pro", None)], 0.5),
        [call("gemini-2.5-pro", Some(0.5))]
    );
    let each = vec![model("a", Some(0.25)), model("b", Some(0.25))];
    assert_eq!(
        costs(each, 0.5),
        [call("a", Some(0.25)), call("b", Some(0.25))]
    );
    let one = vec![model("a", Some(0.125)), model("b", None)];
    assert_eq!(
        costs(one, 0.5),
        [call("a", Some(0.125)), call("b", Some(0.375))]
    );
    let none = vec![model("a", None), model("b", None)];
    assert_eq!(
        costs(none, 0.5),
        [call("a", None), call("b", None), call(UNNAMED, Some(0.5))]
    );
    assert_eq!(costs(vec![], -1.0), [call(UNNAMED, None)]);
}

#[test]
fn an_audit_of_specs_is_a_call_of_spec() {
    let state = tempfile::tempdir().unwrap();
    let audit = state
        .path()
        .join(spec::RUNS)
        .join("2026-11-21-09-30-00-audit");
    fs::create_dir_all(&audit).unwrap();
    let mut journal = Journal::create(
        &audit.join(code_commit_perform::JOURNAL),
        Redactor::default(),
    )
    .unwrap();
    journal.append(&turned(Vec::new(), None)).unwrap();
    assert_eq!(super::calls(&audit, &today()).unwrap()[0].origin, "spec");
}

#[test]
fn a_journal_that_was_changed_is_no_journal() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(code_commit_perform::JOURNAL);
    let mut journal = Journal::create(&file, Redactor::default()).unwrap();
    for _ in 0..2 {
        journal.append(&answered(used(1, 1), None)).unwrap();
    }
    let changed =
        fs::read_to_string(&file)
            .unwrap()
            .replacen("\"input_tokens\":1", "\"input_tokens\":9", 1);
    fs::write(&file, changed).unwrap();
    assert_eq!(super::calls(folder.path(), &today()), None);
}
