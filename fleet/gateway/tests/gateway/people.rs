//! Who may ask for what.

use std::sync::Arc;

use code_commit_fixtures::server::Script;
use code_commit_fleet_store::{Fence, Role, State};
use code_commit_llm::Secret;
use code_commit_llm::http::Post;
use serde_json::{Value, json};

use crate::{Scene, fetch, get};

impl Scene {
    async fn token(&self, name: &str, role: Role, tenant: Option<&str>) -> String {
        format!(
            "Bearer {}",
            self.store
                .make_token(name, role, tenant)
                .await
                .unwrap()
                .unwrap()
        )
    }

    async fn post(&self, path: &str, token: &str, body: &Value) -> (u16, String) {
        let url = format!("{}{path}", self.workers);
        let headers = vec![("content-type", "application/json".to_owned())];
        let key = Some(("authorization", Secret::new(token)));
        fetch(Post {
            url,
            headers,
            key,
            body: Arc::new(body.to_string().into()),
        })
        .await
    }

    async fn ask(&self, token: &str, request: &Value) -> u16 {
        self.post("/v1/fleet", token, request).await.0
    }
}

fn submission(tenant: &str) -> Value {
    let order = json!({
        "tenant": tenant, "batch": null, "repo": "/hub", "base": "b".repeat(40), "content": "c", "model": "m",
        "priority": 0, "after": null, "land": null, "record": 1, "traceparent": null
    });
    json!({ "do": "submit", "orders": [order], "max-cost-usd": null })
}

#[tokio::test]
async fn each_role_may_do_what_it_is_for_and_nothing_else() {
    let Some(scene) = Scene::new(Script::default()).await else {
        return;
    };
    scene.submit("one", code_commit_fleet_wire::RECORD).await;
    let filter = json!({ "tenant": "a" });
    let look = json!({ "do": "orders", "filter": filter, "after": 0, "limit": 10 });
    let events = json!({ "do": "events", "order": 1 });
    let costs = json!({ "do": "costs", "filter": filter });
    let submit = submission("a");
    let retry = json!({ "do": "retry", "filter": filter });
    let whole = json!({ "do": "snapshot" });
    let steering = [
        json!({ "do": "cap", "scope": "fleet", "usd": 5.0 }),
        json!({ "do": "pause", "kind": "model", "name": "m" }),
        json!({ "do": "resume", "kind": "model", "name": "m" }),
        json!({ "do": "workers" }),
        json!({ "do": "drain", "worker": "w", "is-draining": true }),
    ];
    let lease = json!({ "worker": "w", "version": "0", "record": 0, "wait_ms": 0 });
    // Whether it may look, submit, see the whole fleet, steer and work.
    for (role, tenant, may) in [
        (Role::Worker, None, [false, false, false, false, true]),
        (Role::Viewer, None, [true, false, true, false, false]),
        (Role::Viewer, Some("a"), [true, false, false, false, false]),
        (Role::Viewer, Some("b"), [false, false, false, false, false]),
        (Role::Submitter, None, [true, true, true, false, false]),
        (
            Role::Submitter,
            Some("a"),
            [true, true, false, false, false],
        ),
        (
            Role::Submitter,
            Some("b"),
            [false, false, false, false, false],
        ),
        (Role::Operator, Some("a"), [true, true, false, false, false]),
        (Role::Operator, None, [true, true, true, true, false]),
    ] {
        let token = scene
            .token(&format!("{role}-{tenant:?}"), role, tenant)
            .await;
        let asked = async |request: &Value, may: bool| {
            let status = scene.ask(&token, request).await;
            assert_eq!(status == 200, may, "{role} {tenant:?}: {request}: {status}");
            assert!(may || matches!(status, 403 | 422), "{status}");
        };
        for request in [&look, &events, &costs] {
            asked(request, may[0]).await;
        }
        for request in [&submit, &retry] {
            asked(request, may[1]).await;
        }
        asked(&whole, may[2]).await;
        for request in &steering {
            asked(request, may[3]).await;
        }
        assert_eq!(
            scene.post("/v1/lease", &token, &lease).await.0 == 204,
            may[4],
            "{role}"
        );
        let bundle = get(format!("{}/v1/bundle/1", scene.workers), Some(&token))
            .await
            .0;
        assert_eq!(bundle == 404, may[0], "{role} {tenant:?}: {bundle}");
    }
}

#[tokio::test]
async fn a_foreign_tenant_finds_nothing_of_others_by_leaving_the_tenant_out() {
    let Some(scene) = Scene::new(Script::default()).await else {
        return;
    };
    scene.submit("one", code_commit_fleet_wire::RECORD).await;
    let foreign = scene.token("foreign", Role::Operator, Some("b")).await;
    for filter in [
        json!({ "state": "queued" }),
        json!({ "orders": [1] }),
        json!({ "repo": "/hub" }),
    ] {
        let look = json!({ "do": "orders", "filter": filter, "after": 0, "limit": 10 });
        assert_eq!(
            scene.post("/v1/fleet", &foreign, &look).await,
            (200, "[]".into())
        );
        for act in ["cancel", "retry", "costs"] {
            let act = json!({ "do": act, "filter": filter });
            assert_eq!(
                scene.post("/v1/fleet", &foreign, &act).await,
                (200, "[]".into())
            );
        }
    }
}

#[tokio::test]
async fn whoever_names_no_orders_changes_none() {
    let Some(scene) = Scene::new(Script::default()).await else {
        return;
    };
    scene.submit("one", code_commit_fleet_wire::RECORD).await;
    for tenant in [None, Some("a")] {
        let token = scene
            .token(&format!("{tenant:?}"), Role::Operator, tenant)
            .await;
        for act in ["cancel", "retry"] {
            for filter in [json!({}), json!({ "orders": [] })] {
                let (status, said) = scene
                    .post("/v1/fleet", &token, &json!({ "do": act, "filter": filter }))
                    .await;
                assert!(
                    status == 422 && said.contains("name orders"),
                    "{act} {filter}: {status} {said}"
                );
            }
        }
    }
    assert_eq!(
        scene.store.snapshot().await.unwrap().orders[&State::Queued],
        1
    );
}

#[tokio::test]
async fn a_token_that_was_revoked_is_refused_within_seconds_and_nonsense_at_once() {
    let Some(scene) = Scene::new(Script::default()).await else {
        return;
    };
    let token = scene.token("one", Role::Viewer, None).await;
    let look = json!({ "do": "snapshot" });
    assert_eq!(scene.ask(&token, &look).await, 200);
    for nonsense in [
        "Bearer ",
        "Bearer guess",
        "Basic guess",
        token.strip_suffix(|_: char| true).unwrap(),
    ] {
        assert_eq!(scene.ask(nonsense, &look).await, 401, "{nonsense}");
    }
    assert_eq!(scene.store.revoke_token("one").await.unwrap(), Fence::Held);
    let refused = || async { (scene.ask(&token, &look).await == 401).then_some(()) };
    code_commit_fleet_trial::until_async("the refusal", refused)
        .await
        .unwrap();
}

#[tokio::test]
async fn the_socket_is_for_workers_and_a_request_of_another_version_is_refused() {
    let Some(scene) = Scene::new(Script::default()).await else {
        return;
    };
    let operator = scene.token("operator", Role::Operator, None).await;
    for request in [
        json!({ "do": "everything" }),
        json!({ "do": "events", "order": 1, "more": 1 }),
        json!([]),
    ] {
        assert_eq!(scene.ask(&operator, &request).await, 422, "{request}");
    }
    let socket = scene.folder.path().join("socket");
    let mut near = std::os::unix::net::UnixStream::connect(&socket).unwrap();
    let body = json!({ "do": "snapshot" }).to_string();
    let head = "POST /v1/fleet HTTP/1.1\r\nhost: gateway\r\nconnection: close\r\ncontent-type: application/json";
    std::io::Write::write_all(
        &mut near,
        format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).as_bytes(),
    )
    .unwrap();
    let said = tokio::task::spawn_blocking(move || std::io::read_to_string(near).unwrap())
        .await
        .unwrap();
    assert!(said.starts_with("HTTP/1.1 403"), "{said}");
}
