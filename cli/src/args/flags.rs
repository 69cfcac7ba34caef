//! Flags that are settings, generated from the table of settings. Each overrides its key in the
//! configuration.

use std::marker::PhantomData;
use std::str::FromStr;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches};
use code_commit_settings::{Flag, KEYS, Key, Layer, Sandbox, Takes};

/// Settings of every loop that calls a model.
pub type SettingArgs = Flags<All>;

pub type BuildArgs = Flags<OfBuild>;

/// Limits on time, calls and cost of a run; also of a resumed one.
pub type LimitArgs = Flags<Resumed>;

pub type OrderSettingArgs = Flags<OfOrder>;

/// Limits of a run of agents, checked between turns.
pub type TurnLimitArgs = Flags<BetweenTurns>;

/// Flags as the topmost layer of the configuration.
#[derive(Debug, Clone)]
pub struct Flags<W> {
    pub layer: Layer,
    which: PhantomData<W>,
}

/// Which flags of the table a command has.
pub trait Which {
    const HEADING: Option<&str> = None;

    /// The help for this flag; `None` if the command does not have it.
    fn help(key: &Key, flag: &Flag) -> Option<&'static str>;
}

#[derive(Debug, Clone)]
pub enum All {}

impl Which for All {
    const HEADING: Option<&str> = Some("Settings (code-commit config shows what is in force)");

    fn help(_: &Key, flag: &Flag) -> Option<&'static str> {
        Some(flag.help)
    }
}

/// Those of a build: its command, its sandbox, and what it may not change.
#[derive(Debug, Clone)]
pub enum OfBuild {}

impl Which for OfBuild {
    const HEADING: Option<&str> = All::HEADING;

    fn help(key: &Key, flag: &Flag) -> Option<&'static str> {
        let is_of_build = key.name == "protect"
            || ["build.", "sandbox."]
                .iter()
                .any(|of| key.name.starts_with(of));
        is_of_build.then_some(flag.help)
    }
}

/// Those that a resumed run accepts.
#[derive(Debug, Clone)]
pub enum Resumed {}

impl Which for Resumed {
    fn help(_: &Key, flag: &Flag) -> Option<&'static str> {
        flag.on_resume.then_some(flag.help)
    }
}

/// Those of a work order, in its words.
#[derive(Debug, Clone)]
pub enum OfOrder {}

impl Which for OfOrder {
    fn help(key: &Key, flag: &Flag) -> Option<&'static str> {
        match key.name {
            "model.base_url" => Some(flag.help),
            "model.timeout" => Some(
                "How long the model's service may send nothing; it sends nothing until the reply is there [default: 10m]",
            ),
            "sandbox.mode" => Some("The sandbox around the commands"),
            "sandbox.network" => Some("Let the commands use the network"),
            "sandbox.hosts" => Some("Let the commands reach this host by a proxy; can be repeated"),
            "build.may_write" => Some(
                "With `byproducts = \"keep\"`: let the commands leave files of this gitignore pattern that another program runs later without being asked; can be repeated",
            ),
            "edits" => Some(
                "Let the model edit lines of files that are shown whole, instead of giving whole files",
            ),
            _ => Resumed::help(key, flag),
        }
    }
}

/// Limits that are checked between turns of agents.
#[derive(Debug, Clone)]
pub enum BetweenTurns {}

impl Which for BetweenTurns {
    fn help(_: &Key, flag: &Flag) -> Option<&'static str> {
        flag.between_turns
    }
}

fn flags<W: Which>() -> impl Iterator<Item = (&'static Key, &'static Flag, &'static str)> {
    KEYS.iter().filter_map(|key| {
        let flag = key.flag.as_ref()?;
        Some((key, flag, W::help(key, flag)?))
    })
}

impl<W: Which> Args for Flags<W> {
    fn augment_args(command: Command) -> Command {
        let command = command.next_help_heading(W::HEADING);
        command.args(flags::<W>().map(|(key, flag, help)| describe(key, flag, help)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<W: Which> FromArgMatches for Flags<W> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut layer = Layer::default();
        for (key, flag, _) in flags::<W>() {
            for text in matches.get_many::<String>(flag.name).into_iter().flatten() {
                key.give(&mut layer, text)
                    .map_err(|why| Error::raw(ErrorKind::ValueValidation, why))?;
            }
        }
        Ok(Self {
            layer,
            which: PhantomData,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        Self::from_arg_matches(matches).map(|new| *self = new)
    }
}

fn describe(key: &'static Key, flag: &'static Flag, help: &str) -> Arg {
    let default = key
        .default_text()
        .map(|text| format!(" [default: {text}]"))
        .unwrap_or_default();
    let arg = Arg::new(flag.name)
        .long(flag.name)
        .help(format!("{help}{default}"));
    let read = |text: &str| {
        key.give(&mut Layer::default(), text)
            .map(|()| text.to_owned())
    };
    match flag.takes {
        Takes::One(value) => arg
            .value_name(value)
            .value_parser(read)
            .allow_negative_numbers(true),
        Takes::Many(value) => arg
            .value_name(value)
            .value_parser(read)
            .action(ArgAction::Append),
        Takes::Word(value, known) => arg.value_name(value).value_parser(words(known)),
        Takes::Switch => arg
            .value_name("true|false")
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("true")
            .value_parser(["true", "false"])
            .hide_possible_values(true)
            .overrides_with(flag.name),
    }
}

pub fn sandbox() -> impl TypedValueParser<Value = Sandbox> {
    words(Sandbox::WORDS).try_map(|word| word.parse())
}

pub(super) fn words(words: &'static [(&str, &str)]) -> PossibleValuesParser {
    words
        .iter()
        .map(|(word, help)| PossibleValue::new(*word).help(help.trim()))
        .collect::<Vec<_>>()
        .into()
}

/// Rejects anything that is not such a number, including negative ones, with a message.
pub(super) fn whole_number<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse()
        .map_err(|_| format!("`{text}` is not a whole number"))
}

pub(super) fn key(text: &str) -> Result<String, String> {
    let is_good = !text.trim().is_empty() && text.len() <= 200 && !text.contains(char::is_control);
    if is_good {
        Ok(text.to_owned())
    } else {
        Err("it must be one line of 1 to 200 bytes".to_owned())
    }
}

/// An empty one is most likely a variable that is not set.
pub(super) fn commit_message(text: &str) -> Result<String, String> {
    let is_blank = text.trim().is_empty();
    if is_blank {
        Err("it is empty; for the first line of the query write --commit".to_owned())
    } else {
        Ok(text.to_owned())
    }
}

/// How many tokens a roll-up may have.
pub(super) fn token_budget(text: &str) -> Result<u64, String> {
    match whole_number(text)? {
        0 => Err("0 would show nothing; for no budget leave it out".to_owned()),
        tokens => Ok(tokens),
    }
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
        Line::parse_from(["x"].iter().chain(flags)).settings.layer
    }

    #[test]
    fn no_flag_is_an_empty_layer() {
        assert_eq!(layer(&[]), Layer::default());
    }

    #[test]
    fn the_last_value_of_a_switch_counts_and_a_bare_one_is_true() {
        let network = |flags: &[&str]| layer(flags).sandbox.network;
        assert_eq!(network(&["--network"]), Some(true));
        assert_eq!(network(&["--network=false"]), Some(false));
        assert_eq!(network(&["--network", "--network=false"]), Some(false));
        assert_eq!(network(&["--network=false", "--network"]), Some(true));
        assert!(Line::try_parse_from(["x", "--network=maybe"]).is_err());
    }

    #[test]
    fn lists_are_given_one_by_one() {
        let names = layer(&["--env", "A", "--env", "B"]).sandbox.env;
        assert_eq!(
            names.iter().map(|name| name.0.as_str()).collect::<Vec<_>>(),
            ["A", "B"]
        );
    }
}
