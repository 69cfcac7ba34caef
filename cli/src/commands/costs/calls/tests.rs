use engine::{AgentFact, CallFact, Cause, OrderFact, Text, Turned};
use logging::{Durability, Redactor, Stored};
use serde::Serialize;

use super::*;

/// The calls of a run with this `run.json` and these facts.
fn calls(run: &str, facts: &[impl Serialize]) -> Vec<Call> {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("run.json"), run).unwrap();
    let mut journal = Journal::create(&folder.path().join(engine::JOURNAL), Redactor::default()).unwrap();
    facts.iter().for_each(|fact| journal.append(fact, Durability::Written).unwrap());
    super::journal(folder.path()).unwrap()
}

fn stored() -> Stored {
    Stored { file: "f".into(), bytes: 0, sha256: String::new() }
}

fn text() -> Text {
    Text::new(stored(), "".into())
}

fn asked() -> OrderFact {
    CallFact::Asked { round: 1, prompt: text() }.into()
}

fn answered(usage: Usage, cost_usd: Option<f64>) -> OrderFact {
    let (reply, raw) = (text(), stored());
    CallFact::Answered {
        round: 1,
        reply,
        raw,
        finish: llm::Finish::Complete,
        held_key: false,
        usage,
        served_model: None,
        cost_usd,
        elapsed_ms: 1,
    }
    .into()
}

fn used(input: u64, output: u64) -> Usage {
    Usage { input_tokens: Some(input), output_tokens: Some(output), ..Usage::default() }
}

#[test]
fn each_call_of_an_order_is_counted_also_one_whose_answer_never_came() {
    let unanswered = CallFact::Unanswered {
        round: 3,
        cause: Cause { code: "c".into(), message: "m".into(), remedy: None },
    };
    let facts = [asked(), answered(used(10, 2), Some(0.5)), asked(), asked(), unanswered.into(), asked()];
    let calls = calls(r#"{"loop":"order","model":"openai/gpt-own"}"#, &facts);
    let totals: Vec<_> = calls.iter().map(|call| (call.total, call.cost_usd)).collect();
    assert_eq!(totals, [(Some(12), Some(0.5)), (None, None), (None, None), (None, None)]);
    assert!(calls.iter().all(|call| call.origin == "order" && call.model == "gpt-own"), "{calls:?}");
}

#[test]
fn a_turn_counts_for_each_of_its_models_and_one_that_says_nothing_counts_as_unknown() {
    let turned = |usage| {
        AgentFact::Turned(Box::new(Turned {
            number: 1,
            role: "planning".into(),
            end: agent::End::Ok,
            answer: text(),
            markers: Vec::new(),
            session: None,
            usage,
            cost_usd: None,
            denials: Vec::new(),
            changed: Vec::new(),
            gone: Vec::new(),
            put_back: Vec::new(),
            elapsed_ms: 1,
            at: String::new(),
        }))
    };
    let model = |name: &str| ModelUsage {
        model: name.into(),
        input_tokens: Some(3),
        output_tokens: Some(4),
        ..ModelUsage::default()
    };
    let begins = AgentFact::TurnBegins { number: 1, role: "planning".into(), prompt: text() };
    let facts = [begins.clone(), turned(vec![model("a"), model("b")]), begins, turned(Vec::new())];
    let calls = calls(r#"{"loop":"spec"}"#, &facts);
    let said: Vec<_> = calls.iter().map(|call| (call.model.as_str(), call.total)).collect();
    assert_eq!(said, [("a", Some(7)), ("b", Some(7)), (UNNAMED, None)]);
    assert!(calls.iter().all(|call| call.role.as_deref() == Some("planning")));
}

#[test]
fn a_journal_that_was_changed_is_no_journal() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(engine::JOURNAL);
    let mut journal = Journal::create(&file, Redactor::default()).unwrap();
    for _ in 0..2 {
        journal.append(&answered(used(1, 1), None), Durability::Written).unwrap();
    }
    let changed = fs::read_to_string(&file).unwrap().replacen("\"input_tokens\":1", "\"input_tokens\":9", 1);
    fs::write(&file, changed).unwrap();
    assert_eq!(super::journal(folder.path()), None);
}
