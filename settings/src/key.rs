//! What is known of one key: its name, its flag, and how its values get from a layer into the settings.

use std::fmt::Display;
use std::str::FromStr;

use serde_json::Value;

use crate::{Bases, KEYS, Layer, Origin, Settings};

/// One row of the table of settings.
#[derive(Debug)]
pub struct Key {
    /// As it is written in a file: table, dot, key.
    pub name: &'static str,
    /// Its flag, if it has one.
    pub flag: Option<Flag>,
    pub(crate) give: Option<Give>,
    pub(crate) put: fn(&mut Settings, &mut Layer, Origin, Bases<'_>),
    pub(crate) shown: fn(&Settings) -> Vec<(Value, Origin)>,
    pub(crate) take_weakening: fn(&mut Layer, &Settings, Bases<'_>) -> Vec<String>,
}

/// Takes the text behind a flag into a layer.
type Give = fn(&mut Layer, &str) -> Result<(), String>;

/// A flag, as its help describes it.
#[derive(Debug, Clone, Copy)]
pub struct Flag {
    /// Its name, without the dashes.
    pub name: &'static str,
    /// What stands behind it.
    pub takes: Takes,
    /// What it does.
    pub help: &'static str,
    /// Whether the help shows the default; not where a loop has one of its own.
    pub shows_default: bool,
    /// Whether a run that goes on takes it, too.
    pub on_resume: bool,
    /// What it does in the loops of agents, which look at limits between turns; `None` if they have no such flag.
    pub between_turns: Option<&'static str>,
}

/// What stands behind a flag.
#[derive(Debug, Clone, Copy)]
pub enum Takes {
    /// One value, called this.
    One(&'static str),
    /// One value, called this; the flag may be given again.
    Many(&'static str),
    /// One of some words, called this; the words and what they mean.
    Word(&'static str, &'static [(&'static str, &'static str)]),
    /// Nothing; its opposite and what that does.
    Nothing(&'static str, &'static str),
}

impl Flag {
    pub(crate) const fn new(name: &'static str, takes: Takes, help: &'static str) -> Self {
        Self { name, takes, help, shows_default: true, on_resume: false, between_turns: None }
    }

    pub(crate) const fn without_default(self) -> Self {
        Self { shows_default: false, ..self }
    }

    pub(crate) const fn on_resume(self) -> Self {
        Self { on_resume: true, ..self }
    }

    pub(crate) const fn between_turns(self, help: &'static str) -> Self {
        Self { between_turns: Some(help), ..self }
    }
}

impl Key {
    /// Takes the text behind the flag into a layer; for a flag that takes nothing `true` or `false`.
    pub fn give(&self, layer: &mut Layer, text: &str) -> Result<(), String> {
        self.give.map_or(Ok(()), |give| give(layer, text))
    }

    /// The default that the help of the flag shows; `None` if there is none.
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
    /// Null where it is not set.
    pub value: Value,
    /// Where it is from.
    pub origin: Origin,
}

impl Row {
    /// The value for eyes.
    #[must_use]
    pub fn text(&self) -> String {
        match &self.value {
            Value::Null => "-".to_owned(),
            Value::String(text) => text.clone(),
            Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => self.value.to_string(),
        }
    }
}

impl Settings {
    /// All of them, in the order of the table. A list that several layers add to has a row for each entry.
    #[must_use]
    pub fn rows(&self) -> Vec<Row> {
        let shown = |key: &'static Key| {
            let values = (key.shown)(self).into_iter();
            values.map(|(value, origin)| Row { key: key.name, value, origin })
        };
        KEYS.iter().flat_map(shown).collect()
    }
}

/// Takes out of a project's layer everything that would weaken what is in force without it, and says what that was, one line each:
/// `sandbox.network = true`.
pub(crate) fn take_weakening(layer: &mut Layer, without: &Settings, bases: Bases<'_>) -> Vec<String> {
    let mut taken = Vec::new();
    for key in KEYS {
        let values = (key.take_weakening)(layer, without, bases).into_iter();
        taken.extend(values.map(|value| format!("{} = {value}", key.name)));
    }
    taken
}

/// A key of a layer, to which a flag gives a value.
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
