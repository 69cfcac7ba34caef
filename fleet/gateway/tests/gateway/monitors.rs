//! What monitors and probes see.

use code_commit_fixtures::server::{Script, Step};
use code_commit_fleet_store::{Nanodollars, Scope};
use code_commit_fleet_trial::until_async;
use code_commit_fleet_wire::{Finish, Verdict};

use crate::{Scene, ask, fetch, get};

#[tokio::test]
async fn monitors_see_orders_calls_and_budgets() {
    let Some(scene) = Scene::new(Script::new([Step::text("hello")])).await else {
        return;
    };
    scene
        .store
        .cap(&Scope::Fleet, Nanodollars::from_usd(5.0).unwrap())
        .await
        .unwrap();
    let lease = scene.leased("one").await;
    ask(scene.gemini(&lease), true).await.unwrap();
    ask(scene.gemini(&lease), true).await.unwrap();
    let (status, page) = get(format!("{}/metrics", scene.models), None).await;
    assert_eq!(status, 200);
    for line in [
        "fleet_orders{state=\"leased\"} 1",
        "fleet_calls_total{model=\"gemini-2.5-pro\",answer=\"answered\"} 1",
        "fleet_calls_total{model=\"gemini-2.5-pro\",answer=\"kept\"} 1",
        "fleet_tokens_total{model=\"gemini-2.5-pro\",kind=\"output\"}",
        "fleet_cost_dollars_total{model=\"gemini-2.5-pro\"} 0.0",
        "fleet_call_seconds_count{model=\"gemini-2.5-pro\"} 1",
        "fleet_budget_cap_dollars{scope=\"fleet\"} 5",
        "fleet_budget_held_dollars{scope=\"fleet\"} 0",
    ] {
        assert!(page.contains(line), "{line} is missing:\n{page}");
    }
}

#[tokio::test]
async fn metrics_keep_prometheus_conventions() {
    let Some(scene) = Scene::new(Script::new([Step::text("hello")])).await else {
        return;
    };
    let lease = scene.leased("one").await;
    ask(scene.gemini(&lease), true).await.unwrap();
    let (_, page) = get(format!("{}/metrics", scene.models), None).await;
    let mut kinds = 0;
    for line in page.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let (name, kind) = line.split_once(' ').unwrap();
        assert!(
            page.contains(&format!("# HELP {name} ")),
            "{name} has no help"
        );
        assert!(name.starts_with("fleet_"), "{name}");
        // OpenMetrics names the family of a counter without the suffix of its samples.
        let samples = format!("\n{name}_total");
        assert!(kind != "counter" || page.contains(&samples), "{name}");
        assert!(
            !["nanodollars", "_usd", "_ms"]
                .iter()
                .any(|unit| name.contains(unit)),
            "{name}"
        );
        kinds += 1;
    }
    assert!(kinds > 10, "{page}");
}

#[tokio::test]
async fn the_time_of_a_run_is_counted_when_it_ends() {
    let Some(scene) = Scene::new(Script::default()).await else {
        return;
    };
    let lease = scene.leased("one").await;
    let verdict = Verdict::Failed {
        reason: "check".into(),
    };
    let finish = Finish {
        token: lease.token,
        verdict,
        bundle: None,
        elapsed_ms: 3000,
    };
    let url = format!("{}/v1/finish", scene.workers);
    let headers = vec![("content-type", "application/json".to_owned())];
    let key = Some(("authorization", code_commit_llm::Secret::new(&scene.token)));
    let body = std::sync::Arc::new(serde_json::to_vec(&finish).unwrap());
    let (status, _) = fetch(code_commit_llm::http::Post {
        url,
        headers,
        key,
        body,
    })
    .await;
    assert_eq!(status, 204);
    let (_, page) = get(format!("{}/metrics", scene.models), None).await;
    assert!(page.contains("fleet_run_seconds_sum 3"), "{page}");
    assert!(page.contains("fleet_run_seconds_count 1"), "{page}");
}

#[tokio::test]
async fn probes_tell_a_process_that_lives_from_one_that_can_serve() {
    let Some(scene) = Scene::new(Script::default()).await else {
        return;
    };
    let probe = |path: &str| get(format!("{}{path}", scene.models), None);
    assert_eq!(
        (probe("/healthz").await.0, probe("/readyz").await.0),
        (200, 200)
    );
    scene
        .database
        .query("ALTER TABLE leases RENAME TO gone")
        .unwrap();
    let not_ready = || async { (probe("/readyz").await.0 == 503).then_some(()) };
    until_async("the probe", not_ready).await.unwrap();
    assert_eq!(probe("/healthz").await.0, 200);
}
