//! What a role can see: its own folder and the specs, in namespaces as in a container.

use crate::phase::docker::Daemon;
use crate::scenes::phase::{KEY, Scene};

/// In `.env` beside the key.
const OTHER_SECRET: &str = "hunter2-of-the-database";

/// A line for everything that can be read, listed or written and should not be.
fn probes(scene: &Scene, other: &str) -> String {
    let project = scene.at("project");
    let places = [
        other.to_owned(),
        format!("{other}/.git"),
        format!("{other}/.git/HEAD"),
        ".env".into(),
        ".abl/logs".into(),
        ".abl/state.json".into(),
        "prompts/verifier.md".into(),
    ];
    let places = places
        .iter()
        .map(|place| project.join(place).display().to_string());
    let home = scene.at("home").join("secret").display().to_string();
    let reads = places.chain([home, "/root".into(), "/etc/shadow".into()]);
    let read = |place: String| {
        format!(
            "if ls '{place}' >/dev/null 2>&1 && [ -n \"$(ls -A '{place}' 2>/dev/null; cat '{place}' 2>/dev/null)\" ]; then echo 'SEEN {place}' >> probes; fi\n"
        )
    };
    let mut lines: String = reads.map(read).collect();
    lines.push_str(&format!(
        "if echo x 2>/dev/null >> '{0}/.abl/specs/phase1.md'; then echo 'WROTE specs' >> probes; fi\n",
        project.display()
    ));
    lines.push_str("if echo x 2>/dev/null >> .git/config; then echo 'WROTE git' >> probes; fi\n");
    lines.push_str(&format!(
        "cat '{0}/.abl/specs/phase1.md' > spec-seen\n",
        project.display()
    ));
    lines.push_str(
        "abl-cmd get-spec 1 > command-seen\nenv | grep -v '^GEMINI_API_KEY=' > env-seen\necho done >> probes\n",
    );
    lines
}

/// Whether there are no namespaces here, which is said.
fn is_unconfined() -> bool {
    code_commit_runner::helper_is(env!("CARGO_BIN_EXE_code-commit"));
    let probed = code_commit_runner::probe(code_commit_runner::Mode::Namespaces, None);
    if let Err(reason) = &probed {
        eprintln!("SKIPPED: the sandbox around the roles, because {reason}");
    }
    probed.is_err()
}

fn check(sandbox: &str, environment: &[(&str, &str)]) {
    let scene = Scene::new(&[]);
    std::fs::write(scene.at("home/secret"), "private").unwrap();
    scene.write(
        ".env",
        &format!("GEMINI_API_KEY={KEY}\nOTHER_TOKEN={OTHER_SECRET}\n"),
    );
    scene.write("src/code.txt", "the source");
    scene.write(".abl/tests/test.txt", "the tests");
    for (role, other) in [("builder", ".abl/tests"), ("verifier", "src")] {
        std::fs::write(
            scene.at("bin/turns").join(format!("{role}-1.sh")),
            probes(&scene, other),
        )
        .unwrap();
    }
    let ran = scene.run_with(&["run", "--sandbox", sandbox], environment);
    assert_eq!(ran.code, Some(0), "{ran:?}\n{}", ran.err);
    for folder in ["src", ".abl/tests"] {
        assert_eq!(
            scene.read(&format!("{folder}/probes")),
            "done\n",
            "{sandbox} {folder}"
        );
        assert!(
            scene
                .read(&format!("{folder}/spec-seen"))
                .contains("# Phase 1"),
            "{sandbox}"
        );
        assert!(
            scene
                .read(&format!("{folder}/command-seen"))
                .contains("# Phase 1"),
            "{sandbox}"
        );
        assert!(
            !scene.read(&format!("{folder}/env-seen")).contains(KEY),
            "{sandbox}"
        );
    }
    for folder in ["src", ".abl", ".code-commit"] {
        for (path, text) in scene.files(folder) {
            assert!(
                !text.contains(OTHER_SECRET),
                "{sandbox}: {}",
                path.display()
            );
        }
    }
    assert!(
        scene.project("src/code.txt").exists() && scene.project(".abl/tests/test.txt").exists()
    );
}

#[test]
fn each_role_in_namespaces_sees_its_own_folder_and_the_specs_and_no_more() {
    if is_unconfined() {
        return;
    }
    check("namespaces", &[]);
}

#[test]
fn each_role_in_a_container_sees_its_own_folder_and_the_specs_and_no_more() {
    let Some(daemon) = Daemon::start() else {
        return;
    };
    check("docker", &[("DOCKER_HOST", daemon.host())]);
    assert_eq!(daemon.containers(), "", "no container is left");
    // Where a daemon is, a container is what `auto` means.
    let scene = Scene::new(&[]);
    let ran = scene.run_with(&["run"], &[("DOCKER_HOST", daemon.host())]);
    assert!(ran.code == Some(0) && ran.err.contains("Docker"), "{ran:?}");
}

#[test]
fn landlock_around_a_role_is_refused_before_anything_is_paid_for() {
    let scene = Scene::new(&[]);
    let ran = scene.run_with(&["run", "--sandbox", "landlock"], &[]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    ran.err_has("make no new file")
        .err_has("--sandbox namespaces");
    assert_eq!(scene.turns("builder"), 0);
}

#[test]
fn a_project_whose_source_is_its_root_works_in_the_sandbox() {
    if is_unconfined() {
        return;
    }
    let scene = Scene::new(&[(
        "builder-1",
        "echo ok > \"$HOME/file\" && cp \"$HOME/file\" home-works; echo code > app; cat .env .abl/tests/.git/HEAD prompts/verifier.md > seen 2>/dev/null",
    )]);
    scene.write(".abl/abl.config.yaml", "directories: {src: .}\n");
    let ran = scene.run_with(&["run", "--sandbox", "namespaces"], &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(
        scene.read("home-works"),
        "ok\n",
        "the harness's own state lies in the role's folder, too"
    );
    assert_eq!(scene.commits("."), ["phase1/build/step-1", "phase1/passed"]);
    assert_eq!(
        scene.read("seen"),
        "",
        "neither key nor tests nor the other's prompt"
    );
    let committed = scene.git(".", &["ls-files"]).concat();
    assert!(
        committed.contains("app") && !committed.contains(".env") && !committed.contains(".abl"),
        "{committed}"
    );
}

#[test]
fn a_builder_whose_folder_is_the_root_can_move_nothing_away_that_is_not_its_own() {
    if is_unconfined() {
        return;
    }
    let moves = "for place in .abl .abl/specs .env .git prompts deep deep/er deep/er/tests; do mv $place moved 2>/dev/null && echo $place >> done; done; \
        echo x 2>/dev/null >> .abl/project.md && echo project >> done; echo x 2>/dev/null > .abl/new && echo new >> done; \
        mkdir -p prompts; echo mine > prompts/verifier.md; echo mine > deep/mine && mv deep/mine deep/er/mine && echo own >> done; true";
    let scene = Scene::new(&[("builder-1", moves)]);
    scene.write(
        ".abl/abl.config.yaml",
        "directories: {src: ., tests: deep/er/tests}\n",
    );
    std::fs::remove_dir_all(scene.project("prompts")).unwrap();
    let ran = scene.run_with(&["run", "--sandbox", "namespaces"], &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(
        scene.read("done"),
        "own\n",
        "only what lies beside the tests is the builder's to move"
    );
    assert_eq!(scene.commits("deep/er/tests"), [""; 0]);
    assert!(scene.project("deep/er/tests/verifier_reports").exists());
    assert!(scene.read(".env").contains(KEY) && !scene.project(".abl/new").exists());
    assert!(
        !scene.project("prompts/verifier.md").exists(),
        "no prompt for the verifier's next run"
    );
}
