//! What a command may plant for the programs that the harness starts itself, and for the sandbox of the next command: on every backend, as
//! root and as another user, the harness starts nothing of it, and nothing more of the machine is shown.

use std::fs;
use std::os::unix::process::CommandExt as _;

use code_commit_fixtures::server::Script;
use serde_json::json;

use super::{BACKENDS, NOBODY, give, is_skipped};
use crate::scenes::commit::texts;
use crate::scenes::order::{self, FILES, GOOD, greet, proposal};
use crate::scenes::program::{Ran, in_reach, search_path};

/// Plants programs in the project's virtual environment, and what would show the whole home to the next command.
const PLANT: &str = r#"
for name in git ssh-keygen gpg vi docker; do
  printf '#!/bin/sh\ntouch "CANARY"\nexec /usr/bin/%s "$@"\n' $name > .venv/bin/$name
  chmod +x .venv/bin/$name
done
fake=.venv/fake
mkdir -p $fake/bin $fake/lib/python3.12
touch $fake/lib/python3.12/os.py
printf '#!/bin/sh\n' > $fake/bin/python3
chmod +x $fake/bin/python3
ln -s "HOME" $fake/libexec
ln -s "HOME/private/bin/tool" $fake/bin/tool
ln -s "HOME/private/bin/tool" .venv/bin/tool
echo "home = /tmp/..$PWD/$fake/bin" > .venv/pyvenv.cfg
"#;

/// Reads what no command may see; the order passes if that is refused.
const READ: &str = "for file in private/lib/secret private/bin/tool secret; do cat \"HOME/$file\" && exit 1; done; exit 0\n";

fn scene() -> order::Scene {
    let files: Vec<(&str, &str)> = FILES
        .into_iter()
        .skip(1)
        .chain([(".gitignore", "/.venv/\n")])
        .collect();
    let replies = [greet(GOOD), proposal("src/b.txt", None, "b")];
    let scene = order::Scene::scripted(&files, Script::new(texts(&replies)));
    let home = scene.beside("home");
    for (file, text) in [
        ("secret", "secret\n"),
        ("private/lib/secret", "secret\n"),
        ("private/bin/tool", "tool\n"),
    ] {
        fs::create_dir_all(home.join(file).parent().unwrap()).unwrap();
        fs::write(home.join(file), text).unwrap();
    }
    fs::set_permissions(
        home.join("private/bin/tool"),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    fs::create_dir_all(scene.root().join(".venv/bin")).unwrap();
    let fill = |text: &str| {
        let canary = scene.beside("canary").display().to_string();
        text.replace("CANARY", &canary)
            .replace("HOME", &home.display().to_string())
    };
    scene.write("tests/plant.sh", fill(PLANT).as_bytes());
    scene.write("tests/read.sh", fill(READ).as_bytes());
    scene.project.commit("tests").unwrap();
    scene.place_order(&json!({ "acceptance_commands": ["sh tests/run.sh", "sh tests/plant.sh"] }));
    let over = json!({
        "id": "b", "allowed_files": ["src/b.txt"], "context_files": [],
        "acceptance_commands": ["sh tests/read.sh"],
    });
    scene.place("b.json", order::order(&over).to_string().as_bytes());
    scene
}

fn nothing_planted_counts(backend: &str, user: u32) {
    let scene = scene();
    give(scene.project.beside(), user);
    let planted = scene.root().join(".venv/bin");
    let path = std::env::join_paths(
        [planted.clone()]
            .into_iter()
            .chain(std::env::split_paths(&search_path())),
    );
    let path = path.unwrap();
    let ran = |command: std::process::Command| {
        let mut command = in_reach(&command, scene.project.beside());
        command.env("PATH", &path).env("HOME", scene.beside("home"));
        Ran::of(command.uid(user).gid(user))
    };
    let [first, next] =
        ["order.json", "b.json"].map(|name| scene.beside(name).display().to_string());
    let done = ran(scene.command(&[
        &first,
        &next,
        "--max-attempts",
        "1",
        "--commit",
        "--sandbox",
        backend,
    ]));
    if is_skipped(&done, backend) {
        return;
    }
    let case = format!("{backend} as {user}: {done}");
    assert!(
        planted.join("git").exists(),
        "the attack planted nothing: {case}"
    );
    assert!(
        !scene.beside("canary").exists(),
        "a planted program was started: {case}"
    );
    // Without a sandbox the next command may read everything.
    assert_eq!(done.code, Some(i32::from(backend == "off")), "{case}");
}

#[test]
fn no_program_that_a_command_planted_is_started_and_nothing_it_planted_is_shown() {
    let user = rustix::process::geteuid().as_raw();
    BACKENDS
        .into_iter()
        .for_each(|backend| nothing_planted_counts(backend, user));
}

#[test]
fn no_program_that_a_command_of_another_user_planted_is_started() {
    if !rustix::process::geteuid().is_root() {
        return eprintln!(
            "SKIPPED: planted programs as another user, because only root can become one"
        );
    }
    BACKENDS
        .into_iter()
        .for_each(|backend| nothing_planted_counts(backend, NOBODY));
}
