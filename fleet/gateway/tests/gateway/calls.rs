//! Calls that end in unusual ways, and those that cannot begin yet.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use code_commit_fixtures::server::{Framing, Script, Step};
use code_commit_fleet_store::{Filter, Nanodollars, Scope};
use code_commit_fleet_trial::until_async;
use code_commit_llm::CallError;

use crate::{Scene, ask, get, post};

/// A commit that writes a call waits until the gate is open.
const GATE: &str = "
    CREATE TABLE gate (is_open bool); INSERT INTO gate VALUES (false);
    CREATE FUNCTION wait_at_gate() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        WHILE NOT (SELECT is_open FROM gate) LOOP PERFORM pg_sleep(0.01); END LOOP; RETURN NULL;
    END $$;
    CREATE CONSTRAINT TRIGGER gate AFTER INSERT ON calls DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION wait_at_gate()";
const AT_GATE: &str = "
    SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'";

#[tokio::test]
async fn a_program_that_is_killed_while_its_reservation_commits_does_not_block_its_order() {
    let Some(scene) = Scene::new(Script::new([Step::text("hello")])).await else {
        return;
    };
    let lease = scene.leased("one").await;
    scene.database.query(GATE).unwrap();
    let path = format!(
        "/m/{}/v1beta/models/gemini-2.5-pro:generateContent",
        lease.token
    );
    let mut program = TcpStream::connect(scene.models.strip_prefix("http://").unwrap()).unwrap();
    write!(
        program,
        "POST {path} HTTP/1.1\r\nhost: gateway\r\ncontent-length: 2\r\n\r\n{{}}"
    )
    .unwrap();
    let at_gate = || async { (!scene.database.query(AT_GATE).unwrap().is_empty()).then_some(()) };
    until_async("the commit", at_gate).await.unwrap();
    program.shutdown(Shutdown::Write).unwrap();
    // The gateway has noticed when it closes its side.
    tokio::task::spawn_blocking(move || program.read(&mut [0]).unwrap())
        .await
        .unwrap();
    scene
        .database
        .query("UPDATE gate SET is_open = true")
        .unwrap();
    let again = tokio::time::timeout(
        Duration::from_secs(30),
        post(format!("{}{path}", scene.models), "{}"),
    );
    let (status, body) = again.await.expect("the order is blocked");
    assert!(status == 200 && body.contains("hello"), "{body}");
    assert_eq!(scene.vendor.requests().len(), 1);
}

/// A streamed answer of Gemini with its end mark.
const WHOLE: &str = concat!(
    r#"data: {"candidates":[{"content":{"parts":[{"text":"hello"}],"role":"model"},"finishReason":"STOP"}],"#,
    r#""usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":2,"totalTokenCount":5}}"#,
    "\r\n\r\n"
);

#[tokio::test]
async fn what_happens_after_the_end_mark_of_a_stream_does_not_matter() {
    let events = |body: &str| Step {
        content_type: Some("text/event-stream".into()),
        ..Step::body(body)
    };
    let cut = events(WHOLE)
        .framing(Framing::Chunked)
        .cut_after(WHOLE.len());
    let with_junk = events(&format!("{WHOLE}data: {{\"candid"));
    let unlabelled = Step {
        content_type: Some("text/plain".into()),
        ..events(WHOLE)
    };
    for step in [cut, with_junk, unlabelled] {
        let Some(scene) = Scene::new(Script::new([step])).await else {
            return;
        };
        let lease = scene.leased("one").await;
        for _again in 0..2 {
            assert_eq!(ask(scene.gemini(&lease), true).await.unwrap().text, "hello");
        }
        assert_eq!(scene.vendor.requests().len(), 1, "the answer was kept");
        let cost = scene
            .store
            .costs(&Filter::default())
            .await
            .unwrap()
            .remove(0);
        assert_eq!((cost.calls, cost.unknown), (1, 0), "{cost:?}");
    }
}

#[tokio::test]
async fn an_answer_that_the_client_does_not_accept_is_not_kept() {
    // It does not say how it ended, and its tokens are all that the request allowed.
    let open_end = r#"{"candidates":[{"content":{"parts":[{"text":"hello"}]}}],
        "usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":7,"totalTokenCount":10}}"#;
    let Some(scene) = Scene::new(Script::new([Step::body(open_end).times(2)])).await else {
        return;
    };
    let lease = scene.leased("one").await;
    let url = scene
        .base(&lease)
        .join("/v1beta/models/gemini-2.5-pro:generateContent");
    for _again in 0..2 {
        let answer = post(url.clone(), r#"{"generationConfig":{"maxOutputTokens":7}}"#).await;
        assert_eq!(
            answer,
            (200, open_end.to_owned()),
            "the program sees what came"
        );
    }
    assert_eq!(scene.vendor.requests().len(), 2);
}

#[tokio::test]
async fn a_vendor_can_stop_a_model_for_an_hour_at_most() {
    for wait in ["1e13", "31536000"] {
        let Some(scene) =
            Scene::new(Script::new([Step::status(429).header("retry-after", wait)])).await
        else {
            return;
        };
        let (one, two) = (scene.leased("one").await, scene.leased("two").await);
        let ended = ask(scene.gemini(&one), true).await;
        assert!(
            matches!(ended, Err(CallError::RateLimited { .. })),
            "{ended:?}"
        );
        let ended = ask(scene.gemini(&two), true).await;
        let Err(CallError::RateLimited {
            retry_after: Some(wait),
            ..
        }) = ended
        else {
            panic!("{ended:?}")
        };
        assert!((3500..=3601).contains(&wait.as_secs()), "{wait:?}");
        assert_eq!(scene.store.snapshot().await.unwrap().open_calls, 0);
    }
}

#[tokio::test]
async fn a_call_that_waits_for_another_to_end_holds_no_money() {
    let slow = Step {
        delay_ms: 1000,
        ..Step::text("hello")
    };
    let Some(scene) = Scene::with(Script::new([slow.times(2)]), |setup| setup.calls = 1).await
    else {
        return;
    };
    // Enough for one reservation of 65,536 tokens, not for two.
    scene
        .store
        .cap(
            &Scope::Tenant("a".into()),
            Nanodollars::from_usd(1.0).unwrap(),
        )
        .await
        .unwrap();
    let (one, two) = (scene.leased("one").await, scene.leased("two").await);
    let first = tokio::spawn(ask(scene.gemini(&one), true));
    until_async("the first call", || async {
        (!scene.vendor.requests().is_empty()).then_some(())
    })
    .await
    .unwrap();
    assert_eq!(ask(scene.gemini(&two), true).await.unwrap().text, "hello");
    first.await.unwrap().unwrap();
    let (_, page) = get(format!("{}/metrics", scene.models), None).await;
    assert!(!page.contains(r#"answer="refused""#), "{page}");
}
