//! Interprets the command line.

use std::ffi::{OsStr, OsString};
use std::path::{Component, Path};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{
    Arg, ArgMatches, ColorChoice, Command, CommandFactory as _, Error, FromArgMatches as _,
};

use code_commit_loop_commit::{COMMIT_ROUNDS, IMPLEMENT_ROUNDS};
use code_commit_settings::{Bases, Place};

use super::{Cli, Command as Asked, screen};

impl Cli {
    /// Reads the arguments, starting with the program's name. A flag of the default loop before a command is
    /// an error, since the command would ignore it. So is `--json` for a command whose output has another
    /// format.
    pub fn read(
        words: impl IntoIterator<Item = OsString>,
        bases: &Bases<'_>,
    ) -> Result<Self, Error> {
        let words: Vec<OsString> = words.into_iter().collect();
        let mut command = screen::with_help(Self::command().color(colour(&words)), &words);
        let matches = command
            .try_get_matches_from_mut(&words)
            .map_err(|error| with_flag_named(error, &words))?;
        if let Some(error) = misplaced(&mut command, &matches) {
            return Err(error);
        }
        let read = Self::from_arg_matches(&matches).map_err(|error| error.format(&mut command))?;
        if let Some(text) = read.json_has_no_place() {
            return Err(command.error(ErrorKind::ArgumentConflict, text));
        }
        if let Some(text) = read
            .too_many_rounds()
            .or_else(|| no_such_place(&matches, bases))
        {
            return Err(command.error(ErrorKind::ValueValidation, text));
        }
        Ok(read)
    }

    /// Why `--json` cannot be printed: something else is on standard output.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "all other commands print events"
    )]
    fn json_has_no_place(&self) -> Option<&'static str> {
        let unnamed =
            "'--json' and the product both want standard output; name a file with '--output'";
        match self.command.as_ref().filter(|_| self.output.json)? {
            Asked::Completions(_) | Asked::Man(_) => {
                Some("'--json' says nothing to a command that writes a script or pages")
            }
            Asked::Page(args) => (args.output.is_none() && !args.open).then_some(unnamed),
            _ => None,
        }
    }

    /// A settings file applies to both loops, so its rounds are an upper limit; a flag applies to one loop,
    /// and may not exceed that loop's maximum.
    fn too_many_rounds(&self) -> Option<String> {
        let (settings, most) = match &self.command {
            None => (&self.run.settings, COMMIT_ROUNDS),
            Some(Asked::Run(args)) => (&args.settings, COMMIT_ROUNDS),
            Some(Asked::Implement(args)) => (&args.settings, IMPLEMENT_ROUNDS),
            Some(_) => return None,
        };
        let wanted = settings.layer.limits.rounds?.0;
        let text = format!(
            "invalid value '{wanted}' for '--rounds <NUMBER>': this loop has at most {most} rounds"
        );
        (wanted > most.into()).then_some(text)
    }
}

/// Rejects `--writable` and `--readable` with a missing path outside the project: it is most likely a typo. A writable
/// folder inside the project is created, since under Landlock the build could not do it.
fn no_such_place(matches: &ArgMatches, bases: &Bases<'_>) -> Option<String> {
    let matches = matches.subcommand().map_or(matches, |(_, of)| of);
    let missing = |flag: &str, value: &str| {
        let places = matches.try_get_many::<Place>(flag).ok()??;
        let (asked, path) = places
            .map(|place| (place.0.display(), bases.find(&place.0)))
            .find(|(_, path)| !path.exists() && !is_below(path, bases.root()))?;
        let path = path.display();
        Some(format!(
            "invalid value '{asked}' for '--{flag} <{value}>': there is no {path}"
        ))
    };
    missing("writable", "DIR").or_else(|| missing("readable", "PATH"))
}

/// However the folder is spelled; `..` in a missing path may resolve to anything.
fn is_below(folder: &Path, root: &Path) -> bool {
    let there = folder
        .ancestors()
        .find_map(|above| above.canonicalize().ok());
    let is_plain = !folder.components().any(|part| part == Component::ParentDir);
    is_plain && there.is_some_and(|there| there.starts_with(root))
}

/// `code-commit "Greet the world."`, `code-commit run greet`: says which flag the words are the value of.
fn with_flag_named(mut error: Error, words: &[OsString]) -> Error {
    let is_behind_command = error.kind() == ErrorKind::UnknownArgument;
    let context = if is_behind_command {
        ContextKind::InvalidArg
    } else {
        ContextKind::InvalidSubcommand
    };
    let Some(ContextValue::String(word)) = error.get(context) else {
        return error;
    };
    let command = words
        .iter()
        .skip(1)
        .filter_map(|word| word.to_str())
        .find(|word| !word.starts_with('-'));
    let is_query = if is_behind_command {
        matches!(command, Some("run" | "implement")) && !word.starts_with('-')
    } else {
        word.contains(char::is_whitespace)
    };
    let flag = words.windows(2).find_map(|pair| match pair {
        [flag, value] if value == OsStr::new(word) => {
            flag.to_str().filter(|flag| flag.starts_with("--"))
        }
        _ => None,
    });
    let tip = match flag {
        Some("--commit") => {
            "the message of a commit follows an equals sign: --commit=\"…\"".to_owned()
        }
        Some(flag) if matches!(word.as_str(), "true" | "false") => {
            format!("the value of a switch follows an equals sign: {flag}={word}")
        }
        _ if is_query => "a query is the value of -m: code-commit -m \"…\"".to_owned(),
        _ if word == "commit" => {
            "the default loop has no command of its own: code-commit -m \"…\"".to_owned()
        }
        _ => return error,
    };
    error.insert(
        ContextKind::Suggested,
        ContextValue::StyledStrs(vec![tip.into()]),
    );
    error
}

fn misplaced(command: &mut Command, matches: &ArgMatches) -> Option<Error> {
    let (name, _) = matches.subcommand()?;
    let is_given = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
    let of_default_loop = |arg: &&Arg| !arg.is_global_set() && is_given(arg.get_id().as_str());
    let flag = command.get_arguments().find(of_default_loop)?;
    let text = format!(
        "'{flag}' before '{name}' has no effect: put flags after the name of their command"
    );
    Some(command.error(ErrorKind::ArgumentConflict, text))
}

/// The value of `--color` for help and usage errors, which are printed before or instead of parsing.
fn colour(words: &[OsString]) -> ColorChoice {
    let mut words = words.iter().skip(1).take_while(|word| *word != "--");
    let mut said = ColorChoice::Auto;
    while let Some(word) = words.next() {
        let value = if word == "--color" {
            words.next().and_then(|value| value.to_str())
        } else {
            word.to_str().and_then(|word| word.strip_prefix("--color="))
        };
        said = value.and_then(|value| value.parse().ok()).unwrap_or(said);
    }
    said
}

#[cfg(test)]
mod tests {
    use code_commit_settings::Environment;

    use super::*;

    fn bases() -> Bases<'static> {
        Bases::new(Path::new("/"), &Environment::of([]))
    }

    #[track_caller]
    fn read(line: &str) -> Result<Cli, String> {
        Cli::read(line.split(' ').map(OsString::from), &bases()).map_err(|error| error.to_string())
    }

    #[test]
    fn flags_of_every_command_stand_before_or_behind_its_name() {
        for line in [
            "code-commit --json --quiet runs",
            "code-commit runs --json --quiet",
        ] {
            let output = read(line).unwrap().output;
            assert!(output.json && output.quiet, "{line}");
        }
        let order = read("code-commit --color never order check x").unwrap();
        assert_eq!(order.output.color, super::super::When::Never);
    }

    #[test]
    fn what_is_no_json_is_not_printed_where_json_was_asked_for() {
        for line in [
            "code-commit completions bash --json",
            "code-commit --json man",
            "code-commit man pages --json",
        ] {
            let error = read(line).unwrap_err();
            let first = "error: '--json' says nothing to a command that writes a script or pages";
            assert_eq!(error.lines().next(), Some(first), "{line}");
        }
        assert!(read("code-commit man pages --quiet").is_ok());
    }

    #[test]
    fn more_rounds_than_the_loop_has_are_a_mistake() {
        for (loop_of, most) in [("", 4), ("run ", 4), ("implement ", 8)] {
            let line = |count: u32| format!("code-commit {loop_of}--rounds {count}");
            assert!(read(&line(most)).is_ok());
            let error = read(&line(most + 1)).unwrap_err();
            let said = format!("for '--rounds <NUMBER>': this loop has at most {most} rounds");
            assert!(
                error
                    .lines()
                    .next()
                    .is_some_and(|first| first.ends_with(&said)),
                "{error}"
            );
        }
        assert!(read("code-commit config --rounds 8").is_ok());
    }

    #[test]
    fn words_without_their_flag_are_told_which_it_is() {
        for (words, tip) in [
            (
                &["code-commit", "Greet the world."][..],
                "a query is the value of -m: code-commit -m",
            ),
            (
                &["code-commit", "run", "greet"],
                "a query is the value of -m: code-commit -m",
            ),
            (
                &["code-commit", "--commit", "greet"],
                "follows an equals sign: --commit=",
            ),
            (
                &["code-commit", "--commit", "a message"],
                "follows an equals sign: --commit=",
            ),
            (
                &["code-commit", "--network", "false"],
                "the value of a switch follows an equals sign: --network=false",
            ),
            (
                &["code-commit", "--edits", "true", "-m", "greet"],
                "the value of a switch follows an equals sign: --edits=true",
            ),
            (
                &["code-commit", "commit"],
                "the default loop has no command of its own: code-commit -m",
            ),
            (
                &["code-commit", "commit", "-m", "greet"],
                "the default loop has no command of its own: code-commit -m",
            ),
        ] {
            let error = Cli::read(words.iter().map(OsString::from), &bases())
                .unwrap_err()
                .to_string();
            assert!(error.contains(tip), "{error}");
        }
        for line in ["code-commit greet", "code-commit costs greet"] {
            assert!(!read(line).unwrap_err().contains("-m"), "{line}");
        }
    }

    #[test]
    fn a_commit_has_the_message_that_is_given_or_that_of_the_query() {
        assert!(read("code-commit --commit=").is_err());
        for line in ["code-commit --commit", "code-commit --commit=a"] {
            assert!(read(line).is_ok(), "{line}");
        }
    }

    #[test]
    fn a_flag_of_the_default_loop_is_not_dropped_in_silence() {
        let error = read("code-commit --model scripted/x --json runs").unwrap_err();
        let line = "error: '--model <MODEL>' before 'runs' has no effect: put flags after the name of their command";
        assert_eq!(error.lines().next(), Some(line));
        assert!(read("code-commit --require-clean implement").is_err());
        assert!(read("code-commit implement --require-clean").is_ok());
    }
}
