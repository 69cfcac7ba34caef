//! What the loops for orders, phases and specs cannot begin with.

use super::{case, folder, link, table, write};

/// An order that could be carried out.
const ORDER: &[u8] =
    br#"{"id": "greet-1", "title": "Greet", "intent": "Say hello.", "allowed_files": ["src/greet.sh"],
    "forbidden": [], "acceptance_commands": ["sh build.sh"], "context_files": []}"#;

#[test]
fn orders_that_cannot_be_carried_out() {
    let run = &[
        "order",
        "run",
        "--work-order",
        "agent-config/order.json",
        "--out",
        "../out",
        "--llm-model",
    ];
    let run =
        |model: &'static str, more: &[&'static str]| [run.as_slice(), &[model], more].concat();
    let (keyed, scripted) = (run("openai/test", &[]), run("scripted/none.txt", &[]));
    let no_script = run("scripted/agent-config/none.txt", &["--sandbox", "off"]);
    let order = write("agent-config/order.json", ORDER);
    table(
        "errors_order",
        &[
            case("no order", &["order", "check", "nowhere.json"]),
            case("an order that is there", &["order", "new", "build.sh"]),
            case("no key", &keyed),
            case("a key file with nothing in it", &keyed)
                .after(&write("agent-config/openai-key.txt", b"\n")),
            case("a key of two lines", &keyed)
                .after(&write("agent-config/openai-key.txt", b"one\ntwo\n")),
            case("no script", &no_script).after(&order),
            case(
                "a repository that is none",
                &[&scripted[..], &["--repo", ".."]].concat(),
            )
            .after(&order),
            case(
                "a folder of a repository",
                &[&scripted[..], &["--repo", "src"]].concat(),
            )
            .after(&order),
        ],
    );
}

#[test]
fn phases_that_cannot_be_worked_on() {
    let spec = write(
        ".abl/specs/phase1.md",
        b"# Phase 1: A page\n\n- GET / \xe2\x86\x92 200\n",
    );
    let only_git = [("PATH", "[BESIDE]/bin")];
    table(
        "errors_phase",
        &[
            case("no number to trust", &["phase", "trust"]),
            case("a number behind init", &["phase", "init", "2"]),
            case("no specs", &["phase", "run"]),
            case("no specs to look over", &["phase", "check"]),
            case("a configuration that is no YAML", &["phase", "check"])
                .after(&write(".abl/abl.config.yaml", b"loop: [1\n")),
            case(
                "a model that no agent takes",
                &["phase", "run", "-b", "openai/gpt-6", "--sandbox", "off"],
            )
            .after(&spec),
            case("no agent", &["phase", "run", "--quiet", "--sandbox", "off"])
                .after(&spec)
                .after(&link("git"))
                .env(&only_git),
        ],
    );
}

#[test]
fn specs_that_cannot_be_worked_on() {
    let run = &["spec", "run", "--focus", "a thing"];
    table(
        "errors_spec",
        &[
            case("no focus", &["spec", "run", "--focus", " "]),
            case(
                "a focus in a file that is not there",
                &["spec", "run", "--focus", "@nowhere.md"],
            ),
            case("questions without a terminal", &["spec", "setup"]),
            case("a talk without a terminal", &["spec", "plan"]),
            case("a configuration that is none", run)
                .after(&write(".cuggino.json", b"{\"maxIterations\": ")),
            case("a number in quotes", run)
                .after(&write(".cuggino.json", b"{\"maxIterations\": \"ten\"}")),
            case("a configuration that is a folder", run).after(&folder(".cuggino.json")),
            case("no agent", run)
                .after(&link("git"))
                .env(&[("PATH", "[BESIDE]/bin")]),
        ],
    );
}

#[test]
fn costs_that_cannot_be_read() {
    let header =
        b"timestamp,phase,step,role,model,input,candidates,cached,total,session_id\nnot a row\n";
    table(
        "errors_costs",
        &[
            case("a row that is none", &["costs"])
                .after(&write(".abl/logs/tokens.csv", header))
                .warns(),
            case("a table that is no UTF-8", &["costs"])
                .after(&write(".abl/logs/tokens.csv", b"a\xff\n")),
        ],
    );
}
