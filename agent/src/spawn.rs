//! One turn of an agent: what it is asked, where, and within which limits.

use std::ffi::OsString;
use std::fmt;
use std::path::Path;
use std::time::Duration;

use runner::{Cancel, Captured, Confinement, Env};

use crate::ModelUsage;

/// One turn. [`Spawn::new`] has the defaults.
#[derive(Debug, Clone)]
pub struct Spawn<'a> {
    /// The working folder, absolute.
    pub cwd: &'a Path,
    /// What is asked.
    pub prompt: &'a str,
    /// Who the agent is to be. Appended to the CLI's own system prompt, or put in front of the prompt where a CLI has
    /// no such option.
    pub system_prompt: Option<&'a str>,
    /// Which conversation.
    pub session: Session,
    /// What the session had used before this turn; only Codex needs it.
    pub used_before: Option<&'a ModelUsage>,
    /// Left to the CLI where `None`.
    pub model: Option<&'a str>,
    /// Whether tools may be used without asking.
    pub permissions: Permissions,
    /// What it sees of the environment: [`Env::allowed`] and nothing else, before our own additions.
    pub env: Env,
    /// Put over everything else, ours included: a service's address, a proxy.
    pub extra_env: Vec<(OsString, OsString)>,
    /// The one key that this CLI needs.
    pub key: Option<Key>,
    /// Where the CLI keeps its own settings and sessions.
    pub home: Home<'a>,
    /// How often the CLI itself may repeat a failed call of its model.
    pub retries: u32,
    /// After this it is killed.
    pub timeout: Option<Duration>,
    /// After so long without any output it is killed.
    pub idle_timeout: Option<Duration>,
    /// Raised by the caller when it has heard enough: the turn then ends as [`End::Interrupted`](crate::End).
    pub enough: Option<Cancel>,
    /// The sandbox. The CLI's installation and [`Home::Own`] are opened in them.
    pub confinement: &'a Confinement,
}

impl<'a> Spawn<'a> {
    /// A new conversation without limits, with a home of its own, that asks before it uses tools.
    pub fn new(cwd: &'a Path, prompt: &'a str, home: &'a Path, confinement: &'a Confinement) -> Self {
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

/// Which conversation a turn belongs to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Session {
    /// A new one; the CLI names it.
    #[default]
    None,
    /// A new one with this name, a UUID. Codex takes no name and makes its own: see
    /// [`Outcome::session`](crate::Outcome).
    New(String),
    /// Go on with this one.
    Resume(String),
}

/// Whether tools may be used without asking.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Permissions {
    /// As the CLI is set up. Nobody is there to ask, so what needs leave is denied.
    #[default]
    Ask,
    /// Everything is allowed; the sandbox are what holds.
    Skip,
}

/// Where a CLI keeps its settings, its login and its sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Home<'a> {
    /// In this folder, made if it is not there. It starts logged out: a key is needed.
    Own(&'a Path),
    /// Where the user's own are, `HOME` of the environment: with the user's login and settings.
    User,
}

/// A key and the variable that hands it over. Never shown.
#[derive(Clone)]
pub struct Key {
    name: String,
    value: String,
}

impl Key {
    /// `name` is the variable, such as `GEMINI_API_KEY`.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { name: name.into(), value: value.into() }
    }

    /// The variable.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn expose(&self) -> &str {
        &self.value
    }

    /// What was said, without the key; where the middle is left out, without a part of it on either side of the gap.
    pub(crate) fn strike_out_of(&self, said: &Captured) -> String {
        let mut said = said.clone();
        if self.value.len() >= SHORTEST && said.left_out_bytes() > 0 {
            let Captured { head, tail, .. } = &mut said;
            let at = |at: usize| self.value.as_bytes().split_at_checked(at).unwrap_or_default();
            let begun = (1..self.value.len()).rev().find(|length| head.ends_with(at(*length).0));
            head.truncate(head.len() - begun.unwrap_or(0));
            let ended = (1..self.value.len()).find(|length| tail.starts_with(at(*length).1));
            tail.drain(..ended.map_or(0, |length| self.value.len() - length));
        }
        self.strike_out(&said.text())
    }

    /// `text` without the key.
    pub(crate) fn strike_out(&self, text: &str) -> String {
        if self.value.len() < SHORTEST { text.to_owned() } else { text.replace(&self.value, "…") }
    }
}

/// A shorter one is a placeholder, which words may hold.
const SHORTEST: usize = 8;

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({}=…)", self.name)
    }
}
