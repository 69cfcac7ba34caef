#![doc = include_str!("../README.md")]

mod history;
mod prompt;
mod session;
mod updates;

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Context as _;
use code_commit_llm::Provider;
use code_commit_logging::Stamp;
use code_commit_rpc::{Answer, Call, Params, Peer, Reader, RpcError};
use code_commit_runs::{Exit, Failure, Host, interrupt};
use code_commit_settings::{Environment, Options, keys};
use serde_json::{Value, json};

use session::Session;
use updates::{NOTE, Updates};

/// The version of the protocol; a second one is a draft.
const VERSION: u16 = 1;
/// A key is missing.
const AUTH_REQUIRED: i64 = -32000;
/// Sessions of one process, at most.
const MOST_SESSIONS: usize = 1_000;

/// Serves editors on standard input and output until the input ends. `layer` overrides the settings of all runs.
pub fn serve(layer: &Options, host: Host<'_>) -> Result<Exit, Failure> {
    let (peer, work) = Peer::new(host.output);
    let closing = peer.clone();
    interrupt::each(move || {
        if !closing.close() {
            interrupt::leave();
        }
    })?;
    let agent = Arc::new(Agent {
        peer: peer.clone(),
        environment: host.environment.clone(),
        layer: layer.clone(),
        sessions: Mutex::default(),
        reads_files: AtomicBool::new(false),
    });
    let front = Front(Arc::clone(&agent));
    let served = code_commit_rpc::serve(&peer, work, front, |call| {
        Some(match call.method.as_str() {
            "session/prompt" => agent.prompt(call, host),
            "session/load" => agent.load(call, host),
            _ => history::list(call, host),
        })
    });
    served.context("cannot serve standard input")?;
    Ok(Exit::Done)
}

/// What `initialize` is answered with.
pub fn introduction() -> Value {
    let methods = Provider::all_built_in().iter().filter_map(|provider| {
        let (name, variable) = (&provider.name, provider.key_env.last()?);
        let how = format!("For models of {name}: {}", keys::remedy(provider));
        Some(json!({ "id": variable, "name": format!("Set {variable}"), "description": how }))
    });
    json!({
        "protocolVersion": VERSION,
        "agentCapabilities": {
            "loadSession": true,
            "promptCapabilities": { "embeddedContext": true },
            "sessionCapabilities": { "list": {} },
        },
        "agentInfo": { "name": "code-commit", "title": "code-commit", "version": env!("CARGO_PKG_VERSION") },
        "authMethods": methods.collect::<Vec<_>>(),
    })
}

/// What all sessions share.
struct Agent {
    peer: Peer,
    environment: Environment,
    layer: Options,
    /// By identifier.
    sessions: Mutex<HashMap<String, Session>>,
    /// Whether the editor gives the text of files as it has them open.
    reads_files: AtomicBool,
}

/// Answers while a run is at work.
struct Front(Arc<Agent>);

impl Reader for Front {
    fn call(&mut self, call: &Call) -> Answer {
        let (agent, params) = (&self.0, &call.params);
        Some(match call.method.as_str() {
            "initialize" => Ok(agent.initialize(params)),
            "authenticate" => agent.authenticate(params),
            "session/new" => agent.new_session(params),
            "session/set_mode" => agent.set_mode(params),
            "session/set_config_option" => agent.set_option(params),
            "session/prompt" | "session/load" | "session/list" => {
                if let (true, Ok(session)) = (agent.peer.is_busy(), agent.session(params, |_| ())) {
                    let updates = Updates::new(agent, &session);
                    updates.say(NOTE, "waiting for another prompt to end");
                }
                return None;
            }
            method => Err(RpcError::no_method(method)),
        })
    }

    fn answered(&mut self, call: &Call, answer: &Value) {
        let id = answer.get("sessionId").and_then(Value::as_str);
        if let (Some(id), "session/new") = (id, call.method.as_str()) {
            let session = self.0.sessions().get(id).cloned();
            session
                .iter()
                .for_each(|session| Updates::new(&self.0, session).offer_commands());
        }
    }

    fn notified(&mut self, method: &str, params: &Params) {
        let id = params.get("sessionId");
        if method == "session/cancel" {
            self.0
                .peer
                .cancel(|call| call.params.get("sessionId") == id);
        }
    }
}

impl Agent {
    fn initialize(&self, params: &Params) -> Value {
        let can = params.get("clientCapabilities");
        let reads = can.and_then(|can| can.pointer("/fs/readTextFile")?.as_bool());
        self.reads_files
            .store(reads == Some(true), Ordering::Relaxed);
        introduction()
    }

    /// A key comes from the environment or a file; an editor cannot send one.
    fn authenticate(&self, params: &Params) -> Result<Value, RpcError> {
        let variable = params.text("methodId")?;
        let mut known = Provider::all_built_in().iter();
        let provider = known.find(|known| known.key_env.iter().any(|name| name == variable));
        let provider =
            provider.ok_or_else(|| RpcError::invalid_params("there is no such method"))?;
        if self.environment.text(variable).is_some() {
            return Ok(json!({}));
        }
        let what = format!("{}, then restart the agent", keys::remedy(provider));
        Err(RpcError::new(AUTH_REQUIRED, what))
    }

    /// Its identifier is the key of its runs, by which they are found later.
    fn new_session(&self, params: &Params) -> Result<Value, RpcError> {
        let (stamp, number) = (Stamp::now().folder_name(), self.sessions().len());
        let id = format!("acp-{stamp}-{}-{number}", std::process::id());
        let state = self.put(Session::open(&id, params, self)?)?;
        Ok(with(state, "sessionId", &id))
    }

    /// Gives what may be chosen in it.
    fn put(&self, session: Session) -> Result<Value, RpcError> {
        let (mut sessions, state) = (self.sessions(), session.state());
        if sessions.len() >= MOST_SESSIONS {
            return Err(RpcError::invalid_params("there are too many sessions"));
        }
        sessions.insert(session.id.clone(), session);
        Ok(state)
    }

    /// The session that is meant, as it is after the change.
    fn session(&self, params: &Params, change: impl Fn(&mut Session)) -> Result<Session, RpcError> {
        let mut sessions = self.sessions();
        let session = sessions.get_mut(params.text("sessionId")?);
        let session = session.ok_or_else(unknown)?;
        change(session);
        Ok(session.clone())
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<String, Session>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The same program in another folder.
fn in_folder<'h>(folder: &'h Path, host: Host<'h>) -> Host<'h> {
    let folder = Ok(folder);
    Host { folder, ..host }
}

fn with(mut object: Value, name: &str, value: &str) -> Value {
    if let Some(members) = object.as_object_mut() {
        members.insert(name.to_owned(), json!(value));
    }
    object
}

/// In words, for the other side.
fn refused(failure: &Failure) -> RpcError {
    RpcError::invalid_params(format!("{:#}; {}", failure.error, failure.help))
}

fn unknown() -> RpcError {
    RpcError::invalid_params("there is no such session")
}
