//! What commands of the configuration can reach in their sandbox.

use crate::scenes::phase::{KEY, Scene};

/// Whether namespaces work here; says so loudly if not.
fn is_possible(what: &str) -> bool {
    code_commit_runner::helper_is(env!("CARGO_BIN_EXE_code-commit"));
    let works = code_commit_runner::probe(code_commit_runner::Mode::Namespaces, None).is_ok();
    if !works {
        eprintln!("SKIPPED: {what}, because namespaces do not work here");
    }
    works
}

fn configured(scene: &Scene, commands: &str) {
    scene.write(".abl/abl.config.yaml", commands);
}

fn run(scene: &Scene) -> crate::scenes::program::Ran {
    scene.run_with(&["run", "--sandbox", "namespaces"], &[])
}

/// Tries to read and to write what is not the builder's; what works is printed.
const PROBE: &str = r#"for place in .env prompts/verifier.md .abl/tests/test.txt .abl/abl.config.yaml .abl/state.json \
  .code-commit "$SECRET"; do
  if [ -n "$(cat "$place" 2>/dev/null; ls -A "$place" 2>/dev/null)" ]; then echo "SEEN $place"; fi
done
for place in .abl/specs/phase1.md .abl/new .abl/tests/failed_specs.md prompts/builder.md package.json new src/.git/config; do
  if echo x 2>/dev/null >> "$place" && [ "$place" != new ] && [ "$place" != .abl/new ] && \
    [ "$place" != .abl/tests/failed_specs.md ] && [ "$place" != prompts/builder.md ]; then echo "WROTE $place"; fi
done
cat package.json .abl/specs/phase1.md src/code.txt; echo made >> src/made"#;

#[test]
fn a_command_sees_the_source_and_the_specs_and_changes_only_the_source() {
    if !is_possible("the sandbox of the commands") {
        return;
    }
    let scene = Scene::new(&[("builder-1", "abl-cmd probe > probed 2>&1")]);
    std::fs::write(scene.at("home/secret"), "private").unwrap();
    scene.write("src/code.txt", "the source\n");
    scene.write("package.json", "{}\n");
    scene.write(".abl/tests/test.txt", "the tests");
    std::os::unix::fs::symlink(".env", scene.project("link")).unwrap();
    let probe = PROBE.replace("$SECRET", scene.at("home/secret").to_str().unwrap());
    scene.write("probe.sh", &format!("{probe}\ncat link\n"));
    configured(
        &scene,
        "builder_commands:\n  probe: {command: 'sh probe.sh'}\n",
    );
    let ran = run(&scene).exits(0);
    assert!(!ran.err.contains("with all your rights"), "{}", ran.err);
    let probed = scene.read("src/probed");
    assert!(
        probed.starts_with("{}\n# Phase 1: A page\n\n- GET / → 200\nthe source\n"),
        "{probed}"
    );
    assert!(!probed.contains(KEY), "{probed}");
    assert_eq!(scene.read("src/made"), "made\n");
    assert_eq!(scene.read("package.json"), "{}\n");
    for none in ["new", ".abl/new", ".abl/tests/failed_specs.md"] {
        assert!(!scene.project(none).exists(), "{none}");
    }
    assert!(!scene.read("prompts/builder.md").ends_with("x\n"));
    assert_eq!(
        scene.commits("src").len(),
        2,
        "the repository was not led elsewhere"
    );
}

#[test]
fn a_server_of_the_verifier_lives_in_a_view_of_the_source_until_the_turn_is_over() {
    let ask = "abl-cmd serve; i=0; until [ -s answer ] || [ $i -gt 2000 ]; do i=$((i+1)); \
        python3 -c 'import urllib.request; print(urllib.request.urlopen(\"http://localhost:'$(abl-cmd port)'/page\").read().decode())' > answer 2>/dev/null; done; \
        cat ../../src/page > leaked 2>/dev/null; abl-cmd seeded > seeded";
    let scene = Scene::new(&[("builder-1", "echo hello > page"), ("verifier-1", ask)]);
    configured(
        &scene,
        "verifier_commands:\n  serve: {command: 'cd src && echo seed > data && (python3 -u ../serve.py > port.txt &)'}\n  \
           port: {command: 'until [ -s src/port.txt ]; do :; done; cat src/port.txt'}\n  \
           seeded: {command: 'cat src/data; ls .abl/tests'}\n",
    );
    scene.write(
        "serve.py",
        "import http.server as h\ns = h.HTTPServer(('127.0.0.1', 0), h.SimpleHTTPRequestHandler)\nprint(s.server_port)\ns.serve_forever()\n",
    );
    let ran = scene.run_with(&["run", "--sandbox", "namespaces"], &[]);
    if ran.code == Some(3) && ran.err.contains("does not work here") {
        return eprintln!("SKIPPED: a server in namespaces: {}", ran.err);
    }
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(scene.read(".abl/tests/answer").trim(), "hello");
    assert_eq!(
        scene.read(".abl/tests/leaked"),
        "",
        "the verifier itself sees no source"
    );
    assert!(
        scene.read(".abl/tests/seeded").starts_with("seed\n"),
        "one view for all commands of a turn"
    );
    assert!(
        !scene.project("src/data").exists() && !scene.project("src/port.txt").exists(),
        "and gone with it"
    );
    assert!(
        !crate::phase::happy::is_running("serve.py"),
        "the server ends with the turn"
    );
    assert!(!scene.project(".code-commit/command-view").exists());
}

#[test]
fn what_a_command_left_running_ends_with_the_harness_that_is_killed() {
    for sandbox in ["off", "namespaces"] {
        if sandbox == "namespaces" && !is_possible("a kill while a command runs") {
            continue;
        }
        let scene = Scene::new(&[("builder-1", "abl-cmd linger; say begun; sleep 20")]);
        configured(
            &scene,
            "builder_commands:\n  linger: {command: 'sleep 4244 &'}\n",
        );
        let (_, is_killed) = scene.killed(&["run", "--sandbox", sandbox], &[], |line| {
            line.contains("begun")
        });
        assert!(is_killed, "{sandbox}");
        let killed = std::time::Instant::now();
        while crate::phase::happy::is_running("sleep\u{0}4244") {
            assert!(killed.elapsed().as_secs() < 15, "{sandbox}: it still runs");
        }
        assert_eq!(scene.run(&["run"]).code, Some(0), "{sandbox}");
    }
}

/// The machine's loopback is out of reach for what the builder wrote.
#[test]
fn commands_have_a_network_of_their_own_unless_it_is_opened() {
    if !is_possible("the network of the commands") {
        return;
    }
    let machine = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = machine.local_addr().unwrap().port();
    let dial = format!(
        "import socket; socket.create_connection((\"127.0.0.1\", {port})); print(\"reached\")"
    );
    for (more, reached) in [("", ""), ("[sandbox]\nnetwork = true\n", "reached\n")] {
        let scene = Scene::new(&[("builder-1", "abl-cmd dial > dialled 2>/dev/null; true")]);
        scene.write("dial.py", &dial);
        scene.write("code-commit.toml", more);
        configured(
            &scene,
            "builder_commands:\n  dial: {command: 'python3 dial.py 2>/dev/null'}\n",
        );
        assert_eq!(scene.code_commit(&["trust", "--yes"], &[]).code, Some(0));
        run(&scene).exits(0);
        assert_eq!(scene.read("src/dialled"), reached);
    }
}

#[test]
fn what_a_command_runs_cannot_take_the_place_of_what_the_role_uses() {
    if !is_possible("what commands can do to abl-cmd") {
        return;
    }
    let uses = "abl-cmd evil >/dev/null 2>&1; abl-cmd get-spec 1 > spec; command -v abl-cmd > way; abl-cmd evil > again 2>&1; true";
    let scene = Scene::new(&[("verifier-1", uses)]);
    // The process beside it is within reach of the builder's code; what the verifier calls and reads is not.
    let evil = "for folder in /tmp/* /tmp/*/*; do rm -rf $folder/socket $folder/abl-cmd; ln -s /dev/null $folder/socket; done";
    configured(
        &scene,
        &format!("verifier_commands:\n  evil: {{command: '{evil}'}}\n"),
    );
    let ran = run(&scene);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        scene
            .read(".abl/tests/spec")
            .starts_with("# Phase 1: A page")
    );
    assert!(
        scene
            .read(".abl/tests/way")
            .trim()
            .ends_with("/bin/abl-cmd")
    );
    let again = scene.read(".abl/tests/again");
    assert!(
        again.contains("no answer"),
        "only the process beside it was in reach: {again}"
    );
}

#[test]
fn what_the_configuration_grants_by_name_is_there_for_commands() {
    if !is_possible("what is granted to commands") {
        return;
    }
    let scene = Scene::new(&[("builder-1", "abl-cmd show > shown 2>&1")]);
    scene.write(".abl/tests/test.txt", "the tests\n");
    scene.write(
        "code-commit.toml",
        "[sandbox]\nreadable = [\".abl/tests\"]\nwritable = [\"out\"]\nenv = [\"MINE\"]\n",
    );
    configured(
        &scene,
        "builder_commands:\n  show: {command: 'cat .abl/tests/test.txt; echo $MINE; echo x > out/made; echo x > .abl/tests/mine; true'}\n",
    );
    scene.code_commit(&["trust", "--yes"], &[]).exits(0);
    let ran = scene.run_with(&["run", "--sandbox", "namespaces"], &[("MINE", "given")]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        scene.read("src/shown").starts_with("the tests\ngiven\n"),
        "{}",
        scene.read("src/shown")
    );
    assert_eq!(scene.read("out/made"), "x\n");
    assert!(!scene.project(".abl/tests/mine").exists());
}
