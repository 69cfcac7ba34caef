use std::collections::BTreeSet;

use super::*;

#[tokio::test]
async fn the_same_content_of_the_same_tenant_on_the_same_base_is_one_order() {
    let Some(scene) = Scene::new().await else {
        return;
    };
    let first = scene
        .store
        .submit(&[order("a", "one"), order("a", "two")], None)
        .await
        .unwrap();
    let again = scene
        .store
        .submit(&[order("a", "one"), order("b", "one")], None)
        .await
        .unwrap();
    assert_eq!(
        again[0],
        code_commit_fleet_store::Submitted {
            fresh: false,
            ..first[0]
        }
    );
    assert!(again[1].fresh);
    // Another repository, model or branch makes it another order.
    let other = [
        NewOrder {
            repo: "/other".into(),
            ..order("a", "one")
        },
        NewOrder {
            model: "gemini-2.5-pro".into(),
            ..order("a", "one")
        },
        NewOrder {
            land: Some("main".into()),
            ..order("a", "one")
        },
    ];
    for _ in 0..2 {
        scene.submit(&other).await;
    }
    assert_eq!(
        scene.store.orders(&Filter::default()).await.unwrap().len(),
        6
    );
}

#[tokio::test]
async fn an_order_comes_after_one_of_its_own_tenant_and_repository_only() {
    let Some(scene) = Scene::new().await else {
        return;
    };
    let first = scene.submit(&[order("a", "one")]).await[0];
    let after = NewOrder {
        after: Some(OrderId(first)),
        ..order("a", "two")
    };
    for elsewhere in [
        NewOrder {
            tenant: "b".into(),
            ..after.clone()
        },
        NewOrder {
            repo: "/other".into(),
            ..after.clone()
        },
    ] {
        let error = scene.store.submit(&[elsewhere], None).await.unwrap_err();
        assert!(
            matches!(error, StoreError::Elsewhere(order) if order == first),
            "{error}"
        );
    }
    scene.submit(&[after]).await;
}

#[tokio::test]
async fn an_unknown_predecessor_refuses_the_whole_submission() {
    let Some(scene) = Scene::new().await else {
        return;
    };
    let bad = NewOrder {
        after: Some(OrderId(99)),
        ..order("a", "two")
    };
    let error = scene
        .store
        .submit(&[order("a", "one"), bad], None)
        .await
        .unwrap_err();
    assert_eq!(error.to_string(), "there is no order 99");
    assert!(
        scene
            .store
            .orders(&Filter::default())
            .await
            .unwrap()
            .is_empty()
    );
}

#[tokio::test]
async fn orders_come_by_priority_then_by_number() {
    let Some(scene) = Scene::new().await else {
        return;
    };
    let urgent = NewOrder {
        priority: 5,
        ..order("a", "three")
    };
    let ids = scene
        .submit(&[order("a", "one"), order("a", "two"), urgent])
        .await;
    let mut leased = Vec::new();
    while let Some(lease) = scene.lease().await {
        leased.push(lease.order);
    }
    assert_eq!(leased, [ids[2], ids[0], ids[1]]);
}

#[tokio::test]
async fn tenants_take_turns_however_many_orders_one_of_them_has() {
    let Some(scene) = Scene::new().await else {
        return;
    };
    let many: Vec<NewOrder> = (0..20)
        .map(|n| NewOrder {
            priority: 9,
            ..order("many", &n.to_string())
        })
        .collect();
    scene.submit(&many).await;
    let few = scene
        .submit(&[order("few", "one"), order("few", "two")])
        .await;
    let mut first_four = BTreeSet::new();
    for _ in 0..4 {
        first_four.insert(scene.lease().await.unwrap().order);
    }
    assert!(
        few.iter().all(|order| first_four.contains(order)),
        "{first_four:?}"
    );
}

#[tokio::test]
async fn many_workers_at_once_never_get_the_same_order() {
    let Some(scene) = Scene::new().await else {
        return;
    };
    let orders: Vec<NewOrder> = (0..60)
        .map(|n| order(["a", "b"][n % 2], &n.to_string()))
        .collect();
    scene.submit(&orders).await;
    let workers: Vec<_> = (0..12)
        .map(|_| {
            let (store, terms) = (scene.store.clone(), scene.terms);
            tokio::spawn(async move {
                let mut got = Vec::new();
                while let Some(lease) = store
                    .lease(&ask(code_commit_fleet_wire::RECORD), &terms)
                    .await
                    .unwrap()
                {
                    got.push(lease.lease.order);
                }
                got
            })
        })
        .collect();
    let mut all = Vec::new();
    for worker in workers {
        all.extend(worker.await.unwrap());
    }
    let distinct: BTreeSet<i64> = all.iter().copied().collect();
    assert_eq!((all.len(), distinct.len()), (60, 60));
}

#[tokio::test]
async fn a_lapsed_lease_goes_to_another_worker_with_a_new_epoch_and_the_old_one_is_fenced_off() {
    let Some(scene) = Scene::new().await else {
        return;
    };
    let id = scene.submit(&[order("a", "one")]).await[0];
    let old = scene.lease_with(&lapsing(scene.terms)).await.unwrap();
    assert_eq!(
        scene.lease().await,
        None,
        "nobody has looked for lapsed leases"
    );
    scene.sweep().await;
    let new = scene.lease().await.unwrap();
    assert_eq!((new.order, old.epoch, new.epoch), (id, 1, 2));
    assert_ne!(old.reference, new.reference);

    assert_eq!(
        scene.store.beat(old.token, &scene.terms).await.unwrap(),
        Fence::Gone
    );
    assert_eq!(scene.finish(&old, passed("bad")).await, Fence::Gone);
    assert_eq!(scene.lose(&old).await, Fence::Gone);
    assert_eq!(scene.state(id).await, State::Leased);

    assert_eq!(
        scene.store.beat(new.token, &scene.terms).await.unwrap(),
        Fence::Held
    );
    assert_eq!(scene.finish(&new, passed("good")).await, Fence::Held);
    let row = scene.row(id).await;
    assert_eq!(
        (row.state, row.commit.as_deref(), row.lost),
        (State::Passed, Some("good"), 1)
    );
    let fleet = scene.store.name_in_hubs().await.unwrap();
    assert_eq!(row.reference.unwrap(), format!("refs/fleet/{fleet}/{id}/2"));
}

#[tokio::test]
async fn a_verdict_that_is_repeated_holds() {
    let Some(scene) = Scene::new().await else {
        return;
    };
    scene.submit(&[order("a", "one")]).await;
    let lease = scene.lease().await.unwrap();
    assert_eq!(scene.finish(&lease, passed("c")).await, Fence::Held);
    assert_eq!(scene.finish(&lease, passed("c")).await, Fence::Held);
    let events = scene.store.events(OrderId(lease.order)).await.unwrap();
    let words: Vec<&str> = events.iter().map(|event| event.event.as_str()).collect();
    assert_eq!(words, ["submitted", "leased", "passed"]);
}

#[tokio::test]
async fn a_lost_lease_is_no_failed_try_and_the_twentieth_is_the_end() {
    let Some(scene) = Scene::new().await else {
        return;
    };
    let id = scene.submit(&[order("a", "one")]).await[0];
    for epoch in 1..=20 {
        assert_eq!(scene.state(id).await, State::Queued);
        let lease = scene.lease().await.unwrap();
        assert_eq!(lease.epoch, epoch);
        assert_eq!(scene.lose(&lease).await, Fence::Held);
    }
    let row = scene.row(id).await;
    assert_eq!(
        (row.state, row.lost, row.reason.as_deref()),
        (State::Dead, 20, Some("no disk"))
    );
    assert_eq!(scene.retry(id).await, [OrderId(id)]);
    assert_eq!(
        (scene.state(id).await, scene.row(id).await.lost),
        (State::Queued, 0)
    );
}

#[tokio::test]
async fn twenty_lapsed_leases_are_the_end_as_well() {
    let Some(scene) = Scene::new().await else {
        return;
    };
    let id = scene.submit(&[order("a", "one")]).await[0];
    let lapsing = lapsing(scene.terms);
    for _ in 0..20 {
        scene.lease_with(&lapsing).await;
        scene.sweep().await;
    }
    assert_eq!(
        (scene.state(id).await, scene.row(id).await.epoch),
        (State::Dead, 20)
    );
}

#[tokio::test]
async fn the_order_that_kills_its_workers_waits_behind_the_others() {
    let Some(scene) = Scene::new().await else {
        return;
    };
    let ids = scene.submit(&[order("a", "one"), order("a", "two")]).await;
    let killer = scene.lease().await.unwrap();
    assert_eq!(killer.order, ids[0]);
    scene.lose(&killer).await;
    assert_eq!(scene.lease().await.unwrap().order, ids[1]);
}

#[tokio::test]
async fn a_loss_is_followed_by_a_wait() {
    let Some(scene) = Scene::new().await else {
        return;
    };
    scene.submit(&[order("a", "one")]).await;
    let patient = Terms {
        backoff: Duration::from_hours(1),
        ..scene.terms
    };
    let lease = scene.lease().await.unwrap();
    let lost = Lost {
        token: lease.token,
        reason: "no disk".into(),
        counts: true,
    };
    scene.store.lose(&lost, &patient).await.unwrap();
    assert_eq!(scene.lease().await, None);
    let wait = scene.store.until_next().await.unwrap().unwrap();
    assert!(
        wait > Duration::from_mins(59) && wait <= Duration::from_hours(1),
        "{wait:?}"
    );
}

#[tokio::test]
async fn a_worker_that_drains_costs_the_order_nothing() {
    let Some(scene) = Scene::new().await else {
        return;
    };
    let id = scene.submit(&[order("a", "one")]).await[0];
    let lease = scene.lease().await.unwrap();
    let lost = Lost {
        token: lease.token,
        reason: "the worker shuts down".into(),
        counts: false,
    };
    let patient = Terms {
        backoff: Duration::from_hours(1),
        ..scene.terms
    };
    assert_eq!(
        scene.store.lose(&lost, &patient).await.unwrap(),
        Fence::Held
    );
    assert_eq!(scene.row(id).await.lost, 0);
    assert_eq!(scene.lease().await.unwrap().order, id);
}

#[tokio::test]
async fn an_order_whose_model_is_out_of_reach_comes_back_five_times() {
    let Some(scene) = Scene::new().await else {
        return;
    };
    let id = scene.submit(&[order("a", "one")]).await[0];
    for _ in 0..5 {
        assert_eq!(scene.state(id).await, State::Queued);
        let lease = scene.lease().await.unwrap();
        scene.finish(&lease, no_model()).await;
    }
    assert_eq!(
        (scene.state(id).await, scene.row(id).await.lost),
        (State::Stopped, 0)
    );
}

#[tokio::test]
async fn a_cancelled_order_loses_its_lease() {
    let Some(scene) = Scene::new().await else {
        return;
    };
    let id = scene.submit(&[order("a", "one")]).await[0];
    let lease = scene.lease().await.unwrap();
    assert_eq!(scene.cancel(id).await, [OrderId(id)]);
    assert_eq!(
        scene.store.beat(lease.token, &scene.terms).await.unwrap(),
        Fence::Gone
    );
    assert_eq!(scene.finish(&lease, passed("c")).await, Fence::Gone);
    assert_eq!(scene.state(id).await, State::Cancelled);
    assert_eq!(scene.cancel(id).await, [], "it is over");
}

#[tokio::test]
async fn an_order_after_another_begins_on_its_result() {
    let Some(scene) = Scene::new().await else {
        return;
    };
    let first = scene.submit(&[order("a", "one")]).await[0];
    let after = NewOrder {
        after: Some(OrderId(first)),
        ..order("a", "two")
    };
    let second = scene.submit(&[after]).await[0];
    let lease = scene.lease().await.unwrap();
    assert_eq!((lease.order, scene.lease().await), (first, None));
    assert_eq!(scene.state(second).await, State::Waiting);
    scene.finish(&lease, passed("the-result")).await;
    let next = scene.lease().await.unwrap();
    assert_eq!((next.order, next.base.as_str()), (second, "the-result"));

    // One that is submitted later begins at once.
    let late = NewOrder {
        after: Some(OrderId(first)),
        ..order("a", "three")
    };
    let third = scene.submit(&[late]).await[0];
    assert_eq!(scene.lease().await.unwrap().order, third);
}

#[tokio::test]
async fn an_order_after_one_that_failed_waits_until_that_is_retried() {
    let Some(scene) = Scene::new().await else {
        return;
    };
    let first = scene.submit(&[order("a", "one")]).await[0];
    let after = NewOrder {
        after: Some(OrderId(first)),
        ..order("a", "two")
    };
    let second = scene.submit(&[after]).await[0];
    scene.finish(&scene.lease().await.unwrap(), failed()).await;
    assert_eq!(
        (scene.state(first).await, scene.state(second).await),
        (State::Failed, State::Waiting)
    );
    scene.retry(first).await;
    scene
        .finish(&scene.lease().await.unwrap(), passed("c"))
        .await;
    assert_eq!(scene.lease().await.unwrap().order, second);
}

#[tokio::test]
async fn a_worker_takes_nothing_that_asks_for_a_newer_record() {
    let Some(scene) = Scene::new().await else {
        return;
    };
    let newer = NewOrder {
        record: code_commit_fleet_wire::RECORD + 1,
        ..order("a", "new")
    };
    let ids = scene.submit(&[newer, order("a", "old")]).await;
    assert_eq!(scene.lease().await.unwrap().order, ids[1]);
    assert_eq!(scene.lease().await, None);
    let upgraded = scene
        .store
        .lease(&ask(code_commit_fleet_wire::RECORD + 1), &scene.terms)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(upgraded.lease.order, ids[0]);
}

#[tokio::test]
async fn those_who_wait_are_woken_when_an_order_is_queued() {
    let Some(scene) = Scene::new().await else {
        return;
    };
    let queued = std::sync::Arc::new(tokio::sync::Notify::new());
    let listening = tokio::spawn({
        let (store, queued) = (scene.store.clone(), std::sync::Arc::clone(&queued));
        async move { store.listen(queued).await }
    });
    // Whether the listener was there before the first submission is not known, so there are several.
    let woken = tokio::spawn(async move { queued.notified().await });
    let mut number = 0;
    while !woken.is_finished() {
        number += 1;
        scene.submit(&[order("a", &number.to_string())]).await;
        tokio::task::yield_now().await;
    }
    woken.await.unwrap();
    listening.abort();
}

#[tokio::test]
async fn a_crash_of_the_database_loses_no_order_and_no_lease() {
    let Some(mut postgres) = Postgres::start().unwrap() else {
        return;
    };
    let (store, terms) = (
        Store::migrate(&postgres.address()).await.unwrap(),
        Terms::default(),
    );
    store
        .submit(&[order("a", "one"), order("a", "two")], None)
        .await
        .unwrap();
    let lease = store
        .lease(&ask(code_commit_fleet_wire::RECORD), &terms)
        .await
        .unwrap()
        .unwrap()
        .lease;
    postgres.crash().unwrap();
    assert!(store.beat(lease.token, &terms).await.is_err());
    postgres.begin().unwrap();
    // A connection from before the crash may be tried first.
    let beat = || async { store.beat(lease.token, &terms).await.ok() };
    assert_eq!(
        code_commit_fleet_trial::until_async("the database", beat)
            .await
            .unwrap(),
        Fence::Held
    );
    let finish = Finish {
        token: lease.token,
        verdict: passed("c"),
        bundle: None,
        elapsed_ms: 1,
    };
    assert_eq!(store.finish(&finish, &terms).await.unwrap(), Fence::Held);
    let next = store
        .lease(&ask(code_commit_fleet_wire::RECORD), &terms)
        .await
        .unwrap()
        .unwrap();
    assert_ne!(next.lease.order, lease.order);
}
