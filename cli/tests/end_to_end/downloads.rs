//! What builds download: hosts that the proxy refuses, and names that lead into private networks. All on loopback.

use std::io::Write as _;
use std::net::TcpListener;
use std::thread;

use code_commit_fixtures::server::{Script, Server, Step};
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
        let tools = scene.beside("tools");
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
    let ran = user.check(&["--allow-host", "127.0.0.1:9"]).exits(1);
    let flat = flat(&ran.err);
    let said = "the build asked for example.org, mirror.example:8443; allow them with --allow-host example.org --allow-host mirror.example:8443";
    assert_eq!(flat.matches(said).count(), 1, "{ran}");
}

/// Without a word of any tool: it looks a name up, and fails.
#[test]
fn a_host_that_a_red_build_looked_up_is_named_once_a_run_and_in_the_last_block() {
    let build = "#!/bin/sh\ngetent hosts registry.example\ngrep -q good file.txt\n";
    let Some(user) = User::new(&[
        IGNORE,
        ("build.sh", build),
        ("file.txt", "bad\n"),
        ("agent-config/query.txt", "Be good.\n"),
    ]) else {
        return;
    };
    let said = "the build asked for registry.example; allow it with --allow-host registry.example";
    let checked = user.check(&[]).exits(1);
    assert_eq!(flat(&checked.err).matches(said).count(), 1, "{checked}");
    let replies = ["worse", "worst", "still"]
        .map(|text| format!("^^^file.txt\n{text}\n^^^end\n"))
        .map(|reply| Step::text(&reply));
    let scene = Scene {
        server: Server::start(Script::new(replies)).unwrap(),
        ..user.scene
    };
    let mut args = scene.flags();
    args[5] = "namespaces";
    let ran = scene.run_keyed(&[&args[..], &["--rounds", "3"]].concat());
    assert_eq!(ran.code, Some(1), "{ran}");
    assert_eq!(flat(&ran.err).matches(said).count(), 1, "{ran}");
    assert_eq!(flat(&ran.out).matches(said).count(), 1, "{ran}");
    scene.write("file.txt", "good\n");
    let green = scene.run(&["check", "--sandbox", "namespaces"]).exits(0);
    assert!(!green.to_string().contains("registry.example"), "{green}");
}

fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
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
    let refused = user.check(&["--allow-host", &host]).exits(1);
    let flat = flat(&refused.err);
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
