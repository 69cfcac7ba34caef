//! What a run of an order is to do, as `run.json` and `inputs.json` hold it.

use code_commit_engine::Stored;
use code_commit_loop_order::{Inputs, config_hash, run_id};
use code_commit_prompt::edits::Form;
use code_commit_prompt::order::{Allowed, Context};
use code_commit_runner::Rung;
use code_commit_settings::Settings;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::life::Facts;
use crate::trusted::Base;

/// The flags that a run depends on and that are no settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Terms {
    /// The model as it was named; so it counts in the configuration's hash.
    pub llm_model: String,
    /// See there.
    pub llm_temperature: f64,
    /// How often the model may try.
    pub max_attempts: u32,
    /// How long each command may take.
    pub timeout_seconds: u64,
    /// Whether the changes of an order that passes are committed.
    pub commit: bool,
}

impl Terms {
    /// See S2 §5.
    pub fn hash(&self) -> String {
        config_hash(
            &self.llm_model,
            self.llm_temperature,
            self.max_attempts,
            self.timeout_seconds,
        )
    }
}

/// The loop as data.
pub(super) const FACTS: Facts = Facts {
    kind: "order",
    step: "attempt",
    work: "order",
    by_content: true,
    own_summary: true,
    ..Facts::PLAIN
};

/// Which loop the run folder is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    /// S2.
    Order,
}

/// What a run is to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OrderPlan {
    /// Which loop.
    #[serde(rename = "loop")]
    pub kind: Kind,
    /// The format of the record.
    pub record_format: u32,
    /// The version that began the run.
    pub version: String,
    /// When the run began, UTC, RFC 3339.
    pub begun_utc: String,
    /// SHA-256 over it as canonical JSON.
    pub work_order_hash: String,
    /// The commit that was checked out.
    pub repo_baseline_commit: String,
    /// The branch that was checked out; null for a detached head.
    pub branch: Option<String>,
    /// The tree before the first attempt.
    pub repo_tree_hash_before: String,
    /// SHA-256 over the terms that count in the run's name.
    pub config_hash: String,
    /// The flags.
    pub terms: Terms,
    /// Everything that the flags and the configuration say, each with its origin.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub settings: Settings,
    /// The supervisor's own name for this work; null if it gave none.
    pub key: Option<String>,
    /// The sandbox that is in force around the commands.
    #[schemars(with = "code_commit_settings::Sandbox")]
    pub sandbox: Rung,
    /// The file with what the prompts show of the tree.
    #[schemars(with = "StoredFile")]
    pub inputs: Stored,
    /// What was trusted: not changed by what the commands did.
    pub trusted: Base,
}

impl OrderPlan {
    /// Whether it is the plan of a run of this work order with these terms.
    pub(crate) fn is_of(&self, work_order_hash: &str, terms: &Terms) -> bool {
        self.work_order_hash == work_order_hash
            && self.config_hash == terms.hash()
            && self.terms.commit == terms.commit
    }

    /// The name of the run (S2 §5).
    pub(crate) fn run_id(&self) -> String {
        run_id(
            &self.work_order_hash,
            &self.repo_tree_hash_before,
            &self.config_hash,
        )
    }
}

/// A file of the run folder.
#[derive(JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "the shape of `Stored`, which knows no schemas")]
struct StoredFile {
    /// Its name.
    file: String,
    /// Its length.
    bytes: u64,
    /// Its hash.
    sha256: String,
}

/// What the prompts show of the tree, as `inputs.json` has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Shown {
    /// The files that may be written.
    pub allowed: Vec<ShownHash>,
    /// The files whose content is shown.
    pub context: Vec<ShownText>,
    /// Whether the prompts teach edits, too. The setting may change before the run is resumed; its prompts
    /// must not.
    pub edits: bool,
}

/// A file that may be written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ShownHash {
    /// Relative to the root.
    pub path: String,
    /// SHA-256 of its content; null where it is not there.
    pub sha256: Option<String>,
}

/// A file whose content is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ShownText {
    /// Relative to the root.
    pub path: String,
    /// As much of its content as is shown; null where it is not there.
    pub text: Option<String>,
    /// How many bytes at its end are not shown.
    pub left_out_bytes: usize,
}

impl Shown {
    /// What a loop was given.
    pub(crate) fn of(inputs: &Inputs) -> Self {
        let hash = |file: &Allowed| ShownHash {
            path: file.path.clone(),
            sha256: file.sha256.clone(),
        };
        let text = |file: &Context| ShownText {
            path: file.path.clone(),
            text: file.text.clone(),
            left_out_bytes: file.left_out_bytes,
        };
        Self {
            allowed: inputs.allowed.iter().map(hash).collect(),
            context: inputs.context.iter().map(text).collect(),
            edits: inputs.form == Form::Edits,
        }
    }
}

#[cfg(test)]
mod tests {
    use schemars::generate::SchemaSettings;
    use serde_json::{Value, json};

    use super::*;

    /// What is written always has all of its keys, those that may be null too.
    fn published<T: JsonSchema>(title: &str) -> Value {
        let generator = SchemaSettings::draft2020_12()
            .for_serialize()
            .into_generator();
        let mut schema = generator.into_root_schema_for::<T>().to_value();
        schema["title"] = json!(title);
        schema
    }

    /// `SCHEMAS_UPDATE=1` writes them.
    #[test]
    #[expect(
        clippy::disallowed_methods,
        reason = "this is what publishes the schemas"
    )]
    fn the_published_schemas_of_plans_are_those_of_their_types() {
        for (name, schema) in [
            (
                "run",
                published::<OrderPlan>("run.json: what a run was to do"),
            ),
            (
                "inputs",
                published::<Shown>("inputs.json: what the prompts show of the tree"),
            ),
        ] {
            let file = format!(
                "{}/../docs/schemas/order/{name}.schema.json",
                env!("CARGO_MANIFEST_DIR")
            );
            let now = format!("{schema:#}\n");
            if std::env::var_os("SCHEMAS_UPDATE").is_some() {
                std::fs::write(&file, &now).unwrap();
            }
            let stale = "write it anew: SCHEMAS_UPDATE=1 cargo test -p code-commit-runs schemas";
            assert!(
                std::fs::read_to_string(&file).unwrap_or_default() == now,
                "{name}: {stale}"
            );
        }
    }
}
