//! `code-commit acp`: sessions and prompts; in `hostile` wrong messages, in `sdks` the client libraries of the protocol.

mod hostile;
mod sdks;

use std::time::{Duration, Instant};

use code_commit_fixtures::demo::{BREAKS_THE_BUILD, FILES, MENDS_IT, QUERY, TOUCHES_GIT};
use code_commit_fixtures::server::{Hang, Script, Step};
use serde_json::{Value, json};

use crate::scenes::commit::{KEY, Scene};
use crate::scenes::files;
use crate::scenes::program::must_have;
use crate::scenes::rpc::Client;

/// A reply that writes one file.
fn reply(path: &str, text: &str) -> String {
    format!("^^^{path}\n{text}^^^end\n")
}

struct Editor {
    scene: Scene,
    client: Client,
    id: String,
}

impl Editor {
    /// With one session on the demo's project.
    fn new<'t>(replies: impl IntoIterator<Item = &'t str>) -> Self {
        Self::of(Scene::with_replies(replies))
    }

    fn of(scene: Scene) -> Self {
        let client = agent(&scene);
        let mut editor = Self {
            scene,
            client,
            id: String::new(),
        };
        editor.initialize(&json!({}));
        editor.open(&json!([]));
        editor
    }

    fn initialize(&mut self, capabilities: &Value) -> Value {
        let params = json!({ "protocolVersion": 1, "clientCapabilities": capabilities });
        self.client.call("initialize", &params).unwrap()
    }

    /// Opens a session, which is that of the next prompts.
    fn open(&mut self, servers: &Value) {
        let params = json!({ "cwd": self.scene.project.root(), "mcpServers": servers });
        let opened = self.client.call("session/new", &params).unwrap();
        opened["sessionId"]
            .as_str()
            .unwrap()
            .clone_into(&mut self.id);
    }

    fn load(&mut self, id: &str) -> Result<Value, Value> {
        let params = json!({ "sessionId": id, "cwd": self.scene.project.root(), "mcpServers": [] });
        self.client.call("session/load", &params)
    }

    fn begin(&mut self, text: &str) -> u64 {
        let prompt = json!([{ "type": "text", "text": text }]);
        let params = json!({ "sessionId": self.id, "prompt": prompt });
        self.client.begin("session/prompt", &params)
    }

    /// Why it stopped.
    fn prompt(&mut self, text: &str) -> String {
        let id = self.begin(text);
        self.stopped(id)
    }

    fn stopped(&mut self, id: u64) -> String {
        let response = self.client.response(id);
        let reason = response["result"]["stopReason"].as_str();
        reason.unwrap_or_else(|| panic!("{response}")).to_owned()
    }

    fn cancel(&mut self) {
        let params = json!({ "sessionId": self.id });
        self.client.notify("session/cancel", &params);
    }

    /// The updates since the last time, one line each; pieces of a build's output are left out.
    fn updates(&mut self) -> String {
        let heard = std::mem::take(&mut self.client.heard);
        let mut lines: Vec<String> = heard.iter().filter_map(line).collect();
        lines.dedup();
        self.scene.without_places(&lines.join("\n"))
    }

    fn read(&self, path: &str) -> String {
        self.scene.read(path)
    }
}

fn agent(scene: &Scene) -> Client {
    Client::start(scene.keyed(&[&["acp"][..], &scene.flags()].concat(), &[]))
}

fn line(message: &Value) -> Option<String> {
    let update = &message["params"]["update"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Some(match update["sessionUpdate"].as_str()? {
        kind @ ("agent_message_chunk" | "agent_thought_chunk" | "user_message_chunk") => {
            let words = text(&update["content"]["text"]);
            let first = words.lines().next().unwrap_or_default();
            format!("{}: {first}", kind.trim_end_matches("_chunk"))
        }
        "tool_call" => format!(
            "{} begins: {}",
            text(&update["toolCallId"]),
            text(&update["title"])
        ),
        "tool_call_update" => {
            let status = update["status"].as_str()?;
            let contents = update["content"].as_array().unwrap();
            let shown = contents
                .iter()
                .map(|content| match content["type"].as_str() {
                    Some("diff") => format!(
                        "{} ({} -> {} bytes)",
                        text(&content["path"]),
                        content["oldText"]
                            .as_str()
                            .map_or("none".to_owned(), |old| old.len().to_string()),
                        text(&content["newText"]).len()
                    ),
                    _ => text(&content["content"]["text"])
                        .lines()
                        .last()
                        .unwrap_or_default()
                        .to_owned(),
                });
            let shown: Vec<String> = shown.collect();
            format!(
                "{} {status}: {}",
                text(&update["toolCallId"]),
                shown.join(", ")
            )
        }
        "plan" => {
            let entries = update["entries"].as_array().unwrap();
            let states: Vec<String> = entries.iter().map(|entry| text(&entry["status"])).collect();
            format!("plan: {}", states.join(" "))
        }
        kind => kind.to_owned(),
    })
}

#[test]
fn three_rounds_are_shown_as_they_come() {
    let mut editor = Editor::new([TOUCHES_GIT, BREAKS_THE_BUILD, MENDS_IT]);
    assert_eq!(editor.prompt(QUERY), "end_turn");
    insta::assert_snapshot!(editor.updates(), @r#"
    available_commands_update
    agent_thought: warning: the price of gemini/gemini-test is not known, so its cost cannot be shown or limited; put it into [[price]] of your configuration
    agent_thought: sandbox: OFF, commands run with all your rights (asked for)
    plan: in_progress
    1-1 begins: Round 1: ask the model
    1-1 failed: `.git/hooks/pre-commit` is or looks like git's own folder; leave it unchanged.
    plan: completed in_progress
    1-2 begins: Round 2: ask the model
    1-2 completed: [ROOT]/src/greet.sh (68 -> 72 bytes)
    1-3 begins: Run the build
    1-3 failed: exit code 1
    plan: completed completed in_progress
    1-4 begins: Round 3: ask the model
    agent_message: greet now takes its name from the first argument and falls back to "world". I added a README that says so.
    1-4 completed: [ROOT]/src/greet.sh (72 -> 100 bytes), [ROOT]/README.md (none -> 85 bytes)
    1-5 begins: Run the build
    1-5 completed: exit code 0
    plan: completed completed completed
    agent_message: **done**
    usage_update
    "#);
    assert!(editor.read("src/greet.sh").contains("world"));

    // The next prompt goes on from there.
    assert_eq!(editor.prompt("/undo"), "end_turn");
    insta::assert_snapshot!(editor.updates(), @"agent_message: - restored README.md");
    assert_eq!(editor.scene.status(), "");
    assert_eq!(editor.prompt("/check"), "end_turn");
    let heard = json!(editor.client.heard).to_string();
    assert!(heard.contains("expected 'Hello, Ada!', got"), "{heard}");
    insta::assert_snapshot!(editor.updates(), @r"
    agent_thought: sandbox: OFF, commands run with all your rights (asked for)
    3-1 begins: Run the build
    3-1 failed: exit code 1
    agent_message: red
    ");
}

#[test]
fn the_next_prompt_is_told_of_the_last_one() {
    let hello = reply("src/a.sh", "hello\n");
    let bye = reply("src/a.sh", "bye\n");
    // A roll-up shows tracked files.
    let tracked = [&FILES[..], &[("src/a.sh", "# nothing\n")]].concat();
    let replies = [MENDS_IT, &hello, &bye].map(Step::text);
    let mut editor = Editor::of(Scene::with_files(&tracked, Script::new(replies)));
    for words in ["Greet.", "Say hello.", "/again Say bye."] {
        assert_eq!(editor.prompt(words), "end_turn");
    }
    assert_eq!(editor.read("src/a.sh"), "bye\n", "{}", editor.updates());
    let requests = editor.scene.server.requests();
    let last = requests.last().unwrap().json().to_string();
    must_have(&last, "+hello");
    must_have(&last, "Say bye.");
    let runs = editor.scene.run(&["runs"]);
    assert_eq!(runs.out.matches("commit").count(), 3, "{runs}");

    // Another process shows the session, and goes on from it.
    editor.client = agent(&editor.scene);
    editor.initialize(&json!({}));
    let params = json!({ "cwd": editor.scene.project.root() });
    let listed = editor.client.call("session/list", &params).unwrap();
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 1, "{listed}");
    assert_eq!(listed["sessions"][0]["sessionId"], editor.id);
    assert_eq!(listed["sessions"][0]["title"], "Say bye.");
    let id = editor.id.clone();
    let state = editor.load(&id).unwrap();
    assert_eq!(state["modes"]["currentModeId"], "commit");
    insta::assert_snapshot!(editor.updates(), @r"
    user_message: Greet.
    plan: in_progress
    1-1 begins: Round 1: ask the model
    1-1 completed: [ROOT]/src/greet.sh (68 -> 100 bytes), [ROOT]/README.md (none -> 85 bytes)
    1-2 begins: Run the build
    1-2 completed: exit code 0
    plan: completed
    agent_message: **done**
    usage_update
    user_message: Say hello.
    plan: in_progress
    2-1 begins: Round 1: ask the model
    2-1 completed: [ROOT]/src/a.sh (10 -> 6 bytes)
    2-2 begins: Run the build
    2-2 completed: exit code 0
    plan: completed
    agent_message: **done**
    usage_update
    user_message: Say bye.
    plan: in_progress
    3-1 begins: Round 1: ask the model
    3-1 completed: [ROOT]/src/a.sh (6 -> 4 bytes)
    3-2 begins: Run the build
    3-2 completed: exit code 0
    plan: completed
    agent_message: **done**
    usage_update
    available_commands_update
    ");
    assert!(editor.load("no-such-session").is_err());
    assert_eq!(editor.prompt("/undo"), "end_turn");
    assert_eq!(editor.read("src/a.sh"), "hello\n");
}

#[test]
fn a_run_of_the_command_line_is_a_session() {
    let scene = Scene::with_replies([MENDS_IT]);
    assert_eq!(scene.commit(&[]).code, Some(0));
    let mut editor = Editor::of(scene);
    let listed = editor.client.call("session/list", &json!({})).unwrap();
    let id = listed["sessions"][0]["sessionId"]
        .as_str()
        .unwrap()
        .to_owned();
    editor.load(&id).unwrap();
    editor.id = id;
    assert_eq!(editor.prompt("/undo"), "end_turn");
    assert_eq!(editor.scene.status(), "");
}

#[test]
fn a_cancelled_prompt_is_cancelled_and_can_be_gone_on_with() {
    let script = Script::new([Step::text("").hang(Hang::BeforeHead), Step::text(MENDS_IT)]);
    let mut editor = Editor::of(Scene::new(script));
    let id = editor.begin(QUERY);
    editor.scene.server.wait_for_requests(1);
    // It waits for the first one, and never begins.
    let second = editor.begin("Wait.");
    editor
        .client
        .hear(|message| line(message).is_some_and(|line| line.contains("waiting for another")));
    editor.cancel();
    assert_eq!(editor.stopped(id), "cancelled");
    assert_eq!(editor.stopped(second), "cancelled");
    assert_eq!(editor.scene.status(), "");
    assert_eq!(editor.prompt("/again"), "end_turn");
    assert!(editor.read("src/greet.sh").contains("world"));
}

#[test]
fn an_agent_that_was_killed_is_gone_on_with_by_another() {
    let script = Script::new([Step::text("").hang(Hang::BeforeHead), Step::text(MENDS_IT)]);
    let mut editor = Editor::of(Scene::new(script));
    editor.begin(QUERY);
    editor.scene.server.wait_for_requests(1);
    editor.client.child.kill().unwrap();
    editor.client.child.wait().unwrap();
    editor.client = agent(&editor.scene);
    editor.initialize(&json!({}));
    let id = editor.id.clone();
    editor.load(&id).unwrap();
    assert!(editor.updates().contains("not finished"));
    assert_eq!(editor.prompt("/again"), "end_turn");
    assert!(editor.read("src/greet.sh").contains("world"));
}

#[test]
fn an_editor_that_was_killed_ends_its_agent() {
    let script = Script::new([Step::text("").hang(Hang::BeforeHead)]);
    let mut editor = Editor::of(Scene::new(script));
    editor.begin(QUERY);
    editor.scene.server.wait_for_requests(1);
    let began = Instant::now();
    assert_eq!(editor.client.end(), Some(0));
    assert!(began.elapsed() < Duration::from_secs(30));
}

#[test]
fn modes_models_and_keys_are_told() {
    let scene = Scene::with_replies([]);
    scene.user_file("[model]\nescalate = \"gemini-big\"\n");
    let mut editor = Editor::of(scene);
    let told = editor.initialize(&json!({}));
    assert_eq!(told["protocolVersion"], 1);
    let methods = told["authMethods"].as_array().unwrap();
    assert!(
        methods
            .iter()
            .any(|method| method["id"] == "GEMINI_API_KEY"),
        "{told}"
    );
    let call = |editor: &mut Editor, method: &str, more: Value| {
        let mut params = json!({ "sessionId": editor.id });
        params
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        editor.client.call(method, &params)
    };
    assert_eq!(
        call(
            &mut editor,
            "authenticate",
            json!({ "methodId": "GEMINI_API_KEY" })
        ),
        Ok(json!({}))
    );
    let error = call(
        &mut editor,
        "authenticate",
        json!({ "methodId": "OPENAI_API_KEY" }),
    )
    .unwrap_err();
    assert_eq!(error["code"], -32000, "{error}");
    let set = json!({ "configId": "model", "value": "gemini/gemini-big" });
    let set = call(&mut editor, "session/set_config_option", set).unwrap();
    assert_eq!(set["configOptions"][0]["currentValue"], "gemini/gemini-big");
    assert!(
        call(
            &mut editor,
            "session/set_mode",
            json!({ "modeId": "no-mode" })
        )
        .is_err()
    );
    call(
        &mut editor,
        "session/set_mode",
        json!({ "modeId": "check-only" }),
    )
    .unwrap();
    assert_eq!(editor.prompt("Whatever."), "end_turn");
    assert!(editor.updates().contains("agent_message: red"));

    // Without a key, the editor is told which one is missing.
    editor.client = Client::start(editor.scene.command(&["acp"], &[]));
    editor.initialize(&json!({}));
    editor.open(&json!([]));
    let id = editor.begin("Greet.");
    let error = editor.client.response(id)["error"].clone();
    assert_eq!(error["code"], -32000, "{error}");
    assert!(
        error["message"].as_str().unwrap().contains("_API_KEY"),
        "{error}"
    );
}

#[test]
fn what_is_not_saved_in_the_editor_refuses_the_prompt() {
    let mut editor = Editor::new([MENDS_IT]);
    editor.initialize(&json!({ "fs": { "readTextFile": true } }));
    let root = editor.scene.project.root().to_owned();
    let link = |path: &str| json!({ "type": "resource_link", "name": path, "uri": format!("file://{}", root.join(path).display()) });
    let other =
        json!({ "type": "resource", "resource": { "uri": "zed:///rules", "text": "Be brief." } });
    let prompt =
        json!([{ "type": "text", "text": "Mend " }, link("src/greet.sh"), link("build.sh"), other]);
    let params = json!({ "sessionId": editor.id, "prompt": prompt });
    for (text, is_saved) in [("not saved", false), ("", true)] {
        let id = editor.client.begin("session/prompt", &params);
        for _ in 0..2 {
            let asked = editor
                .client
                .hear(|message| message["method"] == "fs/read_text_file");
            let path = asked["params"]["path"].as_str().unwrap();
            let saved = files::text(path.as_ref());
            let content = if text.is_empty() || path.ends_with("build.sh") {
                saved
            } else {
                text.to_owned()
            };
            editor.client.send(
                &json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "content": content } }),
            );
        }
        assert_eq!(editor.stopped(id), "end_turn");
        let updates = editor.updates();
        assert_eq!(
            updates.contains("not saved in the editor: src/greet.sh**"),
            !is_saved,
            "{updates}"
        );
    }
    let asked = editor
        .scene
        .server
        .requests()
        .pop()
        .unwrap()
        .json()
        .to_string();
    must_have(&asked, "Mend `src/greet.sh``build.sh``zed:///rules`");
    must_have(&asked, "Be brief.");
}

#[test]
fn a_configuration_that_opens_more_is_asked_for_once() {
    let mut editor = Editor::new([MENDS_IT]);
    let config = "[sandbox]\nnetwork = true\n";
    editor.scene.write("code-commit.toml", config.as_bytes());
    for (answer, is_trusted) in [("deny", false), ("trust", true)] {
        let id = editor.begin("/check");
        let asked = editor
            .client
            .hear(|message| message["method"] == "session/request_permission");
        assert!(
            asked.to_string().contains("sandbox.network = true"),
            "{asked}"
        );
        let outcome = json!({ "outcome": { "outcome": "selected", "optionId": answer } });
        editor
            .client
            .send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": outcome }));
        assert_eq!(editor.stopped(id), "end_turn");
        assert_eq!(editor.updates().contains("is not trusted"), !is_trusted);
        // Not asked again.
        assert_eq!(editor.prompt("/check"), "end_turn");
        editor.updates();
        editor.open(&json!([]));
    }
}

#[test]
fn another_process_with_the_lock_is_waited_for() {
    let script = Script::new([Step::text("").hang(Hang::BeforeHead), Step::text(MENDS_IT)]);
    let mut editor = Editor::of(Scene::new(script));
    let mut command = editor.scene.keyed(&editor.scene.flags(), &[]);
    let mut other = command.stderr(std::process::Stdio::null()).spawn().unwrap();
    editor.scene.server.wait_for_requests(1);
    let id = editor.begin(QUERY);
    editor.client.hear(|message| {
        line(message).is_some_and(|line| line.contains("Waiting: another run is in progress"))
    });
    other.kill().unwrap();
    other.wait().unwrap();
    assert_eq!(editor.stopped(id), "end_turn");
    assert!(editor.read("src/greet.sh").contains("world"));
}

#[test]
fn servers_of_the_editor_are_not_used_and_keys_not_shown() {
    let mut editor = Editor::new([&*reply("key.txt", &format!("{KEY}\n"))]);
    let server = json!([{ "name": "x", "command": "/bin/false", "args": [], "env": [] }]);
    editor.open(&server);
    assert_eq!(editor.prompt(&format!("Write {KEY}.")), "end_turn");
    let heard = json!(editor.client.heard).to_string();
    must_have(&heard, "MCP servers of the editor are not used");
    assert!(!heard.contains(KEY), "{heard}");
}
