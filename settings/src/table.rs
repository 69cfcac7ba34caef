//! The table of settings. A new setting is only a row here: the files' format and JSON schema, the
//! flag, the default, what a project may not decide, `code-commit config` and the record follow.
//!
//! A row: schema description; key and type in a file; field and type; default; when it weakens; flag.

use std::path::PathBuf;
use std::time::Duration;

use code_commit_llm::{ModelId, Money, Price, Provider};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::key::{Flag, Given, Key, Takes};
use crate::provider::{prices, providers};
use crate::slot::Slot;
use crate::{
    Address, Byproducts, CommandLine, CommitScope, Count, Dollars, HostName, ModelNames, Models,
    OutputLimit, OwnProviders, Pattern, Place, Sandbox, Setting, Size, SystemRole, Temperature,
    Time, VariableName,
};

macro_rules! optional {
    () => {
        None
    };
    ($some:expr) => {
        Some($some)
    };
}

/// Generates the tables of a file as structs, the settings as another struct, and all keys.
macro_rules! settings {
    ($(
        $(#[$table_meta:meta])*
        $Table:ident $name:literal $(.$path:ident)* { $($(#[$sub_meta:meta])* $sub:ident: $Sub:ident,)* } {$(
            $(#[$meta:meta])*
            $key:ident: $File:ty => $field:ident: $Setting:ty = $default:expr, $weakens:expr $(, $flag:expr)?;
        )*}
    )*) => {
        $(
            #[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
            #[serde(default, deny_unknown_fields)]
            $(#[$table_meta])*
            pub struct $Table {
                $($(#[$meta])* pub $key: $File,)*
                $($(#[$sub_meta])* pub $sub: $Sub,)*
            }

            impl AsMut<$Table> for Layer {
                fn as_mut(&mut self) -> &mut $Table {
                    &mut (*self)$(.$path)*
                }
            }
        )*

        /// Every setting of a run. They are recorded, so that a resumed run uses the same ones; what a record does not
        /// have came later, and has its default.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct Settings {
            $($(#[doc = concat!("`", $name, stringify!($key), "`")] pub $field: $Setting,)*)*
        }

        impl Settings {
            /// Whether both say the same, wherever they say it: the same flag may stand in a file one day.
            #[must_use]
            pub fn has_same_values(&self, other: &Self) -> bool {
                $($($crate::setting::Values::are_same(&self.$field, &other.$field) &&)*)* true
            }
        }

        /// All defaults.
        impl Default for Settings {
            fn default() -> Self {
                Self { $($($field: $default,)*)* }
            }
        }

        /// Every key, in the order of display.
        pub const KEYS: &[Key] = &[$($(
            Key {
                name: concat!($name, stringify!($key)),
                flag: optional!($($flag)?),
                give: optional!($({
                    let _: Flag = $flag;
                    |layer, text| AsMut::<$Table>::as_mut(layer).$key.give(text)
                })?),
                put: |settings, layer, origin, bases| {
                    settings.$field.put(&mut AsMut::<$Table>::as_mut(layer).$key, origin, bases);
                },
                shown: |settings| Slot::<$File>::shown(&settings.$field),
                take_weakening: |layer, settings, bases| {
                    settings.$field.take_weakening(&mut AsMut::<$Table>::as_mut(layer).$key, $weakens, bases)
                },
            },
        )*)*];
    };
}

settings! {
    /// `[model]`.
    Model "model." .model {
        /// How a server of the OpenAI dialect differs from what its address suggests.
        dialect: Dialect,
    } {
        /// `PROVIDER/NAME`, `scripted/FILE`, or a bare name whose provider is obvious; several are separated by commas. Trusted files only.
        // It decides what a call costs, and who is sent the code.
        name: Option<ModelNames> => model: Setting<Models> = Setting::default(default_model()), differs,
            one("model", "MODEL", "The model: PROVIDER/NAME, scripted/FILE, or a bare name whose provider is obvious; of several, separated by commas, the next is asked if one is out of quota, out of service or too small").without_default();
        /// Models for repairs, separated by commas: one for each, the last one for all further ones. Trusted files only.
        escalate: Option<ModelNames> => escalate: Setting<Option<Models>> = unset(), differs,
            one("escalate", "MODEL", "The models for repairs, separated by commas: one for each, the last one for all further ones");
        /// Where the service is: for Gemini and Anthropic the origin, for the OpenAI dialect the address with its `/v1`. It counts for models of the
        /// same provider only. Trusted files only.
        // A variable of the environment sets it, too: which one depends on the provider, see `Settings::put_environment`.
        base_url: Option<Address> => base_url: Setting<Option<String>> = unset(), differs,
            one("base-url", "URL", "The address of the model's service: for Gemini and Anthropic the origin, for the OpenAI dialect including /v1");
        /// How freely the model chooses its words, 0 to 2; if not set, its service decides.
        temperature: Option<Temperature> => temperature: Setting<Option<f64>> = unset(), never;
        /// Stream the reply.
        stream: Option<bool> => stream: Setting<bool> = Setting::default(true), never,
            switch("stream", "Stream the reply [default: true]");
        /// How long the model's service may send nothing: 5m, or 10m for a reply that is not streamed. Trusted files only.
        // A call that is abandoned is paid for, and made again.
        timeout: Option<Time> => timeout: Setting<Option<Duration>> = unset(), differs,
            one("timeout", "DURATION", "How long the model's service may send nothing; by default 5m, or 10m for a reply that is not streamed");
        /// How long one model call may take, including retries: as long as it streams, or `timeout` for a reply that is not streamed. Trusted files only.
        call_limit: Option<Time> => call_limit: Setting<Option<Duration>> = unset(), differs;
        /// How long to wait for the quota of the model's service to be reset. By default a run that would have to wait for minutes ends.
        wait: Option<Time> => wait: Setting<Option<Duration>> = unset(), never,
            one("wait", "DURATION", "How long to wait for the quota of the model's service to be reset; by default the run ends and says when to come again")
                .on_resume().between_turns("How long a turn may wait for the quota of an agent's service to be reset [default: 5m]");
    }

    /// `[model.dialect]`.
    Dialect "model.dialect." .model.dialect {} {
        /// The name of the output limit: `max_completion_tokens` or `max_tokens`.
        max_tokens: Option<OutputLimit> => dialect_max_tokens: Setting<Option<OutputLimit>> = unset(), never;
        /// The role of the system instruction: `developer` or `system`.
        system_role: Option<SystemRole> => dialect_system_role: Setting<Option<SystemRole>> = unset(), never;
    }

    /// `[limits]`. A missing limit means no limit; a limit of zero is an error.
    Limits "limits." .limits {} {
        /// US dollars. No call is sent that could exceed it; needs a model with a known price.
        max_cost: Option<Dollars> => max_cost: Setting<Option<Money>> = unset(), raises,
            one("max-cost", "USD", "Stop before the total cost could exceed this many US dollars")
                .on_resume().between_turns("Start no turn after the run has cost this many US dollars, by the agent's own count");
        /// Tokens, input and output together.
        max_tokens: Option<Count> => max_tokens: Setting<Option<u64>> = unset(), raises,
            one("max-tokens", "NUMBER", "Stop before the total could exceed this many tokens")
                .on_resume().between_turns("Start no turn after the run has used this many tokens");
        /// Model calls that were, or may have been, paid for; retries count.
        max_calls: Option<Count> => max_calls: Setting<Option<u64>> = unset(), raises,
            one("max-calls", "NUMBER", "Make at most this many model calls that are or may have to be paid for, including retries").on_resume();
        /// Wall time of the run.
        max_time: Option<Time> => max_time: Setting<Option<Duration>> = unset(), raises,
            one("max-time", "DURATION", "End the run at the next model call after this time")
                .on_resume().between_turns("Start no turn after turns and commands have taken this long");
        /// Rounds. It can only lower the loop's own maximum.
        rounds: Option<Count> => rounds: Setting<Option<u64>> = unset(), raises,
            one("rounds", "NUMBER", "Use fewer rounds than the loop's maximum: at most 4, `implement` 8");
    }

    /// `[build]`.
    Build "build." .build {} {
        /// A program and its arguments, run at the root; quotes group words, no shell is involved.
        command: Option<CommandLine> => build: Setting<CommandLine> = Setting::default(default_build()), never,
            one("build-command", "COMMAND", "The command that decides whether the work is done");
        /// How long one build may take.
        timeout: Option<Time> => build_timeout: Setting<Duration> = Setting::default(Duration::from_mins(10)), never,
            one("build-timeout", "DURATION", "How long one build may take");
        /// What a build, or a command of an order, may leave although another program runs it later without being asked: gitignore patterns,
        /// relative to the root. The lists of all layers are combined. Trusted files only.
        may_write: Vec<Pattern> => may_write: Vec<Setting<String>> = Vec::new(), differs,
            many("allow-write", "PATTERN", "Let the build leave files of this gitignore pattern that another program runs later without being asked, such as .envrc; can be repeated");
        /// A build that prints more is stopped.
        output_limit: Option<Size> => build_output: Setting<u64> = Setting::default(64 << 20), raises;
        /// If a build fails after printing more, the model gets the beginning and the end.
        prompt_limit: Option<Size> => build_prompt: Setting<u64> = Setting::default(1 << 20), raises;
        /// A build whose processes use more memory together is stopped; if not set, three quarters of the machine's. Trusted files only.
        memory: Option<Size> => build_memory: Setting<Option<u64>> = unset(), differs;
        /// A build that has more processes at once is stopped.
        processes: Option<Count> => build_processes: Setting<u64> = Setting::default(4096), raises;
        /// The space for temporary files; if not set, half of the machine's memory. Trusted files only.
        temporary: Option<Size> => build_temporary: Setting<Option<u64>> = unset(), differs;
        /// How large a file a build may write.
        file: Option<Size> => build_file: Setting<u64> = Setting::default(64 << 30), raises;
        /// How many files, pipes and sockets one process of a build may have open.
        open_files: Option<Count> => build_open_files: Setting<u64> = Setting::default(1 << 16), raises;
    }

    /// `[sandbox]`. Only a trusted file can open it.
    Isolation "sandbox." .sandbox {} {
        /// How the sandbox is enforced.
        mode: Option<Sandbox> => sandbox: Setting<Sandbox> = Setting::default(Sandbox::Auto), is_weaker,
            Flag::new("sandbox", Takes::Word("MODE", Sandbox::WORDS), "The sandbox around the build");
        /// Whether the build may use the network.
        network: Option<bool> => network: Setting<bool> = Setting::default(false), raises,
            switch("network", "Let the build use the network");
        /// Hosts that the build may reach although it has no network, by a proxy: `HOST` (ports 443 and 80) or `HOST:PORT`. `NAME=RANGE` lets the name lead to these addresses, also private ones: `mirror.example=10.0.0.0/8`. The lists of all layers are combined.
        hosts: Vec<HostName> => hosts: Vec<Setting<String>> = Vec::new(), differs,
            many("allow-host", "HOST[:PORT][=RANGE]", "Let the build reach this host by a proxy, without a network otherwise; can be repeated");
        /// Folders outside the project that the build may change. The lists of all layers are combined.
        writable: Vec<Place> => writable: Vec<Setting<PathBuf>> = Vec::new(), differs,
            many("writable", "DIR", "Let the build change this existing folder outside the project; can be repeated");
        /// Files and folders outside the project that the build may read.
        readable: Vec<Place> => readable: Vec<Setting<PathBuf>> = Vec::new(), differs,
            many("readable", "PATH", "Let the build read this path outside the project; can be repeated");
        /// What builds have written to the caches of tools is removed at the start of a run if it is larger than this.
        cache_limit: Option<Size> => cache_limit: Setting<u64> = Setting::default(8 << 30), raises;
        /// Variables that the build gets in addition to PATH, HOME, the locale and similar ones.
        env: Vec<VariableName> => env: Vec<Setting<String>> = Vec::new(), differs,
            many("env", "NAME", "Pass this environment variable to the build; can be repeated");
    }

    /// `[spec]`. Never a key that `.cuggino.json` owns.
    Spec "spec." .spec {} {
        /// What a checkpoint commits.
        commit_scope: Option<CommitScope> => commit_scope: Setting<Option<CommitScope>> = unset(), never;
        /// An iteration in which the agent has implemented for this many turns ends the run.
        max_turns: Option<Count> => spec_max_turns: Setting<u64> = Setting::default(100), raises;
    }

    /// `[order]`.
    Order "order." .order {} {
        /// What becomes of the changes of commands outside of `allowed_files` when an order passes: `restore` or `keep`.
        byproducts: Option<Byproducts> => byproducts: Setting<Byproducts> = Setting::default(Byproducts::Restore), never;
    }

    /// `[rollup]`. What `code-commit rollup` and a first run put into the code roll-up.
    RollUp "rollup." .rollup {} {
        /// Only these files: gitignore patterns, relative to the root. By default all that git tracks.
        include: Vec<Pattern> => rollup_include: Vec<Setting<Vec<String>>> = Vec::new(), never;
        /// Not these files: gitignore patterns, relative to the root.
        exclude: Vec<Pattern> => rollup_exclude: Vec<Setting<Vec<String>>> = Vec::new(), never;
        /// Tokens. The files that matter most for the query are shown, the others listed.
        budget: Option<Count> => rollup_budget: Setting<Option<u64>> = unset(), never;
    }

    /// A table without keys.
    Reserved "" .phase {} {}

    /// Settings of code-commit: `code-commit.toml` at a project's root, or `code-commit/config.toml` in the user's configuration folder.
    /// Every key may be left out.
    #[schemars(title = "code-commit.toml")]
    Layer "" {
        /// Which model is asked, and how.
        model: Model,
        /// The limits of a run.
        limits: Limits,
        /// The command that decides whether the work is done.
        build: Build,
        /// The sandbox around the build.
        sandbox: Isolation,
        /// Settings of `code-commit spec` that `.cuggino.json` does not have.
        spec: Spec,
        /// Settings of `code-commit order`.
        order: Order,
        /// What is in the code roll-up.
        rollup: RollUp,
        /// Reserved for settings of `code-commit phase`, whose own files are in `.abl/`; it has none.
        phase: Reserved,
    } {
        /// Files that no model may write and no build may change: gitignore patterns, relative to
        /// the root, matched in any case. The lists of all layers are combined, and a `!` pattern
        /// only affects its own list.
        protect: Vec<Pattern> => protect: Vec<Setting<Vec<String>>> = Vec::new(), never,
            many("protect", "PATTERN", "Protect what this gitignore pattern matches; can be repeated");
        /// Refuse replies that change a file which the build command or its script names; by default such a
        /// change is flagged.
        protect_grader: Option<bool> => protect_grader: Setting<bool> = Setting::default(false), lowers;
        /// Teach the model to answer with edits of lines, too, instead of whole files only.
        edits: Option<bool> => edits: Setting<bool> = Setting::default(false), never,
            switch("edits", "Let the model edit lines instead of giving whole files");
        /// Prices that override the built-in table.
        #[schemars(schema_with = "prices")]
        price: Vec<Price> => prices: Vec<Setting<Price>> = Vec::new(), differs;
        /// Services that are not built in, each a table `[providers.NAME]`. Trusted files only.
        // A key is sent to the address that stands here.
        #[schemars(schema_with = "providers")]
        providers: OwnProviders => providers: Vec<Setting<Provider>> = Vec::new(), differs;
    }
}

fn unset<T>() -> Setting<Option<T>> {
    Setting::default(None)
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

const fn one(name: &'static str, value: &'static str, help: &'static str) -> Flag {
    Flag::new(name, Takes::One(value), help)
}

const fn many(name: &'static str, value: &'static str, help: &'static str) -> Flag {
    Flag::new(name, Takes::Many(value), help)
}

const fn switch(name: &'static str, help: &'static str) -> Flag {
    Flag::new(name, Takes::Switch, help)
}

/// No value weakens anything.
fn never<T>(_: &T, _: Option<&T>) -> bool {
    false
}

/// A safeguard may be switched on.
fn lowers<T: PartialOrd>(wanted: &T, now: Option<&T>) -> bool {
    now.is_some_and(|now| wanted < now)
}

/// A limit may be lowered; if there is none, any limit is lower.
fn raises<T: PartialOrd>(wanted: &T, now: Option<&T>) -> bool {
    now.is_some_and(|now| wanted > now)
}

/// Only the current value may be set.
fn differs<T: PartialEq>(wanted: &T, now: Option<&T>) -> bool {
    now != Some(wanted)
}

/// Whether the wanted sandbox is weaker, or may be. A container is as strong as its daemon: root.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "as every rule has it")]
fn is_weaker(wanted: &Sandbox, now: Option<&Sandbox>) -> bool {
    let strength = |mode: &Sandbox| match mode {
        Sandbox::Off => 0,
        Sandbox::Landlock | Sandbox::Docker => 1,
        Sandbox::Auto => 2,
        Sandbox::Namespaces => 3,
    };
    now.is_some_and(|now| wanted != now && strength(wanted) <= strength(now))
}
