//! How the values of one layer get into the settings: taken over, added, shown, or taken out because they weaken.

use llm::Price;
use serde_json::{Value as Json, json};

use crate::{Bases, Origin, Pattern, Setting};

/// A value as it is written in a file or behind a flag.
pub(crate) trait Written: Clone {
    /// What it is in force.
    type Value: Clone + PartialEq;

    /// What it stands for.
    fn value(self, bases: Bases<'_>) -> Self::Value;

    /// As it is shown.
    fn shown(value: &Self::Value) -> Json;

    /// Adds values of a later layer. What is there already stays where it is from.
    fn add(list: &mut Vec<Setting<Self::Value>>, more: Vec<Self::Value>, origin: Origin) {
        for value in more {
            if !list.iter().any(|there| there.value == value) {
                list.push(Setting { value, origin });
            }
        }
    }
}

/// What a value is in force, and how that is shown.
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

    /// The first that fits counts.
    fn add(list: &mut Vec<Setting<Self>>, more: Vec<Self>, origin: Origin) {
        list.splice(0..0, more.into_iter().map(|value| Setting { value, origin }));
    }
}

/// Whether a project that is not trusted would weaken by a value what is in force without it, if anything is.
pub(crate) type Weakens<V> = fn(wanted: &V, now: Option<&V>) -> bool;

/// The place of a setting, which a key of the type `F` fills.
pub(crate) trait Slot<F> {
    /// Of one value.
    type Value;

    /// Takes what is given.
    fn put(&mut self, given: &mut F, origin: Origin, bases: Bases<'_>);

    /// Each value, as it is shown, and where it is from; null where there is none.
    fn shown(&self) -> Vec<(Json, Origin)>;

    /// Takes out of what is given whatever weakens, and says what that was.
    fn take_weakening(&self, given: &mut F, weakens: Weakens<Self::Value>, bases: Bases<'_>) -> Vec<String>;
}

/// One value: the later layer's replaces the earlier one's.
impl<F, V> Slot<Option<F>> for Setting<V>
where
    F: Written,
    V: Clone + From<F::Value> + Into<Option<F::Value>>,
{
    type Value = F::Value;

    fn put(&mut self, given: &mut Option<F>, origin: Origin, bases: Bases<'_>) {
        if let Some(given) = given.take() {
            *self = Self { value: given.value(bases).into(), origin };
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
        let taken = given.take_if(weakening).map(|taken| text(&F::shown(&taken.value(bases))));
        taken.into_iter().collect()
    }
}

/// A list: those of all layers add up.
impl<F: Written> Slot<Vec<F>> for Vec<Setting<F::Value>> {
    type Value = F::Value;

    fn put(&mut self, given: &mut Vec<F>, origin: Origin, bases: Bases<'_>) {
        F::add(self, given.drain(..).map(|given| given.value(bases)).collect(), origin);
    }

    fn shown(&self) -> Vec<(Json, Origin)> {
        or_none(self.iter().map(|entry| (F::shown(&entry.value), entry.origin)).collect())
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
        taken.map(|taken| format!("[{}]", text(&F::shown(&taken.value(bases))))).collect()
    }
}

/// A list for each layer, since a `!` pattern takes back only what its own list protects. To protect more never weakens.
impl Slot<Vec<Pattern>> for Vec<Setting<Vec<String>>> {
    type Value = String;

    fn put(&mut self, given: &mut Vec<Pattern>, origin: Origin, _: Bases<'_>) {
        if !given.is_empty() {
            self.push(Setting { value: given.drain(..).map(|pattern| pattern.0).collect(), origin });
        }
    }

    fn shown(&self) -> Vec<(Json, Origin)> {
        let lists = self.iter();
        or_none(lists.flat_map(|list| list.value.iter().map(|one| (json!(one), list.origin))).collect())
    }

    fn take_weakening(&self, _: &mut Vec<Pattern>, _: Weakens<String>, _: Bases<'_>) -> Vec<String> {
        Vec::new()
    }
}

/// A list without entries is shown, too.
fn or_none(rows: Vec<(Json, Origin)>) -> Vec<(Json, Origin)> {
    if rows.is_empty() { vec![(Json::Null, Origin::Default)] } else { rows }
}

/// As it may be printed: what moves a terminal's cursor is escaped.
fn text(value: &Json) -> String {
    value.as_str().map_or_else(|| value.to_string(), |text| format!("{text:?}"))
}
