use code_commit_fleet_trial::product;

use crate::scene::Scene;

#[test]
fn the_page_of_the_fleet_leads_to_the_page_of_each_run() {
    let Some(mut scene) = Scene::new(3, 0) else {
        return;
    };
    let done = scene.submit(0..2, &["--batch", "first", "--max-cost", "5"]);
    scene.start_worker(1);
    assert_eq!(scene.watch(), 0);
    scene.workers.clear();
    let open = scene.submit(2..3, &["--tenant", "other"]);

    let (folder, product) = (scene.path("pages"), product().unwrap());
    let args = [
        "page",
        "-o",
        folder.to_str().unwrap(),
        "--program",
        product.to_str().unwrap(),
    ]
    .map(str::to_owned);
    let page = || scene.fleet(&args.each_ref().map(String::as_str));
    let (code, facts) = page();
    assert_eq!(
        (code, &facts[0]["orders"], &facts[0]["made"]),
        (0, &3.into(), &2.into())
    );
    let index = std::fs::read_to_string(folder.join("index.html")).unwrap();
    for fact in [
        "first",
        "other",
        "batch:default/first",
        "gemini-3.8-flash",
        ">queued<",
        ">passed<",
    ] {
        assert!(index.contains(fact), "{fact} is missing");
    }
    for (number, order) in done.iter().enumerate() {
        let link = index
            .split_once(&format!("href=\"order-{order}-"))
            .unwrap()
            .1
            .split('"')
            .next()
            .unwrap();
        let run = std::fs::read_to_string(folder.join(format!("order-{order}-{link}"))).unwrap();
        assert!(
            run.contains(&format!("result-{number:05}")),
            "the run of order {order}"
        );
    }
    assert!(!index.contains(&format!("href=\"order-{}-", open[0])));
    // What is there is not made again.
    assert_eq!(page().1[0]["made"], 0);
}
