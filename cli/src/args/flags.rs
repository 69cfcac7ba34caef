//! The flags that are settings: each has its key in the configuration, which it goes before.

use std::str::FromStr;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, Args};
use settings::{
    Address, Build, CommandLine, Count, Dollars, Layer, Limits, Model, ModelName, Pattern, Place, Sandbox,
    Size, Temperature, Time, VariableName, Walls,
};

/// What a run may use of time, calls and money.
#[expect(clippy::struct_field_names, reason = "each is the flag of its name")]
#[derive(Debug, Clone, Default, Args)]
pub struct LimitArgs {
    /// Send no call that could pass so many US dollars in all
    #[arg(long, value_name = "USD", allow_negative_numbers = true)]
    pub max_cost: Option<Dollars>,
    /// Send no call that could pass so many tokens in all
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    pub max_tokens: Option<Count>,
    /// Make no more model calls than this that are or may be paid for, retries included
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    pub max_calls: Option<Count>,
    /// End the run at the next model call after this time
    #[arg(long, value_name = "DURATION")]
    pub max_time: Option<Time>,
}

impl LimitArgs {
    /// As a table of the configuration.
    pub fn layer(&self) -> Limits {
        Limits {
            max_cost: self.max_cost,
            max_tokens: self.max_tokens,
            max_calls: self.max_calls,
            max_time: self.max_time,
            rounds: None,
        }
    }
}

/// Settings of every loop that asks a model. Defaults are in the configuration, not here.
#[expect(clippy::struct_excessive_bools, reason = "two flags and their opposites, as clap has them")]
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Settings (code-commit config shows what is in force)")]
pub struct SettingArgs {
    /// The model: gemini/NAME, openai/NAME, scripted/FILE, recorded/RUN, or a bare name whose provider is plain
    #[arg(long, value_name = "MODEL")]
    pub model: Option<ModelName>,
    /// Where the model's service is: for Gemini the origin, for the OpenAI dialect the address with its /v1
    #[arg(long, value_name = "URL")]
    pub base_url: Option<Address>,
    /// How freely the model chooses its words, 0 to 2; left to its service unless given
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    pub temperature: Option<Temperature>,
    /// Stream the answer, which is the default
    #[arg(long, overrides_with = "no_stream")]
    pub stream: bool,
    /// Wait for the whole answer instead of streaming it
    #[arg(long, overrides_with = "stream")]
    pub no_stream: bool,
    /// How long one model call may take, retries included [default: 10m]
    #[arg(long, value_name = "DURATION")]
    pub timeout: Option<Time>,
    #[command(flatten)]
    pub limits: LimitArgs,
    /// Use fewer rounds than the loop has: at most 4, `implement` 8
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    pub rounds: Option<Count>,
    /// What decides whether the work is done [default: ./build.sh]
    #[arg(long, value_name = "COMMAND")]
    pub build_command: Option<CommandLine>,
    /// How long one build may take [default: 10m]
    #[arg(long, value_name = "DURATION")]
    pub build_timeout: Option<Time>,
    /// Stop a build that prints more than this [default: 64MiB]
    #[arg(long, value_name = "SIZE")]
    pub build_output_limit: Option<Size>,
    /// The wall around the build [default: auto]
    #[arg(long, value_name = "MODE", value_parser = crate::args::sandbox())]
    pub sandbox: Option<Sandbox>,
    /// Let the build use the network
    #[arg(long, overrides_with = "no_network")]
    pub network: bool,
    /// Keep the build off the network, which is the default
    #[arg(long, overrides_with = "network")]
    pub no_network: bool,
    /// Let the build change this folder outside of the project, where it has to be; may be given again
    #[arg(long, value_name = "DIR", action = ArgAction::Append)]
    pub writable: Vec<Place>,
    /// Let the build see this outside of the project; may be given again
    #[arg(long, value_name = "PATH", action = ArgAction::Append)]
    pub readable: Vec<Place>,
    /// Let this variable of the environment pass into the build; may be given again
    #[arg(long, value_name = "NAME", action = ArgAction::Append)]
    pub env: Vec<VariableName>,
    /// Protect what this gitignore pattern matches; may be given again
    #[arg(long, value_name = "PATTERN", action = ArgAction::Append)]
    pub protect: Vec<Pattern>,
}

impl SettingArgs {
    /// As the topmost layer of the configuration.
    pub fn layer(&self) -> Layer {
        let Self { protect, writable, readable, env, .. } = self.clone();
        Layer {
            protect,
            model: Model {
                name: self.model.clone(),
                base_url: self.base_url.clone(),
                temperature: self.temperature,
                stream: switch(self.stream, self.no_stream),
                timeout: self.timeout,
                ..Model::default()
            },
            limits: Limits { rounds: self.rounds, ..self.limits.layer() },
            build: Build {
                command: self.build_command.clone(),
                timeout: self.build_timeout,
                output_limit: self.build_output_limit,
                ..Build::default()
            },
            sandbox: Walls {
                mode: self.sandbox,
                network: switch(self.network, self.no_network),
                writable,
                readable,
                env,
            },
            ..Layer::default()
        }
    }
}

/// A flag and its opposite, of which the later one is left.
fn switch(on: bool, off: bool) -> Option<bool> {
    match (on, off) {
        (true, _) => Some(true),
        (false, true) => Some(false),
        (false, false) => None,
    }
}

/// The words of `--sandbox`.
pub fn sandbox() -> impl TypedValueParser<Value = Sandbox> {
    let words = Sandbox::WORDS.iter().map(|(word, help)| PossibleValue::new(*word).help(help.trim()));
    PossibleValuesParser::new(words).try_map(|word| word.parse())
}

/// What is no such number is told so, a negative one too.
pub(super) fn whole_number<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("`{text}` is no whole number"))
}

/// One failure is not yet the same again.
pub(super) fn two_or_more(text: &str) -> Result<u32, String> {
    text.parse().ok().filter(|count| *count >= 2).ok_or_else(|| "it takes a number from 2 on".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        settings: SettingArgs,
    }

    fn layer(flags: &[&str]) -> Layer {
        Line::parse_from(["x"].iter().chain(flags)).settings.layer()
    }

    #[test]
    fn no_flag_is_an_empty_layer() {
        assert_eq!(layer(&[]), Layer::default());
    }

    #[test]
    fn the_later_of_a_flag_and_its_opposite_counts() {
        assert_eq!(layer(&["--network", "--no-network"]).sandbox.network, Some(false));
        assert_eq!(layer(&["--no-network", "--network"]).sandbox.network, Some(true));
        assert_eq!(layer(&["--no-stream", "--stream"]).model.stream, Some(true));
        assert_eq!(layer(&["--no-stream"]).model.stream, Some(false));
    }

    #[test]
    fn lists_are_given_one_by_one() {
        let names = layer(&["--env", "A", "--env", "B"]).sandbox.env;
        assert_eq!(names.iter().map(|name| name.0.as_str()).collect::<Vec<_>>(), ["A", "B"]);
    }
}
