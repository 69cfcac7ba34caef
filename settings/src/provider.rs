//! `[providers.NAME]`: services that are not built in.

use code_commit_llm::{Price, Provider};
use serde::{Deserialize, Serialize};

use crate::{Address, Count, VariableName};

/// The name of a provider that is not built in.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(try_from = "String")]
#[cfg_attr(test, schemars(with = "String", extend("pattern" = "^[a-z0-9][a-z0-9._-]*$")))]
pub struct ProviderName(pub String);

impl TryFrom<String> for ProviderName {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        if Provider::is_taken(&name) {
            return Err(format!("`{name}` is built in; choose another name"));
        }
        if Provider::is_name(&name) {
            return Ok(Self(name));
        }
        let name = name.escape_debug();
        Err(format!(
            "`{name}` is not a valid provider name; write it like my-server"
        ))
    }
}

/// A service that is not built in. Its models are named `NAME/MODEL`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct OwnProvider {
    /// The wire format: `gemini`, `openai`, `openai-responses` or `anthropic`.
    pub dialect: String,
    /// Where the service is: as for `--base-url`.
    pub base_url: Address,
    /// The variable with its key. Without it, the service needs no key.
    pub key_env: Option<VariableName>,
    /// The maximum number of tokens of one reply, for models whose price does not say it.
    pub max_output: Option<Count>,
    /// The maximum number of tokens of one prompt, for models whose price does not say it.
    pub window: Option<Count>,
    /// Prices of its models, in US dollars for a million tokens.
    #[serde(default)]
    #[cfg_attr(test, schemars(schema_with = "crate::schema::tests::prices"))]
    pub price: Vec<Price>,
}

impl OwnProvider {
    pub(crate) fn named(&self, name: &ProviderName) -> Provider {
        let max_output = self.max_output.map(u64::from);
        let price = |price: &Price| Price {
            max_output: price.max_output.or(max_output),
            ..price.clone()
        };
        Provider {
            name: name.0.clone(),
            dialect: self.dialect.clone(),
            base_url: self.base_url.0.clone(),
            key_env: self.key_env.iter().map(|name| name.0.clone()).collect(),
            max_output,
            window: self.window.map(u64::from),
            prices: Some(self.price.iter().map(price).collect()),
            ..Provider::default()
        }
    }
}
