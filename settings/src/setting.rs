//! The settings in force, and where each of them is from.

use std::fmt;
use std::path::Path;

use llm::{Budget, Prices, Provider};
use serde::{Deserialize, Serialize};

use crate::{Bases, Environment, KEYS, Layer, Settings};

/// Where a setting is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// Nobody said anything.
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

/// A variable of the environment that sets something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Variable {
    /// As Google's own clients have it.
    GeminiBaseUrl,
    /// As OpenAI's own clients have it.
    OpenAiBaseUrl,
}

impl Variable {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::GeminiBaseUrl => "GOOGLE_GEMINI_BASE_URL",
            Self::OpenAiBaseUrl => "OPENAI_BASE_URL",
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Default => "default",
            Self::User => "user file",
            Self::Project => "project file",
            Self::Environment(variable) => variable.name(),
            Self::Flag => "flag",
        })
    }
}

/// A value and where it is from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Setting<T> {
    /// In force.
    pub value: T,
    /// Who set it.
    pub origin: Origin,
}

impl<T> Setting<T> {
    pub(crate) fn default(value: T) -> Self {
        Self { value, origin: Origin::Default }
    }
}

/// Every layer puts its values over those before it.
impl Settings {
    /// The defaults and the flags; no file, no environment.
    #[must_use]
    pub fn of_flags(flags: Layer) -> Self {
        let mut settings = Self::default();
        settings.put_flags(flags);
        settings
    }

    /// Puts flags over what is there. Relative places are taken as below `/`.
    pub fn put_flags(&mut self, flags: Layer) {
        self.put(flags, Origin::Flag, Bases { root: Path::new("/"), home: None });
    }

    /// Puts a layer over what is there. Single values are replaced, lists add up.
    ///
    /// An address belongs to the provider that it was written for: where a later layer names a model of another one, the key of that
    /// one must not travel there.
    pub fn put(&mut self, mut layer: Layer, origin: Origin, bases: Bases<'_>) {
        let provider = layer.model.name.as_ref().map(|name| name.0.provider());
        if provider.is_some_and(|provider| provider != self.model.value.provider()) {
            self.base_url = Setting::default(None);
            self.dialect_max_tokens = Setting::default(None);
            self.dialect_system_role = Setting::default(None);
            self.dialect_schema = Setting::default(None);
        }
        for key in KEYS {
            (key.put)(self, &mut layer, origin, bases);
        }
    }

    /// The environment's address for the provider that is asked, if it has one. It is taken as it is.
    pub fn put_environment(&mut self, environment: &Environment) {
        let variable = match self.model.value.provider() {
            Provider::Gemini => Variable::GeminiBaseUrl,
            Provider::OpenAi => Variable::OpenAiBaseUrl,
            Provider::Scripted | Provider::Recorded => return,
        };
        if let Some(address) = environment.text(variable.name()) {
            let value = Some(address.to_owned());
            self.base_url = Setting { value, origin: Origin::Environment(variable) };
        }
    }

    /// The limits that no call may pass.
    pub fn budget(&self) -> Budget {
        Budget {
            max_calls: self.max_calls.value,
            max_tokens: self.max_tokens.value,
            max_cost: self.max_cost.value,
            max_time: self.max_time.value,
        }
    }

    /// All prices, the configured ones first.
    pub fn prices(&self) -> Prices {
        Prices::built_in().behind(self.prices.iter().map(|price| price.value.clone()).collect())
    }

    /// The rounds of a loop that has `most` by itself.
    pub fn rounds(&self, most: u32) -> u32 {
        let wanted = self.rounds.value.and_then(|rounds| u32::try_from(rounds).ok());
        wanted.map_or(most, |rounds| rounds.min(most))
    }
}
