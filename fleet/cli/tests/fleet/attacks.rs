//! What a lying worker and a foreign tenant try. None of it may come through.

use code_commit_fleet_trial::{content, until};
use serde_json::{Value, json};

use crate::scene::Scene;

const NOBODY: &str = "00000000-0000-4000-8000-000000000000";

fn finish(token: &Value, commit: &str) -> Value {
    let verdict = json!({ "verdict": "passed", "commit": commit });
    json!({ "token": token, "verdict": verdict, "bundle": null, "elapsed_ms": 1 })
}

fn lease(scene: &Scene) -> Value {
    scene.post(
        "/v1/lease",
        &json!({ "worker": "lying", "version": "1", "record": 2, "wait_ms": 5000 }),
    )
}

#[test]
fn a_lying_worker_moves_no_branch_spends_no_money_and_touches_no_lease_but_its_own() {
    let Some(mut scene) = Scene::new(4, 0) else {
        return;
    };
    let orders = scene.submit(0..3, &["--land", "main"]);
    let main = scene.hub.git(&["rev-parse", "main"]).unwrap();
    let own = lease(&scene);
    // Its verdict names what is no commit.
    let forced = format!("+{}", main.trim());
    for commit in [
        "",
        "main",
        "HEAD",
        "refs/heads/main",
        &forced,
        "0123456789ab",
        "--upload-pack=touch",
    ] {
        let (status, _) = scene.post_as(
            scene.worker_token(),
            "/v1/finish",
            &finish(&own["token"], commit),
        );
        assert_eq!(status, 422, "{commit}");
    }
    // It acts for a lease that is not its own.
    let nobody = json!(NOBODY);
    let held = json!({ "token": nobody });
    let lost = json!({ "token": nobody, "reason": "", "counts": true });
    for (path, body) in [
        ("/v1/beat", &held),
        ("/v1/lost", &lost),
        ("/v1/finish", &finish(&nobody, main.trim())),
    ] {
        assert_eq!(
            scene.post_as(scene.worker_token(), path, body).0,
            410,
            "{path}"
        );
    }
    // It asks a model without a lease, or for what no reservation covers.
    let model = "/v1beta/models/gemini-2.5-pro";
    let token = own["token"].as_str().unwrap();
    assert_eq!(
        scene
            .post_model(&format!("/m/{NOBODY}{model}:generateContent"), &json!({}))
            .0,
        403
    );
    for path in [
        format!("{model}:batchGenerateContent"),
        format!("{model}:generateContent%3Fx=/count_tokens"),
        format!("{model}:generateContent?x=:countTokens"),
        format!("/{model}:countTokens"),
        "/v1/files".to_owned(),
        "/v1/messages/batches".to_owned(),
    ] {
        let (status, said) =
            scene.post_model(&format!("/m/{token}{path}"), &json!({ "model": "m" }));
        assert_eq!(status, 404, "{path}: {said}");
    }
    // It does what people do.
    for request in [
        json!({ "do": "cap", "scope": "fleet", "usd": 1000.0 }),
        json!({ "do": "cancel", "filter": {} }),
        json!({ "do": "snapshot" }),
    ] {
        assert_eq!(
            scene.post_as(scene.worker_token(), "/v1/fleet", &request).0,
            403,
            "{request}"
        );
    }
    // Its result is not what it was verified on, or not there.
    let alone = [
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@example.invalid",
        "commit-tree",
        "-m",
        "alone",
        "main^{tree}",
    ];
    let alone = scene.hub.git(&alone).unwrap().trim().to_owned();
    scene
        .hub
        .git(&["update-ref", own["reference"].as_str().unwrap(), &alone])
        .unwrap();
    scene.post("/v1/finish", &finish(&own["token"], &alone));
    scene.post(
        "/v1/finish",
        &finish(&lease(&scene)["token"], &"0123456789".repeat(4)),
    );
    scene.post("/v1/finish", &finish(&lease(&scene)["token"], main.trim()));
    scene.start_land();
    for order in &orders {
        until("the refusal", || {
            (scene.state(*order) == "failed").then_some(())
        })
        .unwrap();
    }
    assert_eq!(scene.hub.git(&["rev-parse", "main"]).unwrap(), main);
    assert!(scene.vendor.requests().is_empty());
    // The branch is free for an honest one.
    let next = scene.submit(3..4, &["--land", "main"]);
    scene.start_worker(1);
    until("the next result", || {
        (scene.state(next[0]) == "landed").then_some(())
    })
    .unwrap();
}

#[test]
fn a_foreign_tenant_sees_and_changes_nothing_of_others() {
    let Some(mut scene) = Scene::new(1, 60_000) else {
        return;
    };
    let order = scene.submit(0..1, &["--tenant", "a", "--batch", "b", "--max-cost", "5"])[0];
    scene.start_worker(1);
    scene.wait_for_calls(1);
    let foreign = scene.make_token(&["foreign", "--role", "operator", "--tenant", "b"]);
    let number = order.to_string();
    let nothing = |code: i32, said: &str| {
        code == 7 || said.trim().is_empty() || said.contains("\"done\":false")
    };
    for args in [
        &["status", &number][..],
        &["results"],
        &["results", "--tenant", "a"],
        &["costs"],
        &["costs", "--tenant", "a"],
        &["cancel", &number],
        &["cancel", "--tenant", "a"],
        &["retry", &number],
        &["status"],
        &["workers"],
        &["cap", "fleet", "0"],
        &["cap", "tenant:b", "1000"],
        &["cap", "batch:a/b", "0"],
        &["pause", "tenant:a"],
        &["resume", "tenant:a"],
        &["drain", "worker-1"],
        &["results", &number, "-o", "/dev/null"],
    ] {
        let (code, said) = scene.fleet_as(&foreign, args);
        assert!(
            code == 3 && said.contains("the gateway says") || nothing(code, &said),
            "{args:?}: {code} {said}"
        );
        assert!(!said.contains("/hub"), "{said}");
    }
    let (file, url) = (scene.path("foreign.json"), scene.hub.url());
    std::fs::write(&file, content(0).unwrap()).unwrap();
    let file = file.display().to_string();
    let submit = ["submit", &file, "--repo", &url, "--base", "main"];
    for more in [
        &["--tenant", "a"][..],
        &["--tenant", "b", "--after", &number],
    ] {
        let (code, said) = scene.fleet_as(&foreign, &[&submit[..], more].concat());
        assert_eq!(code, 3, "{more:?}: {said}");
    }
    // Their own they may do, until their token is revoked.
    assert_eq!(
        scene
            .fleet_as(&foreign, &[&submit[..], &["--tenant", "b"]].concat())
            .0,
        0
    );
    assert_eq!(scene.fleet(&["token", "revoke", "foreign"]).0, 0);
    until("the refusal", || {
        (scene.fleet_as(&foreign, &["results"]).0 == 3).then_some(())
    })
    .unwrap();
    assert_eq!(scene.state(order), "leased");
    assert_eq!(scene.vendor.requests().len(), 1);
}
