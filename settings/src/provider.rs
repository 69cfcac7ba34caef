//! `[providers.NAME]`: services that are not built in.

use std::collections::BTreeMap;

use code_commit_llm::{Price, Provider};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::slot::{Slot, Weakens};
use crate::{Address, Bases, Count, Origin, Setting, VariableName};

/// The name of a provider that is not built in.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct ProviderName(pub String);

impl TryFrom<String> for ProviderName {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        if Provider::is_taken(&name) {
            return Err(format!("`{name}` is built in; choose another name"));
        }
        let is_name = Provider::is_name(&name);
        let no_name = || {
            format!(
                "`{}` is no name of a provider; write it like my-server",
                name.escape_debug()
            )
        };
        if is_name {
            Ok(Self(name))
        } else {
            Err(no_name())
        }
    }
}

/// A service that is not built in. Its models are named `NAME/MODEL`.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
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
    #[schemars(schema_with = "prices")]
    pub price: Vec<Price>,
}

impl OwnProvider {
    fn named(self, name: String) -> Provider {
        let [max_output, window] =
            [self.max_output, self.window].map(|count| count.map(|count| count.0));
        let price = |price: Price| Price {
            max_output: price.max_output.or(max_output),
            ..price
        };
        Provider {
            name,
            dialect: self.dialect,
            base_url: self.base_url.0,
            key_env: self.key_env.into_iter().map(|name| name.0).collect(),
            max_output,
            window,
            prices: Some(self.price.into_iter().map(price).collect()),
            ..Provider::default()
        }
    }
}

/// `[providers]`.
pub type OwnProviders = BTreeMap<ProviderName, OwnProvider>;

/// A later layer replaces a whole provider: half of one could send a key to the address of another.
impl Slot<OwnProviders> for Vec<Setting<Provider>> {
    type Value = Provider;

    fn put(&mut self, given: &mut OwnProviders, origin: Origin, _: Bases<'_>) {
        for (ProviderName(name), own) in std::mem::take(given) {
            self.retain(|there| there.value.name != name);
            self.push(Setting {
                value: own.named(name),
                origin,
            });
        }
    }

    fn shown(&self) -> Vec<(Value, Origin)> {
        if self.is_empty() {
            return vec![(Value::Null, Origin::Default)];
        }
        self.iter()
            .map(|own| (json!(own.value.name), own.origin))
            .collect()
    }

    fn take_weakening(
        &self,
        given: &mut OwnProviders,
        weakens: Weakens<Provider>,
        _: Bases<'_>,
    ) -> Vec<String> {
        let weakening = |name: &ProviderName, own: &mut OwnProvider| {
            let now = self
                .iter()
                .map(|now| &now.value)
                .find(|now| now.name == name.0);
            weakens(&own.clone().named(name.0.clone()), now)
        };
        given
            .extract_if(.., weakening)
            .map(|(name, _)| format!("[{:?}]", name.0))
            .collect()
    }
}

/// The schema of `[providers]`.
pub(crate) fn providers(generator: &mut SchemaGenerator) -> Schema {
    let provider = generator.subschema_for::<OwnProvider>();
    json_schema!({
        "type": "object",
        "propertyNames": { "pattern": "^[a-z0-9][a-z0-9._-]*$" },
        "additionalProperties": provider,
    })
}

/// US dollars for a million tokens.
pub(crate) fn prices(_: &mut SchemaGenerator) -> Schema {
    let dollars = || json_schema!({ "type": "number", "minimum": 0 });
    json_schema!({
        "type": "array",
        "items": {
            "type": "object",
            "required": ["prefix", "input", "output"],
            "additionalProperties": false,
            "properties": {
                "prefix": { "type": "string" },
                "until": { "type": "string", "format": "date" },
                "input": dollars(), "cached": dollars(), "cache_write": dollars(), "output": dollars(),
                "priority": { "type": "number", "minimum": 0 },
                "max_output": { "type": "integer", "minimum": 1 },
                "window": { "type": "integer", "minimum": 1 },
                "long": {
                    "type": "object",
                    "required": ["above", "input", "output"],
                    "additionalProperties": false,
                    "properties": {
                        "above": { "type": "integer", "minimum": 1 },
                        "input": dollars(), "cached": dollars(), "cache_write": dollars(), "output": dollars(),
                    },
                },
            },
        },
    })
}
