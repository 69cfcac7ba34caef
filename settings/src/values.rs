//! The values of keys, parsed strictly: a wrong value is an error at its position in the file.

use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use code_commit_llm::http::BaseUrl;
use code_commit_llm::{ModelId, ModelIdError};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::Bases;
use crate::slot::{Written, in_force};

/// The JSON schema of a value.
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

/// The JSON schema of a value that is a string, and how to parse it.
macro_rules! read_as_text {
    ($name:ident, $read:expr, $pattern:literal, $example:literal) => {
        impl std::str::FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                $read(text)
            }
        }

        impl TryFrom<String> for $name {
            type Error = String;

            fn try_from(text: String) -> Result<Self, String> {
                text.parse()
            }
        }

        shaped!($name, { "type": "string", "pattern": $pattern, "examples": [$example] });
    };
}

/// A value that is written as a string: how to parse it, and its JSON schema.
macro_rules! text {
    ($(#[$meta:meta])* $name:ident($inner:ty), $read:expr, $pattern:literal, $example:literal) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
        #[serde(try_from = "String")]
        pub struct $name(pub $inner);

        read_as_text!($name, |text| $read(text).map(Self), $pattern, $example);
    };
}

mod hosts;
mod numbers;

use hosts::host;
pub use numbers::{Count, Dollars, Temperature};

text! {
    /// `90s`, `10m`, `1h30m`.
    #[derive(Copy)]
    Time(Duration), duration, "^([0-9]+h)?([0-9]+m)?([0-9]+s)?$", "10m"
}
text! {
    /// `500B`, `64KiB`, `1MiB`, `2GiB`.
    #[derive(Copy)]
    Size(u64), size, "^[0-9]+(B|KiB|MiB|GiB)$", "64MiB"
}
text! {
    /// A gitignore pattern that can match something.
    Pattern(String), pattern, "^[^#]", "tests/**"
}
text! {
    /// One model or several by their names, separated by commas.
    ModelNames(Models), models, "\\S", "gemini/gemini-3.8-flash"
}
text! {
    /// Where a service is.
    #[derive(Serialize)]
    Address(String), address, "^https?://", "http://127.0.0.1:11434/v1"
}
text! {
    /// The name of a variable of the environment.
    VariableName(String), variable_name, "^[^=]+$", "CC"
}
text! {
    /// A host with or without a port: `example.org`, `example.org:8443`, `[2001:db8::1]:443`; or a name with the
    /// addresses to which it may lead: `mirror.example=10.0.0.0/8`.
    HostName(String), host, "^([A-Za-z0-9._-]+|\\[[0-9A-Fa-f:.]+\\])(:[0-9]+)?(=[0-9A-Fa-f:.]+(/[0-9]+)?)?$", "static.crates.io"
}
text! {
    /// A file or folder: absolute, below the home (`~/…`), or relative to the project's root.
    Place(String), place, "\\S", "~/.cache/sccache"
}

in_force!(Time as Duration, |it| it.0, |time| json!(
    Time(*time).to_string()
));
in_force!(Size as u64, |it| it.0, |bytes| json!(
    Size(*bytes).to_string()
));
in_force!(ModelNames as Models, |it| it.0, |models| json!(
    models.to_string()
));
in_force!(Address as String, |it| it.0, |address| json!(address));
in_force!(VariableName as String, |it| it.0, |name| json!(name));
in_force!(Pattern as String, |it| it.0, |pattern| json!(pattern));
in_force!(HostName as String, |it| it.0, |name| json!(name));

impl Written for Place {
    type Value = PathBuf;

    fn value(self, bases: Bases<'_>) -> PathBuf {
        bases.find(&self)
    }

    fn shown(path: &PathBuf) -> Value {
        json!(path.display().to_string())
    }
}

/// A program and its arguments, written like in a shell but never run by one: quotes group words,
/// and nothing else is interpreted. Whatever only a shell could interpret is refused, as in a work
/// order: of `./build.sh && ./test.sh` the second command would never run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CommandLine {
    /// As it was written.
    pub text: String,
    /// The words, at least one.
    pub argv: Vec<String>,
}

read_as_text!(CommandLine, command, "\\S", "./build.sh --fast");

in_force!(
    CommandLine as CommandLine,
    |command| command,
    |command| json!(command.text)
);

impl From<CommandLine> for String {
    fn from(line: CommandLine) -> Self {
        line.text
    }
}

/// Models in the order in which they are asked, at least one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Models {
    first: ModelId,
    others: Vec<ModelId>,
}

impl Models {
    /// The one that is asked first.
    pub fn first(&self) -> &ModelId {
        &self.first
    }

    /// The ones that are asked if those before them cannot answer.
    pub fn others(&self) -> &[ModelId] {
        &self.others
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &ModelId> {
        std::iter::once(&self.first).chain(&self.others)
    }
}

impl From<ModelId> for Models {
    fn from(first: ModelId) -> Self {
        Self {
            first,
            others: Vec::new(),
        }
    }
}

impl TryFrom<String> for Models {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        models(&text)
    }
}

impl From<Models> for String {
    fn from(models: Models) -> Self {
        models.to_string()
    }
}

impl fmt::Display for Models {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.first)?;
        self.others
            .iter()
            .try_for_each(|model| write!(f, ",{model}"))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        let parts = [
            (seconds / 3600, 'h'),
            (seconds % 3600 / 60, 'm'),
            (seconds % 60, 's'),
        ];
        parts
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .try_for_each(|(count, unit)| write!(f, "{count}{unit}"))
    }
}

/// Units of [`Size`], the largest first.
const UNITS: [(&str, u64); 4] = [
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("B", 1),
];

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = |(_, worth): &(&str, u64)| self.0.is_multiple_of(*worth);
        let (unit, worth) = UNITS.into_iter().find(fits).unwrap_or(("B", 1));
        write!(f, "{}{unit}", self.0 / worth)
    }
}

/// `90s`, `10m`, `1h30m`: whole numbers with units, the larger unit first.
pub fn duration(text: &str) -> Result<Duration, String> {
    let bad = || format!("`{text}` is not a duration; write it like 90s, 10m or 1h30m");
    let mut rest = text;
    let mut seconds: u64 = 0;
    for (unit, worth) in [('h', 3600), ('m', 60), ('s', 1)] {
        if let Some((number, behind)) = rest.split_once(unit) {
            let number: u64 = numbers::number(number).ok_or_else(bad)?;
            seconds = number
                .checked_mul(worth)
                .and_then(|s| seconds.checked_add(s))
                .ok_or_else(bad)?;
            rest = behind;
        }
    }
    if rest.is_empty() && seconds > 0 {
        Ok(Duration::from_secs(seconds))
    } else {
        Err(bad())
    }
}

fn size(text: &str) -> Result<u64, String> {
    let bytes = UNITS.into_iter().find_map(|(unit, worth)| {
        let number: u64 = numbers::number(text.strip_suffix(unit)?)?;
        number.checked_mul(worth).filter(|bytes| *bytes > 0)
    });
    bytes
        .ok_or_else(|| format!("`{text}` is not a valid size; write it like 500KiB, 64MiB or 1GiB"))
}

fn command(text: &str) -> Result<CommandLine, String> {
    let argv = code_commit_parser::words::split_command(text)
        .map_err(|error| format!("`{text}` {error}"))?;
    if argv.first().is_none_or(String::is_empty) {
        return Err("a command needs a program".to_owned());
    }
    Ok(CommandLine {
        text: text.to_owned(),
        argv,
    })
}

fn models(text: &str) -> Result<Models, String> {
    let model = |name: &str| {
        name.trim()
            .parse()
            .map_err(|error: ModelIdError| error.to_string())
    };
    let mut names = text.split(',');
    let first = model(names.next().unwrap_or_default())?;
    Ok(Models {
        first,
        others: names.map(model).collect::<Result<_, _>>()?,
    })
}

fn address(text: &str) -> Result<String, String> {
    text.parse::<BaseUrl>()
        .map(|_| text.trim().to_owned())
        .map_err(|error| error.to_string())
}

fn variable_name(text: &str) -> Result<String, String> {
    let is_name = !text.is_empty() && !text.contains(['=', '\0']);
    let escaped = || format!("`{}` is no name of a variable", text.escape_debug());
    is_name.then(|| text.to_owned()).ok_or_else(escaped)
}

fn place(text: &str) -> Result<String, String> {
    let is_path = !text.trim().is_empty() && !text.contains('\0');
    is_path
        .then(|| text.to_owned())
        .ok_or_else(|| format!("`{}` is no path", text.escape_debug()))
}

fn pattern(text: &str) -> Result<String, String> {
    let body = text.strip_prefix('!').unwrap_or(text);
    let why = match body {
        _ if body.trim_matches(['/', ' ']).is_empty() => "it names nothing",
        _ if body.contains(char::is_control) => "it holds a control character",
        _ if text.starts_with('#') => "it is a comment; write \\# for the character",
        _ if body.split('/').any(|part| matches!(part, "." | "..")) => {
            "patterns are relative to the root and have no . or .."
        }
        _ if !is_closed(body) => "a [ is not closed, or it ends in a backslash",
        _ => return Ok(text.to_owned()),
    };
    Err(format!(
        "`{}` is no pattern that could match a file: {why}",
        text.escape_debug()
    ))
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
        for bad in ["", "0B", "12", "1MB", "-1B", "+5KiB", "99999999999GiB"] {
            assert!(bad.parse::<Size>().is_err(), "{bad}");
        }
    }

    #[test]
    fn durations_have_units() {
        let seconds = |text| duration(text).map(|d| d.as_secs());
        assert_eq!(seconds("90s"), Ok(90));
        assert_eq!(seconds("10m"), Ok(600));
        assert_eq!(seconds("1h30m"), Ok(5400));
        for bad in [
            "",
            "10",
            "0s",
            "m",
            "1m1h",
            "-1s",
            "1.5h",
            "99999999999999999h",
            "1h30",
            "+5s",
            "1h+5m",
        ] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_command_is_split_into_words_and_nothing_of_it_is_run_by_a_shell() {
        let command: CommandLine = "make 'all tests' 'X=$(id)'".parse().unwrap();
        assert_eq!(command.argv, ["make", "all tests", "X=$(id)"]);
        for bad in [
            "",
            "  ",
            "'",
            "''",
            "make X=$(id)",
            "./build.sh && ./test.sh",
            "make\ntest",
        ] {
            assert!(bad.parse::<CommandLine>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_pattern_that_can_match_nothing_is_refused() {
        for good in [
            "tests/**",
            "/a",
            "*.lock",
            "!tests/new.rs",
            "[ab]c",
            "\\#x",
            "a/[!]]",
        ] {
            assert!(good.parse::<Pattern>().is_ok(), "{good}");
        }
        for bad in [
            "", " ", "/", "!", "#x", "../x", "a/./b", "[a", "x\\", "a\nb",
        ] {
            assert!(bad.parse::<Pattern>().is_err(), "{bad}");
        }
    }
}
