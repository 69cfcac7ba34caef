//! A gateway with a certificate.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use code_commit_fixtures::server::{Script, Step};
use code_commit_fleet_gateway::Tls;
use code_commit_fleet_wire::Lease;
use code_commit_llm::http::{Agent, Limits, Network, Post};
use code_commit_llm::{Blind, CallError, Client, Model as _, Reply, Request, Retry, Secret};
use code_commit_llm_gemini::Gemini;

use crate::{Scene, model};

/// See the README there.
const FILES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../llm-gemini/tests/tls/");
/// Until a test says that it hangs.
const PATIENCE: Duration = Duration::from_secs(30);

async fn encrypted() -> Option<Scene> {
    let script = Script::new([Step::text("hello").times(2)]);
    let file = |name: &str| Path::new(FILES).join(name);
    let tls = Tls::read(&file("signed.pem"), &file("localhost-key.pem")).unwrap();
    Scene::with(script, |setup| setup.tls = Some(tls)).await
}

fn agent(authority: &str) -> Agent {
    let file = format!("{FILES}{authority}");
    let network = Network::from_env(|name| (name == "SSL_CERT_FILE").then_some(&*file)).unwrap();
    Agent::new(network, Limits::default())
}

/// The name in the certificate.
fn https(address: &str) -> String {
    address.replace("http://127.0.0.1", "https://localhost")
}

fn ask(scene: &Scene, lease: &Lease, authority: &'static str) -> Result<Reply, CallError> {
    let base = format!("{}/m/{}", https(&scene.models), lease.token)
        .parse()
        .unwrap();
    let dialect = Gemini::new(
        base,
        model("gemini", "gemini-2.5-pro"),
        Secret::new("fleet"),
    );
    let request = Request {
        prompt: "say it",
        stream: true,
        ..Request::default()
    };
    let once = Retry {
        max_tries: 1,
        ..Retry::default()
    };
    Client::new(Arc::new(agent(authority)), dialect)
        .with_retry(once)
        .call(&request, &mut Blind)
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_and_workers_reach_a_gateway_whose_authority_they_know() {
    let Some(scene) = encrypted().await else {
        return;
    };
    let lease = scene.leased("one").await;
    // Those that never begin to speak keep nobody waiting.
    let silent: Vec<_> = [&scene.models, &scene.workers]
        .into_iter()
        .cycle()
        .take(64)
        .map(|address| TcpStream::connect(address.strip_prefix("http://").unwrap()).unwrap())
        .collect();
    tokio::task::block_in_place(|| {
        assert_eq!(ask(&scene, &lease, "authority.pem").unwrap().text, "hello");
        let refused = ask(&scene, &lease, "self-signed.pem");
        assert!(matches!(refused, Err(CallError::Tls { .. })), "{refused:?}");
        let url = format!("{}/v1/lease", https(&scene.workers));
        let key = Some(("authorization", Secret::new(&scene.token)));
        let post = Post {
            url,
            headers: Vec::new(),
            key,
            body: Arc::default(),
        };
        assert_eq!(
            agent("authority.pem")
                .send(&post, Some(PATIENCE), &mut Blind)
                .unwrap()
                .head
                .status,
            405
        );
    });
    drop(silent);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_speak_tls_is_turned_away_at_once() {
    let Some(scene) = encrypted().await else {
        return;
    };
    for address in [&scene.models, &scene.workers] {
        let mut client = TcpStream::connect(address.strip_prefix("http://").unwrap()).unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        client
            .write_all(b"GET /metrics HTTP/1.1\r\nhost: gateway\r\n\r\n")
            .unwrap();
        let mut answer = Vec::new();
        tokio::task::block_in_place(|| client.read_to_end(&mut answer)).unwrap();
        assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
    }
}

#[test]
fn a_certificate_and_a_key_that_do_not_fit_are_refused_at_the_start() {
    let file = |name: &str| Path::new(FILES).join(name);
    for (certificate, key, why) in [
        (
            "nowhere.pem",
            "localhost-key.pem",
            "nowhere.pem cannot be read",
        ),
        ("signed.pem", "README.md", "README.md cannot be read"),
        ("README.md", "localhost-key.pem", "cannot be used"),
    ] {
        let error = Tls::read(&file(certificate), &file(key)).unwrap_err();
        assert!(error.to_string().ends_with(why), "{error:#}");
    }
}
