//! Who works on a spec, and within which sandbox.

use std::time::Duration;

use code_commit_settings::{Address, Layer, Sandbox};
use serde::{Deserialize, Serialize};

/// Who works, and within which sandbox. A run that goes on takes what is not given from the record of its beginning.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentOptions {
    /// Which agent.
    pub agent: Option<Agent>,
    /// Its model, if not the one that it is set up for.
    pub agent_model: Option<String>,
    /// Whether it may use its tools without asking.
    pub permissions: Option<Permissions>,
    /// Where its service is, if not where it looks by itself.
    pub base_url: Option<Address>,
    /// The sandbox around the agent and around the setup and check commands.
    pub sandbox: Option<Sandbox>,
    /// How long one turn of an agent may take.
    pub turn_timeout: Option<Duration>,
    /// How long an agent may be silent.
    pub idle_timeout: Option<Duration>,
    /// How long the setup and check commands may take.
    pub command_timeout: Option<Duration>,
}

/// The agents that can be driven.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Agent {
    /// Claude Code.
    #[default]
    Claude,
    /// Gemini CLI.
    Gemini,
    /// Codex.
    Codex,
}

/// Whether an agent may use its tools without asking.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Permissions {
    /// All of them; the sandbox is what holds.
    #[default]
    Skip,
    /// Those that it is set up for; others are denied.
    Ask,
}

impl AgentOptions {
    /// These options, and those of `begun` where they are not given.
    pub(crate) fn over(&self, begun: &Self) -> Self {
        let (options, begun) = (self.clone(), begun.clone());
        Self {
            agent: options.agent.or(begun.agent),
            agent_model: options.agent_model.or(begun.agent_model),
            permissions: options.permissions.or(begun.permissions),
            base_url: options.base_url.or(begun.base_url),
            sandbox: options.sandbox.or(begun.sandbox),
            turn_timeout: options.turn_timeout.or(begun.turn_timeout),
            idle_timeout: options.idle_timeout.or(begun.idle_timeout),
            command_timeout: options.command_timeout.or(begun.command_timeout),
        }
    }

    /// As the topmost layer of the configuration.
    pub(crate) fn layer(&self) -> Layer {
        let mut layer = Layer::default();
        layer.sandbox.mode = self.sandbox;
        layer
    }
}
