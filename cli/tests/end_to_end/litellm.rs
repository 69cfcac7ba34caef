//! `LiteLLM`'s proxy, a real server of both OpenAI dialects and the Anthropic one, with canned responses.
//! `CODE_COMMIT_TEST_LITELLM` names the folder that its packages are installed in; `.ci/run` makes one.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use code_commit_fixtures::demo::MENDS_IT;
use code_commit_fixtures::server::{Script, Server, Step};
use serde_json::{Value, json};

use crate::scenes::commit;
use crate::scenes::order::{self, FILES, GOOD, greet};
use crate::scenes::program::Ran;

const KEY: &str = "sk-proxy-key-that-opens-nothing-01";

struct Proxy {
    child: Child,
    origin: String,
    /// Answers what the proxy passes on.
    _service: Server,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Proxy {
    /// Started once it says so; none, and a loud line, where it is not installed.
    fn start(folder: &Path) -> Option<Self> {
        let Some(packages) = std::env::var_os("CODE_COMMIT_TEST_LITELLM") else {
            eprintln!(
                "SKIPPED: runs through LiteLLM's proxy, because CODE_COMMIT_TEST_LITELLM is not set"
            );
            return None;
        };
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port()
            .to_string();
        let too_long = Step::status(400)
            .code("context_length_exceeded")
            .message("maximum context length");
        let answers = Script::new([])
            .rule("up-limited", Step::status(429))
            .rule("up-long", too_long)
            .rule("up-broken", Step::status(500))
            .rule("WORK ORDER", Step::text(&greet(GOOD)))
            .rule("POST", Step::text(MENDS_IT));
        let service = Server::start(answers).unwrap();
        std::fs::write(
            folder.join("proxy.yaml"),
            config(service.origin()).to_string(),
        )
        .unwrap();
        let program = Path::new(&packages).join("bin/litellm");
        let path = std::env::var_os("PATH").unwrap_or_default();
        let environment: [(&str, OsString); 4] = [
            ("PATH", path),
            ("HOME", folder.into()),
            ("PYTHONPATH", packages),
            // Otherwise it fetches its price list.
            ("LITELLM_LOCAL_MODEL_COST_MAP", "True".into()),
        ];
        let mut child = Command::new("python3")
            .arg(program)
            .args([
                "--config",
                "proxy.yaml",
                "--host",
                "127.0.0.1",
                "--port",
                &port,
            ])
            .current_dir(folder)
            .env_clear()
            .envs(environment)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap())
            .lines()
            .map_while(Result::ok);
        let is_up = said.any(|line| line.contains("Uvicorn running on"));
        assert!(is_up, "the proxy ended: {:?}", child.try_wait());
        // It would block on a pipe that nobody reads.
        std::thread::spawn(move || said.for_each(drop));
        Some(Self {
            child,
            origin: format!("http://127.0.0.1:{port}"),
            _service: service,
        })
    }

    fn base(&self, provider: &str) -> String {
        if provider == "anthropic" {
            self.origin.clone()
        } else {
            format!("{}/v1", self.origin)
        }
    }
}

/// JSON is YAML. A canned response cannot be streamed as one of the Responses API: `service` gives those, by the same API
/// or by chat completions.
fn config(service: &str) -> Value {
    let passed_on = |name: &str, kind: &str| {
        let parameters =
            json!({ "model": kind, "api_key": "none", "api_base": format!("{service}/v1") });
        json!({ "model_name": name, "litellm_params": parameters })
    };
    let model = |name: &str, response: &str| {
        let parameters =
            json!({ "model": "openai/x", "api_key": "none", "mock_response": response });
        json!({ "model_name": name, "litellm_params": parameters })
    };
    json!({
        "model_list": [
            model("change", MENDS_IT),
            model("proposal", &greet(GOOD)),
            model("limited", "litellm.RateLimitError"),
            model("long", "litellm.ContextWindowExceededError"),
            model("broken", "litellm.InternalServerError"),
            passed_on("passed-limited", "openai/up-limited"),
            passed_on("passed-long", "openai/up-long"),
            passed_on("passed-broken", "openai/up-broken"),
            passed_on("passed-on", "openai/x"),
            passed_on("translated", "hosted_vllm/x"),
        ],
        "general_settings": { "master_key": KEY },
        "litellm_settings": { "telemetry": false, "num_retries": 0 },
        "router_settings": { "num_retries": 0, "disable_cooldowns": true },
    })
}

const KEYS: [(&str, &str); 2] = [("OPENAI_API_KEY", KEY), ("ANTHROPIC_API_KEY", KEY)];
const PROVIDERS: [&str; 3] = ["openai", "openai-responses", "anthropic"];

fn commit(proxy: &Proxy, provider: &str, models: &str, user_file: &str, more: &[&str]) -> Ran {
    let scene = commit::Scene::new(Script::new([]));
    scene.user_file(user_file);
    let base = proxy.base(provider);
    let args = ["--sandbox", "off", "--model", models, "--base-url", &base];
    scene.run_with(&[&args, more].concat(), &KEYS)
}

fn order(proxy: &Proxy, provider: &str, model: &str) -> Ran {
    let scene = order::Scene::scripted(&FILES, Script::new([]));
    let (file, out, base) = (
        scene.beside("order.json"),
        scene.beside("out"),
        proxy.base(provider),
    );
    let (file, out, model) = (
        file.to_str().unwrap(),
        out.to_str().unwrap(),
        format!("{provider}/{model}"),
    );
    let args = [
        "order",
        "run",
        "--work-order",
        file,
        "--out",
        out,
        "--sandbox",
        "off",
    ];
    Ran::of(
        scene
            .program(&[&args[..], &["--base-url", &base, "--llm-model", &model]].concat())
            .envs(KEYS),
    )
}

#[test]
fn runs_and_orders_go_through_a_proxy_of_three_dialects_and_its_errors_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let Some(proxy) = Proxy::start(folder.path()) else {
        return;
    };
    for provider in PROVIDERS {
        let models = match provider {
            "openai-responses" => [["passed-on"; 2], ["translated"; 2]],
            _ => [["change", "proposal"]; 2],
        };
        for [change, proposal] in models {
            for how in ["--stream", "--stream=false"] {
                let ran = commit(
                    &proxy,
                    provider,
                    &format!("{provider}/{change}"),
                    "",
                    &[how],
                );
                assert_eq!(ran.code, Some(0), "{provider}/{change} {how}: {ran}");
            }
            let ran = order(&proxy, provider, proposal);
            assert_eq!(ran.code, Some(0), "{provider}/{proposal}: {ran}");
        }
        let (change, passed) = (
            models[0][0],
            if provider == "openai-responses" {
                "passed-"
            } else {
                ""
            },
        );

        for (model, code) in [
            ("limited", "rate-limited"),
            ("long", "too-large"),
            ("broken", "server"),
        ] {
            let model = format!("{provider}/{passed}{model}");
            // No time for a retry.
            let once = "[model]\ncall_limit = \"1s\"\n";
            let ran = commit(&proxy, provider, &model, once, &["--json"]);
            assert_eq!(ran.code, Some(4), "{model}: {ran}");
            assert!(
                ran.out.contains(&format!(r#""code":"{code}""#)),
                "{model}: {ran}"
            );
        }
        let models = format!("{provider}/{passed}long,{provider}/{change}");
        let ran = commit(&proxy, provider, &models, "", &[]);
        assert!(
            ran.code == Some(0) && ran.err.contains("is asked instead"),
            "{ran}"
        );
    }
}
