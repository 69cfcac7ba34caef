//! What could never work is refused at once, with what helps.

use code_commit_fleet_trial::content;
use code_commit_loop_order::TEMPLATE;

use crate::scene::Scene;

#[test]
fn orders_that_could_never_be_carried_out_are_refused_when_they_are_submitted() {
    let Some(scene) = Scene::new(0, 0) else {
        return;
    };
    let write = |name: &str, content: &str| {
        let file = scene.path(name);
        std::fs::write(&file, content).unwrap();
        file.display().to_string()
    };
    let good = write("good.json", &content(0).unwrap());
    let empty = write("empty.json", "{}");
    let (text, template) = (
        write("text.json", "no JSON"),
        write("template.json", TEMPLATE),
    );
    let unknown = "gemini/model-of-tomorrow";
    let cases: &[(&str, &[&str], i32, &[&str])] = &[
        (
            &empty,
            &[],
            3,
            &[
                "empty.json",
                "allowed_files",
                "acceptance_commands",
                "code-commit order check",
            ],
        ),
        (&text, &[], 3, &["text.json", "cannot be read"]),
        (
            &template,
            &[],
            3,
            &["template.json", "intent", "say what is wanted"],
        ),
        (
            &good,
            &["--model", "gimini/gemini-3.8-flash"],
            2,
            &["gimini", "anthropic, gemini, openai"],
        ),
        (
            &good,
            &["--model", "scripted/answers.txt"],
            2,
            &["scripted"],
        ),
        (
            &good,
            &["--model", unknown, "--batch", "b", "--max-cost", "1"],
            3,
            &["batch:default/b", "price"],
        ),
        (
            &good,
            &["--land", "nightly"],
            3,
            &["refs/heads/nightly", "--land"],
        ),
        (&good, &["--land", "ain"], 3, &["refs/heads/ain"]),
        (&good, &["--land", "main:next"], 2, &["main:next", "branch"]),
        (&good, &["--land", ""], 2, &["branch"]),
        (&good, &["--base", "ain"], 3, &["`ain`"]),
    ];
    let url = scene.hub.url();
    for (file, flags, code, words) in cases {
        let base: &[&str] = if flags.contains(&"--base") {
            &[]
        } else {
            &["--base", "main"]
        };
        let (exit, error) =
            scene.refused(&[&["submit", "--repo", &url, file], base, *flags].concat());
        assert_eq!(exit, *code, "{flags:?} {file}: {error}");
        assert!(
            words.iter().all(|word| error.contains(word)),
            "{flags:?} {file}: {error}"
        );
    }
    let counted = "SELECT (SELECT count(*) FROM orders) + (SELECT count(*) FROM budgets)";
    assert_eq!(scene.postgres.query(counted).unwrap().trim(), "0");

    // Without a cap an unknown price is only said, and with the cap of the tenant it is refused again.
    let submit = [
        "submit", "--repo", &url, "--base", "main", "--model", unknown, &good,
    ];
    let (exit, warning) = scene.refused(&submit);
    assert!(
        exit == 0 && warning.contains("warning: the price of"),
        "{warning}"
    );
    assert_eq!(scene.fleet(&["cap", "tenant:default", "5"]).0, 0);
    assert_eq!(scene.refused(&submit).0, 3);
}

#[test]
fn an_upstream_that_no_call_could_go_to_is_refused() {
    let Some(mut scene) = Scene::new(0, 0) else {
        return;
    };
    scene.environment.insert("OPENAI_API_KEY", String::new());
    scene.environment.insert("GEMINI_API_KEY", "key".to_owned());
    let gemini = "gemini=http://127.0.0.1:1";
    let cases: &[(&[&str], i32, &str)] = &[
        (
            &["gimini=http://127.0.0.1:1"],
            2,
            "there is no provider `gimini`",
        ),
        (&["gemini"], 2, "PROVIDER=URL"),
        (
            &["openai-responses=http://127.0.0.1:1"],
            2,
            "write openai=http://127.0.0.1:1",
        ),
        (&["openai=http://127.0.0.1:1"], 3, "OPENAI_API_KEY"),
        (&[gemini, gemini], 3, "twice"),
        (&["gemini=elsewhere"], 3, "the address of gemini"),
    ];
    for (upstreams, code, words) in cases {
        let socket = scene.path("other.sock").display().to_string();
        let mut args = vec!["gateway", "--socket", &socket, "--models", "127.0.0.1:0"];
        args.extend(
            upstreams
                .iter()
                .flat_map(|upstream| ["--upstream", upstream]),
        );
        let (exit, error) = scene.refused(&args);
        assert!(
            exit == *code && error.contains(words),
            "{upstreams:?}: {exit} {error}"
        );
    }
}
