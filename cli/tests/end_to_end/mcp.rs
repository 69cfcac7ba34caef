//! `code-commit mcp`: its tools, hostile clients, and (in `agents` and `sdks`) the clients that people have.

mod agents;
pub mod sdks;

use std::time::{Duration, Instant};

use code_commit_fixtures::server::Script;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::scenes::commit::{KEY, Scene};
use crate::scenes::program::must_have;
use crate::scenes::rpc::Client;

/// SHA-256 of `content`, in hex.
fn hash(content: &str) -> String {
    code_commit_logging::sha256_hex(content.as_bytes())
}

struct Served {
    scene: Scene,
    client: Client,
}

impl Served {
    fn new(files: &[(&str, &str)]) -> Self {
        let scene = Scene::with_files(
            &[&[(".gitignore", "/agent-config\n")], files].concat(),
            Script::new([]),
        );
        let client = Client::start(scene.keyed(&["mcp", "--sandbox", "off"], &[]));
        Self { scene, client }
    }

    fn with_build(build: &str) -> Self {
        let served = Self::new(&[("a.txt", "one\ntwo\n")]);
        served.scene.write("build.sh", build.as_bytes());
        served
    }

    /// Whether it is an error, its text, and the result for programs.
    fn tool(&mut self, name: &str, arguments: &Value) -> (bool, String, Value) {
        let params = json!({ "name": name, "arguments": arguments });
        let result = self.client.call("tools/call", &params).unwrap();
        let text = result["content"][0]["text"].as_str().unwrap().to_owned();
        (
            result["isError"] == true,
            text,
            result["structuredContent"].clone(),
        )
    }

    fn read(&self, path: &str) -> String {
        self.scene.read(path)
    }
}

#[test]
fn a_client_is_told_who_serves_it_with_and_without_a_handshake() {
    let mut served = Served::new(&[("a.txt", "one\n")]);
    for (wanted, given) in [
        ("2025-11-25", "2025-11-25"),
        ("2025-06-18", "2025-06-18"),
        ("2024-11-05", "2024-11-05"),
        ("1999-01-01", "2025-11-25"),
    ] {
        let params = json!({ "protocolVersion": wanted, "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
        let result = served.client.call("initialize", &params).unwrap();
        assert_eq!(result["protocolVersion"], given);
        assert_eq!(result["serverInfo"]["name"], "code-commit");
    }
    served
        .client
        .notify("notifications/initialized", &json!({}));
    assert_eq!(served.client.call("ping", &json!({})), Ok(json!({})));
    let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {} });
    let found = served
        .client
        .call("server/discover", &json!({ "_meta": meta }))
        .unwrap();
    assert_eq!(found["supportedVersions"], json!(["2026-07-28"]));
    assert_eq!(found["resultType"], "complete");
    let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2099-01-01" });
    let error = served
        .client
        .call("tools/list", &json!({ "_meta": meta }))
        .unwrap_err();
    assert_eq!(
        (error["code"].as_i64(), &error["data"]["requested"]),
        (Some(-32022), &json!("2099-01-01"))
    );
    let tools = served.client.call("tools/list", &json!({})).unwrap();
    let told: Vec<String> = tools["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| {
            let hints = &tool["annotations"];
            format!(
                "{} {} {}",
                tool["name"], hints["readOnlyHint"], hints["destructiveHint"]
            )
        })
        .collect();
    insta::assert_snapshot!(told.join("\n"), @r#"
    "write_files" false true
    "check" false false
    "undo" false true
    "guard" true false
    "context" true false
    "#);
    assert_eq!(served.client.end(), Some(0));
}

#[test]
fn a_change_is_written_whole_recorded_shown_and_undone() {
    let mut served = Served::new(&[("a.txt", "one\ntwo\n"), ("src/b.txt", "b\n")]);
    let writes = json!([
        { "path": "a.txt", "base_sha256": hash("one\ntwo\n"), "edits": [{ "search": "two\n", "replace": "2\n" }] },
        { "path": "src/b.txt", "base_sha256": hash("b\n"), "content": "no line end" },
        { "path": "new/c.txt", "content": "new\n" },
    ]);
    let (is_error, text, done) = served.tool("write_files", &json!({ "writes": writes }));
    assert!(!is_error, "{text}");
    assert_eq!(served.read("a.txt"), "one\n2\n");
    assert_eq!(served.read("src/b.txt"), "no line end");
    assert_eq!(served.read("new/c.txt"), "new\n");
    let change = done["change"].as_str().unwrap();
    assert!(text.ends_with(&format!("change: {change}")), "{text}");
    assert_eq!(done["changed"].as_array().unwrap().len(), 3);
    let shown = served.scene.run(&["show", change]).exits(0);
    shown.out_has("new/c.txt");
    let diff = served.scene.run(&["diff", change]);
    diff.out_has("-two\n+2\n");

    let (is_error, text, _) = served.tool("undo", &json!({ "change": change }));
    assert!(!is_error, "{text}");
    assert_eq!(served.read("a.txt"), "one\ntwo\n");
    assert!(!served.scene.at("new").exists());
    let (is_error, text, _) = served.tool("undo", &json!({ "change": "@" }));
    must_have(&text, "is not a change of write_files");
    assert!(is_error, "{text}");
}

#[test]
fn a_refusal_says_why_and_nothing_is_written() {
    let mut served = Served::new(&[("a.txt", "one\n")]);
    let good = json!({ "path": "good.txt", "content": "x\n" });
    for (bad, code) in [
        (
            json!({ "path": ".git/hooks/x", "content": "#!/bin/sh\n" }),
            "dot-git",
        ),
        (
            json!({ "path": "../x", "content": "x" }),
            "relative-component",
        ),
        (json!({ "path": "/etc/x", "content": "x" }), "absolute-path"),
        (json!({ "path": "build.sh", "content": "x" }), "protected"),
        (json!({ "path": "a.txt", "content": "two\n" }), "stale-base"),
        (
            json!({ "path": "a.txt", "base_sha256": hash("old\n"), "content": "two\n" }),
            "stale-base",
        ),
        (
            json!({ "path": "a.txt", "base_sha256": hash("one\n"), "edits": [{ "search": "three\n", "replace": "" }] }),
            "edit-misses",
        ),
        (json!({ "path": "a.txt" }), "no-content"),
        (json!({ "path": "key.txt", "content": KEY }), "key-in-reply"),
        (
            json!({ "path": "nul.txt", "content": "\u{0}" }),
            "binary-content",
        ),
        (
            json!({ "path": "big.txt", "content": "x".repeat(300 << 10) }),
            "file-too-large",
        ),
    ] {
        let (is_error, text, _) = served.tool("write_files", &json!({ "writes": [good, bad] }));
        assert!(
            is_error && text.contains(&format!("[{code}]")),
            "{code}: {text}"
        );
        assert!(!text.contains(KEY));
    }
    assert_eq!(served.read("a.txt"), "one\n");
    assert!(!served.scene.at("good.txt").exists());
    assert_eq!(served.scene.run(&["runs"]).code, Some(0));
    let (_, _, judged) = served.tool(
        "guard",
        &json!({ "paths": ["a.txt", "new.txt", ".git/hooks/x"] }),
    );
    let of = |at: usize, key: &str| judged["paths"][at][key].clone();
    assert_eq!(
        (of(0, "allow"), of(0, "sha256")),
        (json!(true), json!(hash("one\n")))
    );
    assert_eq!(
        (of(1, "allow"), of(1, "sha256")),
        (json!(true), Value::Null)
    );
    assert_eq!(
        (of(2, "allow"), of(2, "code")),
        (json!(false), json!("dot-git"))
    );
}

#[test]
fn a_check_reports_progress_and_its_verdict() {
    let mut served = Served::with_build("#!/bin/sh\necho compiling\ngrep -q two a.txt\n");
    let params = json!({ "name": "check", "_meta": { "progressToken": "p1" } });
    let result = served.client.call("tools/call", &params).unwrap();
    assert_eq!(result["structuredContent"]["fitness"], "green", "{result}");
    let progress: Vec<&Value> = served
        .client
        .heard
        .iter()
        .filter(|sent| sent["method"] == "notifications/progress")
        .collect();
    assert!(progress.len() >= 2, "{progress:?}");
    assert_eq!(progress[0]["params"]["progressToken"], "p1");
    assert_eq!(progress[1]["params"]["message"], "compiling");
    served.scene.write("a.txt", "one\n");
    let (is_error, text, verdict) = served.tool("check", &json!({}));
    must_have(&text, "compiling");
    assert!(!is_error && text.starts_with("red\n"), "{text}");
    assert_eq!(verdict["fitness"], "red");
}

#[test]
fn a_check_that_is_taken_back_ends_and_gets_no_answer() {
    let mut served = Served::with_build("#!/bin/sh\necho begun\nsleep 600\n");
    let params = json!({ "name": "check", "arguments": {}, "_meta": { "progressToken": 1 } });
    let id = served.client.begin("tools/call", &params);
    served
        .client
        .hear(|sent| sent["params"]["message"] == "begun");
    assert_eq!(
        served.client.call("ping", &json!({})),
        Ok(json!({})),
        "answered meanwhile"
    );
    served
        .client
        .notify("notifications/cancelled", &json!({ "requestId": id }));
    let (is_error, text, _) = served.tool("guard", &json!({ "paths": ["a.txt"] }));
    assert!(!is_error, "{text}");
    assert!(served.client.heard.iter().all(|sent| sent["id"] != id));
}

#[test]
fn the_end_of_the_input_and_a_signal_end_a_check_and_the_server() {
    for by_signal in [false, true] {
        let mut served = Served::with_build("#!/bin/sh\necho begun\nsleep 600\n");
        let params = json!({ "name": "check", "_meta": { "progressToken": 1 } });
        served.client.begin("tools/call", &params);
        served
            .client
            .hear(|sent| sent["params"]["message"] == "begun");
        let began = Instant::now();
        let code = if by_signal {
            let pid = Pid::from_child(&served.client.child);
            kill_process(pid, Signal::TERM).unwrap();
            served.client.child.wait().unwrap().code()
        } else {
            served.client.end()
        };
        assert_eq!(code, Some(0));
        assert!(began.elapsed() < Duration::from_secs(30));
        assert_eq!(served.scene.status(), "?? build.sh\n");
    }
}

#[test]
fn context_shows_what_matters_with_its_hashes() {
    let mut served = Served::new(&[
        ("cart.py", "def total(items):\n    return sum(items)\n"),
        ("other.py", "x = 1\n"),
    ]);
    let (is_error, text, _) = served.tool(
        "context",
        &json!({ "query": "total of the cart", "budget_tokens": 2000 }),
    );
    assert!(!is_error, "{text}");
    let hash = hash("def total(items):\n    return sum(items)\n");
    assert!(
        text.lines()
            .any(|line| line.starts_with("cart.py (whole")
                && line.ends_with(&format!("sha256 {hash}"))),
        "{text}"
    );
    assert!(text.contains("return sum(items)"));
}

#[test]
fn fifty_wrong_messages_are_answered_and_end_nothing() {
    let mut served = Served::new(&[("a.txt", "one\n")]);
    let deep = "[".repeat(100_000);
    let call =
        |rest: &str| format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{rest}}}"#);
    let tool = |name: &str, arguments: &str| {
        call(&format!(r#"{{"name":"{name}","arguments":{arguments}}}"#))
    };
    let many = json!(vec!["x"; 1001]).to_string();
    let lines: Vec<(Vec<u8>, i64)> = [
        // No JSON.
        ("{", -32700), ("nonsense", -32700), ("{\"jsonrpc\":", -32700), (&deep, -32700), ("\u{feff}{}", -32700),
        ("{\"a\":1}{\"b\":2}", -32700), ("\0", -32700), ("'single'", -32700), ("NaN", -32700), ("{\"a\":\"\\ud800\"}", -32700),
        // No message.
        ("[]", -32600), ("[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]", -32600), ("1", -32600), ("null", -32600),
        ("\"text\"", -32600), ("{}", -32600), (r#"{"id":1,"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, -32600), (r#"{"jsonrpc":2,"id":1,"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600), (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, -32600), (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1}"#, -32600), (r#"{"jsonrpc":"2.0","id":1,"result":1,"error":{}}"#, -32600),
        (r#"{"jsonrpc":"2.0","result":1}"#, -32600),
        // No method, or not its parameters.
        (r#"{"jsonrpc":"2.0","id":1,"method":""}"#, -32601), (r#"{"jsonrpc":"2.0","id":1,"method":"Ping"}"#, -32601),
        (r#"{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"file:///etc/passwd"}}"#, -32601),
        (r#"{"jsonrpc":"2.0","id":1,"method":"shutdown"}"#, -32601), (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":"x"}"#, -32602), (&call("{}"), -32602), (&call(r#"{"name":1}"#), -32602),
        (&call(r#"{"name":"rm"}"#), -32602), (&call(r#"{"name":"write_files","arguments":[]}"#), -32602),
        (&call(r#"{"name":"check","arguments":"x"}"#), -32602), (&call(r#"{"name":{"write_files":1}}"#), -32602),
        // Arguments that a tool refuses: a result that says so.
        (&tool("write_files", "{}"), 0), (&tool("write_files", r#"{"writes":[]}"#), 0), (&tool("write_files", r#"{"writes":"x"}"#), 0),
        (&tool("write_files", r#"{"writes":[1]}"#), 0), (&tool("write_files", r#"{"writes":[{}],"summary":3}"#), 0),
        (&tool("write_files", r#"{"writes":[{"path":"","content":"x"}]}"#), 0),
        (&tool("write_files", r#"{"writes":[{"path":"x","content":"a","mode":511}]}"#), 0),
        (&tool("write_files", r#"{"writes":[{"path":"x","content":"a"},{"path":"x","content":"b"}]}"#), 0),
        (&tool("undo", "{}"), 0), (&tool("undo", r#"{"change":"../../x"}"#), 0), (&tool("undo", r#"{"change":"x","force":true}"#), 0),
        (&tool("guard", r#"{"paths":"x"}"#), 0), (&tool("guard", &format!(r#"{{"paths":{many}}}"#)), 0), (&tool("context", "{}"), 0),
        (&tool("context", r#"{"query":"x","budget_tokens":-1}"#), 0), (&tool("context", r#"{"query":7}"#), 0),
    ].into_iter().map(|(line, code)| (line.as_bytes().to_vec(), code)).chain([
        (b"\xff\xfe".to_vec(), -32700),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"p\xffng\"}".to_vec(), -32700),
        (vec![b'x'; 9 << 20], -32600),
    ]).collect();
    assert!(lines.len() >= 50);
    for (line, code) in &lines {
        served.client.send_bytes(line);
        let answer = served.client.next();
        let shown = String::from_utf8_lossy(&line[..line.len().min(200)]).into_owned();
        if *code == 0 {
            assert_eq!(answer["result"]["isError"], true, "{shown}: {answer}");
        } else {
            assert_eq!(
                answer["error"]["code"].as_i64(),
                Some(*code),
                "{shown}: {answer}"
            );
        }
    }
    // Not answered, and of no effect: notifications, late responses, empty lines.
    for line in [
        r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"check"}}"#,
        r#"{"jsonrpc":"2.0","id":99,"result":{}}"#,
        "",
        "   ",
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}"#,
    ] {
        served.client.send_bytes(line.as_bytes());
    }
    assert_eq!(served.client.call("ping", &json!({})), Ok(json!({})));
    assert_eq!(served.scene.status(), "");
}

#[test]
fn a_project_that_another_run_holds_is_refused_by_name() {
    let mut served = Served::with_build("#!/bin/sh\necho begun\nsleep 600\n");
    let mut other = Client::start(served.scene.keyed(&["mcp", "--sandbox", "off"], &[]));
    other.begin(
        "tools/call",
        &json!({ "name": "check", "_meta": { "progressToken": 1 } }),
    );
    other.hear(|sent| sent["params"]["message"] == "begun");
    let (is_error, text, _) = served.tool(
        "write_files",
        &json!({ "writes": [{ "path": "x", "content": "x" }] }),
    );
    assert!(is_error && text.contains("help:"), "{text}");
    assert!(!served.scene.at("x").exists());
}
