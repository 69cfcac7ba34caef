#![doc = include_str!("../README.md")]

mod progress;
mod protocol;
mod tools;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Context as _;
use code_commit_report::Output;
use code_commit_rpc::{Answer, Call, Heard, Params, Peer, Reader, captured};
use code_commit_runs::{Exit, Failure, Host, interrupt};
use code_commit_settings::Options;
use serde::Deserialize;
use serde_json::{Value, json};

use progress::Progress;
use tools::{Arguments, Tool};

/// Notes of one command that a result repeats, at most.
const MOST_NOTES: usize = 50;

/// Serves the project in the current folder on standard input and output until the input ends. `layer` overrides the
/// settings of its builds.
pub fn serve(layer: &Options, host: Host<'_>) -> Result<Exit, Failure> {
    let (peer, work) = Peer::new(host.output);
    let server = Server {
        root: host.root()?,
        layer,
        host,
        peer: &peer,
    };
    let closing = peer.clone();
    interrupt::each(move || {
        if !closing.close() {
            interrupt::leave();
        }
    })?;
    let front = Front { peer: peer.clone() };
    let served = code_commit_rpc::serve(&peer, work, front, |call| server.call(call));
    served.context("cannot serve standard input")?;
    Ok(Exit::Done)
}

/// The tools as `tools/list` describes them.
pub fn tools() -> Vec<Value> {
    Tool::ALL.map(Tool::described).into()
}

/// What is answered without touching the project.
struct Front {
    peer: Peer,
}

impl Reader for Front {
    fn call(&mut self, call: &Call) -> Answer {
        protocol::answer(&call.method, &call.params)
    }

    fn notified(&mut self, method: &str, params: &Params) {
        if method == "notifications/cancelled"
            && let Some(id) = params.get("requestId")
        {
            self.peer.cancel_request(id);
        }
    }
}

/// What a tool needs.
struct Server<'h> {
    root: PathBuf,
    layer: &'h Options,
    host: Host<'h>,
    peer: &'h Peer,
}

/// The parameters of `tools/call`.
#[derive(Deserialize)]
struct ToolCall {
    name: Tool,
    #[serde(default)]
    arguments: Arguments,
}

impl Server<'_> {
    fn call(&self, call: &Call) -> Answer {
        // The reader has refused what is no call of a tool.
        let ToolCall { name, arguments } = match call.params.read() {
            Ok(called) => called,
            Err(error) => return Some(Err(error)),
        };
        let said = Said::default();
        let output = self.output(call, &said);
        let host = Host {
            folder: Ok(&self.root),
            output: &output,
            cancel: Some(&call.cancel),
            ..self.host
        };
        let done = match name.call(arguments, self.layer, host, &said) {
            Err(failure) if failure.exit == Exit::Interrupted && call.cancel.is_set() => {
                return None;
            }
            Err(failure) => Done::failed(&failure),
            Ok(done) => done,
        };
        Some(Ok(protocol::dressed(&call.params, done.result(&said))))
    }

    /// Where a tool prints: its result and notes are kept, its progress is sent at once.
    fn output(&self, call: &Call, said: &Said) -> Output {
        let progress = Progress::of(call, self.peer);
        let said = said.clone();
        captured(self.peer.output(), move |heard| match heard {
            Heard::Object(object) if object.get("event").is_some() => {
                progress.iter().for_each(|progress| progress.tell(&object));
            }
            Heard::Object(object) => said.kept().result = object,
            Heard::Note(note) => said.kept().notes.push(note),
        })
    }
}

/// What a command has printed.
#[derive(Clone, Default)]
struct Said(Arc<Mutex<Kept>>);

#[derive(Default)]
struct Kept {
    notes: Vec<String>,
    result: Value,
}

impl Said {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The result of a tool.
struct Done {
    is_error: bool,
    /// For the model.
    text: String,
    /// The same for programs; null where the text is all.
    structured: Value,
}

impl Done {
    fn good(text: String, structured: Value) -> Self {
        Self {
            is_error: false,
            text,
            structured,
        }
    }

    /// A refusal, which the model can act on.
    fn bad(text: String, structured: Value) -> Self {
        Self {
            is_error: true,
            text,
            structured,
        }
    }

    fn failed(failure: &Failure) -> Self {
        let (error, help) = (format!("{:#}", failure.error), &failure.help);
        let structured = json!({ "error": error, "help": help, "exit": failure.exit.code() });
        Self::bad(format!("{error}\nhelp: {help}"), structured)
    }

    /// As the protocol has it, with the warnings that the command has printed.
    fn result(self, said: &Said) -> Value {
        let notes = std::mem::take(&mut said.kept().notes);
        let text = std::iter::once(self.text).chain(notes.into_iter().take(MOST_NOTES));
        let text = text.collect::<Vec<_>>().join("\n");
        let mut result = json!({
            "content": [{ "type": "text", "text": text }],
            "isError": self.is_error,
        });
        if let Some(result) = result
            .as_object_mut()
            .filter(|_| !self.structured.is_null())
        {
            result.insert("structuredContent".to_owned(), self.structured);
        }
        result
    }
}
