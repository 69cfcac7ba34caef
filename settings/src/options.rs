//! What flags and files can set: one struct for each section of a file, whose fields are at once its keys and its flags.
//!
//! The first paragraph of a field's documentation is the help of its flag; all of it is the description in the JSON schema.

use std::collections::BTreeMap;
use std::time::Duration;

use code_commit_llm::provider::{OutputLimit, SystemRole};
use code_commit_llm::{ModelId, Price};
use serde::{Deserialize, Serialize};

use crate::{
    Address, CommandLine, Count, Dollars, HostName, Models, OwnProvider, Pattern, Place,
    ProviderName, Size, Temperature, Time, TokenBudget, VariableName,
};

/// Settings of code-commit: `code-commit.toml` at a project's root, or `code-commit/config.toml` in the user's configuration folder.
/// Every key may be left out.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, clap::Args)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(test, schemars(title = "code-commit.toml"))]
pub struct Options {
    /// Protect what this gitignore pattern matches; can be repeated.
    ///
    /// No model may write such a file and no build may change it. Patterns are relative to the root, matched in any case. The lists of
    /// all layers are combined, and a `!` pattern only affects its own list.
    #[arg(long, value_name = "PATTERN")]
    pub protect: Vec<Pattern>,
    /// Refuse replies that change a file which the build command or its script names; by default such a
    /// change is flagged.
    #[arg(skip)]
    pub protect_grader: Option<bool>,
    /// Let the model edit lines instead of giving whole files.
    #[arg(long)]
    pub edits: Option<bool>,
    /// Prices that override the built-in table.
    #[arg(skip)]
    #[cfg_attr(test, schemars(schema_with = "crate::schema::tests::prices"))]
    pub price: Vec<Price>,
    /// Services that are not built in, each a table `[providers.NAME]`. Trusted files only.
    // A key is sent to the address that stands here.
    #[arg(skip)]
    pub providers: BTreeMap<ProviderName, OwnProvider>,
    /// Which model is asked, and how.
    #[command(flatten)]
    pub model: ModelOptions,
    /// The limits of a run.
    #[command(flatten)]
    pub limits: LimitOptions,
    /// The command that decides whether the work is done.
    #[command(flatten)]
    pub build: BuildOptions,
    /// The sandbox around the build.
    #[command(flatten)]
    pub sandbox: SandboxOptions,
    /// Settings of `code-commit spec` that `.cuggino.json` does not have.
    #[arg(skip)]
    pub spec: SpecOptions,
    /// Settings of `code-commit order`.
    #[arg(skip)]
    pub order: OrderOptions,
    /// What is in the code roll-up.
    #[arg(skip)]
    pub rollup: RollUpOptions,
    /// Reserved for settings of `code-commit phase`, whose own files are in `.abl/`; it has none.
    #[arg(skip)]
    phase: Reserved,
}

/// `[model]`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, clap::Args)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct ModelOptions {
    /// The model: PROVIDER/NAME, scripted/FILE, or a bare name whose provider is obvious; of several, separated by commas, the next is
    /// asked if one is out of quota, out of service or too small.
    ///
    /// Trusted files only.
    // It decides what a call costs, and who is sent the code.
    #[arg(id = "model", long, value_name = "MODEL")]
    pub name: Option<Models>,
    /// The models for repairs, separated by commas: one for each, the last one for all further ones.
    ///
    /// Trusted files only.
    #[arg(long, value_name = "MODEL")]
    pub escalate: Option<Models>,
    /// The address of the model's service: for Gemini and Anthropic the origin, for the OpenAI dialect including /v1.
    ///
    /// It counts for models of the same provider only. Trusted files only.
    // A variable of the environment sets it, too: which one depends on the provider, see `Settings::put_environment`.
    #[arg(long, value_name = "URL")]
    pub base_url: Option<Address>,
    /// How freely the model chooses its words, 0 to 2; if not set, its service decides.
    #[arg(skip)]
    pub temperature: Option<Temperature>,
    /// Stream the reply [default: true].
    #[arg(long)]
    pub stream: Option<bool>,
    /// How long the model's service may send nothing; by default 5m, or 10m for a reply that is not streamed.
    ///
    /// Trusted files only.
    // A call that is abandoned is paid for, and made again.
    #[arg(long, value_name = "DURATION")]
    pub timeout: Option<Time>,
    /// How long one model call may take, including retries: as long as it streams, or `timeout` for a reply that is not streamed. Trusted files only.
    #[arg(skip)]
    pub call_limit: Option<Time>,
    /// How long to wait for the quota of the model's service to be reset; by default the run ends and says when to come again.
    #[arg(long, value_name = "DURATION")]
    pub wait: Option<Time>,
    /// How a server of the OpenAI dialect differs from what its address suggests.
    #[arg(skip)]
    pub dialect: DialectOptions,
}

/// `[model.dialect]`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct DialectOptions {
    /// The name of the output limit: `max_completion_tokens` or `max_tokens`.
    #[cfg_attr(test, schemars(with = "String", extend("enum" = ["max_completion_tokens", "max_tokens"])))]
    pub max_tokens: Option<OutputLimit>,
    /// The role of the system instruction: `developer` or `system`.
    #[cfg_attr(test, schemars(with = "String", extend("enum" = ["developer", "system"])))]
    pub system_role: Option<SystemRole>,
}

/// `[limits]`. A missing limit means no limit; a limit of zero is an error.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, clap::Args)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct LimitOptions {
    /// Stop before the total cost could exceed this many US dollars.
    ///
    /// It needs a model with a known price.
    #[arg(long, value_name = "USD")]
    pub max_cost: Option<Dollars>,
    /// Stop before the total could exceed this many tokens.
    ///
    /// Input and output together.
    #[arg(long, value_name = "NUMBER")]
    pub max_tokens: Option<Count>,
    /// Make at most this many model calls that are or may have to be paid for, including retries.
    #[arg(long, value_name = "NUMBER")]
    pub max_calls: Option<Count>,
    /// End the run at the next model call after this time.
    #[arg(long, value_name = "DURATION")]
    pub max_time: Option<Time>,
    /// Use fewer rounds than the loop's maximum: at most 4, `implement` 8.
    #[arg(long, value_name = "NUMBER")]
    pub rounds: Option<Count>,
}

/// `[build]`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, clap::Args)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct BuildOptions {
    /// The command that decides whether the work is done [default: ./build.sh].
    ///
    /// A program and its arguments, run at the root; quotes group words, no shell is involved.
    #[arg(id = "build-command", long, value_name = "COMMAND")]
    pub command: Option<CommandLine>,
    /// How long one build may take [default: 10m].
    #[arg(id = "build-timeout", long, value_name = "DURATION")]
    pub timeout: Option<Time>,
    /// Let builds leave files of this gitignore pattern that another program runs later without being asked, such as .envrc; can be
    /// repeated.
    ///
    /// It counts for the commands of an order, too. Patterns are relative to the root; the lists of all layers are combined. Trusted
    /// files only.
    #[arg(id = "allow-write", long, value_name = "PATTERN")]
    pub may_write: Vec<Pattern>,
    /// A build that prints more is stopped.
    #[arg(skip)]
    pub output_limit: Option<Size>,
    /// If a build fails after printing more, the model gets the beginning and the end.
    #[arg(skip)]
    pub prompt_limit: Option<Size>,
    /// A build whose processes use more memory together is stopped; if not set, three quarters of the machine's. Trusted files only.
    #[arg(skip)]
    pub memory: Option<Size>,
    /// A build that has more processes at once is stopped.
    #[arg(skip)]
    pub processes: Option<Count>,
    /// The space for temporary files; if not set, half of the machine's memory. Trusted files only.
    #[arg(skip)]
    pub temporary: Option<Size>,
    /// How large a file a build may write.
    #[arg(skip)]
    pub file: Option<Size>,
    /// How many files, pipes and sockets one process of a build may have open.
    #[arg(skip)]
    pub open_files: Option<Count>,
}

/// `[sandbox]`. Only a trusted file can open it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, clap::Args)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct SandboxOptions {
    /// The sandbox around builds and commands [default: auto].
    #[arg(id = "sandbox", long, value_name = "MODE")]
    pub mode: Option<Sandbox>,
    /// Let builds and commands use the network.
    #[arg(long)]
    pub network: Option<bool>,
    /// Let builds and commands reach this host by a proxy, without a network otherwise; can be repeated.
    ///
    /// `HOST` (ports 443 and 80) or `HOST:PORT`. `NAME=RANGE` lets the name lead to these addresses, also private ones:
    /// `mirror.example=10.0.0.0/8`. The lists of all layers are combined.
    #[arg(id = "allow-host", long, value_name = "HOST")]
    pub hosts: Vec<HostName>,
    /// Let the build change this existing folder outside the project; can be repeated.
    ///
    /// The lists of all layers are combined.
    #[arg(long, value_name = "DIR")]
    pub writable: Vec<Place>,
    /// Let the build read this path outside the project; can be repeated.
    #[arg(long, value_name = "PATH")]
    pub readable: Vec<Place>,
    /// What builds have written to the caches of tools is removed at the start of a run if it is larger than this.
    #[arg(skip)]
    pub cache_limit: Option<Size>,
    /// Pass this environment variable to the build; can be repeated.
    ///
    /// In addition to PATH, HOME, the locale and similar ones.
    #[arg(long, value_name = "NAME")]
    pub env: Vec<VariableName>,
}

/// `[spec]`. Never a key that `.cuggino.json` owns.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct SpecOptions {
    /// What a checkpoint commits.
    pub commit_scope: Option<CommitScope>,
    /// An iteration in which the agent has implemented for this many turns ends the run.
    pub max_turns: Option<Count>,
}

/// `[order]`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct OrderOptions {
    /// What becomes of the changes of commands outside of `allowed_files` when an order passes: `restore` or `keep`.
    pub byproducts: Option<Byproducts>,
}

/// `[rollup]`. What `code-commit rollup` and a first run put into the code roll-up.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct RollUpOptions {
    /// Only these files: gitignore patterns, relative to the root. By default all that git tracks.
    pub include: Vec<Pattern>,
    /// Not these files: gitignore patterns, relative to the root.
    pub exclude: Vec<Pattern>,
    /// Tokens, or `none`; by default 60,000. If there are more, the files that matter most for the query are shown, the others listed.
    pub budget: Option<TokenBudget>,
}

/// A table without keys.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
struct Reserved {}

/// The sandbox around the build.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Sandbox {
    /// The strongest that works here; refuse if none does
    Auto,
    /// Namespaces and seccomp
    Namespaces,
    /// Landlock and seccomp
    Landlock,
    /// A container
    Docker,
    /// No sandbox: the build can do whatever you can
    Off,
}

/// What a checkpoint commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum CommitScope {
    /// Everything that differs, as `git add -A` does.
    All,
    /// What the agents of the run changed.
    Run,
}

/// What becomes of the changes of an order's commands outside of its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Byproducts {
    /// They are put back when the order passes.
    Restore,
    /// They stay.
    Keep,
}

/// The keys that have a default, and methods that give the value in force.
macro_rules! defaults {
    ($($(#[$doc:meta])* $name:ident: $Type:ty = $($key:ident).+ or $default:expr;)*) => {
        impl Options {
            /// The lowest layer.
            pub(crate) fn defaults() -> Self {
                let mut options = Self::default();
                $(options.$($key).+ = Some($default);)*
                options
            }

            $(
                $(#[$doc])*
                #[must_use]
                pub fn $name(&self) -> $Type {
                    self.$($key).+.clone().unwrap_or_else(|| $default).into()
                }
            )*
        }
    };
}

defaults! {
    /// The models to ask.
    models: Models = model.name or default_model();
    /// Whether replies are streamed.
    stream: bool = model.stream or true;
    /// The command that decides whether the work is done.
    build_command: CommandLine = build.command or default_build();
    /// How long one build may take.
    build_timeout: Duration = build.timeout or Time(Duration::from_mins(10));
    /// How many bytes a build may print.
    build_output: u64 = build.output_limit or Size(64 << 20);
    /// How many bytes of a build's output the model gets.
    build_prompt: u64 = build.prompt_limit or Size(1 << 20);
    /// How many processes a build may have at once.
    build_processes: u64 = build.processes or Count(4096);
    /// How many bytes a file may have that a build writes.
    build_file: u64 = build.file or Size(64 << 30);
    /// How many files one process of a build may have open.
    build_open_files: u64 = build.open_files or Count(1 << 16);
    /// The sandbox around the build.
    sandbox: Sandbox = sandbox.mode or Sandbox::Auto;
    /// Whether the build may use the network.
    network: bool = sandbox.network or false;
    /// How many bytes the caches of tools may have at the start of a run.
    cache_limit: u64 = sandbox.cache_limit or Size(8 << 30);
    /// How many implementing turns end an iteration of the spec loop.
    spec_max_turns: u64 = spec.max_turns or Count(100);
    /// What becomes of the changes of an order's commands outside of its files.
    byproducts: Byproducts = order.byproducts or Byproducts::Restore;
    /// Whether replies may not change a file that the build command or its script names.
    protect_grader: bool = protect_grader or false;
    /// Whether the model may edit lines.
    edits: bool = edits or false;
}

#[expect(
    clippy::expect_used,
    reason = "the name is a constant, which every test reads"
)]
fn default_model() -> Models {
    Models::from(
        "gemini-3.8-flash"
            .parse::<ModelId>()
            .expect("the name of a model"),
    )
}

fn default_build() -> CommandLine {
    let command = "./build.sh".to_owned();
    CommandLine {
        text: command.clone(),
        argv: vec![command],
    }
}
