//! `code-commit -h`: one screen.

/// Every command by what a person wants, and three examples; `--help` has the rest.
pub(super) const HELP: &str = "\
The model proposes, the harness decides.
Usage: code-commit [-m QUERY] [OPTIONS]    change this project until it builds
       code-commit COMMAND [OPTIONS]       all flags: code-commit COMMAND --help

Change
  run                              the default loop, as without a command
  implement, order, phase, spec    the other loops: rounds, work orders, agents
  again, resume                    go on from a finished run, or a stopped one
  check, apply                     run only the build, or apply a reply you have
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
