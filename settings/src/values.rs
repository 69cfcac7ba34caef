//! The values of keys, parsed strictly: a wrong value is an error at its position in the file.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use code_commit_llm::http::BaseUrl;
use code_commit_llm::{ModelId, ModelIdError, Money};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How a value is read from the string of a file or the argument of a flag.
macro_rules! read_as_text {
    ($name:ident, $read:expr) => {
        impl FromStr for $name {
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
    };
}

/// What a value holds.
macro_rules! inner {
    ($name:ident, $inner:ty) => {
        impl From<$name> for $inner {
            fn from(value: $name) -> Self {
                value.0
            }
        }
    };
}

/// A value that is written as a string: how to parse it, and its JSON schema.
macro_rules! text {
    ($(#[$meta:meta])* $name:ident($inner:ty), $read:expr, $pattern:literal, $example:literal) => {
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[cfg_attr(test, derive(schemars::JsonSchema))]
        $(#[$meta])*
        #[serde(try_from = "String")]
        #[cfg_attr(test, schemars(inline, with = "String", extend("pattern" = $pattern, "examples" = [$example])))]
        pub struct $name(pub $inner);

        inner!($name, $inner);
        read_as_text!($name, |text| $read(text).map(|value| Self(value.into())));
    };
}

/// A value that is a number: how to parse it from the number in a file, or from the argument of a flag.
macro_rules! number {
    ($(#[$meta:meta])* $name:ident($inner:ty), $wire:literal: $number:ty, $read:expr, $no:literal) => {
        #[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
        #[cfg_attr(test, derive(schemars::JsonSchema))]
        $(#[$meta])*
        #[serde(try_from = $wire)]
        pub struct $name(pub $inner);

        impl TryFrom<$number> for $name {
            type Error = String;

            fn try_from(number: $number) -> Result<Self, String> {
                $read(number).map(Self)
            }
        }

        impl FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                Self::try_from(number::<$number>(text).ok_or_else(|| format!($no, text = text))?)
            }
        }

        inner!($name, $inner);
    };
}

text! {
    /// `90s`, `10m`, `1h30m`.
    #[derive(Copy)]
    #[serde(into = "String")]
    Time(Duration), duration, "^([0-9]+h)?([0-9]+m)?([0-9]+s)?$", "10m"
}
text! {
    /// `500B`, `64KiB`, `1MiB`, `2GiB`.
    #[derive(Copy)]
    #[serde(into = "String")]
    Size(u64), size, "^[0-9]+(B|KiB|MiB|GiB)$", "64MiB"
}
text! {
    /// A gitignore pattern that can match something.
    Pattern(String), pattern, "^[^#]", "tests/**"
}
text! {
    /// Where a service is.
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
    #[serde(into = "String")]
    Place(PathBuf), place, "\\S", "~/.cache/sccache"
}
number! {
    /// How many there may be, at least one: no limit is written by leaving the key out.
    #[cfg_attr(test, schemars(inline, with = "u64", extend("minimum" = 1)))]
    Count(u64), "u64": u64, count, "`{text}` is not a whole number"
}
number! {
    /// US dollars, more than none.
    #[cfg_attr(test, schemars(inline, with = "f64", extend("exclusiveMinimum" = 0)))]
    Dollars(Money), "f64": f64, dollars, "`{text}` is not an amount of US dollars, such as 0.50"
}
number! {
    /// Between 0 and 2, as the services have it; zero has no sign.
    #[cfg_attr(test, schemars(inline, with = "f64", extend("minimum" = 0, "maximum" = 2)))]
    Temperature(f64), "f64": f64, temperature, "`{text}` is not a number"
}

/// The tokens of a roll-up, at least one; [`NO_BUDGET`] is written `none`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(try_from = "Value", into = "Value")]
#[cfg_attr(test, schemars(inline, extend("type" = ["integer", "string"], "minimum" = 1, "pattern" = "^none$")))]
pub struct TokenBudget(pub u64);

inner!(TokenBudget, u64);

/// As many tokens as there are.
pub const NO_BUDGET: u64 = u64::MAX;

impl TryFrom<Value> for TokenBudget {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        let number = value.as_u64().filter(|tokens| *tokens > 0);
        let none = (value == "none").then_some(NO_BUDGET);
        let budget = number.or(none).map(Self);
        budget.ok_or_else(|| format!("{value} is not a number of tokens, and not \"none\""))
    }
}

impl From<TokenBudget> for Value {
    fn from(TokenBudget(tokens): TokenBudget) -> Self {
        if tokens == NO_BUDGET {
            "none".into()
        } else {
            tokens.into()
        }
    }
}

impl From<Time> for String {
    fn from(time: Time) -> Self {
        let seconds = time.0.as_secs();
        [
            (seconds / 3600, 'h'),
            (seconds % 3600 / 60, 'm'),
            (seconds % 60, 's'),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, unit)| format!("{count}{unit}"))
        .collect()
    }
}

impl From<Size> for String {
    fn from(size: Size) -> Self {
        let fits = |(_, worth): &(&str, u64)| size.0.is_multiple_of(*worth);
        let (unit, worth) = UNITS.into_iter().find(fits).unwrap_or(("B", 1));
        format!("{}{unit}", size.0 / worth)
    }
}

impl From<Place> for String {
    fn from(place: Place) -> Self {
        place.0.display().to_string()
    }
}

/// A program and its arguments, written like in a shell but never run by one: quotes group words,
/// and nothing else is interpreted. Whatever only a shell could interpret is refused, as in a work
/// order: of `./build.sh && ./test.sh` the second command would never run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(test, schemars(inline, with = "String", extend("pattern" = "\\S", "examples" = ["./build.sh --fast"])))]
pub struct CommandLine {
    /// As it was written.
    pub text: String,
    /// The words, at least one.
    pub argv: Vec<String>,
}

read_as_text!(CommandLine, command);

impl From<CommandLine> for String {
    fn from(line: CommandLine) -> Self {
        line.text
    }
}

/// Models in the order in which they are asked, at least one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(test, schemars(inline, with = "String", extend("pattern" = "\\S", "examples" = ["gemini/gemini-3.8-flash"])))]
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

read_as_text!(Models, models);

impl From<Models> for String {
    fn from(models: Models) -> Self {
        models.to_string()
    }
}

impl fmt::Display for Models {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.iter().map(ToString::to_string).collect();
        f.write_str(&names.join(","))
    }
}

/// Units of [`Size`], the largest first.
const UNITS: [(&str, u64); 4] = [
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("B", 1),
];

/// `90s`, `10m`, `1h30m`: whole numbers with units, the larger unit first.
pub fn duration(text: &str) -> Result<Duration, String> {
    let bad = || format!("`{text}` is not a duration; write it like 90s, 10m or 1h30m");
    let mut rest = text;
    let mut seconds: u64 = 0;
    for (unit, worth) in [('h', 3600), ('m', 60), ('s', 1)] {
        if let Some((count, behind)) = rest.split_once(unit) {
            let count: u64 = number(count).ok_or_else(bad)?;
            seconds = count
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
        let count: u64 = number(text.strip_suffix(unit)?)?;
        count.checked_mul(worth).filter(|bytes| *bytes > 0)
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
    let url = text.parse::<BaseUrl>().map_err(|error| error.to_string());
    url.map(|_| text.trim().to_owned())
}

fn variable_name(text: &str) -> Result<String, String> {
    let is_name = !text.is_empty() && !text.contains(['=', '\0']);
    let escaped = || format!("`{}` is not the name of a variable", text.escape_debug());
    is_name.then(|| text.to_owned()).ok_or_else(escaped)
}

fn place(text: &str) -> Result<String, String> {
    let is_path = !text.trim().is_empty() && !text.contains('\0');
    is_path
        .then(|| text.to_owned())
        .ok_or_else(|| format!("`{}` is not a path", text.escape_debug()))
}

fn pattern(text: &str) -> Result<String, String> {
    let body = text.strip_prefix('!').unwrap_or(text);
    let why = match body {
        _ if body.trim_matches(['/', ' ']).is_empty() => "it names nothing",
        _ if body.contains(char::is_control) => "it contains a control character",
        _ if text.starts_with('#') => "it is a comment; write \\# for the character",
        _ if body.split('/').any(|part| matches!(part, "." | "..")) => {
            "patterns are relative to the root and have no . or .."
        }
        _ if !is_closed(body) => "a [ is not closed, or it ends in a backslash",
        _ => return Ok(text.to_owned()),
    };
    Err(format!(
        "`{}` is not a pattern that could match a file: {why}",
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

/// As `--allow-host` takes it.
fn host(text: &str) -> Result<String, String> {
    let (place, range) = text
        .split_once('=')
        .map_or((text, None), |(place, range)| (place, Some(range)));
    let (name, port) = match place.rsplit_once(':') {
        Some((name, port)) if !place.ends_with(']') => (name, port),
        Some(_) | None => (place, "443"),
    };
    let address = name
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    let is_name = match address {
        Some(address) => address.parse::<Ipv6Addr>().is_ok(),
        None => !name.is_empty() && name.chars().all(is_letter),
    };
    let is_host = is_name && number::<u16>(port).is_some_and(|port| port > 0);
    // An address leads nowhere else.
    let leads = |range| address.is_none() && name.parse::<IpAddr>().is_err() && is_range(range);
    let escaped = || {
        format!(
            "`{}` is not a valid host; write it like example.org, example.org:443 or mirror.example=10.0.0.0/8",
            text.escape_debug()
        )
    };
    (is_host && range.is_none_or(leads))
        .then(|| text.to_owned())
        .ok_or_else(escaped)
}

/// An address, or the addresses that share its first bits.
fn is_range(text: &str) -> bool {
    let (address, bits) = text.split_once('/').unwrap_or((text, "0"));
    let most = address
        .parse()
        .map(|address: IpAddr| if address.is_ipv4() { 32 } else { 128 });
    number(bits).is_some_and(|bits: u8| most.is_ok_and(|most| bits <= most))
}

/// A number as a person writes it: Rust's parsers also take a plus sign.
fn number<N: std::str::FromStr>(text: &str) -> Option<N> {
    text.parse().ok().filter(|_| !text.starts_with('+'))
}

/// The error for every limit of zero.
const NOTHING: &str = "0 would allow nothing; omit it for no limit";

fn count(count: u64) -> Result<u64, String> {
    if count == 0 {
        Err(NOTHING.to_owned())
    } else {
        Ok(count)
    }
}

fn dollars(usd: f64) -> Result<Money, String> {
    let money = Money::from_usd(usd).map_err(|error| format!("{usd} is {error} in US dollars"))?;
    if money == Money::ZERO {
        Err(NOTHING.to_owned())
    } else {
        Ok(money)
    }
}

fn temperature(value: f64) -> Result<f64, String> {
    let is_one = (0.0..=2.0).contains(&value);
    // Adding zero turns negative zero into zero.
    is_one
        .then_some(value + 0.0)
        .ok_or_else(|| format!("{value} is not between 0 and 2"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_are_written_as_they_are_read() {
        for text in ["500B", "1KiB", "64MiB", "3GiB", "1025B"] {
            assert_eq!(String::from(text.parse::<Size>().unwrap()), text);
        }
        for text in ["90s", "10m", "1h30m", "2h5s"] {
            let time: Time = text.parse().unwrap();
            assert_eq!(String::from(time).parse(), Ok(time));
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

    #[test]
    fn a_temperature_is_a_number_from_0_to_2_and_zero_has_no_sign() {
        let temperature = |text: &str| text.parse::<Temperature>().map(|read| read.0);
        assert_eq!(temperature("0.7"), Ok(0.7));
        assert_eq!(
            temperature("-0").map(|zero| zero.to_string()),
            Ok("0".to_owned())
        );
        for bad in ["-0.1", "2.1", "nan", "inf", "x"] {
            assert!(temperature(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_limit_of_nothing_is_refused() {
        assert_eq!("0".parse::<Count>(), Err(NOTHING.to_owned()));
        assert!("+5".parse::<Count>().is_err() && "+0.5".parse::<Dollars>().is_err());
        assert_eq!("0".parse::<Dollars>(), Err(NOTHING.to_owned()));
        for bad in ["-1", "NaN", "inf", "x"] {
            assert!(bad.parse::<Dollars>().is_err(), "{bad}");
            assert!(bad.parse::<Count>().is_err(), "{bad}");
        }
    }
}
