use code_commit_fleet_store::{PauseKind, Role};

use super::*;

#[tokio::test]
async fn what_is_held_back_is_not_leased_until_it_is_resumed() {
    let Some(scene) = Scene::new().await else {
        return;
    };
    let kinds = [
        (PauseKind::Tenant, "a"),
        (PauseKind::Repo, "/hub"),
        (PauseKind::Model, "gemini-3.8-flash"),
    ];
    for (number, (kind, name)) in kinds.into_iter().enumerate() {
        let before = scene
            .submit(&[order("a", &format!("before {number}"))])
            .await[0];
        scene.store.hold_back(kind, name).await.unwrap();
        scene.sweep().await;
        let later = scene
            .submit(&[order("a", &format!("later {number}"))])
            .await[0];
        assert_eq!(scene.lease().await, None, "{name}");
        assert_eq!(scene.row(later).await.parked.as_deref(), Some("paused"));
        assert_eq!(scene.store.resume(kind, name).await.unwrap(), Fence::Held);
        for expected in [before, later] {
            assert_eq!(scene.lease().await.unwrap().order, expected);
        }
    }
    assert_eq!(
        scene.store.resume(PauseKind::Tenant, "a").await.unwrap(),
        Fence::Gone
    );
}

#[tokio::test]
async fn a_worker_that_drains_gets_nothing_and_the_others_do() {
    let Some(scene) = Scene::new().await else {
        return;
    };
    scene.submit(&[order("a", "one")]).await;
    assert_eq!(
        scene.store.drain("w", true).await.unwrap(),
        Fence::Gone,
        "nobody has heard of it"
    );
    scene
        .store
        .seen(&ask(code_commit_fleet_wire::RECORD))
        .await
        .unwrap();
    assert_eq!(scene.store.drain("w", true).await.unwrap(), Fence::Held);
    assert_eq!(scene.lease().await, None);
    scene.store.drain("w", false).await.unwrap();
    scene.lease().await.unwrap();
    let workers = scene.store.workers().await.unwrap();
    assert_eq!(
        (workers.len(), workers[0].leases, workers[0].is_draining),
        (1, 1, false)
    );
}

#[tokio::test]
async fn many_orders_are_cancelled_and_queued_again_by_what_they_have_in_common() {
    let Some(scene) = Scene::new().await else {
        return;
    };
    let ids = scene
        .submit(&[order("a", "one"), order("a", "two"), order("b", "one")])
        .await;
    let lease = scene.lease().await.unwrap();
    let of_a = Filter {
        tenant: Some("a".into()),
        ..Filter::default()
    };
    let cancelled = scene.store.cancel(&of_a).await.unwrap();
    assert_eq!(
        cancelled.iter().map(|order| order.0).collect::<Vec<_>>(),
        ids[..2]
    );
    assert_eq!(
        scene.store.beat(lease.token, &scene.terms).await.unwrap(),
        Fence::Gone
    );
    assert_eq!(scene.state(ids[2]).await, State::Queued);
    assert_eq!(scene.store.retry(&of_a).await.unwrap().len(), 2);
    assert_eq!(scene.store.retry(&of_a).await.unwrap().len(), 0);
}

#[tokio::test]
async fn a_tenant_without_work_costs_a_lease_nothing_and_is_back_with_its_next_order() {
    let Some(scene) = Scene::new().await else {
        return;
    };
    for tenant in ["a", "b"] {
        scene.submit(&[order(tenant, "one")]).await;
        scene.lease().await.unwrap();
    }
    scene.sweep().await;
    assert_eq!(
        scene
            .database
            .query("SELECT count(*) FROM in_line")
            .unwrap()
            .trim(),
        "0"
    );
    let id = scene.submit(&[order("a", "two")]).await[0];
    // As if its turn had been removed at this moment.
    scene.database.query("DELETE FROM in_line").unwrap();
    scene.sweep().await;
    assert_eq!(scene.lease().await.unwrap().order, id);
}

#[tokio::test]
async fn counts_are_those_of_the_rows_whatever_happened() {
    let Some(scene) = Scene::new().await else {
        return;
    };
    let ids = scene
        .submit(&[
            order("a", "one"),
            order("a", "two"),
            order("a", "three"),
            order("b", "four"),
        ])
        .await;
    scene.lose(&scene.lease().await.unwrap()).await;
    scene.sweep().await;
    scene
        .finish(&scene.lease().await.unwrap(), passed("c"))
        .await;
    scene.finish(&scene.lease().await.unwrap(), failed()).await;
    scene.cancel(ids[3]).await;
    scene.lease().await.unwrap();
    let told = scene.store.snapshot().await.unwrap();
    let mut counted = std::collections::BTreeMap::new();
    let mut lost = 0;
    for row in scene.store.orders(&Filter::default()).await.unwrap() {
        *counted.entry(row.state).or_insert(0) += 1;
        lost += i64::from(row.lost);
    }
    assert_eq!((told.orders, told.lost), (counted, lost));
    assert_eq!(lost, 1);
}

#[tokio::test]
async fn a_token_is_told_once_kept_as_a_hash_and_refused_once_it_is_revoked() {
    let Some(scene) = Scene::new().await else {
        return;
    };
    let secret = scene
        .store
        .make_token("ci", Role::Submitter, Some("a"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        scene
            .store
            .make_token("ci", Role::Operator, None)
            .await
            .unwrap(),
        None,
        "the name is taken"
    );
    let token = scene.store.token(&secret).await.unwrap().unwrap();
    assert_eq!(
        (token.name.as_str(), token.role, token.tenant.as_deref()),
        ("ci", Role::Submitter, Some("a"))
    );
    let worker = scene.store.make_token("w", Role::Worker, Some("a")).await;
    assert!(
        matches!(worker, Err(StoreError::WorkerOfTenant)),
        "{worker:?}"
    );
    assert!(
        !scene
            .database
            .query("SELECT * FROM tokens")
            .unwrap()
            .contains(&secret)
    );
    assert_eq!(
        scene
            .store
            .token(secret.strip_prefix(|_: char| true).unwrap())
            .await
            .unwrap(),
        None
    );
    assert_eq!(scene.store.revoke_token("ci").await.unwrap(), Fence::Held);
    assert_eq!(scene.store.token(&secret).await.unwrap(), None);
    assert!(scene.store.tokens().await.unwrap()[0].is_revoked);
}
