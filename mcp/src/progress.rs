//! What a build prints, as progress notifications.

use std::sync::{Arc, Mutex, PoisonError};

use code_commit_rpc::{Call, Pace, Peer};
use serde_json::{Value, json};

/// Of the last line that was printed.
const MOST_CHARS: usize = 200;

/// Reports to whoever has asked for it with a token.
#[derive(Clone)]
pub(crate) struct Progress {
    peer: Peer,
    token: Value,
    so_far: Arc<Mutex<SoFar>>,
}

#[derive(Default)]
struct SoFar {
    /// Printed bytes: the total of a build is not known.
    bytes: usize,
    pace: Pace,
}

impl Progress {
    pub(crate) fn of(call: &Call, peer: &Peer) -> Option<Self> {
        let token = call.params.meta("progressToken")?;
        Some(Self {
            peer: peer.clone(),
            token: token.clone(),
            so_far: Arc::default(),
        })
    }

    /// Takes an event of `--json`.
    pub(crate) fn tell(&self, event: &Value) {
        let of = |key: &str| event.get(key).and_then(Value::as_str);
        match of("event") {
            Some("build-begins") => self.notify(0, "the build begins"),
            Some("build-prints") => self.printed(of("text").unwrap_or_default()),
            _ => (),
        }
    }

    fn printed(&self, text: &str) {
        let mut so_far = self.so_far.lock().unwrap_or_else(PoisonError::into_inner);
        so_far.bytes += text.len();
        if !so_far.pace.is_due() {
            return;
        }
        let last = text.lines().rev().find(|line| !line.trim().is_empty());
        let last: String = last.unwrap_or_default().chars().take(MOST_CHARS).collect();
        self.notify(so_far.bytes, &last);
    }

    fn notify(&self, progress: usize, message: &str) {
        let params =
            json!({ "progressToken": self.token, "progress": progress, "message": message });
        self.peer.notify("notifications/progress", &params);
    }
}
