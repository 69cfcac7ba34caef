//! How the values of a layer get into the settings: set, added, shown, or removed because they
//! weaken something.

use std::path::{Path, PathBuf};

use code_commit_llm::Price;
use serde_json::{Value as Json, json};

use crate::{Origin, Pattern, Place, Setting};

/// What relative paths and `~` refer to. A record names what lies in the project or in the home relative to these, since
/// both may lie elsewhere when the run goes on.
#[derive(Debug, Clone, Copy)]
pub struct Bases<'b> {
    /// The project's root.
    pub root: &'b Path,
    /// The user's home.
    pub home: Option<&'b Path>,
}

impl Bases<'_> {
    /// Resolves `~` and `~/x` against the home, and `x` against the root.
    pub fn find(&self, place: &Place) -> PathBuf {
        let below_home = if place.0 == "~" {
            Some("")
        } else {
            place.0.strip_prefix("~/")
        };
        match (below_home, self.home) {
            (Some(below), Some(home)) => home.join(below),
            _ => self.root.join(&place.0),
        }
    }
}

/// A value as written in a file or as the argument of a flag.
pub(crate) trait Written: Clone {
    /// Its form in the settings.
    type Value: Clone + PartialEq;

    fn value(self, bases: Bases<'_>) -> Self::Value;

    fn shown(value: &Self::Value) -> Json;

    /// Adds the values of a later layer. Existing values keep their origin.
    fn add(list: &mut Vec<Setting<Self::Value>>, more: Vec<Self::Value>, origin: Origin) {
        for value in more {
            if !list.iter().any(|there| there.value == value) {
                list.push(Setting { value, origin });
            }
        }
    }
}

/// The form of a value in the settings, and for display.
macro_rules! in_force {
    ($name:ident as $value:ty, $get:expr, $shown:expr) => {
        impl $crate::slot::Written for $name {
            type Value = $value;

            fn value(self, _: $crate::Bases<'_>) -> $value {
                let get: fn(Self) -> $value = $get;
                get(self)
            }

            fn shown(value: &$value) -> serde_json::Value {
                let shown: fn(&$value) -> serde_json::Value = $shown;
                shown(value)
            }
        }
    };
}

pub(crate) use in_force;

in_force!(bool as bool, |on| on, |on| json!(on));

impl Written for Price {
    type Value = Self;

    fn value(self, _: Bases<'_>) -> Self {
        self
    }

    fn shown(value: &Self) -> Json {
        json!(value.prefix)
    }

    /// Puts the later layer first, because the first match counts.
    fn add(list: &mut Vec<Setting<Self>>, more: Vec<Self>, origin: Origin) {
        list.splice(
            0..0,
            more.into_iter().map(|value| Setting { value, origin }),
        );
    }
}

/// Whether a value from an untrusted project would weaken the current one, if there is one.
pub(crate) type Weakens<V> = fn(wanted: &V, now: Option<&V>) -> bool;

/// The place of a setting, filled by keys of type `F`.
pub(crate) trait Slot<F> {
    type Value;

    fn put(&mut self, given: &mut F, origin: Origin, bases: Bases<'_>);

    /// Each value for display, and where it comes from; null if there is none.
    fn shown(&self) -> Vec<(Json, Origin)>;

    /// Removes everything that weakens from the given values, and returns it for display.
    fn take_weakening(
        &self,
        given: &mut F,
        weakens: Weakens<Self::Value>,
        bases: Bases<'_>,
    ) -> Vec<String>;
}

/// A single value: the later layer's replaces the earlier one's.
impl<F, V> Slot<Option<F>> for Setting<V>
where
    F: Written,
    V: Clone + From<F::Value> + Into<Option<F::Value>>,
{
    type Value = F::Value;

    fn put(&mut self, given: &mut Option<F>, origin: Origin, bases: Bases<'_>) {
        if let Some(given) = given.take() {
            *self = Self {
                value: given.value(bases).into(),
                origin,
            };
        }
    }

    fn shown(&self) -> Vec<(Json, Origin)> {
        let value: Option<F::Value> = self.value.clone().into();
        vec![(value.as_ref().map_or(Json::Null, F::shown), self.origin)]
    }

    fn take_weakening(
        &self,
        given: &mut Option<F>,
        weakens: Weakens<F::Value>,
        bases: Bases<'_>,
    ) -> Vec<String> {
        let now: Option<F::Value> = self.value.clone().into();
        let weakening = |given: &mut F| weakens(&given.clone().value(bases), now.as_ref());
        let taken = given
            .take_if(weakening)
            .map(|taken| text(&F::shown(&taken.value(bases))));
        taken.into_iter().collect()
    }
}

/// A list: all layers add to it.
impl<F: Written> Slot<Vec<F>> for Vec<Setting<F::Value>> {
    type Value = F::Value;

    fn put(&mut self, given: &mut Vec<F>, origin: Origin, bases: Bases<'_>) {
        F::add(
            self,
            given.drain(..).map(|given| given.value(bases)).collect(),
            origin,
        );
    }

    fn shown(&self) -> Vec<(Json, Origin)> {
        or_none(
            self.iter()
                .map(|entry| (F::shown(&entry.value), entry.origin))
                .collect(),
        )
    }

    fn take_weakening(
        &self,
        given: &mut Vec<F>,
        weakens: Weakens<F::Value>,
        bases: Bases<'_>,
    ) -> Vec<String> {
        let weakening = |given: &mut F| {
            let wanted = given.clone().value(bases);
            self.iter().all(|now| weakens(&wanted, Some(&now.value)))
        };
        let taken = given.extract_if(.., weakening);
        taken
            .map(|taken| format!("[{}]", text(&F::shown(&taken.value(bases)))))
            .collect()
    }
}

/// One list per layer, because a `!` pattern only affects its own list. Protecting more never
/// weakens.
impl Slot<Vec<Pattern>> for Vec<Setting<Vec<String>>> {
    type Value = String;

    fn put(&mut self, given: &mut Vec<Pattern>, origin: Origin, _: Bases<'_>) {
        if !given.is_empty() {
            self.push(Setting {
                value: given.drain(..).map(|pattern| pattern.0).collect(),
                origin,
            });
        }
    }

    fn shown(&self) -> Vec<(Json, Origin)> {
        let lists = self.iter();
        or_none(
            lists
                .flat_map(|list| list.value.iter().map(|one| (json!(one), list.origin)))
                .collect(),
        )
    }

    fn take_weakening(
        &self,
        _: &mut Vec<Pattern>,
        _: Weakens<String>,
        _: Bases<'_>,
    ) -> Vec<String> {
        Vec::new()
    }
}

/// A list without entries is shown, too.
fn or_none(rows: Vec<(Json, Origin)>) -> Vec<(Json, Origin)> {
    if rows.is_empty() {
        vec![(Json::Null, Origin::Default)]
    } else {
        rows
    }
}

/// Safe to print: control characters are escaped.
fn text(value: &Json) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), |text| format!("{text:?}"))
}
