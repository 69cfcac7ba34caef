//! Which model is asked, and what is known of what it used.

use std::os::unix::fs::PermissionsExt as _;

use crate::scenes::phase::Scene;
use crate::scenes::program::must_have;

/// Speaks as Claude Code does.
const CLAUDE: &str = r#"#!/bin/sh
printf '%s\n' "$@" > "$HOME/args"
echo '{"type":"system","subtype":"init","session_id":"c-1","model":"claude-test"}'
mkdir -p verifier_reports; echo looked > verifier_reports/1.md
echo '{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"Done."}]}}'
echo '{"type":"result","subtype":"success","is_error":false,"result":"Done.","session_id":"c-1","total_cost_usd":0.25,"modelUsage":{"claude-test":{"inputTokens":7,"outputTokens":5,"cacheReadInputTokens":0,"cacheCreationInputTokens":0,"costUSD":0.25}}}'
"#;

fn models(scene: &Scene) -> [Option<String>; 2] {
    ["builder", "verifier"].map(|role| {
        let arguments = scene.arguments(role);
        let mut words = arguments
            .lines()
            .skip_while(|word| !matches!(*word, "-m" | "--model"));
        words.nth(1).map(str::to_owned)
    })
}

fn configured(turns: &[(&str, &str)]) -> Scene {
    let scene = Scene::new(turns);
    scene.write(
        ".abl/abl.config.yaml",
        "models: {builder: gemini-one, verifier: gemini-two}\n",
    );
    scene
}

#[test]
fn each_role_is_asked_with_the_model_of_the_configuration_or_of_a_flag() {
    for (flags, expected) in [
        (&[][..], ["gemini-one", "gemini-two"]),
        (&["-b", "gemini-three"], ["gemini-three", "gemini-two"]),
        (
            &["--builder-model", "gemini/gemini-three"],
            ["gemini-three", "gemini-two"],
        ),
        (&["-v", "gemini-four"], ["gemini-one", "gemini-four"]),
        (
            &["--verifier-model", "gemini-four"],
            ["gemini-one", "gemini-four"],
        ),
        (&["--model", "gemini-five"], ["gemini-five", "gemini-five"]),
        (
            &["--model", "gemini-five", "-v", "gemini-four"],
            ["gemini-five", "gemini-four"],
        ),
    ] {
        let scene = configured(&[]);
        scene.run(&[&["run"], flags].concat()).exits(0);
        assert_eq!(
            models(&scene),
            expected.map(|name| Some(name.to_owned())),
            "{flags:?}"
        );
    }
}

#[test]
fn a_model_of_another_maker_is_asked_through_that_makers_cli_with_its_own_key() {
    let scene = configured(&[]);
    let claude = scene.at("bin/claude");
    std::fs::write(&claude, CLAUDE).unwrap();
    std::fs::set_permissions(&claude, std::fs::Permissions::from_mode(0o755)).unwrap();
    let env = scene.read(".env");
    scene.write(
        ".env",
        &format!("{env}ANTHROPIC_API_KEY=sk-ant-key-that-opens-nothing\n"),
    );
    scene.run(&["run", "-v", "claude/opus-test"]).exits(0);
    assert_eq!(
        models(&scene),
        ["gemini-one", "opus-test"].map(|name| Some(name.to_owned()))
    );
    let rows = scene.read(".abl/logs/tokens.csv");
    must_have(&rows, ",1,1,verifier,claude-test,7,5,0,12,c-1\n");
    let costs: serde_json::Value =
        serde_json::from_str(&scene.code_commit(&["costs", "--json"], &[]).out).unwrap();
    assert_eq!(
        costs["by"]["role"]["verifier"]["cost_usd"], 0.25,
        "as the agent says: {costs}"
    );
    assert_eq!(
        costs["by"]["all"]["all"]["cost_usd"], 0.25,
        "counted once: {costs}"
    );
}

#[test]
fn a_key_of_the_environment_wins_over_the_one_of_the_project() {
    let tell = "if [ \"$GEMINI_API_KEY\" = AIza-key-of-the-environment ]; then touch environment; else touch project; fi";
    for (environment, expected) in [
        (
            &[("GEMINI_API_KEY", "AIza-key-of-the-environment")][..],
            "src/environment",
        ),
        (&[], "src/project"),
    ] {
        let scene = Scene::new(&[("builder-1", tell)]);
        scene
            .run_with(&["run", "--sandbox", "off"], environment)
            .exits(0);
        assert!(scene.project(expected).exists(), "{expected}");
    }
}
