//! A setting, and where it comes from.

use std::fmt;

use code_commit_llm::Provider;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

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
pub struct Variable(pub(crate) &'static str);

impl<'de> Deserialize<'de> for Variable {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let name = String::deserialize(from)?;
        let mut known = Provider::all_built_in()
            .iter()
            .filter_map(|provider| provider.base_env.as_deref());
        let found = known.find(|known| *known == name);
        found
            .map(Self)
            .ok_or_else(|| D::Error::custom("not a variable with an address"))
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
        Self {
            value,
            origin: Origin::Default,
        }
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
        self.iter()
            .map(|setting| &setting.value)
            .eq(other.iter().map(|setting| &setting.value))
    }
}
