//! Flags that are settings: those of `Options`, or some of them. Each overrides its key in the
//! configuration.

use std::ffi::OsString;
use std::marker::PhantomData;
use std::str::FromStr;

use clap::builder::{Resettable, StyledStr};
use clap::{Arg, ArgMatches, Args, Command, Error, FromArgMatches};
use code_commit_settings::Options;

/// Settings of every loop that calls a model.
pub type SettingArgs = Flags<All>;

/// Those of a build: its command, its sandbox, and what it may not change.
pub type BuildArgs = Flags<OfBuild>;

/// Limits on time, calls and cost of a run; also of a resumed one.
pub type LimitArgs = Flags<Resumed>;

/// Those of a work order, in its words.
pub type OrderSettingArgs = Flags<OfOrder>;

/// Limits of a run of agents, checked between turns.
pub type TurnLimitArgs = Flags<BetweenTurns>;

/// Flags as the topmost layer of the configuration.
#[derive(Debug, Clone)]
pub struct Flags<W> {
    pub layer: Options,
    which: PhantomData<W>,
}

/// Which settings a command has as flags.
pub trait Which {
    const HEADING: Option<&str> =
        Some("Settings (code-commit config shows the effective settings)");

    fn has(flag: &str) -> bool;

    /// The flag's help in this command, if the general one does not fit.
    fn help(_: &str) -> Option<&'static str> {
        None
    }
}

#[derive(Debug, Clone)]
pub enum All {}

impl Which for All {
    fn has(_: &str) -> bool {
        true
    }
}

#[derive(Debug, Clone)]
pub enum OfBuild {}

impl Which for OfBuild {
    fn has(flag: &str) -> bool {
        is_of_sandbox(flag)
            || matches!(
                flag,
                "protect" | "build-command" | "build-timeout" | "writable" | "readable" | "env"
            )
    }
}

fn is_of_sandbox(flag: &str) -> bool {
    matches!(flag, "sandbox" | "network" | "allow-host" | "allow-write")
}

#[derive(Debug, Clone)]
pub enum Resumed {}

impl Which for Resumed {
    const HEADING: Option<&str> = None;

    fn has(flag: &str) -> bool {
        matches!(
            flag,
            "wait" | "max-cost" | "max-tokens" | "max-calls" | "max-time"
        )
    }
}

#[derive(Debug, Clone)]
pub enum OfOrder {}

impl Which for OfOrder {
    const HEADING: Option<&str> = None;

    fn has(flag: &str) -> bool {
        Resumed::has(flag)
            || is_of_sandbox(flag)
            || matches!(flag, "base-url" | "timeout" | "edits")
    }

    fn help(flag: &str) -> Option<&'static str> {
        (flag == "allow-write").then_some(
            "With `byproducts = \"keep\"`: let the commands leave files of this gitignore pattern that another program runs later without being asked; can be repeated",
        )
    }
}

#[derive(Debug, Clone)]
pub enum BetweenTurns {}

impl Which for BetweenTurns {
    const HEADING: Option<&str> = None;

    fn has(flag: &str) -> bool {
        Self::help(flag).is_some()
    }

    fn help(flag: &str) -> Option<&'static str> {
        match flag {
            "wait" => Some(
                "How long a turn may wait for the quota of an agent's service to be reset [default: 5m]",
            ),
            "max-cost" => Some(
                "Start no turn after the run has cost this many US dollars, by the agent's own count",
            ),
            "max-tokens" => Some("Start no turn after the run has used this many tokens"),
            "max-time" => Some("Start no turn after turns and commands have taken this long"),
            _ => None,
        }
    }
}

/// The flags of a command, in the order of display.
fn flags<W: Which>() -> Vec<Arg> {
    let all = Options::augment_args(Command::new("settings"));
    let flags = all
        .get_arguments()
        .filter(|arg| W::has(arg.get_long().unwrap_or_default()));
    let described = |(order, arg): (usize, &Arg)| {
        let name = arg.get_long().unwrap_or_default();
        let help = W::help(name)
            .map(StyledStr::from)
            .or(arg.get_help().cloned());
        let arg = arg
            .clone()
            .help(Resettable::from(help))
            .long_help(None::<&str>);
        let arg = arg.help_heading(W::HEADING).display_order(100 + order);
        if !matches!(name, "edits" | "stream" | "network") {
            return arg.allow_negative_numbers(true);
        }
        let id = arg.get_id().clone();
        // A switch may stand alone; only with an equals sign is it clear what its value is.
        arg.value_name("true|false")
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("true")
            .hide_possible_values(true)
            .overrides_with(id)
    };
    flags.enumerate().map(described).collect()
}

impl<W: Which> Args for Flags<W> {
    fn augment_args(command: Command) -> Command {
        command.args(flags::<W>())
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<W: Which> FromArgMatches for Flags<W> {
    /// The options know all flags, and the command some: those that were given are read once more.
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut words = Vec::new();
        for flag in flags::<W>() {
            for value in matches
                .get_raw(flag.get_id().as_str())
                .into_iter()
                .flatten()
            {
                let mut word =
                    OsString::from(format!("--{}=", flag.get_long().unwrap_or_default()));
                word.push(value);
                words.push(word);
            }
        }
        let all = Command::new("settings").no_binary_name(true);
        let matches = all.args(flags::<All>()).try_get_matches_from(words)?;
        Ok(Self {
            layer: Options::from_arg_matches(&matches)?,
            which: PhantomData,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        Self::from_arg_matches(matches).map(|new| *self = new)
    }
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
    if text.trim().is_empty() {
        return Err("it is empty; for the first line of the query write --commit".to_owned());
    }
    Ok(text.to_owned())
}

/// How many tokens a roll-up may have.
pub(super) fn token_budget(text: &str) -> Result<u64, String> {
    if text == "none" {
        return Ok(code_commit_settings::NO_BUDGET);
    }
    match whole_number(text)? {
        0 => Err("0 would show nothing; for no budget write none".to_owned()),
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

    fn layer(flags: &[&str]) -> Options {
        Line::parse_from(["x"].iter().chain(flags)).settings.layer
    }

    #[test]
    fn no_flag_is_an_empty_layer() {
        assert_eq!(layer(&[]), Options::default());
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
