//! How the client handles every answer and every failure of the dialect.

use code_commit_fixtures::outcomes;
use code_commit_fixtures::server::Step;
use code_commit_llm_openai::{CallError, OpenAi, Secret};

const KEY: &str = "sk-test-key-0123456789-xy";

fn service_below(path: &str, origin: &str) -> OpenAi {
    let base = format!("{origin}{path}").parse().expect("an address");
    OpenAi::new(base, "openai/m".parse().expect("a name"), Secret::new(KEY))
}

fn service(origin: &str) -> OpenAi {
    service_below("/v1", origin)
}

#[test]
fn every_answer_and_every_failure_has_its_outcome() {
    let corpus = include_str!("../../../fixtures/outcomes/openai.jsonl");
    outcomes::check(corpus, KEY, service).expect("a server");
}

#[test]
fn a_base_url_without_its_version_is_named_and_nothing_else_is() {
    let corpus = include_str!("../../../fixtures/outcomes/openai-without-version.jsonl");
    outcomes::check(corpus, KEY, |origin| service_below("", origin)).expect("a server");
    let hint = |base: &str| {
        CallError::WrongAddress {
            base: base.into(),
            message: String::new(),
        }
        .hint()
    };
    assert_eq!(
        hint("http://h:1234"),
        "add /v1 to the base URL, as in http://127.0.0.1:8080/v1"
    );
    assert_eq!(
        hint("http://h/v1"),
        "check the base URL; most servers have their API below /v1"
    );
}

#[test]
fn an_answer_is_read_by_its_own_form_whatever_its_label() {
    let labelled = |body: &str, label: &str| {
        vec![Step {
            content_type: Some(label.into()),
            ..Step::body(body)
        }]
    };
    for stream in [true, false] {
        for label in [
            "text/plain; charset=utf-8",
            "application/json",
            "application/octet-stream",
            "text/html",
            "text/event-stream",
            "",
        ] {
            for head in [
                "",
                "\u{feff}",
                "\n\n",
                ": OPENROUTER PROCESSING\n\n",
                "id: 1\n",
                "retry: 3000\n\n",
                "event: message\n",
            ] {
                let steps = labelled(&format!("{head}{NO_DONE}"), label);
                let outcome = outcomes::outcome(KEY, stream, service, steps).expect("a server");
                assert_eq!(
                    outcome, r#"complete Use "a" | Ok/Unknown []"#,
                    "{label:?} {head:?}"
                );
            }
            let outcome =
                outcomes::outcome(KEY, stream, service, labelled(NULLS, label)).expect("a server");
            assert_eq!(outcome, r#"complete Use "a" | Ok/Unknown []"#, "{label:?}");
        }
    }
}

const NULLS: &str = r#"{"id":null,"model":null,"created":null,"error":null,"usage":null,"choices":[
    {"message":{"content":"a","refusal":null,"tool_calls":null},"finish_reason":"stop","logprobs":null}]}"#;

const NO_DONE: &str =
    "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\n";
