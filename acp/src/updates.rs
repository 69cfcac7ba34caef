//! A run as its editor sees it: each event becomes an update of the session.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use code_commit_engine::Usage;
use code_commit_logging::Redactor;
use code_commit_report::phrases;
use code_commit_rpc::{Heard, Pace, Peer};
use code_commit_runs::chronicle::Found;
use code_commit_runs::place;
use code_commit_runs::registry::Registry;
use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::prompt::COMMANDS;
use crate::session::Session;
use crate::{Agent, with};

/// Of each end of a build's output.
const MOST_OUTPUT: usize = 16 << 10;
/// Larger files are named, and their difference is not shown.
const MOST_TEXT: usize = 1 << 20;

/// Sends the updates of one prompt.
#[derive(Clone)]
pub(crate) struct Updates {
    peer: Peer,
    session: String,
    root: PathBuf,
    /// Tells the tool calls of one prompt from those of others.
    prompt: u32,
    /// The run that is shown; the newest if not named.
    pub(crate) run: Option<String>,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    rounds: u64,
    tool_calls: u32,
    /// The tool call that is under way.
    open: Option<String>,
    printed: String,
    pace: Pace,
    /// The folder of the run that is over.
    ended: Option<PathBuf>,
    /// The cost of all runs of the session in US dollars.
    spent: Option<f64>,
}

fn text<'v>(event: &'v Value, at: &str) -> &'v str {
    event
        .pointer(at)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn number(event: &Value, at: &str) -> u64 {
    event
        .pointer(at)
        .and_then(Value::as_u64)
        .unwrap_or_default()
}

fn all<'v>(event: &'v Value, at: &str) -> impl Iterator<Item = &'v Value> {
    let all = event.pointer(at).and_then(Value::as_array);
    all.into_iter().flatten()
}

/// The content of a tool call.
pub(crate) fn content(text: &str) -> Value {
    json!([{ "type": "content", "content": { "type": "text", "text": text } }])
}

/// What is said to the user.
pub(crate) const WORDS: &str = "agent_message_chunk";
/// Notes and warnings, which are not part of the result.
pub(crate) const NOTE: &str = "agent_thought_chunk";
/// What the user has said, in a session that is shown again.
pub(crate) const QUERY: &str = "user_message_chunk";

impl Updates {
    pub(crate) fn new(agent: &Agent, session: &Session) -> Self {
        let updates = Self {
            peer: agent.peer.clone(),
            session: session.id.clone(),
            root: session.cwd.clone(),
            prompt: session.prompts,
            run: None,
            state: Arc::default(),
        };
        updates.state().spent = session.spent;
        updates
    }

    /// The commands that a prompt may begin with.
    pub(crate) fn offer_commands(&self) {
        let commands = COMMANDS.map(|(name, what)| json!({ "name": name, "description": what }));
        self.send(
            "available_commands_update",
            json!({ "availableCommands": commands }),
        );
    }

    pub(crate) fn say(&self, kind: &str, words: &str) {
        let text = format!("{}\n\n", words.trim_end());
        self.send(kind, json!({ "content": { "type": "text", "text": text } }));
    }

    fn send(&self, kind: &str, update: Value) {
        let update = with(update, "sessionUpdate", kind);
        let params = json!({ "sessionId": self.session, "update": update });
        self.peer.notify("session/update", &params);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The command is over: no tool call is under way any more. Gives the folder of its run, and what the session has cost.
    pub(crate) fn close(&self) -> (Option<PathBuf>, Option<f64>) {
        self.end(false, &json!([]));
        let state = self.state();
        (state.ended.clone(), state.spent)
    }

    /// Begins a tool call in the place of the one that is under way.
    fn begin(&self, title: &str, kind: &str) {
        self.end(false, &json!([]));
        let mut state = self.state();
        state.tool_calls += 1;
        let id = format!("{}-{}", self.prompt, state.tool_calls);
        state.open = Some(id.clone());
        drop(state);
        let call =
            json!({ "toolCallId": id, "title": title, "kind": kind, "status": "in_progress" });
        self.send("tool_call", call);
    }

    fn end(&self, is_good: bool, content: &Value) {
        let open = self.state().open.take();
        if let Some(id) = open {
            let status = if is_good { "completed" } else { "failed" };
            let call = json!({ "toolCallId": id, "status": status, "content": content });
            self.send("tool_call_update", call);
        }
    }

    /// Takes what a command prints.
    pub(crate) fn hear(&self, heard: &Heard) {
        let event = match heard {
            Heard::Note(words) => return self.say(NOTE, words),
            Heard::Object(event) => event,
        };
        match text(event, "/event") {
            "fact" => self.fact(event.get("fact").unwrap_or(&Value::Null)),
            "waiting" => self.say(NOTE, text(event, "/reason")),
            "warning" => self.say(NOTE, text(event, "/problem/message")),
            "said" => self.say(WORDS, text(event, "/text")),
            "build-begins" => self.begin("Run the build", "execute"),
            "build-prints" => self.printed(text(event, "/text")),
            "summary" => self.summary(event.get("summary").unwrap_or(&Value::Null)),
            // The result of `check` or `undo`.
            "" => {
                let restored = all(event, "/restored").map(|change| text(change, "/path"));
                let restored = restored.map(|path| format!("- restored {path}\n"));
                let fitness = text(event, "/fitness").to_owned();
                self.say(WORDS, &restored.fold(fitness, |all, one| all + &one));
            }
            _ => (),
        }
    }

    /// A line of the journal.
    pub(crate) fn fact(&self, fact: &Value) {
        let round = number(fact, "/round");
        match text(fact, "/what") {
            "asked" => {
                self.state().rounds = round;
                self.plan("in_progress");
                self.begin(&format!("Round {round}: ask the model"), "edit");
            }
            "unanswered" => self.end(false, &content(text(fact, "/cause/message"))),
            "rejected" => {
                let problems = all(fact, "/problems").map(|problem| text(problem, "/message"));
                self.end(false, &content(&problems.collect::<Vec<_>>().join("\n")));
            }
            "applied" => self.end(true, &json!(self.diffs(fact).unwrap_or_default())),
            "built" => self.built(fact),
            _ => (),
        }
    }

    /// The rounds so far.
    fn plan(&self, last: &str) {
        let rounds = self.state().rounds;
        let entry = |round: u64| {
            let status = if round < rounds { "completed" } else { last };
            json!({ "content": format!("Round {round}: ask, apply, build"), "priority": "medium", "status": status })
        };
        let entries: Vec<Value> = (1..=rounds).map(entry).collect();
        self.send("plan", json!({ "entries": entries }));
    }

    fn printed(&self, piece: &str) {
        let mut state = self.state();
        state.printed.push_str(piece);
        let excess = state.printed.len().saturating_sub(MOST_OUTPUT);
        let from = state.printed.ceil_char_boundary(excess);
        state.printed.drain(..from);
        if state.pace.is_due() {
            let call = json!({ "toolCallId": state.open, "content": content(&state.printed) });
            drop(state);
            self.send("tool_call_update", call);
        }
    }

    fn built(&self, fact: &Value) {
        if self.state().open.is_none() {
            self.begin("Run the build", "execute");
        }
        let code = fact.pointer("/ended/code").and_then(Value::as_i64);
        let how = code.map_or(text(fact, "/ended/how").to_owned(), |code| {
            format!("exit code {code}")
        });
        let mut printed = std::mem::take(&mut self.state().printed);
        if printed.is_empty() {
            // It was built before, or printed nothing.
            let (file, most) = (text(fact, "/output/file"), MOST_OUTPUT as u64);
            let ends = self.found().and_then(|run| run.ends(file, most));
            let (start, end, _) = ends.unwrap_or_default();
            printed = start + &end;
        }
        self.end(code == Some(0), &content(&(printed + &how)));
    }

    fn found(&self) -> Option<Found> {
        let tree = place::work_tree(&self.root).ok()?;
        let known = Registry::of(&tree).find(self.run.as_deref()).ok()?;
        Some(Found::of(known, tree.root()))
    }

    /// The files of a reply, before and after it; without those that cannot be shown.
    fn diffs(&self, fact: &Value) -> Option<Vec<Value>> {
        let run = self.found()?.whole(&self.root, &Redactor::default()).ok()?;
        let diff = |change: &Value| {
            let hash = |at| change.pointer(at).and_then(Value::as_str);
            let (before, after) = (hash("/before_sha256"), hash("/after_sha256"));
            let (old, new) = run.contents.both(before, after)?;
            let shown = |bytes: &[u8]| String::from_utf8(bytes.into()).ok();
            let (old, new) = (shown(old)?, shown(new)?);
            if old.len().max(new.len()) > MOST_TEXT {
                return None;
            }
            let (path, old) = (self.root.join(text(change, "/path")), before.map(|_| old));
            Some(json!({ "type": "diff", "path": path, "oldText": old, "newText": new }))
        };
        Some(all(fact, "/changes").filter_map(diff).collect())
    }

    /// The end of a run.
    pub(crate) fn summary(&self, summary: &Value) {
        self.plan("completed");
        let log = text(summary, "/log");
        let usd = summary.get("cost_usd").and_then(Value::as_f64);
        let usage = summary.get("usage").map(Usage::deserialize);
        let usage = usage.and_then(Result::ok).unwrap_or_default();
        let outcome = text(summary, "/outcome").replace('-', " ");
        let mut lines = vec![format!("**{outcome}**")];
        lines.push(text(summary, "/cause/message").to_owned());
        lines.push(text(summary, "/cause/remedy").to_owned());
        for file in all(summary, "/files") {
            let (status, path) = (text(file, "/status"), text(file, "/path"));
            lines.push(format!("- {status} {path}"));
        }
        let took = phrases::seconds(Duration::from_millis(number(summary, "/elapsed_ms")));
        let (tokens, cost) = (phrases::tokens(&usage), phrases::cost(usd));
        lines.push(format!(
            "\nrounds {}{tokens}, {cost}, {took}",
            number(summary, "/rounds_asked")
        ));
        lines.push(format!("log: {log}"));
        lines.retain(|line| !line.is_empty());
        self.say(WORDS, &lines.join("\n"));
        let mut state = self.state();
        state.ended = Some(log.into());
        state.spent = state.spent.zip(usd).map(|(before, more)| before + more);
        let cost = state
            .spent
            .map(|amount| json!({ "amount": amount, "currency": "USD" }));
        drop(state);
        let used = [usage.input_tokens, usage.output_tokens]
            .into_iter()
            .flatten();
        let used: u64 = used.sum();
        // No conversation fills the window of the model: each run is a prompt of its own.
        let update = json!({ "used": used, "size": used, "cost": cost });
        self.send("usage_update", update);
    }
}
