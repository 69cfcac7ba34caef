//! What is missing before a run begins.

use super::{case, folder, remove, table, write};
use crate::scenes::commit::{KEY, Scene};

#[test]
fn what_is_missing_before_a_run() {
    table(
        "errors_preflight",
        &[
            case("a key that git tracks", &[]).after(&tracked_key),
            case("no query", &[]).after(&remove("agent-config/query.txt")),
            case("an empty query", &[]).after(&write("agent-config/query.txt", b" \n")),
            case("a query that is no UTF-8", &[])
                .after(&write("agent-config/query.txt", b"ab\xff")),
            case("a query that is a folder", &[]).after(&folder("agent-config/query.txt")),
            case("no roll-up", &[]).after(&remove("agent-config/codeRollup.txt")),
            case("an empty roll-up", &[]).after(&write("agent-config/codeRollup.txt", b"")),
            case("no key", &["--model", "gemini-test"]).env(&[("GEMINI_API_KEY", "")]),
            case("a key of two lines", &["--model", "gemini-test"])
                .env(&[("GEMINI_API_KEY", "")])
                .after(&write(
                    "agent-config/gemini-key.txt",
                    b"AIzaSy-first\nsecond\n",
                )),
            case("a key in UTF-16", &["--model", "gemini-test"])
                .env(&[("GEMINI_API_KEY", "")])
                .after(&write("agent-config/gemini-key.txt", b"\xff\xfeA\0I\0z\0")),
            case("a key file with nothing in it", &["--model", "gemini-test"])
                .env(&[("GEMINI_API_KEY", "")])
                .after(&write("agent-config/gemini-key.txt", b"\n")),
            case(
                "a folder in the place of a key",
                &["--model", "openai/test"],
            )
            .env(&[("OPENAI_BASE_URL", "")])
            .after(&folder("agent-config/openai-key.txt")),
            case("a key in the query", &["--sandbox", "off"])
                .after(&write("agent-config/query.txt", KEY.as_bytes())),
            case("a file in the place of the logs", &["--sandbox", "off"])
                .after(&write("agent-config/logs", b"")),
            case("logs that lead out", &["--sandbox", "off"]).after(&logs_lead_out),
            case("no system prompt", &["implement"]),
            case("an empty system prompt", &["implement"])
                .after(&write("agent-config/gemini-system-prompt.txt", b"")),
            case("a folder of the project", &["--model", "gemini-test"]).below("src"),
            case("nothing to undo in a folder of the project", &["undo"]).below("src"),
            case("nothing to show in a folder of the project", &["show"]).below("src"),
            case("a roll-up of a folder of the project", &["rollup"]).below("src"),
            case("implement in a folder of the project", &["implement"]).below("src"),
            case("everything at once", &["--model", "gemini-test"])
                .env(&[("GEMINI_API_KEY", "")])
                .after(&remove("agent-config/query.txt"))
                .after(&remove("agent-config/codeRollup.txt"))
                .after(&remove("build.sh")),
        ],
    );
}

#[test]
fn what_is_wrong_with_the_build() {
    table(
        "errors_build",
        &[
            case("no build.sh", &[]).after(&remove("build.sh")),
            case("a build.sh that is not executable", &[]).after(&not_executable),
            case("a build.sh that leads nowhere", &[]).after(&leads_nowhere),
            case("a build.sh that is a folder", &[]).after(&folder("build.sh")),
            case(
                "a build that is configured and not there",
                &["--build-command", "./ci/check.sh"],
            ),
            case(
                "a build by a program that is not there",
                &["--build-command", "no-such-program --all"],
            ),
        ],
    );
}

#[test]
fn what_the_tree_is_not() {
    table(
        "errors_dirty",
        &[
            case("a dirty tree", &["--require-clean"]).after(&write("src/greet.sh", b"# new\n")),
            case("a dirty tree of many files", &["--require-clean"]).after(&seven_files),
            case("a dirty tree that may be", &["--quiet", "--sandbox", "off"])
                .after(&write("src/greet.sh", b"# new\n"))
                .after(&|scene| scene.user_file("[model]\ncall_limit = \"1s\"\n"))
                .warns(),
        ],
    );
}

/// Of what git tracks it ignores nothing.
fn tracked_key(scene: &Scene) {
    for name in ["gemini-key.txt", "notes.txt"] {
        scene.write(&format!("agent-config/{name}"), "AIzaSy-in-the-history\n");
    }
    scene.git(&[
        "add",
        "-f",
        "agent-config/gemini-key.txt",
        "agent-config/notes.txt",
    ]);
    scene.project.commit("a key").unwrap();
}

fn logs_lead_out(scene: &Scene) {
    let outside = scene.beside("outside");
    std::fs::create_dir(&outside).unwrap();
    std::os::unix::fs::symlink(outside, scene.at("agent-config/logs")).unwrap();
}

fn leads_nowhere(scene: &Scene) {
    let build = scene.at("build.sh");
    std::fs::remove_file(&build).unwrap();
    std::os::unix::fs::symlink("/nowhere/build.sh", build).unwrap();
}

fn not_executable(scene: &Scene) {
    use std::os::unix::fs::PermissionsExt as _;
    let build = scene.at("build.sh");
    std::fs::set_permissions(build, std::fs::Permissions::from_mode(0o644)).unwrap();
}

fn seven_files(scene: &Scene) {
    for number in 1..=7 {
        scene.write(&format!("new/{number}.txt"), "new\n");
    }
}
