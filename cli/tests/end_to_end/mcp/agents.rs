//! The real Claude Code, Gemini CLI and Codex as clients, against a scripted service: each calls every tool, and tries `.git/hooks/x`.

use std::process::Command;

use code_commit_fixtures::server::{Script, Server, Step};
use serde_json::{Value, json};

use crate::mcp::hash;
use crate::scenes::commit::{KEY, Scene};
use crate::scenes::files;
use crate::scenes::program::{Ran, tool};

/// A project, the program that a test names, and how a model of its calls our tools.
struct Agent {
    scene: Scene,
    program: String,
}

impl Agent {
    fn new(variable: &str) -> Option<Self> {
        let Ok(program) = std::env::var(variable) else {
            eprintln!(
                "SKIPPED: tools of the MCP server under a real agent, because {variable} is not set"
            );
            return None;
        };
        let files = [
            ("a.txt", "one\n"),
            ("build.sh", "#!/bin/sh\ngrep -q two a.txt\n"),
        ];
        let scene = Scene::with_files(&files, Script::new([]));
        Some(Self { scene, program })
    }

    /// The command line of our server, as configurations have it.
    fn server() -> (&'static str, [&'static str; 3]) {
        (
            env!("CARGO_BIN_EXE_code-commit"),
            ["mcp", "--sandbox", "off"],
        )
    }

    fn command(&self, args: &[&str]) -> Command {
        let project = &self.scene.project;
        tool(&self.program, project.root(), project.beside(), args)
    }

    /// What became of a conversation in which each tool was called.
    fn check(&self, server: &Server, ran: &Ran) {
        assert_eq!((ran.code, server.steps_left()), (Some(0), 0), "{ran}");
        let root = self.scene.project.root();
        assert_eq!(self.scene.read("a.txt"), "two\n", "{ran}");
        assert!(!root.join(".git/hooks/x").exists());
        let asked: Vec<String> = server
            .requests()
            .iter()
            .map(|seen| String::from_utf8_lossy(&seen.body).into_owned())
            .collect();
        let last = asked.iter().max_by_key(|body| body.len()).unwrap();
        for answer in [
            "dot-git",
            "green",
            "change: ",
            "is not a change of write_files",
            "sha256 ",
            "\\\"allow\\\"",
        ] {
            assert!(last.contains(answer), "{answer}: {last}");
        }
        assert!(self.scene.run(&["runs"]).out.contains("-apply"));
    }
}

/// A model that calls each tool by the name that this agent gives it.
fn model(name: impl Fn(&str) -> String) -> Server {
    let call =
        |tool: &str, arguments: Value| Step::text("Working.").and_call(&name(tool), arguments);
    Server::start(Script::new([
        call("guard", json!({ "paths": ["a.txt", ".git/hooks/x"] })),
        call("context", json!({ "query": "a.txt" })),
        call("write_files", json!({ "writes": [{ "path": ".git/hooks/x", "content": "#!/bin/sh\n" }] })),
        call("write_files", json!({ "writes": [{ "path": "a.txt", "base_sha256": hash("one\n"), "content": "two\n" }] })),
        call("check", json!({})),
        call("undo", json!({ "change": "no-such-change" })),
        Step::text("Done."),
    ]))
    .unwrap()
}

#[test]
fn claude_code_calls_each_tool() {
    let Some(agent) = Agent::new("CODE_COMMIT_TEST_CLAUDE") else {
        return;
    };
    let (command, args) = Agent::server();
    let settings = agent.scene.beside("mcp.json");
    let servers = json!({ "mcpServers": { "code-commit": { "command": command, "args": args } } });
    files::write(&settings, servers.to_string());
    let server = model(|tool| format!("mcp__code-commit__{tool}"));
    let ran = Ran::of(
        agent
            .command(&[
                "-p",
                "Work.",
                "--model",
                "claude-test-1",
                "--strict-mcp-config",
                "--mcp-config",
                settings.to_str().unwrap(),
                "--allowedTools",
                "mcp__code-commit",
                "--disallowedTools",
                "Edit,Write,NotebookEdit,Bash",
            ])
            .envs([
                ("ANTHROPIC_BASE_URL", server.origin()),
                ("ANTHROPIC_API_KEY", KEY),
                ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
                ("DISABLE_AUTOUPDATER", "1"),
            ]),
    );
    agent.check(&server, &ran);
}

#[test]
fn gemini_cli_calls_each_tool() {
    let Some(agent) = Agent::new("CODE_COMMIT_TEST_GEMINI") else {
        return;
    };
    let (command, args) = Agent::server();
    let settings = json!({
        "security": { "auth": { "selectedType": "gemini-api-key" } },
        "privacy": { "usageStatisticsEnabled": false },
        "tools": { "exclude": ["write_file", "replace", "run_shell_command"] },
        "mcpServers": { "code-commit": { "command": command, "args": args, "trust": true } },
    });
    files::write(
        &agent.scene.beside(".gemini/settings.json"),
        settings.to_string(),
    );
    let server = model(|tool| format!("mcp_code-commit_{tool}"));
    let ran = Ran::of(
        agent
            .command(&["--model", "gemini-test-1", "--skip-trust", "-p", "Work."])
            .envs([
                ("GOOGLE_GEMINI_BASE_URL", server.origin()),
                ("GEMINI_API_KEY", KEY),
                ("GEMINI_CLI_NO_RELAUNCH", "true"),
            ]),
    );
    agent.check(&server, &ran);
}

#[test]
fn codex_calls_each_tool() {
    let Some(agent) = Agent::new("CODE_COMMIT_TEST_CODEX") else {
        return;
    };
    let (command, args) = Agent::server();
    let home = agent.scene.beside("codex");
    let server = model(|tool| format!("mcp__code_commit.{tool}"));
    let settings = format!(
        "model_provider = \"own\"\n[features]\nshell_tool = false\n[model_providers.own]\nname = \"own\"\nbase_url = \"{}/v1\"\nenv_key = \"CODEX_API_KEY\"\n\
         wire_api = \"responses\"\nrequest_max_retries = 0\nstream_max_retries = 0\n[mcp_servers.code_commit]\ncommand = {command:?}\nargs = {args:?}\n\
         tool_timeout_sec = 600\ndefault_tools_approval_mode = \"approve\"\n[analytics]\nenabled = false\n",
        server.origin()
    );
    files::write(&home.join("config.toml"), &settings);
    let ran = Ran::of(
        agent
            .command(&[
                "exec",
                "--json",
                "--skip-git-repo-check",
                "-m",
                "gpt-test-1",
                "--sandbox",
                "read-only",
                "--",
                "Work.",
            ])
            .env("CODEX_HOME", &home)
            .env("CODEX_API_KEY", KEY),
    );
    agent.check(&server, &ran);
}
