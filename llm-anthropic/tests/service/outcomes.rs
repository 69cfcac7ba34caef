//! How the client handles every answer and every failure of the dialect.

use code_commit_fixtures::outcomes;
use code_commit_llm_anthropic::{Anthropic, Secret};

const KEY: &str = "sk-ant-test-key-0123456789-xy";

fn service(origin: &str) -> Anthropic {
    let base = origin.parse().expect("an address");
    let id = "anthropic/m".parse().expect("a name");
    Anthropic::new(base, id, Secret::new(KEY))
}

#[test]
fn every_answer_and_every_failure_has_its_outcome() {
    let corpus = include_str!("../../../fixtures/outcomes/anthropic.jsonl");
    outcomes::check(corpus, KEY, service).expect("a server");
}
