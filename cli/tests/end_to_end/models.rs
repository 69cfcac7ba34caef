//! Models by their names: every provider through the whole loop.

use code_commit_fixtures::demo::{BREAKS_THE_BUILD, MENDS_IT};
use code_commit_fixtures::server::{Script, Step};

use crate::scenes::commit::Scene;
use crate::scenes::program::{Ran, must_have};

const KEY: &str = "sk-key-that-opens-nothing-0088";

impl Scene {
    fn openai(&self, more: &[&str], environment: &[(&str, &str)]) -> Ran {
        let mut args = vec!["--sandbox", "off", "--model", "openai/gpt-test"];
        args.extend(more);
        self.run_with(&args, environment)
    }
}

#[test]
fn the_openai_dialect_is_spoken_to_the_address_of_its_variable() {
    let scene = Scene::with_replies([BREAKS_THE_BUILD, MENDS_IT]);
    let url = format!("{}/v1", scene.server.origin());
    let ran = scene.openai(&[], &[("OPENAI_API_KEY", KEY), ("OPENAI_BASE_URL", &url)]);
    assert_eq!(ran.code, Some(0), "{ran}");
    for request in scene.server.requests() {
        assert_eq!(request.path, "/v1/chat/completions");
        assert_eq!(
            request.header("authorization"),
            Some(format!("Bearer {KEY}").as_str())
        );
        assert_eq!(request.json()["model"], "gpt-test");
    }
    assert!(scene.record().iter().all(|(_, text)| !text.contains(KEY)));
}

#[test]
fn an_address_that_is_not_encrypted_is_warned_of_unless_it_is_on_this_machine() {
    let scene = Scene::with_replies([MENDS_IT]);
    let url = "http://models.invalid/v1";
    // Nothing leaves this machine: the proxy is not there, and no second try begins within the time.
    let closed = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .to_string();
    let proxy = [("HTTP_PROXY", closed.as_str()), ("OPENAI_API_KEY", KEY)];
    scene.user_file("[model]\ncall_limit = \"1s\"\n");
    let ran = scene.openai(&["--base-url", url], &proxy).exits(4);
    ran.err_has("warning: http://models.invalid/v1 is not encrypted: the key and the code");
    ran.out_has(&format!("cannot connect to the proxy {closed}"));
    ran.out_has("next: start the proxy");

    let local = scene.openai(
        &["--base-url", &format!("{}/v1", scene.server.origin())],
        &[],
    );
    assert_eq!(local.code, Some(0), "{local}");
    assert!(!local.err.contains("not encrypted"), "{local}");
}

/// A user's file with a provider of its own.
fn with_provider(script: Script) -> Scene {
    let scene = Scene::new(script);
    let origin = scene.server.origin();
    scene.user_file(&format!(
        "[model]\nname = \"local/llama\"\n[providers.local]\ndialect = \"openai\"\nbase_url = \"{origin}/v1\"\n\
         key_env = \"LOCAL_KEY\"\n[[providers.local.price]]\nprefix = \"llama\"\ninput = 1.0\noutput = 2.0\n"
    ));
    scene
}

#[test]
fn a_provider_of_the_users_configuration_is_called_with_its_own_key_at_its_own_price() {
    let scene = with_provider(Script::new([Step::text(MENDS_IT)]));
    let others = [
        ("OPENAI_API_KEY", "sk-another-key-000000000"),
        ("OPENAI_BASE_URL", "http://127.0.0.1:9/v1"),
    ];
    let refused = scene.run_with(&["--sandbox", "off"], &others).exits(3);
    refused.err_has("there is no key for local/llama");
    refused.err_has("help: set LOCAL_KEY, or put the key into agent-config/local-key.txt");

    let keyed = [others[0], others[1], ("LOCAL_KEY", KEY)];
    let ran = scene.run_with(&["--sandbox", "off", "--max-cost", "900"], &keyed);
    assert_eq!(ran.code, Some(0), "{ran}");
    let seen = scene.server.requests();
    assert_eq!(
        seen[0].header("authorization"),
        Some(format!("Bearer {KEY}").as_str())
    );
    assert_eq!(
        (seen[0].path.as_str(), &seen[0].json()["model"]),
        ("/v1/chat/completions", &"llama".into())
    );
    assert!(ran.out.contains("$0."), "the price is known: {ran}");
    assert!(scene.record().iter().all(|(_, text)| !text.contains(KEY)));
}

#[test]
fn a_key_of_a_provider_of_ones_own_is_redacted_wherever_it_is_echoed() {
    let echo = Step::status(400).message(&format!("what is {KEY}?"));
    let scene = with_provider(Script::new([echo]));
    let ran = scene
        .run_with(&["--sandbox", "off"], &[("LOCAL_KEY", KEY)])
        .exits(4);
    assert!(!ran.to_string().contains(KEY), "{ran}");
    assert!(scene.record().iter().all(|(_, text)| !text.contains(KEY)));
}

#[test]
fn a_provider_of_a_project_needs_trust() {
    let scene = Scene::with_replies([MENDS_IT]);
    let provider = format!(
        "[providers.local]\ndialect = \"openai\"\nbase_url = \"{}/v1\"\nkey_env = \"OPENAI_API_KEY\"\n",
        scene.server.origin()
    );
    scene.write("code-commit.toml", provider.as_bytes());
    let run = || {
        scene.run_with(
            &["--sandbox", "off", "--model", "local/llama"],
            &[("OPENAI_API_KEY", KEY)],
        )
    };
    insta::assert_snapshot!("untrusted_provider", run());
    assert_eq!(scene.calls(), 0);
    assert_eq!(scene.run(&["trust", "--yes"]).code, Some(0));
    assert_eq!(run().code, Some(0));
}

/// Two services on one server, told apart by their dialects.
fn two_services(script: Script) -> (Scene, [(&'static str, String); 5]) {
    let scene = Scene::new(script);
    let origin = scene.server.origin().to_owned();
    let environment = [
        ("GEMINI_API_KEY", KEY.to_owned()),
        ("GOOGLE_GEMINI_BASE_URL", origin.clone()),
        ("ANTHROPIC_API_KEY", "sk-ant-opens-nothing-0099".to_owned()),
        ("ANTHROPIC_BASE_URL", origin.clone()),
        ("OPENAI_BASE_URL", format!("{origin}/v1")),
    ];
    (scene, environment)
}

fn of_two(scene: &Scene, environment: &[(&'static str, String); 5], more: &[&str]) -> Ran {
    let environment = environment
        .each_ref()
        .map(|(name, value)| (*name, value.as_str()));
    scene.run_with(&[&["--sandbox", "off"], more].concat(), &environment)
}

fn paths(scene: &Scene) -> Vec<String> {
    let requests = scene.server.requests();
    requests
        .iter()
        .map(|seen| {
            seen.path
                .split(['?', ':'])
                .next()
                .unwrap_or_default()
                .to_owned()
        })
        .collect()
}

/// A daily quota that is used up.
fn no_quota() -> Step {
    Step {
        quota_id: Some("GenerateRequestsPerDayPerProject".into()),
        ..Step::status(429)
    }
}

const TWO: [&str; 2] = [
    "--model",
    "gemini/gemini-3.8-flash,anthropic/claude-sonnet-4-6",
];

#[test]
fn where_the_first_service_is_out_of_quota_in_round_2_the_second_ends_the_run_green() {
    let steps = [
        Step::text(BREAKS_THE_BUILD),
        no_quota(),
        Step::text(MENDS_IT),
    ];
    let (scene, environment) = two_services(Script::new(steps));
    let ran = of_two(
        &scene,
        &environment,
        &[&TWO[..], &["--max-cost", "90"]].concat(),
    );
    assert_eq!(ran.code, Some(0), "{ran}");
    let gemini = "/v1beta/models/gemini-3.8-flash";
    assert_eq!(paths(&scene), [gemini, gemini, "/v1/messages"]);
    ran.err_has("gemini/gemini-3.8-flash gave no reply (daily quota used up");
    ran.err_has("anthropic/claude-sonnet-4-6 is asked instead");
    assert!(!ran.err.contains("replied instead of"), "{ran}");
    let journal = scene
        .record()
        .into_iter()
        .find(|(path, _)| path.ends_with("events.jsonl"))
        .unwrap()
        .1;
    assert!(journal.contains(r#""code":"other-model""#), "{journal}");
    must_have(&journal, r#""model":"anthropic/claude-sonnet-4-6""#);
}

#[test]
fn one_base_url_is_not_for_models_of_two_providers() {
    let (scene, environment) = two_services(Script::new([]));
    let ran = of_two(
        &scene,
        &environment,
        &[&TWO[..], &["--base-url", "http://127.0.0.1:9"]].concat(),
    );
    assert_eq!((ran.code, scene.calls()), (Some(2), 0), "{ran}");
    let said = "--base-url is one server, and the models are those of anthropic and gemini";
    ran.err_has(said);

    // The same dialect, but another key.
    let scene = with_provider(Script::new([]));
    let origin = format!("{}/v1", scene.server.origin());
    let args = [
        "--sandbox",
        "off",
        "--model",
        "local/llama,openai/gpt-6-sol",
        "--base-url",
        &origin,
    ];
    let ran = scene.run_with(
        &args,
        &[("OPENAI_API_KEY", KEY), ("LOCAL_KEY", "local-key-0000")],
    );
    assert_eq!((ran.code, scene.calls()), (Some(2), 0), "{ran}");
    ran.err_has("the models are those of local and openai");
}

#[test]
fn a_model_that_the_limit_on_money_is_too_low_for_is_passed_over_for_a_cheaper_one() {
    let counted = Step::body(r#"{"input_tokens": 900}"#);
    let script = Script::new([Step::text(MENDS_IT)]).rule("/v1/messages/count_tokens", counted);
    let (scene, environment) = two_services(script);
    let models = [
        "--model",
        "claude-opus-4-8,gemini-3.8-flash",
        "--max-cost",
        "0.5",
    ];
    let ran = of_two(&scene, &environment, &models).exits(0);
    ran.err_has("claude-opus-4-8 gave no reply (spent $0.00 of $0.50");
    let asked = scene
        .server
        .requests()
        .iter()
        .map(|seen| seen.path.clone())
        .collect::<Vec<_>>();
    assert!(
        asked
            .last()
            .is_some_and(|path| path.starts_with("/v1beta/models/gemini-3.8-flash:")),
        "{asked:?}"
    );
}

#[test]
fn a_key_that_is_wrong_is_not_passed_over() {
    let (scene, environment) = two_services(Script::new([Step::status(403)]));
    let ran = of_two(&scene, &environment, &TWO);
    assert_eq!((ran.code, scene.calls()), (Some(4), 1), "{ran}");
}

#[test]
fn a_prompt_that_is_too_long_for_one_model_goes_to_the_next() {
    let too_long =
        Step::status(400).message("The input token count (9) exceeds the maximum number of tokens");
    let (scene, environment) = two_services(Script::new([too_long, Step::text(MENDS_IT)]));
    let ran = of_two(&scene, &environment, &TWO).exits(0);
    ran.err_has("is too large for the model");
}
