//! What builds download: hosts that the proxy refuses, and names that lead into private networks. All on loopback.

use std::io::Write as _;
use std::net::TcpListener;
use std::thread;

use code_commit_fixtures::server::Script;
use code_commit_runner::{Mode, probe};

use crate::scenes::commit::Scene;
use crate::scenes::files;
use crate::scenes::program::Ran;

/// Asks the proxy for a tunnel to `$1`, and prints what comes through. Succeeds if there is one.
const TUNNEL: &str = r#"#!/bin/bash
proxy=${HTTPS_PROXY#http://}
[ "$proxy" ] || { echo "there is no proxy"; exit 9; }
exec 3<>"/dev/tcp/${proxy%:*}/${proxy#*:}"
printf 'CONNECT %s HTTP/1.1\r\n\r\n' "$1" >&3
read -r answer <&3
cat <&3
[[ $answer == *200* ]]
"#;

/// A project with a program of its user's own in front of PATH.
struct User {
    scene: Scene,
    path: String,
}

impl User {
    fn new(project: &[(&str, &str)]) -> Option<Self> {
        code_commit_runner::helper_is(env!("CARGO_BIN_EXE_code-commit"));
        if let Err(error) = probe(Mode::Namespaces, None) {
            eprintln!("SKIPPED: what builds download, because {error}");
            return None;
        }
        let scene = Scene::with_files(project, Script::new([]));
        let tools = scene.project.beside().join("tools");
        files::write_program(&tools.join("tunnel"), TUNNEL);
        let path = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap());
        Some(Self { scene, path })
    }

    fn check(&self, more: &[&str]) -> Ran {
        let args = [&["check", "--sandbox", "namespaces"], more].concat();
        self.scene
            .ran(&mut self.scene.command(&args, &[("PATH", &self.path)]))
    }
}

const IGNORE: (&str, &str) = (".gitignore", "/agent-config\n");

#[test]
fn a_refused_host_is_named_with_its_reason_and_the_flag_that_opens_it() {
    let build = "#!/bin/sh\ntunnel example.org:443 || tunnel mirror.example:8443\n";
    let Some(user) = User::new(&[IGNORE, ("build.sh", build)]) else {
        return;
    };
    let ran = user.check(&["--allow-host", "127.0.0.1:9"]);
    assert_eq!(ran.code, Some(1), "{ran}");
    let flat = ran.err.replace("\n  ", " ").replace('\n', " ");
    let said = "the command did not reach example.org (not an allowed host), mirror.example:8443 (not an allowed host)";
    assert_eq!(flat.matches(said).count(), 1, "{ran}");
    assert!(
        flat.contains("--allow-host example.org --allow-host mirror.example:8443"),
        "{ran}"
    );
}

#[test]
fn a_name_leads_into_a_private_network_only_with_its_range() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let host = format!("localhost:{}", listener.local_addr().unwrap().port());
    thread::spawn(move || {
        for client in listener.incoming() {
            let _ = client.unwrap().write_all(b"from the mirror\n");
        }
    });
    let build = format!("#!/bin/sh\ntunnel {host} | grep 'from the mirror'\n");
    let Some(user) = User::new(&[IGNORE, ("build.sh", &build)]) else {
        return;
    };
    let refused = user.check(&["--allow-host", &host]);
    assert_eq!(refused.code, Some(1), "{refused}");
    let flat = refused.err.replace("\n  ", " ").replace('\n', " ");
    assert!(
        flat.contains(&format!("{host} (leads to "))
            && flat.contains(&format!("--allow-host {host}=")),
        "{refused}"
    );
    let named = user.check(&[
        "--allow-host",
        &format!("{host}=127.0.0.0/8"),
        "--allow-host",
        &format!("{host}=::1"),
    ]);
    assert_eq!(named.code, Some(0), "{named}");
}
