//! Configuration: errors point at the place, and what is not trusted is said.

use super::{case, folder, ran, remove, table, write};
use crate::scenes::commit::Scene;
use crate::scenes::files;

const PROJECT: &str = "code-commit.toml";

#[test]
fn a_configuration_points_at_the_place() {
    let args = &["config"];
    table(
        "errors_config",
        &[
            case("no duration", args)
                .after(&write(PROJECT, b"[build]\ntimeout = \"10 minutes\"\n")),
            case("an unknown key", args).after(&write(PROJECT, b"[sandbox]\nnetwrok = true\n")),
            case("an unknown table", args).after(&write(PROJECT, b"[sandboxes]\nnetwork = true\n")),
            case("another type", args).after(&write(PROJECT, b"[limits]\nmax_calls = \"ten\"\n")),
            case("a price in quotes", args)
                .after(&write(PROJECT, b"[limits]\nmax_cost = \"2.50\"\n")),
            case("a text in place of a table", args).after(&write(PROJECT, b"model = \"gpt-5\"\n")),
            case("a text in place of a list", args).after(&write(PROJECT, b"protect = \"a\"\n")),
            case("a number below zero", args).after(&write(PROJECT, b"[limits]\nmax_cost = -1\n")),
            case("an open quote", args).after(&write(PROJECT, b"[model]\nname = \"gemini-x\n")),
            case("a key twice", args).after(&write(PROJECT, b"protect = []\nprotect = [\"a\"]\n")),
            case("a model of nobody", args).after(&write(PROJECT, b"[model]\nname = \"knows\"\n")),
            case("a pattern that leads out", args)
                .after(&write(PROJECT, b"protect = [\"../x\"]\n")),
            case("no UTF-8", args).after(&write(PROJECT, b"protect = [\"\xff\"]\n")),
            case("a folder", args).after(&folder(PROJECT)),
            case("an error in the user's own file", args).after(&in_the_users_own_file),
            case("an error for a tool", &["guard", "a"])
                .after(&write(PROJECT, b"[sandbox]\nmode = 1\n")),
        ],
    );
}

#[test]
fn trust_is_asked_for_and_said() {
    let weakens = write(PROJECT, b"[sandbox]\nnetwork = true\n");
    table(
        "errors_trust",
        &[
            case("nothing to trust", &["trust", "--yes"]),
            case("nobody to ask", &["trust"]).after(&weakens),
            case("no place to keep it", &["trust", "--yes"])
                .after(&weakens)
                .env(&[("HOME", "")]),
            case("a file in the place of the store", &["trust", "--yes"])
                .after(&weakens)
                .after(&|scene| files::write(&scene.beside(".local"), b"")),
            case("not trusted", &["config"]).after(&weakens).warns(),
            case("not trusted any more", &["config"])
                .after(&weakens)
                .after(&ran(&["trust", "--yes"], 0))
                .after(&write(
                    PROJECT,
                    b"[sandbox]\nnetwork = true\nenv = [\"CC\"]\n",
                ))
                .warns(),
            case("not trusted, and refused for something else", &[])
                .after(&weakens)
                .after(&remove("agent-config/query.txt")),
        ],
    );
}

fn in_the_users_own_file(scene: &Scene) {
    let path = scene.beside(".config/code-commit/config.toml");
    files::write(&path, b"[limits]\nmax_cost = 1\nmax_time = 10\n");
}
