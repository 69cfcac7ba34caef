//! What may stand behind a key, read strictly: a value that is wrong is an error at its place in the file.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use llm::http::BaseUrl;
use llm::{ModelId, Money};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::args;

/// How the shape of a value is told to an editor.
macro_rules! shaped {
    ($name:ident, $schema:tt) => {
        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    };
}

/// A value that is written as a string.
macro_rules! written_as_text {
    ($name:ident, $pattern:expr, $example:expr) => {
        impl TryFrom<String> for $name {
            type Error = String;

            fn try_from(text: String) -> Result<Self, String> {
                text.parse()
            }
        }

        shaped!($name, { "type": "string", "pattern": $pattern, "examples": [$example] });
    };
}

/// `90s`, `10m`, `1h30m`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Time(pub Duration);

/// `500B`, `64KiB`, `1MiB`, `2GiB`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Size(pub u64);

/// A program and its arguments, written as in a shell, but never given to one: quotes group words, and nothing else happens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CommandLine {
    /// As it was written.
    pub text: String,
    /// The words, at least one.
    pub argv: Vec<String>,
}

/// A gitignore pattern that can match something.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Pattern(pub String);

/// A model by its name.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct ModelName(pub ModelId);

/// Where a service is.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Address(pub String);

/// The name of a variable of the environment.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct VariableName(pub String);

/// A file or folder: absolute, below the home (`~/…`), or relative to the project's root.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Place(pub String);

impl From<CommandLine> for String {
    fn from(line: CommandLine) -> Self {
        line.text
    }
}

written_as_text!(Time, "^([0-9]+h)?([0-9]+m)?([0-9]+s)?$", "10m");
written_as_text!(Size, "^[0-9]+(B|KiB|MiB|GiB)$", "64MiB");
written_as_text!(CommandLine, "\\S", "./build.sh --fast");
written_as_text!(Pattern, "^[^#]", "tests/**");
written_as_text!(ModelName, "\\S", "gemini/gemini-3.8-flash");
written_as_text!(Address, "^https?://", "http://127.0.0.1:11434/v1");
written_as_text!(VariableName, "^[^=]+$", "CC");
written_as_text!(Place, "\\S", "~/.cache/sccache");
shaped!(Count, { "type": "integer", "minimum": 1 });
shaped!(Dollars, { "type": "number", "exclusiveMinimum": 0 });
shaped!(Temperature, { "type": "number", "minimum": 0, "maximum": 2 });

/// How many there may be, at least one: no limit is written by leaving the key out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "u64")]
pub struct Count(pub u64);

/// US dollars, more than none.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(try_from = "f64")]
pub struct Dollars(pub Money);

/// Between 0 and 2, as the services have it.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(try_from = "f64")]
pub struct Temperature(pub f64);

/// Said of every limit of zero.
const NOTHING: &str = "0 would allow nothing; for no limit leave it out";

impl TryFrom<u64> for Count {
    type Error = &'static str;

    fn try_from(count: u64) -> Result<Self, Self::Error> {
        if count == 0 { Err(NOTHING) } else { Ok(Self(count)) }
    }
}

impl std::str::FromStr for Count {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let count: u64 = text.parse().map_err(|_| format!("`{text}` is no whole number"))?;
        Ok(Self::try_from(count)?)
    }
}

impl TryFrom<f64> for Dollars {
    type Error = String;

    fn try_from(usd: f64) -> Result<Self, String> {
        let money = Money::from_usd(usd).map_err(|error| format!("{usd} is {error} in US dollars"))?;
        if money == Money::ZERO { Err(NOTHING.to_owned()) } else { Ok(Self(money)) }
    }
}

impl std::str::FromStr for Dollars {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let usd: f64 =
            text.parse().map_err(|_| format!("`{text}` is no amount of US dollars, such as 0.50"))?;
        Self::try_from(usd)
    }
}

impl TryFrom<f64> for Temperature {
    type Error = String;

    fn try_from(value: f64) -> Result<Self, String> {
        if (0.0..=2.0).contains(&value) {
            Ok(Self(value))
        } else {
            Err(format!("{value} is not between 0 and 2"))
        }
    }
}

impl std::str::FromStr for Temperature {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let value: f64 = text.parse().map_err(|_| format!("`{text}` is no number"))?;
        Self::try_from(value)
    }
}

impl std::str::FromStr for Time {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        args::duration(text).map(Self)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        let parts = [(seconds / 3600, 'h'), (seconds % 3600 / 60, 'm'), (seconds % 60, 's')];
        parts
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .try_for_each(|(count, unit)| write!(f, "{count}{unit}"))
    }
}

/// Units of [`Size`], the largest first.
const UNITS: [(&str, u64); 4] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];

impl std::str::FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bytes = UNITS.into_iter().find_map(|(unit, worth)| {
            let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
            number.checked_mul(worth).filter(|bytes| *bytes > 0)
        });
        bytes.map(Self).ok_or_else(|| format!("`{text}` is no size; write it like 500KiB, 64MiB or 1GiB"))
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = |(_, worth): &(&str, u64)| self.0.is_multiple_of(*worth);
        let (unit, worth) = UNITS.into_iter().find(fits).unwrap_or(("B", 1));
        write!(f, "{}{unit}", self.0 / worth)
    }
}

impl std::str::FromStr for CommandLine {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let argv = shlex::split(text).ok_or_else(|| format!("a quote of `{text}` is not closed"))?;
        if argv.first().is_none_or(String::is_empty) {
            return Err("a command needs a program".to_owned());
        }
        Ok(Self { text: text.to_owned(), argv })
    }
}

impl std::str::FromStr for Pattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| {
            Err(format!("`{}` is no pattern that could match a file: {why}", text.escape_debug()))
        };
        let body = text.strip_prefix('!').unwrap_or(text);
        match body {
            _ if body.trim_matches(['/', ' ']).is_empty() => wrong("it names nothing"),
            _ if body.contains(char::is_control) => wrong("it holds a control character"),
            _ if text.starts_with('#') => wrong("it is a comment; write \\# for the character"),
            _ if body.split('/').any(|part| matches!(part, "." | "..")) => {
                wrong("patterns are relative to the root and have no . or ..")
            }
            _ if !is_closed(body) => wrong("a [ is not closed, or it ends in a backslash"),
            _ => Ok(Self(text.to_owned())),
        }
    }
}

/// Whether every bracket is closed and the last backslash escapes something.
fn is_closed(pattern: &str) -> bool {
    let mut characters = pattern.chars();
    let mut open = false;
    while let Some(character) = characters.next() {
        match character {
            '\\' if characters.next().is_none() => return false,
            '[' => open = true,
            ']' => open = false,
            _ => {}
        }
    }
    !open
}

impl std::str::FromStr for ModelName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse().map(Self).map_err(|error: llm::ModelIdError| error.to_string())
    }
}

impl std::str::FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse::<BaseUrl>().map_err(|error| error.to_string())?;
        Ok(Self(text.trim().to_owned()))
    }
}

impl std::str::FromStr for VariableName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.is_empty() || text.contains(['=', '\0']) {
            return Err(format!("`{}` is no name of a variable", text.escape_debug()));
        }
        Ok(Self(text.to_owned()))
    }
}

impl std::str::FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() || text.contains('\0') {
            return Err(format!("`{}` is no path", text.escape_debug()));
        }
        Ok(Self(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_are_written_as_they_are_read() {
        for text in ["500B", "1KiB", "64MiB", "3GiB", "1025B"] {
            assert_eq!(text.parse::<Size>().unwrap().to_string(), text);
        }
        for text in ["90s", "10m", "1h30m", "2h5s"] {
            let time: Time = text.parse().unwrap();
            assert_eq!(time.to_string().parse::<Time>(), Ok(time));
        }
        for bad in ["", "0B", "12", "1MB", "-1B", "99999999999GiB"] {
            assert!(bad.parse::<Size>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_command_is_split_into_words_and_nothing_of_it_is_run_by_a_shell() {
        let command: CommandLine = "make 'all tests' X=$(id)".parse().unwrap();
        assert_eq!(command.argv, ["make", "all tests", "X=$(id)"]);
        for bad in ["", "  ", "'", "''"] {
            assert!(bad.parse::<CommandLine>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_pattern_that_can_match_nothing_is_refused() {
        for good in ["tests/**", "/a", "*.lock", "!tests/new.rs", "[ab]c", "\\#x", "a/[!]]"] {
            assert!(good.parse::<Pattern>().is_ok(), "{good}");
        }
        for bad in ["", " ", "/", "!", "#x", "../x", "a/./b", "[a", "x\\", "a\nb"] {
            assert!(bad.parse::<Pattern>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_limit_of_nothing_is_refused() {
        assert_eq!("0".parse::<Count>(), Err(NOTHING.to_owned()));
        assert_eq!("0".parse::<Dollars>(), Err(NOTHING.to_owned()));
        for bad in ["-1", "NaN", "inf", "x"] {
            assert!(bad.parse::<Dollars>().is_err(), "{bad}");
            assert!(bad.parse::<Count>().is_err(), "{bad}");
        }
    }
}
