//! What a run of an order is to do: everything that `run.json` holds, and everything that `resume` and `replay` need.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use logging::{Durability, Redactor, RunFolder, Stored};
use loop_order::{Inputs, OrderLoop, WorkOrder, config_hash};
use prompt::order::{Allowed, Context};
use runner::Rung;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::commands::order::args::RunOrderArgs;
use crate::commands::order::preflight::Read;
use crate::commands::order::unfinished::Unfinished;
use crate::commands::registry::Known;
use crate::commands::runs;
use crate::config::Settings;

/// Name of the plan's file in the run folder.
const RUN_JSON: &str = "run.json";
/// Name of the order's.
const WORK_ORDER: &str = "work_order.json";
/// And of what the first prompt shows of the tree.
const INPUTS: &str = "inputs.json";

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
    /// Those of a command line.
    pub fn of(args: &RunOrderArgs) -> Self {
        Self {
            llm_model: args.llm_model.clone(),
            llm_temperature: args.llm_temperature,
            max_attempts: args.max_attempts,
            timeout_seconds: args.timeout_seconds,
            commit: args.commit,
        }
    }

    /// See S2 §5.
    pub fn hash(&self) -> String {
        config_hash(&self.llm_model, self.llm_temperature, self.max_attempts, self.timeout_seconds)
    }
}

/// Which loop the run folder is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// S2.
    Order,
}

/// What a run is to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OrderPlan {
    /// Which loop.
    #[serde(rename = "loop")]
    pub kind: Kind,
    /// The version that began the run.
    pub version: String,
    /// Where the order was read; the run folder has a copy.
    pub work_order_path: PathBuf,
    /// SHA-256 over it as canonical JSON.
    pub work_order_hash: String,
    /// The root of the repository.
    pub repo_path: PathBuf,
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
    /// The wall that is in force around the commands.
    #[schemars(with = "crate::args::Sandbox")]
    pub sandbox: Rung,
    /// The file with what the prompts show of the tree.
    #[schemars(with = "StoredFile")]
    pub inputs: Stored,
}

/// A file of the run folder.
#[derive(JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "the shape of `logging::Stored`, which knows no schemas")]
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
pub struct Shown {
    /// The files that may be written.
    pub allowed: Vec<ShownHash>,
    /// The files whose content is shown.
    pub context: Vec<ShownText>,
}

/// A file that may be written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShownHash {
    /// Relative to the root.
    pub path: String,
    /// SHA-256 of its content; null where it is not there.
    pub sha256: Option<String>,
}

/// A file whose content is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShownText {
    /// Relative to the root.
    pub path: String,
    /// As much of its content as is shown; null where it is not there.
    pub text: Option<String>,
    /// How many bytes at its end are not shown.
    pub left_out_bytes: usize,
}

impl Shown {
    /// What a loop was given.
    pub fn of(inputs: &Inputs) -> Self {
        let hash = |file: &Allowed| ShownHash { path: file.path.clone(), sha256: file.sha256.clone() };
        let text = |file: &Context| ShownText {
            path: file.path.clone(),
            text: file.text.clone(),
            left_out_bytes: file.left_out_bytes,
        };
        Self {
            allowed: inputs.allowed.iter().map(hash).collect(),
            context: inputs.context.iter().map(text).collect(),
        }
    }
}

/// What is known of a run when it begins, for its folder.
pub struct Beginning<'b> {
    pub read: &'b Read,
    pub repo: &'b Path,
    pub run: &'b Unfinished,
    pub shown: &'b Shown,
    pub terms: &'b Terms,
    pub settings: &'b Settings,
    pub sandbox: Rung,
}

impl Beginning<'_> {
    /// Puts plan, order and inputs into the run folder; the plan's text, for the list of runs.
    pub fn store(&self, folder: &RunFolder) -> anyhow::Result<String> {
        let Self { read, run, terms, settings, .. } = *self;
        folder.store(WORK_ORDER, &String::from_utf8_lossy(&read.bytes), Durability::Written)?;
        let plan = OrderPlan {
            kind: Kind::Order,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            work_order_path: read.path.clone(),
            work_order_hash: run.work_order_hash.clone(),
            repo_path: self.repo.to_owned(),
            repo_baseline_commit: run.commit.clone(),
            branch: run.branch.clone(),
            repo_tree_hash_before: run.tree_hash_before.clone(),
            config_hash: run.config_hash.clone(),
            terms: terms.clone(),
            settings: settings.clone(),
            sandbox: self.sandbox,
            inputs: folder.store_json(INPUTS, self.shown)?,
        };
        folder.store_json(RUN_JSON, &plan)?;
        Ok(folder.read(RUN_JSON)?)
    }
}

/// A run of an order that was made here.
pub struct Recorded {
    /// Where it is.
    pub folder: RunFolder,
    /// What it was to do.
    pub plan: OrderPlan,
    /// The order as it was then.
    pub read: Read,
}

impl Recorded {
    /// Whether the run in this folder is one of an order; another loop's, or a folder without a plan, is not.
    pub fn is_in(run: &Path) -> bool {
        #[derive(Deserialize)]
        struct Head {
            #[serde(rename = "loop")]
            _kind: Kind,
        }
        let plan = RunFolder::open(run.to_owned(), Redactor::default()).read(RUN_JSON);
        plan.is_ok_and(|text| serde_json::from_str::<Head>(&text).is_ok())
    }

    /// Reads it. A plan that is not the one the run began with is refused, and so is an order.
    pub fn load(known: &Known, folder: RunFolder) -> anyhow::Result<Self> {
        let name = runs::name(folder.path());
        let text = folder.read(RUN_JSON)?;
        known.check_plan(&text)?;
        let plan: OrderPlan = serde_json::from_str(&text)
            .with_context(|| format!("{RUN_JSON} of {name} was written by another version"))?;
        if plan.version != env!("CARGO_PKG_VERSION") {
            return Err(anyhow!(
                "{name} was made by version {}, this is {}",
                plan.version,
                env!("CARGO_PKG_VERSION")
            ));
        }
        let bytes = folder.read(WORK_ORDER)?.into_bytes();
        let order = WorkOrder::parse(&bytes).ok().filter(|order| order.hash == plan.work_order_hash);
        let order =
            order.ok_or_else(|| anyhow!("{WORK_ORDER} of {name} is not what it was when the run began"))?;
        let read = Read { path: plan.work_order_path.clone(), order, bytes };
        Ok(Self { folder, plan, read })
    }

    /// The loop as it was when the run began.
    pub fn decide(&self) -> anyhow::Result<OrderLoop> {
        let Shown { allowed, context } = serde_json::from_str(&self.folder.recall(&self.plan.inputs)?)?;
        let plan = &self.plan;
        Ok(OrderLoop::new(Inputs {
            order: self.read.order.clone(),
            work_order_path: plan.work_order_path.display().to_string(),
            repo_path: plan.repo_path.display().to_string(),
            baseline_commit: plan.repo_baseline_commit.clone(),
            tree_hash_before: plan.repo_tree_hash_before.clone(),
            run_id: runs::name(self.folder.path()),
            max_attempts: plan.terms.max_attempts,
            allowed: allowed.into_iter().map(|ShownHash { path, sha256 }| Allowed { path, sha256 }).collect(),
            context: context
                .into_iter()
                .map(|ShownText { path, text, left_out_bytes }| Context { path, text, left_out_bytes })
                .collect(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use schemars::generate::SchemaSettings;
    use serde_json::{Value, json};

    use super::*;

    /// What is written always has all of its keys, those that may be null too.
    fn published<T: JsonSchema>(title: &str) -> Value {
        let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
        let mut schema = generator.into_root_schema_for::<T>().to_value();
        schema["title"] = json!(title);
        schema
    }

    /// `SCHEMAS_UPDATE=1` writes them.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "this is what publishes the schemas")]
    fn the_published_schemas_are_those_of_the_types() {
        for (name, schema) in [
            ("run", published::<OrderPlan>("run.json: what a run was to do")),
            ("inputs", published::<Shown>("inputs.json: what the prompts show of the tree")),
        ] {
            let file = format!("{}/../docs/schemas/order/{name}.schema.json", env!("CARGO_MANIFEST_DIR"));
            let now = format!("{schema:#}\n");
            if std::env::var_os("SCHEMAS_UPDATE").is_some() {
                std::fs::write(&file, &now).unwrap();
            }
            let stale =
                "write it anew: SCHEMAS_UPDATE=1 cargo test -p code-commit-cli --bin code-commit schemas";
            assert!(std::fs::read_to_string(&file).unwrap_or_default() == now, "{name}: {stale}");
        }
    }
}
