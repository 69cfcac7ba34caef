//! What builds download: hosts that the proxy refuses, names that lead into private networks, and `check --fetch`. All on loopback.

use std::io::Write as _;
use std::net::TcpListener;
use std::thread;

use code_commit_fixtures::server::Script;
use code_commit_runner::{Mode, probe};
use serde_json::Value;

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

/// A project with programs of its user's own in front of PATH.
struct User {
    scene: Scene,
    path: String,
}

impl User {
    fn new(project: &[(&str, &str)], programs: &[(&str, &str)]) -> Option<Self> {
        code_commit_runner::helper_is(env!("CARGO_BIN_EXE_code-commit"));
        if let Err(error) = probe(Mode::Namespaces, None) {
            eprintln!("SKIPPED: what builds download, because {error}");
            return None;
        }
        let scene = Scene::with_files(project, Script::new([]));
        let tools = scene.project.beside().join("tools");
        for (name, text) in programs.iter().chain([&("tunnel", TUNNEL)]) {
            files::write_program(&tools.join(name), text);
        }
        let path = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap());
        Some(Self { scene, path })
    }

    fn check(&self, more: &[&str]) -> Ran {
        self.check_in("namespaces", more)
    }

    fn check_in(&self, rung: &str, more: &[&str]) -> Ran {
        let args = [&["check", "--sandbox", rung], more].concat();
        self.scene
            .ran(&mut self.scene.command(&args, &[("PATH", &self.path)]))
    }
}

const IGNORE: (&str, &str) = (".gitignore", "/agent-config\n");

#[test]
fn a_refused_host_is_named_with_its_reason_and_the_flag_that_opens_it() {
    let build = "#!/bin/sh\ntunnel example.org:443 || tunnel mirror.example:8443\n";
    let Some(user) = User::new(&[IGNORE, ("build.sh", build)], &[]) else {
        return;
    };
    let ran = user.check(&["--allow-host", "127.0.0.1:9"]);
    assert_eq!(ran.code, Some(8), "{ran}");
    let said = "unfit: the command did not reach example.org (not an allowed host), mirror.example:8443 (not an allowed host)";
    assert!(ran.out.contains(said), "{ran}");
    let flat = ran.out.replace("\n  ", " ");
    assert!(
        flat.contains("--allow-host example.org --allow-host mirror.example:8443")
            && !flat.contains("--network"),
        "{ran}"
    );

    // A verdict about the code counts, and the hosts are in the hint.
    let judged = format!("{build}echo '1 failed in 0.02s'\nexit 1\n");
    user.scene
        .project
        .write("build.sh", judged.as_bytes())
        .unwrap();
    let ran = user.check(&["--allow-host", "127.0.0.1:9"]);
    assert_eq!(ran.code, Some(1), "{ran}");
    assert!(
        ran.err.contains("example.org (not an allowed host)"),
        "{ran}"
    );
}

#[test]
fn without_a_network_the_hosts_of_the_words_are_named_and_not_the_whole_network() {
    let build = "#!/bin/sh\necho 'curl: (6) Could not resolve host: mirror.example'\nexit 6\n";
    let Some(user) = User::new(&[IGNORE, ("build.sh", build)], &[]) else {
        return;
    };
    let ran = user.check(&[]);
    let flat = ran.out.replace('\n', " ");
    assert!(
        ran.code == Some(8) && flat.contains("--allow-host mirror.example"),
        "{ran}"
    );
    assert!(
        !ran.out.contains("--network") && !ran.err.contains("--network"),
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
    let Some(user) = User::new(&[IGNORE, ("build.sh", &build)], &[]) else {
        return;
    };
    let refused = user.check(&["--allow-host", &host]);
    assert_eq!(refused.code, Some(8), "{refused}");
    let flat = refused.out.replace("\n  ", " ");
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

/// Fills its cache, and writes to the tree.
const NPM: &str = "#!/bin/sh\n[ \"$*\" = 'ci --ignore-scripts' ] && [ \"$HTTPS_PROXY\" ] || exit 9
mkdir -p node_modules ~/.npm/_cacache && echo x > node_modules/x && echo package > ~/.npm/_cacache/x\n";
/// Takes what it needs from the cache of npm, without a proxy.
const BUILD: &str = "#!/bin/sh\n[ ! \"$HTTPS_PROXY\" ] && [ ! -e node_modules ] && grep package ~/.npm/_cacache/x\n";

#[test]
fn what_a_package_manager_fetches_is_there_for_builds_and_nothing_else_stays() {
    let project = [
        IGNORE,
        ("build.sh", BUILD),
        ("package-lock.json", "{}"),
        ("Gemfile", ""),
    ];
    let Some(user) = User::new(&project, &[("npm", NPM)]) else {
        return;
    };
    assert_eq!(user.check(&[]).code, Some(1));
    let fetched = user.check(&["--fetch"]);
    assert_eq!(fetched.code, Some(0), "{fetched}");
    assert!(
        fetched.out.contains("fetched: npm ci --ignore-scripts (")
            && fetched.out.contains("green: "),
        "{fetched}"
    );
    let flat = fetched.err.replace('\n', " ");
    assert!(
        flat.contains("not fetched: Bundler") && flat.contains("--allow-host rubygems.org"),
        "{fetched}"
    );
    assert_eq!(user.check(&[]).code, Some(0));
    assert_eq!(user.scene.project.status().unwrap(), "");
    assert!(!user.scene.project.beside().join(".npm").exists());
    assert!(
        !user
            .scene
            .project
            .root()
            .join(".git/code-commit/fetch")
            .exists()
    );

    let told = user.check(&["--fetch", "--json"]);
    let objects: Vec<Value> = told
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let fetched = objects
        .iter()
        .find(|object| object.get("fetched").is_some())
        .unwrap();
    assert_eq!(
        (
            &fetched["fetched"],
            &fetched["ended"]["code"],
            &fetched["lack"]
        ),
        (&"npm ci --ignore-scripts".into(), &0.into(), &Value::Null)
    );
}

#[test]
fn a_fetch_that_fails_is_unfit_and_nothing_is_checked() {
    let npm = "#!/bin/sh\ntunnel mirror.example:443\n";
    let project = [IGNORE, ("build.sh", BUILD), ("package-lock.json", "{}")];
    let Some(user) = User::new(&project, &[("npm", npm)]) else {
        return;
    };
    let ran = user.check(&["--fetch"]);
    assert_eq!(ran.code, Some(8), "{ran}");
    let flat = ran.out.replace("\n  ", " ");
    assert!(
        flat.contains(
            "unfit: `npm ci --ignore-scripts`: the command did not reach mirror.example ("
        ),
        "{ran}"
    );
    assert!(
        flat.contains("--allow-host mirror.example") && !flat.contains("red: "),
        "{ran}"
    );
}

#[test]
fn nothing_is_fetched_where_it_could_not_stay_or_where_there_is_nothing_to_fetch() {
    let Some(user) = User::new(&[IGNORE, ("build.sh", "#!/bin/sh\n")], &[("npm", NPM)]) else {
        return;
    };
    let nothing = user.check(&["--fetch"]);
    assert!(
        nothing.code == Some(0) && nothing.out.starts_with("nothing to fetch: "),
        "{nothing}"
    );
    user.scene
        .project
        .write("package-lock.json", b"{}")
        .unwrap();
    for rung in ["off", "landlock"] {
        let refused = user.check_in(rung, &["--fetch", "--network"]);
        assert_eq!(refused.code, Some(3), "{refused}");
        let said = "what is fetched could not stay";
        assert!(
            refused.err.contains(said) || refused.err.contains("does not work here"),
            "{refused}"
        );
    }
}
