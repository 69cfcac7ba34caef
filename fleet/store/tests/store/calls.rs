use code_commit_fleet_store::{
    Budget, GatewayId, Kept, Nanodollars, Need, PauseKind, Reserved, Scope,
};

use super::*;

const PATIENCE: Duration = Duration::from_mins(1);
/// By the time anybody looks, every gateway has been silent for longer.
const NO_PATIENCE: Duration = Duration::ZERO;

fn need<'a>(lease: &Lease, request: &'a str, usd: f64) -> Need<'a> {
    Need {
        token: lease.token,
        request_sha256: request,
        model: "m",
        most: Nanodollars::from_usd(usd),
        interval: None,
        patience: PATIENCE,
        longest_wait: PATIENCE,
    }
}

fn answer(text: &str, usd: f64) -> Outcome {
    let kept = Kept {
        content_type: "application/json".into(),
        body: text.into(),
    };
    let cost = Nanodollars::from_usd(usd);
    Outcome::Answered {
        kept: Some(kept),
        cost,
        input_tokens: Some(3),
        output_tokens: Some(4),
    }
}

impl Scene {
    async fn leased(&self, content: &str) -> Lease {
        self.submit(&[NewOrder {
            batch: Some("b".into()),
            ..order("a", content)
        }])
        .await;
        self.lease().await.unwrap()
    }

    async fn reserve(&self, gateway: GatewayId, need: &Need<'_>) -> Reserved {
        self.store.reserve(gateway, need).await.unwrap()
    }

    /// Of each tenant, batch and model.
    async fn cost_usd(&self) -> Vec<String> {
        self.store
            .costs(&Filter::default())
            .await
            .unwrap()
            .iter()
            .map(|cost| cost.usd.to_string())
            .collect()
    }

    /// Held and spent of each cap.
    async fn budget(&self) -> Vec<(String, f64, f64)> {
        let used = |Budget {
                        scope,
                        held_usd,
                        spent_usd,
                        ..
                    }| (scope, held_usd, spent_usd);
        self.store
            .budgets()
            .await
            .unwrap()
            .into_iter()
            .map(used)
            .collect()
    }
}

fn open(reserved: &Reserved) -> Option<code_commit_fleet_store::CallId> {
    if let Reserved::Open(call) = reserved {
        Some(*call)
    } else {
        None
    }
}

#[tokio::test]
async fn an_answer_is_paid_once_for_all_leases_of_its_order() {
    let Some(scene) = Scene::new().await else {
        return;
    };
    let gateway = scene.store.gateway().await.unwrap();
    let old = scene.leased("one").await;
    let call = open(&scene.reserve(gateway, &need(&old, "r", 1.0)).await).unwrap();
    scene.lose(&old).await;
    // The worker is gone, but what it asked for is paid.
    scene.settle(call, &answer("hello", 0.5)).await.unwrap();
    let new = scene.lease().await.unwrap();
    let kept = scene.reserve(gateway, &need(&new, "r", 1.0)).await;
    assert_eq!(
        kept,
        Reserved::Kept(Kept {
            content_type: "application/json".into(),
            body: b"hello".into()
        })
    );
    assert_eq!(
        scene.reserve(gateway, &need(&old, "r", 1.0)).await,
        Reserved::Gone
    );
    let other = scene.leased("two").await;
    open(&scene.reserve(gateway, &need(&other, "r", 1.0)).await).unwrap();
}

#[tokio::test]
async fn a_call_that_is_under_way_is_not_made_again() {
    let Some(scene) = Scene::new().await else {
        return;
    };
    let gateway = scene.store.gateway().await.unwrap();
    let lease = scene.leased("one").await;
    let call = open(&scene.reserve(gateway, &need(&lease, "r", 1.0)).await).unwrap();
    assert_eq!(
        scene.reserve(gateway, &need(&lease, "r", 1.0)).await,
        Reserved::InFlight
    );
    scene.settle(call, &Outcome::Failed).await.unwrap();
    open(&scene.reserve(gateway, &need(&lease, "r", 1.0)).await).unwrap();
}

/// Between two looks, for what is kept and for what is under way, the call would be neither.
#[tokio::test]
async fn a_call_that_is_settled_while_it_is_asked_for_again_is_not_made_again() {
    let Some(scene) = Scene::new().await else {
        return;
    };
    let gateway = scene.store.gateway().await.unwrap();
    let lease = scene.leased("one").await;
    for request in 0..200 {
        let request = request.to_string();
        let need = need(&lease, &request, 1.0);
        let call = open(&scene.reserve(gateway, &need).await).unwrap();
        let settled = answer("hello", 0.5);
        let (settled, again) =
            tokio::join!(scene.settle(call, &settled), scene.reserve(gateway, &need));
        settled.unwrap();
        assert!(
            matches!(again, Reserved::InFlight | Reserved::Kept(_)),
            "{again:?}"
        );
    }
}

#[tokio::test]
async fn a_gateway_trusts_its_own_calls_even_if_the_database_was_away_for_longer_than_its_patience()
{
    let Some(scene) = Scene::new().await else {
        return;
    };
    let (own, other) = (
        scene.store.gateway().await.unwrap(),
        scene.store.gateway().await.unwrap(),
    );
    let lease = scene.leased("one").await;
    let need = Need {
        patience: NO_PATIENCE,
        ..need(&lease, "r", 1.0)
    };
    open(&scene.reserve(own, &need).await).unwrap();
    assert_eq!(scene.reserve(own, &need).await, Reserved::InFlight);
    open(&scene.reserve(other, &need).await).unwrap();
}

/// The first reservation has not committed, so the sum of what was spent does not have it.
#[tokio::test]
async fn a_cap_that_is_set_while_a_call_is_reserved_counts_it() {
    let Some(scene) = Scene::new().await else {
        return;
    };
    let lease = scene.leased("one").await;
    let gateway = scene.store.gateway().await.unwrap();
    // The call waits to be inserted.
    scene.database.query(GATE).unwrap();
    let gate = scene.store.landing().await.unwrap().unwrap();
    let (store, cap) = (&scene.store, Nanodollars::from_usd(10.0).unwrap());
    let need = need(&lease, "r", 2.0);
    let open_gate = async {
        code_commit_fleet_trial::until_async("a reservation and a cap that wait", || async {
            (scene.database.query(WAITING).unwrap().trim() == "2").then_some(())
        })
        .await
        .unwrap();
        drop(gate);
    };
    let cap = async {
        code_commit_fleet_trial::until_async("a reservation that waits", || async {
            (scene.database.query(WAITING).unwrap().trim() == "1").then_some(())
        })
        .await
        .unwrap();
        store.cap(&Scope::Fleet, cap).await
    };
    let (reserved, capped, ()) = tokio::join!(store.reserve(gateway, &need), cap, open_gate);
    open(&reserved.unwrap()).unwrap();
    capped.unwrap();
    assert_eq!(scene.budget().await, [("fleet".to_owned(), 0.0, 2.0)]);
}

/// Calls are inserted only while nobody has the right to land.
const GATE: &str = "
    CREATE FUNCTION gate() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN PERFORM pg_advisory_xact_lock_shared(7310439); RETURN NEW; END';
    CREATE TRIGGER gate BEFORE INSERT ON calls FOR EACH ROW EXECUTE FUNCTION gate()";
const WAITING: &str = "
    SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";

#[tokio::test]
async fn every_cap_is_kept_by_reservation_and_never_passed() {
    let Some(scene) = Scene::new().await else {
        return;
    };
    let gateway = scene.store.gateway().await.unwrap();
    let batch = Scope::Batch {
        tenant: "a".into(),
        batch: "b".into(),
    };
    let caps = [
        (Scope::Fleet, 10.0),
        (Scope::Tenant("a".into()), 8.0),
        (batch, 3.0),
        (Scope::Tenant("z".into()), 0.0),
    ];
    // So that all of them have somebody.
    scene
        .submit(&[
            order("z", "one"),
            NewOrder {
                batch: Some("b".into()),
                ..order("a", "zero")
            },
        ])
        .await;
    while scene.lease().await.is_some() {}
    for (scope, cap) in caps {
        scene
            .store
            .cap(&scope, Nanodollars::from_usd(cap).unwrap())
            .await
            .unwrap();
    }
    let lease = scene.leased("one").await;
    let call = open(&scene.reserve(gateway, &need(&lease, "r", 2.0)).await).unwrap();
    assert_eq!(
        scene.reserve(gateway, &need(&lease, "s", 2.0)).await,
        Reserved::Held {
            scope: "batch:a/b".into(),
            left: Nanodollars::from_usd(3.0).unwrap()
        },
        "it is enough once the other call has ended"
    );
    assert!(matches!(
        scene
            .reserve(
                gateway,
                &Need {
                    most: None,
                    ..need(&lease, "t", 0.0)
                }
            )
            .await,
        Reserved::Refused { .. }
    ));
    scene.settle(call, &answer("hello", 0.5)).await.unwrap();
    scene.settle(call, &answer("hello", 0.5)).await.unwrap();
    open(&scene.reserve(gateway, &need(&lease, "s", 2.0)).await).unwrap();
    let row = |scope: &str, held, spent| (scope.to_owned(), held, spent);
    assert_eq!(
        scene.budget().await,
        [
            row("batch:a/b", 2.0, 0.5),
            row("fleet", 2.0, 0.5),
            row("tenant:a", 2.0, 0.5),
            row("tenant:z", 0.0, 0.0)
        ]
    );
    let too_much = scene.reserve(gateway, &need(&lease, "u", 2.6)).await;
    assert_eq!(
        too_much,
        Reserved::Refused {
            scope: "batch:a/b".into(),
            left: Nanodollars::from_usd(2.5).unwrap()
        }
    );
    // What was spent does not come back, so its order stops at the first answer that is missing for want of it.
    scene.finish(&lease, no_model()).await;
    assert_eq!(scene.state(lease.order).await, State::Stopped);
}

#[tokio::test]
async fn an_order_that_a_hold_refuses_waits_and_says_so() {
    let Some(scene) = Scene::new().await else {
        return;
    };
    let gateway = scene.store.gateway().await.unwrap();
    scene
        .store
        .cap(&Scope::Fleet, Nanodollars::from_usd(3.0).unwrap())
        .await
        .unwrap();
    let (one, two) = (scene.leased("one").await, scene.leased("two").await);
    let call = open(&scene.reserve(gateway, &need(&one, "r", 2.0)).await).unwrap();
    for _ in 0..2 * scene.terms.max_attempts {
        assert!(matches!(
            scene.reserve(gateway, &need(&two, "r", 2.0)).await,
            Reserved::Held { .. }
        ));
    }
    scene.finish(&two, no_model()).await;
    let row = scene.row(two.order).await;
    assert_eq!(
        (row.state, row.reason.as_deref()),
        (State::Queued, Some("waits for money that other calls hold"))
    );
    scene.settle(call, &answer("hello", 0.5)).await.unwrap();
    scene.sweep().await;
    let two = scene.lease().await.unwrap();
    open(&scene.reserve(gateway, &need(&two, "r", 2.0)).await).unwrap();
}

#[tokio::test]
async fn an_order_goes_on_after_its_cap_was_raised() {
    let Some(scene) = Scene::new().await else {
        return;
    };
    let gateway = scene.store.gateway().await.unwrap();
    scene
        .store
        .cap(&Scope::Fleet, Nanodollars::from_usd(1.0).unwrap())
        .await
        .unwrap();
    let lease = scene.leased("one").await;
    assert!(matches!(
        scene.reserve(gateway, &need(&lease, "r", 2.0)).await,
        Reserved::Refused { .. }
    ));
    scene
        .store
        .cap(&Scope::Fleet, Nanodollars::from_usd(9.0).unwrap())
        .await
        .unwrap();
    // What ends it now has nothing to do with money.
    scene.finish(&lease, no_model()).await;
    assert_eq!(scene.state(lease.order).await, State::Queued);
}

#[tokio::test]
async fn a_cap_of_a_scope_that_nobody_belongs_to_is_refused() {
    let Some(scene) = Scene::new().await else {
        return;
    };
    let batch = |name: &str| Scope::Batch {
        tenant: "a".into(),
        batch: name.into(),
    };
    scene.leased("one").await;
    let cap = Nanodollars::from_usd(1.0).unwrap();
    for (scope, fence) in [
        (batch("b"), Fence::Held),
        (batch("c"), Fence::Gone),
        (Scope::Tenant("b".into()), Fence::Gone),
    ] {
        assert_eq!(
            scene.store.cap(&scope, cap).await.unwrap(),
            fence,
            "{scope}"
        );
    }
    assert_eq!(scene.budget().await.len(), 1);
}

#[tokio::test]
async fn a_service_that_is_out_of_order_stops_nothing_and_its_model_is_left_alone() {
    let Some(mut scene) = Scene::new().await else {
        return;
    };
    scene.terms.rest = Duration::from_hours(1);
    let gateway = scene.store.gateway().await.unwrap();
    for number in 0..2 * scene.terms.max_attempts {
        let lease = scene.leased(&number.to_string()).await;
        let need = Need {
            model: "gemini-3.8-flash",
            longest_wait: Duration::from_secs(20),
            ..need(&lease, "r", 1.0)
        };
        let reserved = scene.reserve(gateway, &need).await;
        if let Reserved::Wait(wait) = reserved {
            // From now on nothing for this model is leased.
            assert!(
                number >= scene.terms.max_faults && wait > Duration::from_mins(55),
                "{number} {wait:?}"
            );
            scene.finish(&lease, no_model()).await;
            break;
        }
        scene
            .settle(open(&reserved).unwrap(), &Outcome::OutOfOrder)
            .await
            .unwrap();
        scene.finish(&lease, no_model()).await;
    }
    let pauses = scene.store.pauses().await.unwrap();
    assert_eq!(
        (pauses.len(), pauses[0].name.as_str()),
        (1, "gemini-3.8-flash")
    );
    scene.sweep().await;
    assert_eq!(scene.lease().await, None);
    let other = NewOrder {
        model: "gemini-2.5-pro".into(),
        ..order("a", "other")
    };
    let other = scene.submit(&[other]).await[0];
    assert_eq!(scene.lease().await.unwrap().order, other);
    let states = scene.store.snapshot().await.unwrap().orders;
    assert_eq!(states.get(&State::Stopped), None);
    // A person who knows better.
    scene
        .store
        .resume(PauseKind::Model, "gemini-3.8-flash")
        .await
        .unwrap();
    let lease = scene.lease().await.unwrap();
    let need = Need {
        model: "gemini-3.8-flash",
        ..need(&lease, "again", 1.0)
    };
    let call = open(&scene.reserve(gateway, &need).await).unwrap();
    scene.settle(call, &answer("hello", 0.5)).await.unwrap();
}

#[tokio::test]
async fn a_reservation_whose_gateway_died_counts_as_spent_until_the_answer_comes_after_all() {
    let Some(scene) = Scene::new().await else {
        return;
    };
    scene
        .store
        .cap(&Scope::Fleet, Nanodollars::from_usd(10.0).unwrap())
        .await
        .unwrap();
    let (dead, live) = (
        scene.store.gateway().await.unwrap(),
        scene.store.gateway().await.unwrap(),
    );
    let lease = scene.leased("one").await;
    let call = open(&scene.reserve(dead, &need(&lease, "r", 2.0)).await).unwrap();
    assert_eq!(scene.store.gateway_beat(live, PATIENCE).await.unwrap(), 0);
    assert_eq!(scene.budget().await, [("fleet".to_owned(), 2.0, 0.0)]);
    assert_eq!(
        scene.store.gateway_beat(live, NO_PATIENCE).await.unwrap(),
        1
    );
    assert_eq!(scene.budget().await, [("fleet".to_owned(), 0.0, 2.0)]);

    // It is asked again, and paid again: both are counted and listed.
    let again = open(&scene.reserve(live, &need(&lease, "r", 2.0)).await).unwrap();
    scene.settle(again, &answer("hello", 0.5)).await.unwrap();
    let cost = scene
        .store
        .costs(&Filter::default())
        .await
        .unwrap()
        .remove(0);
    assert_eq!(
        (cost.calls, cost.unknown, cost.again, cost.usd),
        (2, 1, 0, 2.5)
    );

    // The dead gateway was only stopped for a while.
    scene.settle(call, &answer("hello", 0.25)).await.unwrap();
    assert_eq!(scene.budget().await, [("fleet".to_owned(), 0.0, 0.75)]);
    let cost = scene
        .store
        .costs(&Filter::default())
        .await
        .unwrap()
        .remove(0);
    assert_eq!(
        (cost.calls, cost.unknown, cost.again, cost.usd),
        (2, 0, 1, 0.75)
    );
}

#[tokio::test]
async fn what_was_spent_before_there_was_a_cap_counts() {
    let Some(scene) = Scene::new().await else {
        return;
    };
    let gateway = scene.store.gateway().await.unwrap();
    let lease = scene.leased("one").await;
    let call = open(&scene.reserve(gateway, &need(&lease, "r", 2.0)).await).unwrap();
    scene.settle(call, &answer("hello", 0.5)).await.unwrap();
    scene
        .store
        .cap(
            &Scope::Tenant("a".into()),
            Nanodollars::from_usd(2.0).unwrap(),
        )
        .await
        .unwrap();
    assert!(matches!(
        scene.reserve(gateway, &need(&lease, "s", 2.0)).await,
        Reserved::Refused { .. }
    ));
}

#[tokio::test]
async fn an_answer_of_no_use_is_paid_but_asked_for_again() {
    let Some(scene) = Scene::new().await else {
        return;
    };
    let gateway = scene.store.gateway().await.unwrap();
    let lease = scene.leased("one").await;
    let call = open(&scene.reserve(gateway, &need(&lease, "r", 2.0)).await).unwrap();
    let Outcome::Answered {
        cost,
        input_tokens,
        output_tokens,
        ..
    } = answer("", 0.5)
    else {
        return;
    };
    let useless = Outcome::Answered {
        kept: None,
        cost,
        input_tokens,
        output_tokens,
    };
    scene.settle(call, &useless).await.unwrap();
    open(&scene.reserve(gateway, &need(&lease, "r", 2.0)).await).unwrap();
    assert_eq!(scene.cost_usd().await, ["2.5"]);
}

#[tokio::test]
async fn a_pause_that_one_gateway_was_told_binds_all() {
    let Some(scene) = Scene::new().await else {
        return;
    };
    let gateway = scene.store.gateway().await.unwrap();
    let lease = scene.leased("one").await;
    scene
        .store
        .pause("m", Duration::from_mins(2))
        .await
        .unwrap();
    scene
        .store
        .pause("m", Duration::from_secs(1))
        .await
        .unwrap();
    let Reserved::Wait(wait) = scene.reserve(gateway, &need(&lease, "r", 2.0)).await else {
        panic!()
    };
    assert!(wait > Duration::from_secs(110), "{wait:?}");
    open(
        &scene
            .reserve(
                gateway,
                &Need {
                    model: "other",
                    ..need(&lease, "r", 2.0)
                },
            )
            .await,
    )
    .unwrap();
}

#[tokio::test]
async fn calls_of_a_model_keep_their_interval() {
    let Some(scene) = Scene::new().await else {
        return;
    };
    let gateway = scene.store.gateway().await.unwrap();
    let lease = scene.leased("one").await;
    let paced = |request| Need {
        interval: Some(Duration::from_hours(1)),
        ..need(&lease, request, 2.0)
    };
    open(&scene.reserve(gateway, &paced("r")).await).unwrap();
    assert!(matches!(
        scene.reserve(gateway, &paced("s")).await,
        Reserved::Wait(_)
    ));
}

#[tokio::test]
async fn a_retry_of_a_failed_order_asks_anew_and_one_of_a_stopped_order_does_not() {
    let Some(scene) = Scene::new().await else {
        return;
    };
    let gateway = scene.store.gateway().await.unwrap();
    let lease = scene.leased("one").await;
    let call = open(&scene.reserve(gateway, &need(&lease, "r", 2.0)).await).unwrap();
    scene.settle(call, &answer("bad", 0.5)).await.unwrap();
    scene.cancel(lease.order).await;
    scene.retry(lease.order).await;
    let second = scene.lease().await.unwrap();
    assert!(matches!(
        scene.reserve(gateway, &need(&second, "r", 2.0)).await,
        Reserved::Kept(_)
    ));
    scene.finish(&second, failed()).await;
    scene.retry(lease.order).await;
    let third = scene.lease().await.unwrap();
    open(&scene.reserve(gateway, &need(&third, "r", 2.0)).await).unwrap();
}

#[tokio::test]
async fn what_is_old_is_collected_and_costs_stay() {
    let Some(scene) = Scene::new().await else {
        return;
    };
    let gateway = scene.store.gateway().await.unwrap();
    let lease = scene.leased("one").await;
    let call = open(&scene.reserve(gateway, &need(&lease, "r", 2.0)).await).unwrap();
    scene.settle(call, &answer("hello", 0.5)).await.unwrap();
    let bundle = scene.store.keep(b"a bundle").await.unwrap();
    let finish = Finish {
        token: lease.token,
        verdict: failed(),
        bundle: Some(bundle),
        elapsed_ms: 1,
    };
    scene.store.finish(&finish, &scene.terms).await.unwrap();
    assert_eq!(scene.store.collect(1).await.unwrap(), 0);
    scene
        .database
        .query("UPDATE orders SET ended_at = now() - interval '9 days'")
        .unwrap();
    scene
        .database
        .query("UPDATE artifacts SET stored_at = now() - interval '9 days'")
        .unwrap();
    assert_eq!(scene.store.collect(8).await.unwrap(), 13);
    assert_eq!(
        scene.store.bundle(OrderId(lease.order)).await.unwrap(),
        None
    );
    assert_eq!(scene.cost_usd().await, ["0.5"]);
    assert_eq!(scene.state(lease.order).await, State::Failed);
}
