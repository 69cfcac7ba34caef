//! A gateway with a certificate, and a worker that knows its authority.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use code_commit_fleet_trial::{Postgres, sibling};

use crate::scene::Scene;

#[test]
fn an_order_is_carried_out_over_tls() {
    let Some(mut scene) = Scene::new(1, 0) else {
        return;
    };
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

/// The gateway's way to its database. PostgreSQL wants a key that nobody else can read.
#[test]
fn the_database_is_reached_over_tls_and_only_if_its_authority_is_known() {
    let certificates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../llm-gemini/tests/tls");
    let keys = tempfile::tempdir().unwrap();
    std::fs::set_permissions(keys.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let key = keys.path().join("key.pem");
    std::fs::copy(certificates.join("localhost-key.pem"), &key).unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    // PostgreSQL runs as nobody where the tests run as root.
    let _ = std::os::unix::fs::chown(&key, Some(65534), Some(65534));
    let certificate = keys.path().join("certificate.pem");
    std::fs::copy(certificates.join("signed.pem"), &certificate).unwrap();
    let (certificate, key) = (certificate.display(), key.display());
    let settings = [
        "fsync=off".to_owned(),
        // Loopback, and nobody else's.
        "listen_addresses=127.0.0.77".to_owned(),
        "ssl=on".to_owned(),
        format!("ssl_cert_file={certificate}"),
        format!("ssl_key_file={key}"),
    ];
    let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    let Some(postgres) = Postgres::start_with(&settings).unwrap() else {
        return;
    };
    let database =
        "host=localhost hostaddr=127.0.0.77 user=postgres dbname=postgres sslmode=require";
    let migrate = |authority: Option<&str>| {
        let mut command = Command::new(sibling("code-commit-fleet").unwrap());
        command.args(["migrate", "--database", database]);
        command.envs(authority.map(|name| ("PGSSLROOTCERT", certificates.join(name))));
        let done = command.output().unwrap();
        (
            done.status.code().unwrap(),
            String::from_utf8(done.stderr).unwrap(),
        )
    };
    for unknown in [None, Some("self-signed.pem"), Some("nowhere.pem")] {
        let (code, said) = migrate(unknown);
        assert_eq!(code, 3, "{unknown:?}: {said}");
    }
    let (code, said) = migrate(Some("authority.pem"));
    assert_eq!(code, 0, "{said}");
    drop(postgres);
}
