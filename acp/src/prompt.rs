//! A prompt: a run, or a command that the editor offers.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::anyhow;
use code_commit_apply::LockError;
use code_commit_rpc::{Call, Params, RpcError, captured};
use code_commit_runs::chronicle::{self, Found};
use code_commit_runs::commit::{self, Query, Which};
use code_commit_runs::{Exit, Failure, Host};
use code_commit_runs::{again, changes, check, preflight, resume, undo};
use code_commit_settings::{Files, Keys, Options, PinError, trust_of};
use serde_json::{Value, json};

use crate::session::{Mode, Session};
use crate::updates::{Updates, WORDS, content};
use crate::{AUTH_REQUIRED, Agent, in_folder, with};

/// Words that begin a prompt and mean a command.
pub(crate) const COMMANDS: [(&str, &str); 3] = [
    ("undo", "Restore every file that the last run changed"),
    ("check", "Run the build; no model is asked"),
    (
        "again",
        "Go on from the last run, with new words or without; resume it if it was stopped",
    ),
];

/// Files that the editor is asked for, at most.
const MOST_FILES: usize = 100;
/// How long a prompt waits before it tries the lock again.
const PATIENCE: Duration = Duration::from_millis(500);

/// A prompt at work.
struct Turn<'t> {
    agent: &'t Agent,
    call: &'t Call,
    session: &'t Session,
    host: Host<'t>,
    layer: Options,
    /// Empty for a run.
    command: &'t str,
}

impl Agent {
    /// Answers with the reason why it stopped; what went wrong is said.
    pub(crate) fn prompt(&self, call: &Call, host: Host<'_>) -> Result<Value, RpcError> {
        let (params, cancel) = (&call.params, &call.cancel);
        let session = &self.session(params, |session| session.prompts += 1)?;
        let (text, files) = read(params, &session.cwd)?;
        let updates = Updates::new(self, session);
        if session.has_unused_servers && session.prompts == 1 {
            updates.say(WORDS, "The MCP servers of the editor are not used.");
        }
        let hears = updates.clone();
        let output = captured(self.peer.output(), move |heard| hears.hear(&heard));
        let (first, rest) = text.split_once(char::is_whitespace).unwrap_or((&text, ""));
        let (command, words) = match first {
            "/undo" | "/check" | "/again" => (first, rest.trim()),
            _ if session.mode == Mode::CheckOnly => ("/check", ""),
            _ => ("", text.as_str()),
        };
        let turn = Turn {
            agent: self,
            call,
            session,
            host: Host {
                output: &output,
                cancel: Some(cancel),
                ..in_folder(&session.cwd, host)
            },
            layer: session.layer(&self.layer),
            command,
        };
        if !matches!(command, "/undo" | "/check") {
            turn.check_key()?;
        }
        let done = turn.patiently(words, files, &updates);
        let (run, spent) = updates.close();
        let stopped = done
            .as_ref()
            .err()
            .and_then(|failure| Some(failure.stopped.as_ref()?.folder.clone()));
        let name = |run: PathBuf| Some(run.file_name()?.to_string_lossy().into_owned());
        if let Some(name) = stopped.or(run).and_then(name) {
            self.session(params, |session| {
                (session.last, session.spent) = (Some(name.clone()), spent);
            })?;
        }
        match done {
            Err(failure) if !cancel.is_set() || failure.exit != Exit::Interrupted => {
                updates.say(
                    WORDS,
                    &format!("**{:#}**\n\n{}", failure.error, failure.help),
                );
            }
            Ok(_) | Err(_) => (),
        }
        let reason = if cancel.is_set() {
            "cancelled"
        } else {
            "end_turn"
        };
        Ok(json!({ "stopReason": reason }))
    }
}

impl Turn<'_> {
    /// Waits for the lock of the project as long as another run holds it.
    fn patiently(
        &self,
        words: &str,
        files: Vec<PathBuf>,
        updates: &Updates,
    ) -> Result<Exit, Failure> {
        let (last, mut is_told) = (self.last(), false);
        self.prepare(files, last.as_ref())?;
        while !self.call.cancel.is_set() {
            let done = self.perform(words, last.as_ref());
            let failed = done.as_ref().err().map(|failure| &failure.error);
            let Some(held @ LockError::Held { .. }) = failed.and_then(|it| it.downcast_ref())
            else {
                return done;
            };
            if !std::mem::replace(&mut is_told, true) {
                updates.say(WORDS, &format!("Waiting: {held}"));
            }
            self.call.cancel.wait(PATIENCE);
        }
        Ok(Exit::Interrupted)
    }

    /// The newest run of the session, unless it was cleaned away.
    fn last(&self) -> Option<Found> {
        let name = self.session.last.as_deref()?;
        chronicle::find(Some(name), self.host).ok()
    }

    fn check_key(&self) -> Result<(), RpcError> {
        let (root, environment) = (&self.session.cwd, self.host.environment);
        // An error in a file is told by the run.
        let Ok(files) = Files::read(root, environment) else {
            return Ok(());
        };
        let settings = files.settings(environment, &self.layer).settings;
        let missing = preflight::key(&settings, &Keys::find(environment, root)).err();
        let told = missing.map(|missing| format!("{}; {}", missing.what, missing.hint));
        told.map_or(Ok(()), |told| Err(RpcError::new(AUTH_REQUIRED, told)))
    }

    /// Asks for what the command line would need a flag for. Refuses files that differ in the editor.
    fn prepare(&self, mut files: Vec<PathBuf>, last: Option<&Found>) -> Result<(), Failure> {
        let (root, environment) = (&self.session.cwd, self.host.environment);
        let read = Files::read(root, environment)?;
        let ignored = read.settings(environment, &self.layer).ignored;
        if let Some(file) = &read.project
            && !(ignored.is_empty() || self.session.is_asked || self.command == "/undo")
            && self.may_trust(&ignored)
        {
            let pinned = trust_of(environment).pin(&file.path, &file.sha256);
            pinned.map_err(|error| Failure::hinted(error, PinError::hint))?;
        }
        // The editor may have those of the last run open.
        let changed = last.map_or(Ok(Vec::new()), |last| changes::of_run(root, &last.path))?;
        files.extend(changed.iter().map(|change| root.join(&change.path)));
        files.truncate(MOST_FILES);
        files.retain(|file| self.is_unsaved(file));
        let unsaved: Vec<String> = files.iter().map(|file| named(file, root)).collect();
        if unsaved.is_empty() {
            return Ok(());
        }
        let error = anyhow!("not saved in the editor: {}", unsaved.join(", "));
        Err(Failure::refused(
            error,
            "save them, then send the prompt again",
        ))
    }

    fn ask(&self, method: &str, params: Value) -> Option<Value> {
        let params = with(params, "sessionId", &self.session.id);
        self.agent.peer.ask(method, &params, &self.call.cancel).ok()
    }

    /// Asks once in a session; without it, the run warns of each setting.
    fn may_trust(&self, ignored: &[String]) -> bool {
        let params = json!({
            "toolCall": {
                "toolCallId": format!("{}-trust", self.session.prompts), "kind": "other", "status": "pending",
                "title": "code-commit.toml is not trusted, and opens more than the defaults",
                "content": content(&ignored.join("\n")),
            },
            "options": [
                { "optionId": "trust", "name": "Trust the file until it changes", "kind": "allow_always" },
                { "optionId": "deny", "name": "Go on without these settings", "kind": "reject_once" },
            ],
        });
        let answer = self.ask("session/request_permission", params);
        let asked = |session: &mut Session| session.is_asked = true;
        // A session that is at work is there.
        let _ = self.agent.session(&self.call.params, asked);
        answer.is_some_and(|answer| answer.pointer("/outcome/optionId") == Some(&json!("trust")))
    }

    /// A run would neither see nor keep what the editor has not saved.
    fn is_unsaved(&self, file: &Path) -> bool {
        let lines = |text: &str| text.replace("\r\n", "\n");
        if !self.agent.reads_files.load(Ordering::Relaxed) {
            return false;
        }
        let open = self.ask("fs/read_text_file", json!({ "path": file }));
        let open = open.and_then(|open| Some(lines(open.get("content")?.as_str()?)));
        let saved = changes::on_disk(file).map(|bytes| lines(&String::from_utf8_lossy(&bytes)));
        open.is_some() && open != saved
    }

    fn perform(&self, words: &str, last: Option<&Found>) -> Result<Exit, Failure> {
        let mut request = commit::Request {
            layer: self.layer.clone(),
            key: Some(self.session.id.clone()),
            new: true,
            ..commit::Request::default()
        };
        if !words.is_empty() {
            let (by, text) = ("the editor", words.into());
            request.query = Query::Given { by, text };
        }
        let run = self.session.last.as_deref();
        let which = match self.session.mode {
            Mode::Implement => Which::Implement,
            Mode::Commit | Mode::CheckOnly => Which::Commit,
        };
        let facts = last.map(Found::facts);
        let is_over = facts.as_ref().map(|run| run.steps.outcome.is_some());
        let is_same = facts.is_some_and(|run| Mode::of(&run) == Some(self.session.mode));
        match (self.command, is_over) {
            ("/check", _) => check::run(&self.layer, check::Of::Build, self.host),
            ("/undo" | "/again", None) => {
                let error = anyhow!("this session has no run yet");
                Err(Failure::refused(error, "say what to change"))
            }
            ("/undo", _) => {
                let whole = undo::Request::default();
                undo::run(&undo::Request { run, ..whole }, self.host)
            }
            ("/again", Some(false)) => {
                let (run, same) = (run.map(str::to_owned), resume::Request::default());
                resume::run(&resume::Request { run, ..same }, self.host)
            }
            ("/again", _) => again::run(run, request, self.host),
            (_, Some(true)) if is_same => again::run(run, request, self.host),
            _ => commit::run(which, &request, self.host),
        }
    }
}

/// The query, and the files of the project that it names. Links and embedded texts are named where they stand; a text that is
/// no file of the project follows, since no roll-up shows it.
fn read(params: &Params, root: &Path) -> Result<(String, Vec<PathBuf>), RpcError> {
    let (mut query, mut texts, mut files) = (String::new(), String::new(), Vec::new());
    let blocks = params.get("prompt").and_then(Value::as_array);
    for block in blocks.into_iter().flatten() {
        let text = |at| block.pointer(at).and_then(Value::as_str);
        let (uri, embedded) = match text("/type") {
            Some("text") => {
                query.push_str(text("/text").unwrap_or_default());
                continue;
            }
            Some("resource_link") => (text("/uri"), None),
            Some("resource") => (text("/resource/uri"), text("/resource/text")),
            _ => (None, None),
        };
        let wrong =
            || RpcError::invalid_params("a prompt is made of texts, links and embedded texts");
        let uri = uri.ok_or_else(wrong)?;
        let (name, file) = linked(uri, root);
        query.push_str(&format!("`{name}`"));
        if let (None, Some(text)) = (&file, embedded) {
            texts.push_str(&format!("\n\n# {name}\n\n{text}"));
        }
        files.extend(file);
    }
    let text = query.trim().to_owned() + &texts;
    if text.is_empty() {
        return Err(RpcError::invalid_params("the prompt is empty"));
    }
    Ok((text, files))
}

/// The name of what is linked, with the lines that are meant; and its file if that is in the project.
fn linked(uri: &str, root: &Path) -> (String, Option<PathBuf>) {
    let (place, lines) = uri.split_at(uri.find('#').unwrap_or(uri.len()));
    let path = place.strip_prefix("file://").unwrap_or_default();
    let path = percent_encoding::percent_decode_str(path).decode_utf8();
    match path.map(|path| PathBuf::from(&*path)) {
        Ok(file) if file.starts_with(root) => (named(&file, root) + lines, Some(file)),
        _ => (uri.to_owned(), None),
    }
}

fn named(file: &Path, root: &Path) -> String {
    file.strip_prefix(root)
        .unwrap_or(file)
        .display()
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_named_relative_to_the_root() {
        let root = Path::new("/p");
        let name = |uri| linked(uri, root).0;
        assert_eq!(name("file:///p/a%20b.rs#L3:7"), "a b.rs#L3:7");
        assert_eq!(name("file:///q/a.rs"), "file:///q/a.rs");
        assert_eq!(name("zed:///agent/thread/1"), "zed:///agent/thread/1");
        assert_eq!(
            linked("file:///p/%ff", root),
            ("file:///p/%ff".to_owned(), None)
        );
    }
}
