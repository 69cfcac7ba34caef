//! A key: its name, its flag, and how its values get from a layer into the settings.

use std::fmt::Display;
use std::str::FromStr;

use serde_json::Value;

use crate::{Bases, KEYS, Layer, Origin, Settings};

/// One row of the table of settings.
#[derive(Debug)]
pub struct Key {
    /// Its name in a file: table, dot, key.
    pub name: &'static str,
    /// Its flag, if it has one.
    pub flag: Option<Flag>,
    pub(crate) give: Option<Give>,
    pub(crate) put: fn(&mut Settings, &mut Layer, Origin, Bases<'_>),
    pub(crate) shown: fn(&Settings) -> Vec<(Value, Origin)>,
    pub(crate) take_weakening: fn(&mut Layer, &Settings, Bases<'_>) -> Vec<String>,
}

/// Parses the argument of a flag into a layer.
type Give = fn(&mut Layer, &str) -> Result<(), String>;

/// A flag, as its help describes it.
#[derive(Debug, Clone, Copy)]
pub struct Flag {
    /// Its name, without the dashes.
    pub name: &'static str,
    /// Its argument.
    pub takes: Takes,
    /// What it does.
    pub help: &'static str,
    /// Whether the help shows the default; false if a loop has its own default.
    pub shows_default: bool,
    /// Whether a resumed run accepts it, too.
    pub on_resume: bool,
    /// What it does in the loops of agents, which check limits between turns; `None` if they have
    /// no such flag.
    pub between_turns: Option<&'static str>,
}

/// The argument of a flag.
#[derive(Debug, Clone, Copy)]
pub enum Takes {
    /// One value with this name.
    One(&'static str),
    /// One value with this name; the flag may be repeated.
    Many(&'static str),
    /// One of several words: its name, the words and their meanings.
    Word(&'static str, &'static [(&'static str, &'static str)]),
    /// `true` or `false`; `true` if the flag stands alone.
    Switch,
}

impl Flag {
    pub(crate) const fn new(name: &'static str, takes: Takes, help: &'static str) -> Self {
        Self {
            name,
            takes,
            help,
            shows_default: true,
            on_resume: false,
            between_turns: None,
        }
    }

    pub(crate) const fn without_default(self) -> Self {
        Self {
            shows_default: false,
            ..self
        }
    }

    pub(crate) const fn on_resume(self) -> Self {
        Self {
            on_resume: true,
            ..self
        }
    }

    pub(crate) const fn between_turns(self, help: &'static str) -> Self {
        Self {
            between_turns: Some(help),
            ..self
        }
    }
}

impl Key {
    /// Parses the argument of the flag into a layer.
    pub fn give(&self, layer: &mut Layer, text: &str) -> Result<(), String> {
        self.give.map_or(Ok(()), |give| give(layer, text))
    }

    /// The default that the flag's help shows; `None` if there is none.
    #[must_use]
    pub fn default_text(&self) -> Option<String> {
        self.flag.as_ref().filter(|flag| flag.shows_default)?;
        let (value, _) = (self.shown)(&Settings::default()).into_iter().next()?;
        value.as_str().map(str::to_owned)
    }
}

/// One setting in force.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The name of the key.
    pub key: &'static str,
    /// Null if it is not set.
    pub value: Value,
    /// Where it comes from.
    pub origin: Origin,
}

impl Row {
    /// The value for display.
    #[must_use]
    pub fn text(&self) -> String {
        match &self.value {
            Value::Null => "-".to_owned(),
            Value::String(text) => text.clone(),
            Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                self.value.to_string()
            }
        }
    }
}

impl Settings {
    /// All settings, in the order of the table. A list that several layers add to has one row per
    /// entry.
    #[must_use]
    pub fn rows(&self) -> Vec<Row> {
        let shown = |key: &'static Key| {
            let values = (key.shown)(self).into_iter();
            values.map(|(value, origin)| Row {
                key: key.name,
                value,
                origin,
            })
        };
        KEYS.iter().flat_map(shown).collect()
    }
}

/// Removes everything from a project's layer that would weaken the settings without it; returns
/// what was removed, one line each: `sandbox.network = true`.
pub(crate) fn take_weakening(
    layer: &mut Layer,
    without: &Settings,
    bases: Bases<'_>,
) -> Vec<String> {
    let mut taken = Vec::new();
    for key in KEYS {
        let values = (key.take_weakening)(layer, without, bases).into_iter();
        taken.extend(values.map(|value| format!("{} = {value}", key.name)));
    }
    taken
}

/// A key of a layer that a flag can set.
pub(crate) trait Given {
    fn give(&mut self, text: &str) -> Result<(), String>;
}

impl<T: FromStr<Err: Display>> Given for Option<T> {
    fn give(&mut self, text: &str) -> Result<(), String> {
        *self = Some(text.parse().map_err(|error: T::Err| error.to_string())?);
        Ok(())
    }
}

impl<T: FromStr<Err: Display>> Given for Vec<T> {
    fn give(&mut self, text: &str) -> Result<(), String> {
        self.push(text.parse().map_err(|error: T::Err| error.to_string())?);
        Ok(())
    }
}
