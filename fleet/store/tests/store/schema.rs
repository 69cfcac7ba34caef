use code_commit_fleet_store::StoreError;
use refinery::Target;
use tokio_postgres::NoTls;
use uuid::Uuid;

use super::*;

mod embedded {
    refinery::embed_migrations!("migrations");
}

/// One order of each state, a cap, and a call that is under way, as the version before wrote them.
const BEFORE: &str = "
    INSERT INTO tenants (name) VALUES ('a');
    INSERT INTO orders (tenant, repo, base, onto, content, content_sha256, model, record, state, epoch, token, worker,
        lease_until, leased_at, commit, land, lost, over_budget, ready_at, ended_at)
    SELECT 'a', '/hub', 'base', 'base', 'content ' || state, md5(state), 'm', 1, state, epoch, token, 'w', until, began,
        commit, land, 1, state = 'stopped', CASE state WHEN 'queued' THEN now() ELSE now() - interval '1 day' END, ended
    FROM (VALUES
        ('queued', 0, NULL::uuid, NULL::timestamptz, NULL::timestamptz, NULL, NULL, NULL::timestamptz),
        ('leased', 1, gen_random_uuid(), now() + interval '1 hour', now(), NULL, NULL, NULL),
        ('passed', 2, gen_random_uuid(), NULL, NULL, 'c', 'main', now()),
        ('landed', 1, gen_random_uuid(), NULL, NULL, 'd', 'main', now() - interval '70 days'),
        ('stopped', 1, NULL, NULL, NULL, NULL, NULL, now()),
        ('waiting', 0, NULL, NULL, NULL, NULL, NULL, NULL))
        AS t (state, epoch, token, until, began, commit, land, ended);
    UPDATE orders SET after = (SELECT id FROM orders WHERE state = 'passed') WHERE state = 'waiting';
    INSERT INTO events (at, order_id, epoch, event) SELECT now() - interval '70 days', id, 0, 'submitted' FROM orders;
    INSERT INTO budgets (scope, cap, held) VALUES ('fleet', 1000, 10);
    INSERT INTO gateways DEFAULT VALUES;
    INSERT INTO calls (order_id, epoch, gateway, request_sha256, model, state, scopes, reserved)
    SELECT id, 1, 1, 'r', 'm', 'open', '{fleet}', 10 FROM orders WHERE state = 'leased'";

/// Makes the database of the version before, in the middle of work; the token of its only lease.
async fn work_before(database: &Database) -> Uuid {
    let (mut client, connection) = tokio_postgres::connect(&database.address(), NoTls)
        .await
        .unwrap();
    tokio::spawn(connection);
    let before = embedded::migrations::runner().set_target(Target::Version(2));
    before.run_async(&mut client).await.unwrap();
    client.batch_execute(BEFORE).await.unwrap();
    client
        .query_one("SELECT token FROM orders WHERE state = 'leased'", &[])
        .await
        .unwrap()
        .get(0)
}

#[tokio::test]
async fn an_upgrade_in_the_middle_of_work_loses_nothing() {
    let Some(database) = Database::create().unwrap() else {
        return;
    };
    let token = work_before(&database).await;
    let store = Store::migrate(&database.address()).await.unwrap();
    let terms = Terms::default();

    let rows = store.orders(&Filter::default()).await.unwrap();
    let told = store.snapshot().await.unwrap();
    assert_eq!(
        (rows.len(), told.orders.len(), told.lost),
        (6, 6, 6),
        "{told:?}"
    );
    let of = |state: State| rows.iter().find(|row| row.state == state).unwrap();
    // What was pushed before has its old name.
    let pushed = of(State::Passed);
    assert_eq!(
        pushed.reference,
        Some(format!("refs/fleet/{}/2", pushed.order.0))
    );
    assert_eq!(store.events(pushed.order).await.unwrap().len(), 1);
    // The lease holds, and its call can be settled.
    assert_eq!(store.beat(token, &terms).await.unwrap(), Fence::Held);
    assert_eq!(told.open_calls, 1);
    let finish = Finish {
        token,
        verdict: passed("e"),
        bundle: None,
        elapsed_ms: 1,
    };
    assert_eq!(store.finish(&finish, &terms).await.unwrap(), Fence::Held);
    let landing = store.landing().await.unwrap().unwrap();
    let ready = landing.ready("/hub", "main", 9).await.unwrap();
    assert_eq!(
        landing.landed(ready[0].order, "c").await.unwrap(),
        Fence::Held
    );
    // A worker of the version before gets nothing, as it would push to the old names.
    assert_eq!(store.lease(&ask(1), &terms).await.unwrap(), None);
    let mut leased = Vec::new();
    while let Some(next) = store
        .lease(&ask(code_commit_fleet_wire::RECORD), &terms)
        .await
        .unwrap()
    {
        leased.push(next.lease.order);
    }
    assert_eq!(
        leased,
        [of(State::Queued).order.0, of(State::Waiting).order.0]
    );
}

/// The only way back. No program of the version before is here to try it, so this checks that it would find what it left.
#[tokio::test]
async fn the_backup_from_before_an_upgrade_restores_exactly_what_the_version_before_left() {
    let Some(database) = Database::create().unwrap() else {
        return;
    };
    let token = work_before(&database).await;
    let backup = database.dump().unwrap();
    let (store, terms) = (
        Store::migrate(&database.address()).await.unwrap(),
        Terms::default(),
    );
    store
        .lease(&ask(code_commit_fleet_wire::RECORD), &terms)
        .await
        .unwrap()
        .unwrap();

    database.restore(&backup).unwrap();
    assert_eq!(database.dump().unwrap(), backup);
    let refused = Store::open(&database.address()).await;
    assert!(matches!(
        refused,
        Err(StoreError::Older { found: 2, known: 3 })
    ));
    // The next upgrade finds the same work.
    let store = Store::migrate(&database.address()).await.unwrap();
    assert_eq!(store.beat(token, &terms).await.unwrap(), Fence::Held);
}

#[tokio::test]
async fn an_empty_database_is_refused_with_the_command_that_helps() {
    let Some(database) = Database::create().unwrap() else {
        return;
    };
    let error = Store::open(&database.address()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the database has schema 0, and this version needs 3; run `code-commit-fleet migrate`"
    );
    Store::migrate(&database.address()).await.unwrap();
    Store::open(&database.address()).await.unwrap();
}

#[tokio::test]
async fn migrations_at_the_same_time_wait_for_each_other() {
    let Some(database) = Database::create().unwrap() else {
        return;
    };
    let all: Vec<_> = (0..4)
        .map(|_| {
            let address = database.address();
            tokio::spawn(async move { Store::migrate(&address).await.map(drop) })
        })
        .collect();
    for migrated in all {
        migrated.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_newer_schema_is_refused() {
    let Some(database) = Database::create().unwrap() else {
        return;
    };
    Store::migrate(&database.address()).await.unwrap();
    let newer = "INSERT INTO refinery_schema_history (version, name, applied_on, checksum) VALUES (999, 'later', '', '0')";
    database.query(newer).unwrap();
    for refused in [
        Store::open(&database.address()).await,
        Store::migrate(&database.address()).await,
    ] {
        assert!(matches!(
            refused,
            Err(StoreError::Newer {
                found: 999,
                known: 3
            })
        ));
    }
}
