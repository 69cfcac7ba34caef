//! Help on screens: one for `code-commit -h`, two for `--help`. `code-commit help` and the manual pages have every detail.

use std::ffi::OsString;

use clap::builder::PossibleValue;
use clap::{Arg, ArgAction, Command};

/// With `-h` the program's own help is one screen; clap would list every flag.
pub(super) fn with_help(mut command: Command, words: &[OsString]) -> Command {
    let is_asked = |help: &str| words.iter().any(|word| word == help);
    if is_asked("-h") {
        command.override_help(HELP)
    } else if is_asked("--help") {
        command.build();
        compact(command)
    } else {
        command
    }
}

/// Flags in two columns: clap would give each a paragraph, and each of its values a line.
fn compact(command: Command) -> Command {
    let about = command.get_long_about().map(ToString::to_string);
    let details = about.as_deref().and_then(|about| about.split_once("\n\n"));
    let details = details.map(|(_, details)| details.to_owned());
    command
        .after_help(details.unwrap_or_default())
        .mut_args(in_a_row)
        .mut_subcommands(compact)
}

/// The possible values behind the help.
fn in_a_row(arg: Arg) -> Arg {
    if matches!(arg.get_action(), ArgAction::Help) {
        return arg.action(ArgAction::HelpShort).help("Print help");
    }
    let values = arg.get_possible_values();
    let is_shown = arg.get_action().takes_values() && !arg.is_hide_possible_values_set();
    if values.is_empty() || !is_shown {
        return arg;
    }
    let names: Vec<&str> = values.iter().map(PossibleValue::get_name).collect();
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let (what, default) = help.split_at(help.find(" [default").unwrap_or(help.len()));
    let help = format!("{what}: {}{default}", names.join(", "));
    arg.help(help).hide_possible_values(true)
}

/// Every command by what a person wants, and three examples; `--help` has the rest.
pub(super) const HELP: &str = "\
The model proposes, the harness decides.
Usage: code-commit [-m QUERY] [OPTIONS]    change this project until it builds
       code-commit COMMAND [OPTIONS]       all flags: code-commit COMMAND --help

Change
  run                              the default loop, as without a command
  implement, order, phase, spec    the other loops: rounds, work orders, agents
  again, resume                    go on from a finished run, or a stopped one
  check, apply, acp, mcp           the build; a reply; for editors and agents
Look
  runs, show, diff, costs          the runs; what one did, changed and cost
  page, parse, guard               a page of a run; a reply; a path
Steer
  undo, redo                       take a change back, or reapply it
  clean                            remove old runs
Set up
  init, rollup, demo               a new project; the code to show; an example
  config, trust, doctor            settings in force; what works on this machine
  completions, man, help           for your shell; manual pages; help

Examples:
  code-commit demo                                 a complete run without a key
  code-commit -m \"Add a --quiet flag.\" --commit    change, build and commit
  code-commit undo                                 take the newest run back
";

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use clap::CommandFactory as _;

    use super::*;
    use crate::args::Cli;

    #[test]
    fn it_is_one_screen() {
        assert!(HELP.lines().count() <= 24, "{} lines", HELP.lines().count());
        for line in HELP.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }

    #[test]
    fn the_flags_of_every_command_are_two_screens() {
        for command in [
            &["code-commit", "--help"][..],
            &["code-commit", "order", "run", "--help"],
        ] {
            let words: Vec<OsString> = command.iter().map(OsString::from).collect();
            let mut cli = with_help(Cli::command().term_width(100), &words);
            let help = cli
                .try_get_matches_from_mut(&words)
                .unwrap_err()
                .to_string();
            assert!(help.contains("--max-cost"), "{help}");
            assert!(help.lines().count() <= 100, "{help}");
        }
    }

    #[test]
    fn every_command_has_its_place() {
        let groups = HELP.split("\n\n").nth(1).unwrap();
        let mut listed: BTreeMap<&str, usize> = BTreeMap::new();
        for line in groups.lines().filter_map(|line| line.strip_prefix("  ")) {
            let (names, _) = line.split_once("   ").unwrap();
            names
                .split(", ")
                .for_each(|name| *listed.entry(name).or_default() += 1);
        }
        let mut cli = Cli::command();
        cli.build();
        let all = cli
            .get_subcommands()
            .map(|command| (command.get_name(), 1))
            .collect();
        assert_eq!(listed, all);
    }
}
