//! What stands on the command line and cannot be.

use super::{case, table};

#[test]
fn what_the_command_line_gets_wrong() {
    table(
        "errors_command_line",
        &[
            case("an unknown flag", &["--sandbx", "off"]),
            case("an unknown command", &["comit"]),
            case("an unknown sandbox", &["--sandbox", "glass"]),
            case("no duration", &["--timeout", "10"]),
            case("no time at all", &["--build-timeout", "0s"]),
            case("no money", &["--max-cost", "0"]),
            case("no calls", &["--max-calls", "0"]),
            case("no rounds", &["--rounds", "0"]),
            case("less than no money", &["--max-cost", "-1"]),
            case("less than no calls", &["--max-calls", "-1"]),
            case("a pattern that leads out", &["--protect", "../x"]),
            case(
                "a folder that is not there",
                &["--writable", "/nonexistent/cache"],
            ),
            case(
                "a folder beside the project that is not there",
                &["--writable", "../none"],
            ),
            case(
                "a path to read that is not there",
                &["--readable", "../none"],
            ),
            case("a command with an open quote", &["--build-command", "'"]),
            case("an end that is none", &["--on-failure", "burn"]),
            case("quiet and verbose", &["--quiet", "--verbose"]),
            case("flags of another loop", &["--require-clean", "resume"]),
            case("a model without a name", &["--model", "gemini/"]),
            case("a model of nobody", &["--model", "nobody/knows"]),
            case(
                "a model whose provider is not plain",
                &["--model", "mystery"],
            ),
            case("an address that is none", &["--base-url", "gopher:nothing"]),
            case(
                "an address with a password",
                &["--base-url", "https://me:secret@models.invalid"],
            ),
            case("a pattern without an end", &["rollup", "--include", "["]),
            case("no path for guard", &["guard"]),
            case("two runs", &["show", "one", "two"]),
            case("fewer runs than none", &["clean", "--keep", "-1"]),
            case("days with their unit", &["clean", "--older-than", "30d"]),
            case("an unknown shell", &["completions", "sh"]),
            case(
                "an order without a repository",
                &["order", "run", "--work-order", "x"],
            ),
            case(
                "an order that is asked for less than once",
                &["order", "run", "--max-attempts", "-1"],
            ),
            case(
                "an order colder than cold",
                &["order", "run", "--llm-temperature", "-0.5"],
            ),
            case(
                "an order with no time",
                &["order", "run", "--timeout-seconds", "-1"],
            ),
            case("a phase that is no number", &["phase", "one"]),
            case(
                "a phase for less than no money",
                &["phase", "run", "--max-cost", "-1"],
            ),
            case(
                "a watch for less than no tokens",
                &["spec", "watch", "--max-tokens", "-1"],
            ),
        ],
    );
}
