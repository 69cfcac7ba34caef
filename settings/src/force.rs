//! The settings in force, and where each of them is from.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use llm::{Budget, ModelId, Money, Price, Prices, Provider};
use serde::{Deserialize, Serialize};

use crate::{Bases, CommandLine, CommitScope, Dialect, Layer, Limits, Model, Sandbox};

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
    fn default(value: T) -> Self {
        Self { value, origin: Origin::Default }
    }

    fn take(&mut self, value: Option<T>, origin: Origin) {
        if let Some(value) = value {
            *self = Self { value, origin };
        }
    }
}

impl<T> Setting<Option<T>> {
    /// A layer that says nothing takes nothing away.
    fn take_some(&mut self, value: Option<T>, origin: Origin) {
        self.take(value.map(Some), origin);
    }
}

/// Every setting of a run. The record keeps them, so that a run that goes on later does so under the same ones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Who is asked.
    pub model: Setting<ModelId>,
    /// Where, if not where the service is.
    pub base_url: Setting<Option<String>>,
    /// In what a server of the OpenAI dialect differs from what its address makes likely.
    pub dialect: Setting<Dialect>,
    /// Left to the service where `None`.
    pub temperature: Setting<Option<f64>>,
    /// Stream the answer.
    pub stream: Setting<bool>,
    /// Of one model call, retries included.
    pub timeout: Setting<Duration>,
    /// US dollars of the run.
    pub max_cost: Setting<Option<Money>>,
    /// Tokens of the run.
    pub max_tokens: Setting<Option<u64>>,
    /// Model calls of the run.
    pub max_calls: Setting<Option<u64>>,
    /// Wall time of the run.
    pub max_time: Setting<Option<Duration>>,
    /// Rounds, if fewer than the loop has.
    pub rounds: Setting<Option<u64>>,
    /// What decides whether the work is done.
    pub build: Setting<CommandLine>,
    /// Of one build.
    pub build_timeout: Setting<Duration>,
    /// Bytes that a build may print.
    pub build_output: Setting<u64>,
    /// Bytes of what it printed that the model is sent.
    pub build_prompt: Setting<u64>,
    /// What the wall is made of.
    pub sandbox: Setting<Sandbox>,
    /// Whether the build may use the network.
    pub network: Setting<bool>,
    /// What the build may change outside of the project.
    pub writable: Vec<Setting<PathBuf>>,
    /// What the build may see outside of the project.
    pub readable: Vec<Setting<PathBuf>>,
    /// Variables that pass into the build.
    pub env: Vec<Setting<String>>,
    /// Patterns that protect files, one list for each layer, as their `!` patterns are read.
    pub protect: Vec<Setting<Vec<String>>>,
    /// Prices that go before the built-in table.
    pub prices: Vec<Setting<Price>>,
    /// What a checkpoint of `spec` commits.
    pub commit_scope: Setting<Option<CommitScope>>,
    /// Who is told when `spec` needs a person.
    pub notify: Setting<Option<CommandLine>>,
}

#[expect(clippy::expect_used, reason = "the name is a constant, which every test reads")]
fn default_model() -> ModelId {
    "gemini-3.8-flash".parse().expect("the name of a model")
}

/// All defaults.
impl Default for Settings {
    fn default() -> Self {
        let command = "./build.sh";
        Self {
            model: Setting::default(default_model()),
            base_url: Setting::default(None),
            dialect: Setting::default(Dialect::default()),
            temperature: Setting::default(None),
            stream: Setting::default(true),
            timeout: Setting::default(Duration::from_mins(10)),
            max_cost: Setting::default(None),
            max_tokens: Setting::default(None),
            max_calls: Setting::default(None),
            max_time: Setting::default(None),
            rounds: Setting::default(None),
            build: Setting::default(CommandLine { text: command.to_owned(), argv: vec![command.to_owned()] }),
            build_timeout: Setting::default(Duration::from_mins(10)),
            build_output: Setting::default(64 << 20),
            build_prompt: Setting::default(1 << 20),
            sandbox: Setting::default(Sandbox::Auto),
            network: Setting::default(false),
            writable: Vec::new(),
            readable: Vec::new(),
            env: Vec::new(),
            protect: Vec::new(),
            prices: Vec::new(),
            commit_scope: Setting::default(None),
            notify: Setting::default(None),
        }
    }
}

impl Settings {
    /// The defaults and the flags; no file, no environment.
    pub fn of_flags(flags: Layer) -> Self {
        let mut settings = Self::default();
        settings.put(flags, Origin::Flag, Bases { root: Path::new("/"), home: None });
        settings
    }

    /// Puts a layer over what is there. Single values are replaced, lists add up.
    pub fn put(&mut self, layer: Layer, origin: Origin, bases: Bases<'_>) {
        let Layer { protect, model, limits, build, sandbox, price, order: _, phase: _, spec } = layer;
        self.put_model(model, origin);
        self.put_limits(&limits, origin);
        self.build.take(build.command, origin);
        self.build_timeout.take(build.timeout.map(|limit| limit.0), origin);
        self.build_output.take(build.output_limit.map(|limit| limit.0), origin);
        self.build_prompt.take(build.prompt_limit.map(|limit| limit.0), origin);
        self.sandbox.take(sandbox.mode, origin);
        self.network.take(sandbox.network, origin);
        add(&mut self.writable, sandbox.writable.iter().map(|place| bases.find(place)), origin);
        add(&mut self.readable, sandbox.readable.iter().map(|place| bases.find(place)), origin);
        add(&mut self.env, sandbox.env.into_iter().map(|name| name.0), origin);
        if !protect.is_empty() {
            let value = protect.into_iter().map(|pattern| pattern.0).collect();
            self.protect.push(Setting { value, origin });
        }
        // The first that fits counts.
        self.prices.splice(0..0, price.into_iter().map(|value| Setting { value, origin }));
        self.commit_scope.take_some(spec.commit_scope, origin);
        self.notify.take_some(spec.notify, origin);
    }

    /// An address belongs to the provider that it was written for: where a later layer names a model of another one, the key of that
    /// one must not travel there.
    fn put_model(&mut self, model: Model, origin: Origin) {
        if let Some(name) = &model.name
            && name.0.provider() != self.model.value.provider()
        {
            self.base_url = Setting::default(None);
            self.dialect = Setting::default(Dialect::default());
        }
        self.model.take(model.name.map(|name| name.0), origin);
        self.base_url.take_some(model.base_url.map(|address| address.0), origin);
        self.temperature.take_some(model.temperature.map(|temperature| temperature.0), origin);
        self.stream.take(model.stream, origin);
        self.timeout.take(model.timeout.map(|limit| limit.0), origin);
        let now = self.dialect.value;
        let dialect = Dialect {
            max_tokens: model.dialect.max_tokens.or(now.max_tokens),
            system_role: model.dialect.system_role.or(now.system_role),
            schema: model.dialect.schema.or(now.schema),
        };
        self.dialect.take((dialect != now).then_some(dialect), origin);
    }

    /// The environment's address for the provider that is asked, if it has one.
    pub fn put_environment(&mut self, find: impl Fn(&str) -> Option<String>) {
        let variable = match self.model.value.provider() {
            Provider::Gemini => Variable::GeminiBaseUrl,
            Provider::OpenAi => Variable::OpenAiBaseUrl,
            Provider::Scripted | Provider::Recorded => return,
        };
        self.base_url.take_some(find(variable.name()), Origin::Environment(variable));
    }

    /// Puts limits over those that are there; what is not given stays.
    pub fn put_limits(&mut self, limits: &Limits, origin: Origin) {
        self.max_cost.take_some(limits.max_cost.map(|limit| limit.0), origin);
        self.max_tokens.take_some(limits.max_tokens.map(|limit| limit.0), origin);
        self.max_calls.take_some(limits.max_calls.map(|limit| limit.0), origin);
        self.max_time.take_some(limits.max_time.map(|limit| limit.0), origin);
        self.rounds.take_some(limits.rounds.map(|limit| limit.0), origin);
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

fn add<T: PartialEq>(list: &mut Vec<Setting<T>>, more: impl Iterator<Item = T>, origin: Origin) {
    for value in more {
        if !list.iter().any(|there| there.value == value) {
            list.push(Setting { value, origin });
        }
    }
}
