//! What builds fetch: cargo, a registry on loopback, and the layers of the project over the user's caches.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{fs, thread};

use code_commit_fixtures::server::{Script, Step};
use code_commit_runner::{Mode, probe};

use crate::scenes::commit::Scene;
use crate::scenes::files;
use crate::scenes::program::{Ran, program, tool};

/// Adds a dependency that the project does not have, and uses it.
const BUILD: &str = "#!/bin/sh\nset -e\ncargo add -q answer\ncargo run -q\n";
const MAIN: &str = "fn main() { assert_eq!(answer::answer(), 42); }\n";
const MANIFEST: &str = "[package]\nname = \"a\"\nversion = \"0.1.0\"\nedition = \"2021\"\n";

/// A sparse registry with one crate, at an address that the sandbox does not take for its own loopback.
struct Registry {
    address: SocketAddr,
    downloads: Arc<AtomicUsize>,
}

impl Registry {
    fn start(folder: &Path) -> Self {
        let listener = TcpListener::bind("127.0.0.2:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (archive, sum) = packed(folder);
        let row = format!(
            r#"{{"name":"answer","vers":"1.0.0","deps":[],"cksum":"{sum}","features":{{}},"yanked":false}}"#
        );
        let files: HashMap<&str, Vec<u8>> = HashMap::from([
            (
                "/config.json",
                format!(r#"{{"dl":"http://{address}/dl"}}"#).into_bytes(),
            ),
            ("/an/sw/answer", row.into_bytes()),
            (DOWNLOAD, archive),
        ]);
        let downloads = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&downloads);
        thread::spawn(move || {
            for client in listener.incoming() {
                serve(client.unwrap(), &files, &count);
            }
        });
        Self { address, downloads }
    }

    fn downloads(&self) -> usize {
        self.downloads.load(Ordering::SeqCst)
    }
}

const DOWNLOAD: &str = "/dl/answer/1.0.0/download";

/// One request, by a path or, from a proxy, by a whole address. A client that is gone needs no answer.
fn serve(mut client: TcpStream, files: &HashMap<&str, Vec<u8>>, downloads: &AtomicUsize) {
    let mut lines = BufReader::new(client.try_clone().unwrap())
        .lines()
        .map_while(Result::ok);
    let Some(first) = lines.next() else { return };
    lines.take_while(|line| !line.is_empty()).for_each(drop);
    let asked = first.split(' ').nth(1).unwrap_or_default();
    if asked.ends_with(DOWNLOAD) {
        downloads.fetch_add(1, Ordering::SeqCst);
    }
    let found = files
        .iter()
        .find(|(path, _)| asked.ends_with(*path))
        .map(|(_, body)| body);
    let status = if found.is_some() {
        "200 OK"
    } else {
        "404 Not Found"
    };
    let body = found.map(Vec::as_slice).unwrap_or_default();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let _ = client.write_all(&[head.as_bytes(), body].concat());
}

/// The crate as registries give it out, and its hash.
fn packed(folder: &Path) -> (Vec<u8>, String) {
    let source = folder.join("answer-1.0.0/src");
    fs::create_dir_all(&source).unwrap();
    fs::write(source.join("lib.rs"), "pub fn answer() -> u8 { 42 }\n").unwrap();
    let manifest = MANIFEST
        .replace("\"a\"", "\"answer\"")
        .replace("0.1.0", "1.0.0");
    fs::write(folder.join("answer-1.0.0/Cargo.toml"), manifest).unwrap();
    let done = Ran::of(&mut tool(
        "tar",
        folder,
        folder,
        &["czf", "answer.crate", "answer-1.0.0"],
    ));
    assert_eq!(done.code, Some(0), "{done}");
    let sum = Ran::of(&mut tool("sha256sum", folder, folder, &["answer.crate"])).out;
    (
        fs::read(folder.join("answer.crate")).unwrap(),
        sum.split(' ').next().unwrap().to_owned(),
    )
}

/// A user with a cache of cargo, a registry, a project, and a clone of it.
struct User {
    scene: Scene,
    registry: Registry,
    other: PathBuf,
}

impl User {
    fn new() -> Self {
        let packages = tempfile::tempdir().unwrap();
        let registry = Registry::start(packages.path());
        let source = format!(
            "[source.crates-io]\nreplace-with = \"local\"\n[source.local]\nregistry = \"sparse+http://{}/\"\n",
            registry.address
        );
        let files = [
            ("build.sh", BUILD),
            ("Cargo.toml", MANIFEST),
            ("src/main.rs", MAIN),
            (".gitignore", "/agent-config\n/target\n"),
            (".cargo/config.toml", source.as_str()),
        ];
        let scene = Scene::with_files(&files, Script::new([]));
        let home = scene.project.beside();
        let cached = home.join(".cargo/registry/cache/old/old-1.0.0.crate");
        files::write(&cached, "the user's\n");
        let other = home.join("other");
        let root = scene.project.root().to_str().unwrap();
        let done = Ran::of(&mut tool(
            "git",
            home,
            home,
            &["clone", "-q", root, "other"],
        ));
        assert_eq!(done.code, Some(0), "{done}");
        Self {
            scene,
            registry,
            other,
        }
    }

    fn check_in(&self, root: &Path, args: &[&str]) -> Ran {
        Ran::of(&mut program(
            root,
            self.scene.project.beside(),
            &[&["check"], args].concat(),
            &[],
        ))
    }

    fn check(&self, args: &[&str]) -> Ran {
        self.check_in(self.scene.project.root(), args)
    }

    fn cargo_home(&self) -> Vec<(String, String)> {
        files::named(&self.scene.beside(".cargo"))
    }
}

fn works(mode: Mode) -> bool {
    code_commit_runner::helper_is(env!("CARGO_BIN_EXE_code-commit"));
    let probed = probe(mode, None);
    if let Err(error) = &probed {
        eprintln!("SKIPPED: what builds fetch, because {error}");
    }
    probed.is_ok()
}

/// The first build fetches; later ones of the same project need no network; the user and others get nothing.
fn fetched_once(user: &User, backend: &str, opened: &[&str]) {
    let before = user.cargo_home();
    let first = user.check(&[&["--sandbox", backend], opened].concat());
    assert_eq!(
        (first.code, user.registry.downloads()),
        (Some(0), 1),
        "{backend}: {first}"
    );
    let again = user.check(&["--sandbox", backend]);
    assert_eq!(
        (again.code, user.registry.downloads()),
        (Some(0), 1),
        "{backend}: {again}"
    );
    let elsewhere = user.check_in(&user.other, &["--sandbox", backend]);
    assert_ne!(elsewhere.code, Some(0), "{backend}: {elsewhere}");
    assert_eq!(user.cargo_home(), before, "{backend}");
}

#[test]
fn cargo_adds_a_dependency_from_an_allowed_host() {
    if works(Mode::Namespaces) {
        let user = User::new();
        let host = user.registry.address.to_string();
        fetched_once(&user, "namespaces", &["--allow-host", &host]);
    }
}

#[test]
fn cargo_adds_a_dependency_with_the_network() {
    if works(Mode::Namespaces) {
        fetched_once(&User::new(), "namespaces", &["--network"]);
    }
}

#[test]
fn what_builds_fetched_is_removed_by_clean_and_where_it_is_too_much() {
    if !works(Mode::Namespaces) {
        return;
    }
    let user = User::new();
    let fetch = ["--sandbox", "namespaces", "--network"];
    assert_eq!(user.check(&fetch).code, Some(0));
    let caches = user.scene.at(".git/code-commit/caches");
    let look = user.scene.run(&["clean", "--caches", "--dry-run"]);
    assert!(
        look.out.starts_with("would remove  caches of tools  ") && caches.exists(),
        "{look}"
    );
    let done = user.scene.run(&["clean", "--caches"]);
    assert!(
        done.out.starts_with("removed       caches of tools  ") && !caches.exists(),
        "{done}"
    );
    assert_eq!(
        (user.check(&fetch).code, user.registry.downloads()),
        (Some(0), 2)
    );
    user.scene.user_file("[sandbox]\ncache_limit = \"10B\"\n");
    let bounded = user.check(&["--sandbox", "namespaces"]);
    bounded.err_has("more than `[sandbox] cache_limit`");
    assert!(bounded.code != Some(0), "{bounded}");
}

#[test]
fn where_the_network_is_open_and_nothing_can_be_kept_the_user_is_told() {
    if works(Mode::Landlock) {
        let told = User::new().check(&["--sandbox", "landlock", "--network"]);
        told.err_has("builds cannot add to the caches of tools here");
    }
}

#[test]
fn what_a_run_wrote_to_the_caches_of_tools_goes_with_its_undo() {
    if !works(Mode::Namespaces) {
        return;
    }
    let build = "#!/bin/sh\nset -e\ncd \"$HOME/.cargo/registry\"\ntest ! -e poison || exit 0\necho poison > poison\n";
    let files = [
        (".gitignore", "/agent-config\n"),
        ("build.sh", build),
        ("agent-config/query.txt", "change the model\n"),
    ];
    let reply = "^^^model\nnew\n^^^end\n";
    let scene = Scene::with_files(&files, Script::new([Step::text(reply)]));
    fs::create_dir_all(scene.beside(".cargo/registry")).unwrap();
    scene.run_keyed(&scene.flags_in("namespaces")).exits(0);
    let caches = scene.at(".git/code-commit/caches");
    let cached = files::named(&caches);
    let has_poison = cached.iter().any(|(_, text)| text == "poison\n");
    assert!(has_poison, "later builds of the project read it");
    let undone = scene.run(&["undo"]);
    assert!(undone.code == Some(0) && !caches.exists(), "{undone}");
}
