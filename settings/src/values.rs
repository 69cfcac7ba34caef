//! What may stand behind a key, read strictly: a value that is wrong is an error at its place in the file.

use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use llm::ModelId;
use llm::http::BaseUrl;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::Bases;
use crate::slot::Written;

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

/// A value that is written as a string: its schema is a pattern and an example.
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

/// A value that is in force as what it holds.
macro_rules! in_force {
    ($name:ident, $value:ty, $shown:expr) => {
        impl Written for $name {
            type Value = $value;

            fn value(self, _: Bases<'_>) -> $value {
                self.0
            }

            fn shown(value: &$value) -> Value {
                let shown: fn(&$value) -> Value = $shown;
                shown(value)
            }
        }
    };
}

mod numbers;

pub use numbers::{Count, Dollars, Temperature};

/// `90s`, `10m`, `1h30m`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Time(pub Duration);

written_as_text!(Time, "^([0-9]+h)?([0-9]+m)?([0-9]+s)?$", "10m");
in_force!(Time, Duration, |time| json!(Self(*time).to_string()));

/// `500B`, `64KiB`, `1MiB`, `2GiB`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Size(pub u64);

written_as_text!(Size, "^[0-9]+(B|KiB|MiB|GiB)$", "64MiB");
in_force!(Size, u64, |bytes| json!(Self(*bytes).to_string()));

/// A program and its arguments, written as in a shell, but never given to one: quotes group words, and nothing else happens. What only
/// a shell could act on is refused as in a work order: of `./build.sh && ./test.sh` the second would never be run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CommandLine {
    /// As it was written.
    pub text: String,
    /// The words, at least one.
    pub argv: Vec<String>,
}

written_as_text!(CommandLine, "\\S", "./build.sh --fast");

/// A gitignore pattern that can match something.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Pattern(pub String);

written_as_text!(Pattern, "^[^#]", "tests/**");

/// A model by its name.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct ModelName(pub ModelId);

written_as_text!(ModelName, "\\S", "gemini/gemini-3.8-flash");
in_force!(ModelName, ModelId, |model| json!(model.to_string()));

/// Where a service is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct Address(pub String);

written_as_text!(Address, "^https?://", "http://127.0.0.1:11434/v1");
in_force!(Address, String, |address| json!(address));

/// The name of a variable of the environment.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct VariableName(pub String);

written_as_text!(VariableName, "^[^=]+$", "CC");
in_force!(VariableName, String, |name| json!(name));

/// A file or folder: absolute, below the home (`~/…`), or relative to the project's root.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Place(pub String);

written_as_text!(Place, "\\S", "~/.cache/sccache");

impl Written for Place {
    type Value = PathBuf;

    fn value(self, bases: Bases<'_>) -> PathBuf {
        bases.find(&self)
    }

    fn shown(path: &PathBuf) -> Value {
        json!(path.display().to_string())
    }
}

impl Written for CommandLine {
    type Value = Self;

    fn value(self, _: Bases<'_>) -> Self {
        self
    }

    fn shown(command: &Self) -> Value {
        json!(command.text)
    }
}

impl From<CommandLine> for String {
    fn from(line: CommandLine) -> Self {
        line.text
    }
}

impl std::str::FromStr for Time {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        duration(text).map(Self)
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
        let argv = words::split_command(text).map_err(|error| format!("`{text}` {error}"))?;
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

/// `90s`, `10m`, `1h30m`: whole numbers with their units, the larger first.
pub fn duration(text: &str) -> Result<Duration, String> {
    let bad = || format!("`{text}` is no duration; write it like 90s, 10m or 1h30m");
    let mut rest = text;
    let mut seconds: u64 = 0;
    for (unit, worth) in [('h', 3600), ('m', 60), ('s', 1)] {
        if let Some((number, behind)) = rest.split_once(unit) {
            // `parse` would take a plus sign.
            let digits = Some(number).filter(|number| !number.starts_with('+')).ok_or_else(bad)?;
            let number: u64 = digits.parse().map_err(|_| bad())?;
            seconds = number.checked_mul(worth).and_then(|s| seconds.checked_add(s)).ok_or_else(bad)?;
            rest = behind;
        }
    }
    if rest.is_empty() && seconds > 0 { Ok(Duration::from_secs(seconds)) } else { Err(bad()) }
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
    fn durations_have_units() {
        let seconds = |text| duration(text).map(|d| d.as_secs());
        assert_eq!(seconds("90s"), Ok(90));
        assert_eq!(seconds("10m"), Ok(600));
        assert_eq!(seconds("1h30m"), Ok(5400));
        for bad in ["", "10", "0s", "m", "1m1h", "-1s", "1.5h", "99999999999999999h", "1h30", "+5s", "1h+5m"]
        {
            assert!(seconds(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_command_is_split_into_words_and_nothing_of_it_is_run_by_a_shell() {
        let command: CommandLine = "make 'all tests' 'X=$(id)'".parse().unwrap();
        assert_eq!(command.argv, ["make", "all tests", "X=$(id)"]);
        for bad in ["", "  ", "'", "''", "make X=$(id)", "./build.sh && ./test.sh", "make\ntest"] {
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
}
