//! The shape of a configuration file. The flags of a run have the same shape, so that one function puts all layers together.

use llm::Price;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::{
    Address, AnswerSchema, CommandLine, CommitScope, Count, Dollars, ModelName, OutputLimit, Pattern, Place,
    Sandbox, Size, SystemRole, Temperature, Time, VariableName,
};

/// Settings of code-commit: `code-commit.toml` at a project's root, or `code-commit/config.toml` in the user's configuration folder.
/// Every key may be left out.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "code-commit.toml")]
pub struct Layer {
    /// Files that no model may write and no build may change: gitignore patterns, relative to the root, matched in any case. The
    /// lists of all layers add up, and a `!` pattern takes back only what its own list protects.
    #[serde(default)]
    pub protect: Vec<Pattern>,
    /// Who is asked, and how.
    #[serde(default)]
    pub model: Model,
    /// What a run may use.
    #[serde(default)]
    pub limits: Limits,
    /// The command that decides whether the work is done.
    #[serde(default)]
    pub build: Build,
    /// The wall around the build.
    #[serde(default)]
    pub sandbox: Walls,
    /// Prices that go before the built-in table.
    #[serde(default)]
    #[schemars(schema_with = "prices")]
    pub price: Vec<Price>,
    /// Reserved for settings of `code-commit order`; it has none.
    #[serde(default)]
    pub order: Reserved,
    /// Reserved for settings of `code-commit phase`, whose own files are in `.abl/`; it has none.
    #[serde(default)]
    pub phase: Reserved,
    /// What `.cuggino.json` does not settle of `code-commit spec`.
    #[serde(default)]
    pub spec: Spec,
}

/// `[model]`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// `gemini/NAME`, `openai/NAME`, `scripted/FILE`, `recorded/RUN`, or a bare name whose provider is plain. Trusted files only.
    pub name: Option<ModelName>,
    /// Where the service is: for Gemini the origin, for the OpenAI dialect the address with its `/v1`. It counts for models of the
    /// same provider only. Trusted files only.
    pub base_url: Option<Address>,
    /// Left to the service where it is not set.
    pub temperature: Option<Temperature>,
    /// Stream the answer.
    pub stream: Option<bool>,
    /// How long one model call may take, retries included.
    pub timeout: Option<Time>,
    /// In what a server of the OpenAI dialect differs from what its address makes likely.
    #[serde(default)]
    pub dialect: Dialect,
}

/// `[model.dialect]`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Dialect {
    /// What the output limit is called: `max_completion_tokens` or `max_tokens`.
    #[serde(default)]
    pub max_tokens: Option<OutputLimit>,
    /// Who says the system instruction: `developer` or `system`.
    #[serde(default)]
    pub system_role: Option<SystemRole>,
    /// How an answer that follows a JSON schema is asked for: `json_schema`, `json_object` or `none`.
    #[serde(default)]
    pub schema: Option<AnswerSchema>,
}

/// `[limits]`. None is no limit; a limit of zero is an error.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// US dollars. No call is sent that could pass it; needs a model whose price is known.
    pub max_cost: Option<Dollars>,
    /// Tokens, input and output together.
    pub max_tokens: Option<Count>,
    /// Model calls that were, or may have been, paid for; retries count.
    pub max_calls: Option<Count>,
    /// Wall time of the run.
    pub max_time: Option<Time>,
    /// Rounds; more than a loop has by itself changes nothing.
    pub rounds: Option<Count>,
}

/// `[build]`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Build {
    /// A program and its arguments, run at the root; quotes group words, no shell reads it.
    pub command: Option<CommandLine>,
    /// How long one build may take.
    pub timeout: Option<Time>,
    /// A build that prints more is stopped.
    pub output_limit: Option<Size>,
    /// Of a build that fails after printing more, the model is sent the beginning and the end.
    pub prompt_limit: Option<Size>,
}

/// `[sandbox]`. What opens it needs a trusted file.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Walls {
    /// What the wall is made of.
    pub mode: Option<Sandbox>,
    /// Whether the build may use the network.
    pub network: Option<bool>,
    /// Folders outside of the project that the build may change. The lists of all layers add up.
    #[serde(default)]
    pub writable: Vec<Place>,
    /// Files and folders outside of the project that the build may see.
    #[serde(default)]
    pub readable: Vec<Place>,
    /// Variables that pass into the build besides PATH, HOME, the locale and their like.
    #[serde(default)]
    pub env: Vec<VariableName>,
}

/// A table without keys.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reserved {}

/// `[spec]`. Never a key that `.cuggino.json` owns.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// What a checkpoint commits.
    pub commit_scope: Option<CommitScope>,
    /// A program that is told when a person is needed. Trusted files only.
    pub notify: Option<CommandLine>,
}

/// US dollars for a million tokens.
fn prices(_: &mut SchemaGenerator) -> Schema {
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
                "max_output": { "type": "integer", "minimum": 1 },
                "long": {
                    "type": "object",
                    "required": ["above", "input", "output"],
                    "additionalProperties": false,
                    "properties": {
                        "above": { "type": "integer", "minimum": 1 },
                        "input": dollars(), "cached": dollars(), "output": dollars(),
                    },
                },
            },
        },
    })
}
