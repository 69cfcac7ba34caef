//! One turn of an agent: its prompt, its folder and its limits.

use std::ffi::OsString;
use std::fmt;
use std::path::Path;
use std::time::Duration;

use code_commit_model::Usage;
use code_commit_runner::{Cancel, Captured, Confinement, Env};

/// One turn. [`Spawn::new`] has the defaults.
#[derive(Debug, Clone)]
pub struct Spawn<'a> {
    /// The working folder, absolute.
    pub cwd: &'a Path,
    /// The prompt.
    pub prompt: &'a str,
    /// The agent's role. Appended to the CLI's own system prompt, or put before the prompt if a CLI
    /// has no such option.
    pub system_prompt: Option<&'a str>,
    /// The session that the turn belongs to.
    pub session: Session,
    /// What the session had used before this turn; only Codex needs it.
    pub used_before: Option<Usage>,
    /// If `None`, the CLI decides.
    pub model: Option<&'a str>,
    /// Whether tools may be used without asking.
    pub permissions: Permissions,
    /// The environment that it sees: only [`Env::allowed`], and our own additions.
    pub env: Env,
    /// Overrides everything else, including our own additions: a service's address, a proxy.
    pub extra_env: Vec<(OsString, OsString)>,
    /// The one key that this CLI needs.
    pub key: Option<Key>,
    /// Where the CLI keeps its own settings and sessions.
    pub home: Home<'a>,
    /// How often the CLI itself may retry a failed model call.
    pub retries: u32,
    /// It is killed after this time.
    pub timeout: Option<Duration>,
    /// It is killed after this time without output.
    pub idle_timeout: Option<Duration>,
    /// Set by the caller when it has heard enough: the turn then ends as
    /// [`End::Interrupted`](crate::End).
    pub enough: Option<Cancel>,
    /// The sandbox. The CLI's installation and [`Home::Own`] are made accessible in it.
    pub confinement: &'a Confinement,
}

impl<'a> Spawn<'a> {
    /// A new session without limits, with its own home, that asks before it uses tools.
    pub fn new(
        cwd: &'a Path,
        prompt: &'a str,
        home: &'a Path,
        confinement: &'a Confinement,
    ) -> Self {
        Self {
            cwd,
            prompt,
            system_prompt: None,
            session: Session::None,
            used_before: None,
            model: None,
            permissions: Permissions::Ask,
            env: Env::default(),
            extra_env: Vec::new(),
            key: None,
            home: Home::Own(home),
            retries: 3,
            timeout: None,
            idle_timeout: None,
            enough: None,
            confinement,
        }
    }
}

/// The session that a turn belongs to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Session {
    /// A new one; the CLI names it.
    #[default]
    None,
    /// A new one with this name, a UUID. Codex accepts no name and chooses its own: see
    /// [`Outcome::session`](crate::Outcome).
    New(String),
    /// Continues this one.
    Resume(String),
}

/// Whether tools may be used without asking.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Permissions {
    /// As the CLI is configured. Nobody can be asked, so whatever needs permission is denied.
    #[default]
    Ask,
    /// Everything is allowed; only the sandbox restricts it.
    Skip,
}

/// Where a CLI keeps its settings, login and sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Home<'a> {
    /// In this folder, created if it is missing. The CLI is logged out there, so it needs a key.
    Own(&'a Path),
    /// In the user's own home, `HOME` of the environment, with the user's login and settings.
    User,
}

/// A key and the environment variable that passes it to the CLI. Never shown.
#[derive(Clone)]
pub struct Key {
    name: String,
    value: String,
}

impl Key {
    /// `name` is the variable, such as `GEMINI_API_KEY`.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            value: value.into(),
        }
    }

    /// The variable.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn expose(&self) -> &str {
        &self.value
    }

    /// The captured text with the key redacted. If the middle is left out, no part of the key
    /// remains on either side of the gap.
    pub(crate) fn strike_out_of(&self, said: &Captured) -> String {
        let mut said = said.clone();
        if self.value.len() >= SHORTEST && said.left_out_bytes() > 0 {
            let Captured { head, tail, .. } = &mut said;
            let at = |at: usize| {
                self.value
                    .as_bytes()
                    .split_at_checked(at)
                    .unwrap_or_default()
            };
            let begun = (1..self.value.len())
                .rev()
                .find(|length| head.ends_with(at(*length).0));
            head.truncate(head.len() - begun.unwrap_or(0));
            let ended = (1..self.value.len()).find(|length| tail.starts_with(at(*length).1));
            tail.drain(..ended.map_or(0, |length| self.value.len() - length));
        }
        self.strike_out(&said.text())
    }

    /// `text` with the key redacted.
    pub(crate) fn strike_out(&self, text: &str) -> String {
        if self.value.len() < SHORTEST {
            text.to_owned()
        } else {
            text.replace(&self.value, "…")
        }
    }
}

/// A shorter key is a placeholder that may occur in ordinary words.
const SHORTEST: usize = 8;

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({}=…)", self.name)
    }
}
