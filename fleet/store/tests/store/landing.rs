use code_commit_fleet_store::Arrived;
use code_commit_fleet_wire::Member;

use super::*;

#[tokio::test]
async fn one_process_moves_branches() {
    let Some(scene) = Scene::new().await else {
        return;
    };
    let first = scene.store.landing().await.unwrap().unwrap();
    assert!(scene.store.landing().await.unwrap().is_none());
    assert!(first.holds().await.unwrap());
    drop(first);
    let again = code_commit_fleet_trial::until_async("the lock", || async {
        scene.store.landing().await.unwrap()
    })
    .await;
    assert!(again.is_ok());
}

#[tokio::test]
async fn each_branch_takes_its_results_in_order_and_frees_those_that_come_after() {
    let Some(scene) = Scene::new().await else {
        return;
    };
    let main = |content| NewOrder {
        land: Some("main".into()),
        ..order("a", content)
    };
    let ids = scene
        .submit(&[main("one"), main("two"), order("a", "stays")])
        .await;
    let after = NewOrder {
        after: Some(OrderId(ids[0])),
        ..order("a", "after")
    };
    let after = scene.submit(&[after]).await[0];
    for commit in ["c1", "c2", "c3"] {
        let lease = scene.lease().await.unwrap();
        scene.finish(&lease, passed(commit)).await;
    }
    assert_eq!(
        scene.state(after).await,
        State::Waiting,
        "its predecessor has passed, but not landed"
    );

    let landing = scene.store.landing().await.unwrap().unwrap();
    assert_eq!(
        landing.branches().await.unwrap(),
        [("/hub".into(), "main".into())].into()
    );
    let ready = landing.ready("/hub", "main", 9).await.unwrap();
    assert_eq!(
        ready.iter().map(|ready| ready.order.0).collect::<Vec<_>>(),
        ids[..2]
    );
    assert_eq!(
        landing.landed(ready[0].order, "c1").await.unwrap(),
        Fence::Held
    );
    assert_eq!(
        landing.landed(ready[0].order, "c1").await.unwrap(),
        Fence::Gone
    );
    assert_eq!(
        (scene.state(ids[0]).await, scene.state(after).await),
        (State::Landed, State::Queued)
    );
    assert_eq!(scene.row(after).await.onto, "c1");

    assert_eq!(
        landing
            .again(&ready[1], "c1", "it does not fit")
            .await
            .unwrap(),
        Fence::Held
    );
    assert_eq!(
        landing.landed(ready[1].order, "c2").await.unwrap(),
        Fence::Gone,
        "it has to be carried out again"
    );
    let row = scene.row(ids[1]).await;
    assert_eq!(
        (row.state, row.onto.as_str(), row.commit),
        (State::Queued, "c1", None)
    );
    assert_eq!(scene.state(ids[2]).await, State::Passed);
}

#[tokio::test]
async fn a_train_is_leased_before_everything_else_and_arrives_as_a_whole() {
    let Some(scene) = Scene::new().await else {
        return;
    };
    let main = |content| NewOrder {
        land: Some("main".into()),
        ..order("a", content)
    };
    let ids = scene.submit(&[main("one"), main("two")]).await;
    for commit in ["c1", "c2"] {
        scene
            .finish(&scene.lease().await.unwrap(), passed(commit))
            .await;
    }
    scene.submit(&[order("a", "other")]).await;
    let landing = scene.store.landing().await.unwrap().unwrap();
    let ready = landing.ready("/hub", "main", 9).await.unwrap();
    let members = ready.into_iter().map(|ready| Arrived {
        order: ready.order,
        commit: format!("{}-upon", ready.commit),
        content: ready.content,
        traceparent: None,
    });
    let members: Vec<Arrived> = members.collect();
    landing.couple("head", &members).await.unwrap();
    let lease = scene.lease().await.unwrap();
    assert!(lease.is_train);
    assert_eq!(lease.base, "c2-upon");
    let carried: Vec<Member> = serde_json::from_str(&lease.content).unwrap();
    assert_eq!(
        carried
            .iter()
            .map(|member| member.order)
            .collect::<Vec<_>>(),
        ids
    );
    assert!(
        scene.store.orders(&Filter::default()).await.unwrap().len() == 3,
        "a train is no order"
    );

    let train = landing.train("/hub", "main").await.unwrap().unwrap();
    assert_eq!(
        (train.state, train.base.as_str(), train.is_whole),
        (State::Leased, "head", true)
    );
    scene.finish(&lease, passed("c2-upon")).await;
    let train = landing.train("/hub", "main").await.unwrap().unwrap();
    assert_eq!(train.state, State::Passed);
    for member in &train.members {
        landing.landed(member.order, &member.commit).await.unwrap();
    }
    landing.arrived(train.id).await.unwrap();
    assert_eq!(landing.train("/hub", "main").await.unwrap(), None);
    assert_eq!(scene.row(ids[0]).await.commit.as_deref(), Some("c1-upon"));
    assert_eq!(scene.state(ids[1]).await, State::Landed);
}

#[tokio::test]
async fn a_train_that_is_dissolved_ends_its_lease_and_its_results_wait_on() {
    let Some(scene) = Scene::new().await else {
        return;
    };
    let id = scene
        .submit(&[NewOrder {
            land: Some("main".into()),
            ..order("a", "one")
        }])
        .await[0];
    scene
        .finish(&scene.lease().await.unwrap(), passed("c"))
        .await;
    let landing = scene.store.landing().await.unwrap().unwrap();
    let member = Arrived {
        order: OrderId(id),
        commit: "c-upon".into(),
        content: "one".into(),
        traceparent: None,
    };
    landing.couple("head", &[member]).await.unwrap();
    let lease = scene.lease().await.unwrap();
    scene.cancel(id).await;
    let train = landing.train("/hub", "main").await.unwrap().unwrap();
    assert!(!train.is_whole, "its result was cancelled");
    landing
        .dissolve(train.id, "a result was cancelled")
        .await
        .unwrap();
    assert_eq!(
        scene.store.beat(lease.token, &scene.terms).await.unwrap(),
        Fence::Gone
    );
    assert_eq!(landing.train("/hub", "main").await.unwrap(), None);
}

#[tokio::test]
async fn a_result_that_was_cancelled_is_not_landed() {
    let Some(scene) = Scene::new().await else {
        return;
    };
    let id = scene
        .submit(&[NewOrder {
            land: Some("main".into()),
            ..order("a", "one")
        }])
        .await[0];
    scene
        .finish(&scene.lease().await.unwrap(), passed("c"))
        .await;
    assert_eq!(scene.cancel(id).await, [OrderId(id)]);
    let landing = scene.store.landing().await.unwrap().unwrap();
    assert!(landing.ready("/hub", "main", 9).await.unwrap().is_empty());
}
