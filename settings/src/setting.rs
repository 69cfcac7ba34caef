//! The settings in force, and where each of them comes from.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use code_commit_llm::{Budget, ModelId, Prices, Provider};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::{Bases, Environment, KEYS, Layer, Models, Settings};

/// Where a setting comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// Nothing else set it.
    Default,
    /// The user's own file.
    User,
    /// `code-commit.toml`.
    Project,
    /// A variable of the environment.
    Environment(Variable),
    /// The command line.
    Flag,
}

/// An environment variable that holds the address of a built-in provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Variable(&'static str);

impl<'de> Deserialize<'de> for Variable {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let name = String::deserialize(from)?;
        let mut known = Provider::all_built_in().iter().filter_map(|provider| provider.base_env.as_deref());
        let found = known.find(|known| *known == name);
        found.map(Self).ok_or_else(|| D::Error::custom("not a variable with an address"))
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Default => "default",
            Self::User => "user file",
            Self::Project => "project file",
            Self::Environment(Variable(name)) => name,
            Self::Flag => "flag",
        })
    }
}

/// A value and where it comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Setting<T> {
    /// The value in force.
    pub value: T,
    /// Where it comes from.
    pub origin: Origin,
}

impl<T> Setting<T> {
    pub(crate) fn default(value: T) -> Self {
        Self { value, origin: Origin::Default }
    }
}

/// What is set, without where it comes from.
pub(crate) trait Values {
    /// Whether both set the same.
    fn are_same(&self, other: &Self) -> bool;
}

impl<T: PartialEq> Values for Setting<T> {
    fn are_same(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl<T: PartialEq> Values for Vec<Setting<T>> {
    fn are_same(&self, other: &Self) -> bool {
        self.iter().map(|setting| &setting.value).eq(other.iter().map(|setting| &setting.value))
    }
}

/// Without a limit of the user's, for a reply that is streamed and for one that is not.
const STREAMED_SILENCE: Duration = Duration::from_mins(5);
const WHOLE_SILENCE: Duration = Duration::from_mins(10);

/// The time limits of a model call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// How long the service may send nothing.
    pub silence: Duration,
    /// How long the call may take, retries included; `None` if silence alone ends it.
    pub call: Option<Duration>,
}

/// Each layer overrides the ones before it.
impl Settings {
    /// The defaults and the flags, without files and environment.
    #[must_use]
    pub fn of_flags(flags: Layer) -> Self {
        let mut settings = Self::default();
        settings.put_flags(flags);
        settings
    }

    /// Applies flags. Relative paths are resolved against `/`.
    pub fn put_flags(&mut self, flags: Layer) {
        self.put(flags, Origin::Flag, Bases { root: Path::new("/"), home: None });
    }

    /// Applies a layer. Single values are replaced, lists are extended.
    ///
    /// An address belongs to the provider it was written for: if a later layer names a model of
    /// another provider, that provider's key must not be sent there.
    pub fn put(&mut self, mut layer: Layer, origin: Origin, bases: Bases<'_>) {
        let provider = layer.model.name.as_ref().map(|name| name.0.first().provider());
        if provider.is_some_and(|provider| provider != self.model.value.first().provider()) {
            self.base_url = Setting::default(None);
            self.dialect_max_tokens = Setting::default(None);
            self.dialect_system_role = Setting::default(None);
        }
        for key in KEYS {
            (key.put)(self, &mut layer, origin, bases);
        }
    }

    /// Applies the environment's address for the model's provider, if there is one. The address is
    /// not checked.
    pub fn put_environment(&mut self, environment: &Environment) {
        let provider = Provider::built_in(self.model.value.first().provider());
        let Some(variable) = provider.and_then(|provider| provider.base_env.as_deref()) else { return };
        if let Some(address) = environment.text(variable) {
            let value = Some(address.to_owned());
            self.base_url = Setting { value, origin: Origin::Environment(Variable(variable)) };
        }
    }

    /// The provider of a model; `None` if there is none with its name. Models that answer from a file have none.
    pub fn provider_of(&self, model: &ModelId) -> Option<&Provider> {
        let own = self.providers.iter().map(|own| &own.value);
        Provider::all_built_in().iter().chain(own).find(|provider| provider.name == model.provider())
    }

    /// Every model that a run may ask, the first one first.
    pub fn all_models(&self) -> Vec<&ModelId> {
        self.model.value.iter().chain(self.escalate.value.iter().flat_map(Models::iter)).collect()
    }

    /// Every provider, the built-in ones first.
    pub fn all_providers(&self) -> Vec<&Provider> {
        Provider::all_built_in().iter().chain(self.providers.iter().map(|own| &own.value)).collect()
    }

    /// The limits that no call may exceed.
    pub fn budget(&self) -> Budget {
        Budget {
            max_calls: self.max_calls.value,
            max_tokens: self.max_tokens.value,
            max_cost: self.max_cost.value,
            max_time: self.max_time.value,
        }
    }

    /// How long the service may be silent, and how long a call may take.
    ///
    /// A reply that is not streamed is silent until it is there, so one limit stands in for the other. Without a limit for
    /// the call, a model that thinks for longer than that would be asked, and paid, again.
    pub fn patience(&self) -> Patience {
        let (silence, call) = (self.timeout.value, self.call_limit.value);
        if self.stream.value {
            return Patience { silence: silence.unwrap_or(STREAMED_SILENCE), call };
        }
        match (silence, call) {
            // Twice the limit of the call never passes first, so that the error names what was set.
            (None, Some(call)) => Patience { silence: call.saturating_mul(2), call: Some(call) },
            (silence, call) => {
                let silence = silence.unwrap_or(WHOLE_SILENCE);
                Patience { silence, call: Some(call.unwrap_or(silence)) }
            }
        }
    }

    /// All prices, the configured ones first.
    pub fn prices(&self) -> Prices {
        let own = self.prices.iter().map(|price| price.value.clone()).collect();
        let table = Prices::built_in().behind(own);
        self.providers.iter().fold(table, |table, provider| table.and_of(&provider.value))
    }

    /// The maximum number of rounds of a loop whose own maximum is `most`.
    pub fn rounds(&self, most: u32) -> u32 {
        let wanted = self.rounds.value.and_then(|rounds| u32::try_from(rounds).ok());
        wanted.map_or(most, |rounds| rounds.min(most))
    }
}
