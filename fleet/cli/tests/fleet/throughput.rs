//! Orders by workers. The figures are printed; what is checked are the results.

use std::time::Instant;

use crate::faults::setting;
use crate::scene::Scene;

/// `FLEET_WORKERS=1,2,4,8 FLEET_ORDERS=200 FLEET_DELAY_MS=2000` measures; by default it is small.
#[test]
fn any_number_of_workers_does_each_order_once() {
    let workers = std::env::var("FLEET_WORKERS").unwrap_or_else(|_| "2".into());
    let orders = usize::try_from(setting("FLEET_ORDERS", 4)).unwrap();
    for count in workers
        .split(',')
        .map(|count| count.parse::<usize>().unwrap())
    {
        let Some(mut scene) = Scene::new(orders, setting("FLEET_DELAY_MS", 0)) else {
            return;
        };
        let submitted = scene.submit(0..orders, &[]);
        let begun = Instant::now();
        for number in 0..count {
            scene.start_worker(number);
        }
        assert_eq!(scene.watch(), 0);
        let seconds = begun.elapsed().as_secs_f64();
        scene.check_results(&submitted);
        assert_eq!(scene.vendor.requests().len(), orders);
        #[expect(clippy::cast_precision_loss, reason = "far fewer than 2⁵²")]
        let rate = orders as f64 / seconds * 60.0;
        println!("{count} workers: {orders} orders in {seconds:.1} s, {rate:.0} a minute");
    }
}
