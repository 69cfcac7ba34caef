//! What the first prompt takes, before anything is paid.

use code_commit_fixtures::demo::FILES;
use code_commit_fixtures::server::{Script, Step};
use regex::Regex;

use crate::scenes::commit::Scene;
use crate::scenes::program::must_have;

/// The user's own file says what the model costs, and what it takes.
fn priced(scene: &Scene, window: u64) {
    scene.user_file(&format!(
        "[[price]]\nprefix = \"gemini-test\"\ninput = 1.0\noutput = 10.0\nmax_output = 1000\nwindow = {window}\n"
    ));
}

fn without_numbers(text: &str) -> String {
    Regex::new(r"\d[\d,.]*")
        .unwrap()
        .replace_all(text, "N")
        .into_owned()
}

/// The requests that are not about the size of the prompt.
fn calls(scene: &Scene) -> usize {
    scene
        .server
        .requests()
        .iter()
        .filter(|request| !request.path.ends_with(":countTokens"))
        .count()
}

#[test]
fn a_prompt_that_the_model_does_not_take_is_refused_with_the_largest_files_before_anything_is_paid()
{
    let big = "word ".repeat(9000);
    let more: Vec<String> = (b'a'..b'm')
        .map(|letter| format!("{}.txt", char::from(letter)))
        .collect();
    let content = "x ".repeat(600);
    let small = more.iter().map(|path| (path.as_str(), content.as_str()));
    let files: Vec<_> = FILES
        .into_iter()
        .chain([("docs/big.txt", big.as_str())])
        .chain(small)
        .collect();
    let scene = Scene::with_files(&files, Script::new([Step::text("unused")]));
    priced(&scene, 10_000);
    assert_eq!(scene.run(&["rollup", "--budget", "60000"]).code, Some(0));
    for more in [&[][..], &["--dry-run"]] {
        let ran = scene.commit(more).exits(3);
        insta::allow_duplicates! {
            insta::assert_snapshot!(without_numbers(&ran.err), @r"
            error: the prompt has N tokens, more than the N that gemini/gemini-test takes
             help: show the model less, with --budget TOKENS or --exclude PATTERN of code-commit rollup; the largest files: docs/big.txt (N), a.txt (N), b.txt (N), c.txt (N), d.txt (N), e.txt (N), f.txt (N), g.txt (N), h.txt (N), i.txt (N)
            ");
        }
    }
    assert_eq!((calls(&scene), scene.runs().len()), (0, 0));
    // The service knows better than three bytes a token.
    priced(&scene, 18_000);
    assert_eq!(scene.commit(&["--dry-run"]).code, Some(0));
}

#[test]
fn a_roll_up_without_a_budget_gets_one_where_the_model_takes_less_and_says_so() {
    let big = "word ".repeat(9000);
    let files: Vec<_> = FILES
        .into_iter()
        .chain([("docs/big.txt", big.as_str())])
        .collect();
    let scene = Scene::with_files(&files, Script::new([Step::text("unused")]));
    priced(&scene, 14_000);
    let config = scene.beside(".config/code-commit/config.toml");
    let price = std::fs::read_to_string(&config).unwrap();
    std::fs::write(
        config,
        format!("{price}\n[model]\nname = \"gemini-test\"\n"),
    )
    .unwrap();
    let ran = scene.run(&["rollup"]);
    ran.err_has("so there is a budget: ")
        .err_has("docs/big.txt (15,000)");
    let text = scene.read("agent-config/codeRollup.txt");
    must_have(&text, "  docs/big.txt  45000 bytes\n");
    must_have(&text, "--- FILE build.sh ---");
    assert_eq!(scene.commit(&["--dry-run"]).code, Some(0));
}
