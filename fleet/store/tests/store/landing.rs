use super::*;

#[tokio::test]
async fn one_process_moves_branches() {
    let Some(scene) = Scene::new().await else { return };
    let first = scene.store.landing().await.unwrap().unwrap();
    assert!(scene.store.landing().await.unwrap().is_none());
    assert!(first.holds().await.unwrap());
    drop(first);
    let again =
        code_commit_fleet_trial::until_async("the lock", || async { scene.store.landing().await.unwrap() })
            .await;
    assert!(again.is_ok());
}

#[tokio::test]
async fn each_branch_takes_its_results_in_order_and_frees_those_that_come_after() {
    let Some(scene) = Scene::new().await else { return };
    let main = |content| NewOrder { land: Some("main".into()), ..order("a", content) };
    let ids = scene.submit(&[main("one"), main("two"), order("a", "stays")]).await;
    let after = NewOrder { after: Some(OrderId(ids[0])), ..order("a", "after") };
    let after = scene.submit(&[after]).await[0];
    for commit in ["c1", "c2", "c3"] {
        let lease = scene.lease().await.unwrap();
        scene.finish(&lease, passed(commit)).await;
    }
    assert_eq!(scene.state(after).await, State::Waiting, "its predecessor has passed, but not landed");

    let mut landing = scene.store.landing().await.unwrap().unwrap();
    let ready = landing.ready().await.unwrap();
    assert_eq!(ready.iter().map(|landed| landed.order.0).collect::<Vec<_>>(), [ids[0]]);
    assert_eq!(landing.landed(&ready[0]).await.unwrap(), Fence::Held);
    assert_eq!(landing.landed(&ready[0]).await.unwrap(), Fence::Gone);
    assert_eq!((scene.state(ids[0]).await, scene.state(after).await), (State::Landed, State::Queued));
    assert_eq!(scene.row(after).await.onto, "c1");

    let ready = landing.ready().await.unwrap();
    assert_eq!((ready.len(), ready[0].order.0), (1, ids[1]));
    assert_eq!(landing.moved(&ready[0], "c1").await.unwrap(), Fence::Held);
    assert_eq!(landing.landed(&ready[0]).await.unwrap(), Fence::Gone, "it has to be verified again");
    let row = scene.row(ids[1]).await;
    assert_eq!((row.state, row.onto.as_str(), row.commit), (State::Queued, "c1", None));
    assert_eq!(scene.state(ids[2]).await, State::Passed);
}

#[tokio::test]
async fn a_result_that_was_cancelled_is_not_landed() {
    let Some(scene) = Scene::new().await else { return };
    let id = scene.submit(&[NewOrder { land: Some("main".into()), ..order("a", "one") }]).await[0];
    scene.finish(&scene.lease().await.unwrap(), passed("c")).await;
    assert_eq!(scene.store.cancel(OrderId(id)).await.unwrap(), Fence::Held);
    let landing = scene.store.landing().await.unwrap().unwrap();
    assert!(landing.ready().await.unwrap().is_empty());
}
