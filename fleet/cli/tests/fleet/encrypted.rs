//! A gateway with a certificate, and a worker that knows its authority.

use std::path::Path;

use crate::scene::Scene;

#[test]
fn an_order_is_carried_out_over_tls() {
    let Some(mut scene) = Scene::new(1, 0) else { return };
    let certificates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../llm-gemini/tests/tls");
    scene.gateway.take().unwrap().kill().unwrap();
    scene.certificates = Some(certificates);
    scene.start_gateway();
    let orders = scene.submit(0..1, &[]);
    // The name in the certificate.
    let gateway = scene.remote().replace("127.0.0.1", "localhost");
    scene.start_remote_worker(1, &gateway);
    assert_eq!(scene.watch(), 0);
    scene.check_results(&orders);
    assert_eq!(scene.vendor.requests().len(), 1);
}
