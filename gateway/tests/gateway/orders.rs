//! Attempts and results of orders, and the operator's commands.

use std::{fs, thread};

use code_commit_fixtures::server::{Script, Step};
use serde_json::{Value, json};

use crate::scene::{
    COMMIT, DATABASE, GEMINI, PROGRAM, begin, command, has, pick, refused_serve, run, scene,
    start_serve, until,
};

fn hello() -> Script {
    Script::default().rule("generateContent", Step::text("hello"))
}

#[test]
fn an_order_has_one_result_however_often_it_is_finished() {
    let scene = scene!(Script::default(), "");
    let token = scene.begin("one");
    // A worker repeats itself.
    assert_eq!([scene.finish(&token), scene.finish(&token)], [200, 200]);
    let other = json!({ "verdict": "failed", "reason": "", "commit": null, "bundle": null });
    assert_eq!(scene.ask("/v1/finish", &token, &other).0, 200);
    let begun = scene.ask("/v1/begin", "", &begin("one"));
    assert_eq!(begun, (200, json!("finished")));
    let results = scene.table("results");
    let fields = pick(&results[0], ["verdict", "commit", "reference", "attempts"]);
    let expected = json!(["passed", COMMIT, "refs/code-commit/one/1", 1]);
    assert_eq!(fields, expected);
    assert_eq!(results.len(), 1);
    let status = scene.admin("status");
    has(&status, "b      t       1");
}

#[test]
fn an_attempt_without_a_verdict_leaves_a_note_and_no_result() {
    let scene = scene!(Script::default(), "");
    let token = scene.begin("one");
    let reason = "the remote\u{1b}[31m was lost\u{0}";
    let none = json!({ "verdict": null, "reason": reason, "commit": null, "bundle": null });
    assert_eq!(scene.ask("/v1/finish", &token, &none).0, 200);
    assert_eq!(scene.finish(&token), 410);
    let fields = pick(&scene.table("results")[0], ["verdict", "reason"]);
    assert_eq!(fields, json!(["-", "the remote[31m was lost"]));
    assert_ne!(scene.begin("one"), token);
}

#[test]
fn a_worker_reaches_the_orders_of_its_own_batch_alone() {
    let mut scene = scene!(Script::default(), "");
    let (mine, first) = (scene.begin("one"), scene.worker.clone());
    scene.admin("batch c --tenant t");
    scene.worker = scene.token("v --batch c");
    let mut other = begin("one");
    other["batch"] = json!("b");
    let (status, refused) = scene.ask("/v1/begin", "", &other);
    assert_eq!(status, 403, "{refused}");
    // Its own order of this name is another order, and with the token of a stranger's order it can do nothing.
    scene.begin("one");
    assert_eq!(scene.finish(&mine), 410);
    assert_eq!(scene.ask("/v1/bundle", &mine, &json!("bytes")).0, 410);
    scene.worker = first;
    assert_eq!(scene.finish(&mine), 200);
}

#[test]
fn a_worker_whose_token_is_unknown_expired_or_revoked_is_refused() {
    let mut scene = scene!(hello(), "");
    let order = scene.begin("one");
    assert_eq!(scene.model(&order, GEMINI, "{}").0, 200);
    scene.admin("token w --revoke");
    assert_eq!(scene.ask("/v1/begin", "", &begin("two")).0, 401);
    assert_eq!(scene.finish(&order), 410);
    let asked = scene.model(&order, GEMINI, r#"{"contents":[]}"#);
    assert_eq!(asked.0, 410, "its attempts ask no model either");
    scene.worker = scene.token("short --batch b --days 1");
    assert_eq!(scene.ask("/v1/begin", "", &begin("two")).0, 200);
    scene
        .postgres
        .query("UPDATE workers SET expires_at = now() WHERE name = 'short'");
    assert_eq!(scene.ask("/v1/begin", "", &begin("two")).0, 401);
    scene.worker = "guess".into();
    assert_eq!(scene.ask("/v1/begin", "", &begin("two")).0, 401);
    let stored = run(&mut scene.postgres.client("pg_dump", "--data-only"));
    assert!(!stored.contains(&order), "tokens are hashed");
}

#[test]
fn hostile_words_of_workers_are_refused() {
    let scene = scene!(Script::default(), "");
    for (field, value) in [
        ("order", "../../heads/main"),
        ("order", "a b"),
        ("order", ""),
        ("order", "a\u{0}b"),
        ("base", "--upload-pack=x"),
        ("content_sha256", "short"),
    ] {
        let mut asked = begin("one");
        asked[field] = json!(value);
        assert_eq!(scene.ask("/v1/begin", "", &asked).0, 400, "{field}");
    }
    let token = scene.begin("one");
    for (verdict, commit) in [
        ("passed", Value::Null),
        ("passed", json!("--force")),
        ("failed", json!(COMMIT)),
    ] {
        let finish = json!({ "verdict": verdict, "reason": "", "commit": commit, "bundle": null });
        assert_eq!(scene.ask("/v1/finish", &token, &finish).0, 400, "{finish}");
    }
    let great = json!({ "verdict": "great" });
    assert_eq!(scene.ask("/v1/finish", &token, &great).0, 422);
    let mut other = begin("one");
    other["content_sha256"] = json!("d".repeat(64));
    // One name, one content.
    assert_eq!(scene.ask("/v1/begin", "", &other).0, 409);
}

#[test]
fn a_bundle_is_kept_by_its_hash_and_has_a_limit() {
    let scene = scene!(Script::default(), "");
    let (token, other) = (scene.begin("one"), scene.begin("two"));
    let (status, stored) = scene.ask("/v1/bundle", &token, &json!("bytes"));
    assert_eq!(status, 200);
    for (token, bundle) in [
        (&token, &stored["sha256"]),
        (&other, &json!("e".repeat(64))),
    ] {
        let finish = json!({ "verdict": "failed", "reason": "", "commit": null, "bundle": bundle });
        assert_eq!(scene.ask("/v1/finish", token, &finish).0, 200);
    }
    let results = scene.table("results --batch b");
    let bundles = [&results[0], &results[1]].map(|result| &result["bundle"]);
    assert_eq!(bundles, [&stored["sha256"], &Value::Null]);
    assert_eq!(fs::read(scene.bundle("one")).unwrap(), b"\"bytes\"");
    let token = scene.begin("three");
    let large = json!("x".repeat(64 << 20));
    assert_eq!(scene.ask("/v1/bundle", &token, &large).0, 413);
    assert_eq!(scene.ask("/v1/bundle", &token, &json!("lost")).0, 200);
    // One that becomes void while it sends its bundle sends nothing.
    let voided = "BEGIN; UPDATE orders SET token_sha256 = 'x' WHERE name = 'three'; SELECT pg_sleep(1); COMMIT";
    thread::scope(|all| {
        all.spawn(|| scene.postgres.query(voided));
        let sleeps = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
        scene.postgres.until(sleeps, "1");
        assert_eq!(scene.ask("/v1/bundle", &token, &json!("void")).0, 410);
    });
    assert_eq!(scene.finish(&scene.begin("three")), 200);
    let mut lost = scene.command("results --batch b --bundle three --output /dev/null");
    assert_eq!(lost.output().unwrap().status.code(), Some(1));
    let purged = scene.admin("purge --older-than 0");
    assert_eq!(purged, "removed 0 answers and 2 bundles\n");
    assert_eq!(scene.table("results").len(), 3, "results stay");
}

#[test]
fn purge_removes_answers_of_finished_orders_and_keeps_the_account() {
    let scene = scene!(hello(), "");
    let (done, open) = (scene.begin("done"), scene.begin("open"));
    for token in [&done, &open] {
        assert_eq!(scene.model(token, GEMINI, "{}").0, 200);
    }
    scene.finish(&done);
    let before = (scene.money(), scene.table("costs"));
    for (days, answers) in [(30, 0), (0, 1)] {
        let purged = scene.admin(&format!("purge --older-than {days}"));
        assert_eq!(purged, format!("removed {answers} answers and 0 bundles\n"));
    }
    assert_eq!((scene.money(), scene.table("costs")), before);
    assert_eq!(scene.model(&open, GEMINI, "{}").0, 200);
    // The open order's answer is still there.
    assert_eq!(scene.asked(), 2);
}

#[test]
fn a_restored_backup_makes_no_call_before_money_is_counted_again() {
    let scene = scene!(hello(), "");
    let token = scene.begin("one");
    let file = scene.postgres.path().join("backup");
    fs::write(&file, run(&mut scene.postgres.client("pg_dump", ""))).unwrap();
    // Spent after the backup.
    assert_eq!(scene.model(&token, GEMINI, "{}").0, 200);
    scene
        .postgres
        .query("CREATE DATABASE restored TEMPLATE template0");
    run(scene
        .postgres
        .client("psql", "-Xq -v ON_ERROR_STOP=1 -d restored")
        .arg("-f")
        .arg(file));
    let restored = scene.postgres.address("restored");
    let said = refused_serve(&restored);
    has(&said, "was restored from a backup");
    has(&said, "recount all USD");
    let admin = |words| run(command(PROGRAM, words).env(DATABASE, &restored));
    admin("recount batch:b 0.5");
    has(refused_serve(&restored), "was restored");
    admin("recount all 12.5");
    // Whose the rest is, nobody knows.
    assert!(admin("status --json").contains(r#""spent_usd":"13.00""#));
    admin("recount batch:b 12.5");
    assert!(admin("status --json").contains(r#""spent_usd":"12.50""#));
    let flags = "--listen 127.0.0.1:0";
    let mut second = start_serve(&restored, flags, scene.folder.path(), 1);
    let query = |what: &str| {
        let mut psql = scene.postgres.client("psql", "-XqAt -d restored");
        run(psql.arg("-c").arg(what))
    };
    // Attempts may be void since, and numbers taken.
    let since = "SELECT count(token_sha256), nextval('token_numbers') > 1000000 FROM orders";
    assert_eq!(query(since), "0|t\n");
    // A backup comes back in place while the database is away.
    query("UPDATE origin SET identity = identity");
    let database = "database = (SELECT oid FROM pg_database WHERE datname = 'restored')";
    query(&format!(
        "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND {database}"
    ));
    assert_eq!(second.wait(), Some(1));
}

#[test]
fn metrics_and_health_say_how_it_goes() {
    let mut scene = scene!(hello(), "");
    let token = scene.begin("one");
    scene.admin("cap batch:b 20.5");
    for _again in 0..2 {
        scene.model(&token, GEMINI, "{}");
    }
    let (_, page) = scene.get("/metrics");
    for line in [
        "code_commit_calls_total{answer=\"answered\"} 1",
        "code_commit_calls_total{answer=\"kept\"} 1",
        "code_commit_orders{state=\"begun\"} 1",
        "code_commit_open_calls 0",
        "code_commit_cap_dollars{scope=\"batch:b\"} 20.5",
        "code_commit_held_dollars{scope=\"all\"} 0",
    ] {
        assert!(page.lines().any(|found| found == line), "{line}: {page}");
    }
    assert_eq!(scene.get("/healthz"), (200, "ok\n".into()));
    scene.postgres.stop_immediately();
    assert_eq!(scene.get("/healthz").0, 503);
    assert_eq!(scene.ask("/v1/begin", "", &begin("two")).0, 503);
    scene.postgres.begin();
    until("health", || (scene.get("/healthz").0 == 200).then_some(()));
}

#[test]
fn commands_say_what_is_wrong() {
    let scene = scene!(Script::default(), "");
    let refused = |words: &str, said| {
        let done = scene.command(words).output().unwrap();
        has(String::from_utf8_lossy(&done.stderr), said);
        assert_eq!(done.status.code(), Some(1));
    };
    for (words, said) in [
        ("cap batch:nobody 1", "there is no scope `batch:nobody`"),
        ("cap all 1e3", "is not an amount in dollars"),
        ("batch b --tenant other", "batch `b` belongs to tenant `t`"),
        ("batch a/b", "a name has up to 100 letters"),
        ("token w --batch b", "there is a token `w` already"),
        ("token x --batch nobody", "there is no batch `nobody`"),
        ("token nobody --revoke", "there is no token `nobody`"),
        (
            "results --batch b --bundle one --output /dev/null",
            "there is no bundle",
        ),
    ] {
        refused(words, said);
    }
    let newer = "UPDATE schema_version SET version = 1000";
    scene.postgres.query(newer);
    refused("status", "has schema 1000, and this version knows");
    let none = command(PROGRAM, "status")
        .env_remove(DATABASE)
        .env("HOME", "/nowhere")
        .output();
    let said = String::from_utf8(none.unwrap().stderr).unwrap();
    has(&said, "set CODE_COMMIT_GATEWAY_DATABASE");
}
