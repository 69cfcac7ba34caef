//! Who works on a spec, and within which sandbox.

use std::time::Duration;

use anyhow::anyhow;
use code_commit_settings::{Address, Layer, Sandbox};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::exit::Failure;

/// Who works, and within which sandbox. A run that goes on takes what is not given from the record of its beginning.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentOptions {
    /// Which agent; further ones work where it cannot.
    #[serde(deserialize_with = "one_or_more", serialize_with = "as_one_or_more")]
    pub agent: Vec<Agent>,
    /// Its model, if not the one that it is set up for; one for each agent, or several of one agent, tried in turn.
    #[serde(deserialize_with = "one_or_more", serialize_with = "as_one_or_more")]
    pub agent_model: Vec<String>,
    /// Models of the first agent for repairs: one for each, the last one for all further ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub escalate: Vec<String>,
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
            agent: given(options.agent, begun.agent),
            agent_model: given(options.agent_model, begun.agent_model),
            escalate: given(options.escalate, begun.escalate),
            permissions: options.permissions.or(begun.permissions),
            base_url: options.base_url.or(begun.base_url),
            sandbox: options.sandbox.or(begun.sandbox),
            turn_timeout: options.turn_timeout.or(begun.turn_timeout),
            idle_timeout: options.idle_timeout.or(begun.idle_timeout),
            command_timeout: options.command_timeout.or(begun.command_timeout),
        }
    }

    /// As the topmost layer of the configuration, over these limits.
    pub(crate) fn layer(&self, mut limits: Layer) -> Layer {
        limits.sandbox.mode = self.sandbox;
        limits
    }

    /// The agents in the order in which they are tried, each with its model.
    pub(crate) fn agents(&self) -> Result<Vec<(Agent, Option<&str>)>, Failure> {
        let first = self.first();
        if self
            .agent_model
            .iter()
            .chain(&self.escalate)
            .any(String::is_empty)
        {
            return Err(Failure::refused(
                anyhow!("a model has no name"),
                "name them with commas between: --model NAME,NAME",
            ));
        }
        let models: Vec<_> = self
            .agent_model
            .iter()
            .map(|model| Some(model.as_str()))
            .collect();
        match (self.agent.len(), models.len()) {
            (0 | 1, 0) => Ok(vec![(first, None)]),
            (0 | 1, _) => Ok(models.into_iter().map(|model| (first, model)).collect()),
            (_, 0) => Ok(self.agent.iter().map(|agent| (*agent, None)).collect()),
            (agents, named) if agents == named => {
                Ok(self.agent.iter().copied().zip(models).collect())
            }
            (agents, named) => Err(Failure::refused(
                anyhow!("--agent names {agents} agents, and --model {named} models"),
                "name a model for each agent, in the same order, or none",
            )),
        }
    }

    pub(crate) fn first(&self) -> Agent {
        self.agent.first().copied().unwrap_or_default()
    }
}

fn given<T>(flags: Vec<T>, begun: Vec<T>) -> Vec<T> {
    if flags.is_empty() { begun } else { flags }
}

/// None, one, or a list of several.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum OneOrMore<T> {
    One(T),
    More(Vec<T>),
}

fn one_or_more<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    from: D,
) -> Result<Vec<T>, D::Error> {
    Ok(match Option::<OneOrMore<T>>::deserialize(from)? {
        None => Vec::new(),
        Some(OneOrMore::One(one)) => vec![one],
        Some(OneOrMore::More(more)) => more,
    })
}

fn as_one_or_more<T: Serialize, S: Serializer>(list: &[T], to: S) -> Result<S::Ok, S::Error> {
    match list {
        [] => to.serialize_none(),
        [one] => one.serialize(to),
        more => more.serialize(to),
    }
}
