//! Which requests of programs are taken.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use code_commit_fixtures::server::{Script, Step};
use code_commit_llm::Model as _;

use crate::{Scene, get, post};

#[tokio::test]
async fn only_what_clients_of_the_product_ask_is_passed_on() {
    let Some(scene) = Scene::new(Script::default()).await else {
        return;
    };
    let lease = scene.leased("one").await;
    for path in [
        "/v1beta/models/gemini-2.5-pro:batchGenerateContent",
        "/v1beta/models/gemini-2.5-pro:predictLongRunning",
        "/v1beta/models/gemini-2.5-pro:",
        // None of these counts tokens.
        "/v1beta/models/gemini-2.5-pro:generateContent%3Fx=/count_tokens",
        "/v1beta/models/gemini-2.5-pro:generateContent?x=/count_tokens",
        "/v1beta/models/gemini-2.5-pro:generateContent%2Fcount_tokens",
        "/v1beta/models/gemini-2.5-pro:generateContent/count_tokens",
        "/v1beta/models/gemini-2.5-pro:generateContent?x=:countTokens",
        "/v1beta/models/gemini-2.5-pro%3AgenerateContent",
        "//v1beta/models/gemini-2.5-pro:generateContent",
        "/v1beta/models//gemini-2.5-pro:countTokens",
        "/v1beta/models/../models/gemini-2.5-pro:countTokens",
        "/v1/messages?x=/count_tokens",
        "/v1/messages%3f/count_tokens",
        "/v1/messages/batches",
        "/v1/messages/",
        "//v1/messages",
    ] {
        let url = format!("{}/m/{}{path}", scene.models, lease.token);
        let (status, body) = post(url, r#"{"model":"claude-fable-5-1"}"#).await;
        assert!(
            status == 404 && body.contains(r#""error""#),
            "{path}: {status} {body}"
        );
    }
    assert!(scene.vendor.requests().is_empty());
}

#[tokio::test]
async fn counting_tokens_and_describing_a_model_is_free() {
    let Some(scene) = Scene::new(Script::default()).await else {
        return;
    };
    let lease = scene.leased("one").await;
    let agent = std::sync::Arc::new(code_commit_llm::http::Agent::new(
        code_commit_llm::http::Network::default(),
        code_commit_llm::http::Limits::default(),
    ));
    let model = code_commit_llm::Client::new(agent, scene.gemini(&lease));
    let counted = tokio::task::spawn_blocking(move || {
        model.check(&mut code_commit_llm::Blind).unwrap();
        let request = code_commit_llm::Request {
            prompt: "say it",
            ..code_commit_llm::Request::default()
        };
        model
            .count_tokens(&request, &mut code_commit_llm::Blind)
            .unwrap()
    });
    assert!(counted.await.unwrap().is_some_and(|count| count > 0));
    let costs = scene
        .store
        .costs(&code_commit_fleet_store::Filter::default())
        .await
        .unwrap();
    assert!(costs.is_empty(), "{costs:?}");
    let billed = scene
        .base(&lease)
        .join("/v1beta/models/gemini-2.5-pro:generateContent");
    // Without a body it would be sent as a GET.
    assert_eq!(get(billed, None).await.0, 404);
}

#[tokio::test]
async fn an_unknown_token_is_refused_before_its_body_is_read_and_leaves_no_trace() {
    let Some(scene) = Scene::new(Script::default()).await else {
        return;
    };
    let token = "00000000-0000-4000-8000-000000000000";
    let path = format!("/m/{token}/v1beta/models/made-up-model:generateContent");
    let address = scene.models.strip_prefix("http://").unwrap().to_owned();
    let head =
        format!("POST {path} HTTP/1.1\r\nhost: gateway\r\ncontent-length: 67000000\r\n\r\n{{")
            .into_bytes();
    let answer = tokio::task::spawn_blocking(move || {
        let mut program = TcpStream::connect(address).unwrap();
        program
            .set_read_timeout(Some(Duration::from_secs(30)))
            .unwrap();
        program.write_all(&head).unwrap();
        let mut begin = [0; 12];
        program
            .read_exact(&mut begin)
            .expect("no answer without a body");
        String::from_utf8_lossy(&begin).into_owned()
    });
    assert_eq!(answer.await.unwrap(), "HTTP/1.1 403");
    assert_eq!(post(format!("{}{path}", scene.models), "{}").await.0, 403);
    let (_, page) = get(format!("{}/metrics", scene.models), None).await;
    assert!(!page.contains("made-up-model"), "{page}");
}

#[tokio::test]
async fn a_model_that_no_vendor_has_gets_no_metric_of_its_own() {
    let Some(scene) = Scene::new(Script::new([Step::status(404).times(2)])).await else {
        return;
    };
    let lease = scene.leased("one").await;
    for name in ["made-up-1", "made-up-2"] {
        let url = scene
            .base(&lease)
            .join(&format!("/v1beta/models/{name}:generateContent"));
        assert_eq!(post(url, "{}").await.0, 404);
    }
    let (_, page) = get(format!("{}/metrics", scene.models), None).await;
    assert!(!page.contains("made-up"), "{page}");
    assert!(
        page.contains(r#"fleet_calls_total{model="other",answer="failed"} 2"#),
        "{page}"
    );
}
