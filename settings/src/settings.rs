//! The settings in force: layers of options, each over the ones before it.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::time::Duration;

use code_commit_llm::{Budget, ModelId, Prices, Provider};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::class::{Class, KEYS};
use crate::{Address, DialectOptions, Environment, Models, Options};

/// Without a limit of the user's, for a reply that is streamed and for one that is not.
const STREAMED_SILENCE: Duration = Duration::from_mins(5);
const WHOLE_SILENCE: Duration = Duration::from_mins(10);

/// Every setting of a run, and where it is from. They are recorded, so that a resumed run uses the same ones; what a record does
/// not have came later, and has its default.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// All layers in one.
    pub options: Options,
    /// By key: where the value is from, or each entry of a list. What is not here is a default.
    #[serde(default)]
    origins: BTreeMap<String, Vec<Origin>>,
}

/// Where a setting comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// Nothing else set it.
    Default,
    /// The user's own file.
    User,
    /// `code-commit.toml`.
    Project,
    /// A variable of the environment that holds the address of a built-in provider.
    Environment(String),
    /// The command line.
    Flag,
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

/// The time limits of a model call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// How long the service may send nothing.
    pub silence: Duration,
    /// How long the call may take, retries included; `None` if silence alone ends it.
    pub call: Option<Duration>,
}

/// What relative paths and `~` refer to. A record names what lies in the project or in the home relative to these, since
/// both may lie elsewhere when the run goes on.
#[derive(Debug, Clone)]
pub struct Bases<'b> {
    root: &'b Path,
    home: Option<PathBuf>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            options: Options::defaults(),
            origins: BTreeMap::new(),
        }
    }
}

impl Deref for Settings {
    type Target = Options;

    fn deref(&self) -> &Options {
        &self.options
    }
}

impl Settings {
    /// The defaults and the flags, without files and environment.
    #[must_use]
    pub fn of_flags(flags: &Options) -> Self {
        let mut settings = Self::default();
        settings.put(flags, &Origin::Flag);
        settings
    }

    /// Applies a layer. Single values are replaced, lists are extended.
    ///
    /// An address belongs to the provider it was written for: if a later layer names a model of
    /// another provider, that provider's key must not be sent there.
    pub fn put(&mut self, layer: &Options, origin: &Origin) {
        // Most layers are empty.
        if *layer == Options::default() {
            return;
        }
        let is_other = |name: &Models| name.first().provider() != self.models().first().provider();
        if layer.model.name.as_ref().is_some_and(is_other) {
            self.options.model.base_url = None;
            self.options.model.dialect = DialectOptions::default();
            self.origins
                .retain(|key, _| key != "model.base_url" && !key.starts_with("model.dialect."));
        }
        let (mut merged, layer) = (json!(self.options), json!(layer));
        for (key, class) in KEYS {
            let place = pointer(key);
            if let Some(given) = layer.pointer(&place).filter(|given| !given.is_null())
                && let Some(value) = merged.pointer_mut(&place)
            {
                let origins = self.origins.entry((*key).to_owned()).or_default();
                Slot { value, origins }.put((key, *class), given, origin);
            }
        }
        self.origins.retain(|_, origins| !origins.is_empty());
        self.options = options(merged);
    }

    /// Removes everything from an untrusted project's layer that would weaken these settings; returns
    /// what was removed, one line each: `sandbox.network = true`.
    pub(crate) fn take_weakening(&self, layer: &mut Options) -> Vec<String> {
        let (now, mut wanted) = (json!(self.options), json!(layer));
        let mut taken = Vec::new();
        for (key, class) in KEYS {
            let mut keep = |is_kept: bool, text: String| {
                if !is_kept {
                    taken.push(format!("{key} = {text}"));
                }
                is_kept
            };
            match (
                wanted.pointer_mut(&pointer(key)),
                now.pointer(&pointer(key)),
            ) {
                (Some(Value::Array(wanted)), Some(Value::Array(now))) => wanted.retain(|entry| {
                    let is_kept = *class == Class::Free || now.contains(entry);
                    keep(is_kept, format!("[{}]", quoted(shown(entry))))
                }),
                (Some(Value::Object(wanted)), Some(Value::Object(now))) => {
                    wanted.retain(|name, entry| {
                        keep(now.get(name) == Some(entry), format!("[{name:?}]"))
                    });
                }
                (Some(wanted), Some(now))
                    if !keep(!class.is_weakened(wanted, now), quoted(wanted)) =>
                {
                    *wanted = Value::Null;
                }
                _ => {}
            }
        }
        *layer = options(wanted);
        taken
    }

    /// All settings, in the order of display. A list that several layers add to has one row per entry.
    #[must_use]
    pub fn rows(&self) -> Vec<Row> {
        let all = json!(self.options);
        let rows = |(key, _): &(&'static str, Class)| {
            let mut values = match all.pointer(&pointer(key)) {
                Some(Value::Array(entries)) => entries.iter().map(shown).cloned().collect(),
                Some(Value::Object(tables)) => tables.keys().map(|name| json!(name)).collect(),
                value => vec![value.cloned().unwrap_or_default()],
            };
            if values.is_empty() {
                values.push(Value::Null);
            }
            let row = |(value, origin): (Value, &Origin)| Row {
                key,
                value,
                origin: origin.clone(),
            };
            let values = values.into_iter().zip(self.origins(key));
            values.map(row).collect::<Vec<_>>()
        };
        KEYS.iter().flat_map(rows).collect()
    }

    /// Whether a flag set this key.
    #[must_use]
    pub fn is_flag(&self, key: &str) -> bool {
        self.origin(key) == Origin::Flag
    }

    /// Where the value of a key is from.
    #[must_use]
    pub fn origin(&self, key: &str) -> Origin {
        self.origins(key).next().cloned().unwrap_or(Origin::Default)
    }

    /// Of the value, or of each entry; without end, since what nothing set is a default.
    fn origins(&self, key: &str) -> impl Iterator<Item = &Origin> {
        let known = self.origins.get(key).into_iter().flatten();
        known.chain(std::iter::repeat(&Origin::Default))
    }

    /// Applies the environment's address for the model's provider, if there is one. The address is
    /// not checked.
    pub(crate) fn put_environment(&mut self, environment: &Environment) {
        let provider = Provider::built_in(self.models().first().provider());
        let variable = provider.and_then(|provider| provider.base_env.as_deref());
        if let Some(variable) = variable
            && let Some(address) = environment.text(variable)
        {
            self.options.model.base_url = Some(Address(address.to_owned()));
            let origin = vec![Origin::Environment(variable.to_owned())];
            self.origins.insert("model.base_url".to_owned(), origin);
        }
    }

    /// The patterns of each layer that protects something: a `!` pattern only affects its own list.
    #[must_use]
    pub fn protect_lists(&self) -> Vec<Vec<String>> {
        let patterns = self.protect.iter().map(|pattern| pattern.0.clone());
        let all: Vec<(String, &Origin)> = patterns.zip(self.origins("protect")).collect();
        let lists = all.chunk_by(|(_, one), (_, next)| one == next);
        lists
            .map(|list| list.iter().map(|(pattern, _)| pattern.clone()).collect())
            .collect()
    }

    /// The settings for a record.
    #[must_use]
    pub fn carried(&self, bases: &Bases<'_>) -> Self {
        self.with_places(|path| bases.relative(path))
    }

    /// The settings of a record or of files, for the project where it lies now.
    #[must_use]
    pub fn unpacked(&self, bases: &Bases<'_>) -> Self {
        self.with_places(|path| bases.find(path))
    }

    fn with_places(&self, change: impl Fn(&Path) -> PathBuf) -> Self {
        let mut settings = self.clone();
        let sandbox = &mut settings.options.sandbox;
        for place in sandbox.writable.iter_mut().chain(&mut sandbox.readable) {
            place.0 = change(&place.0);
        }
        settings
    }
}

/// What follows from several options.
impl Options {
    /// Every model that a run may ask, the first one first.
    #[must_use]
    pub fn all_models(&self) -> Vec<ModelId> {
        let (models, escalate) = (self.models(), &self.model.escalate);
        let all = std::iter::once(&models).chain(escalate);
        all.flat_map(Models::iter).cloned().collect()
    }

    /// Every provider, the built-in ones first.
    #[must_use]
    pub fn all_providers(&self) -> Vec<Provider> {
        let own = self.providers.iter().map(|(name, own)| own.named(name));
        Provider::all_built_in()
            .iter()
            .cloned()
            .chain(own)
            .collect()
    }

    /// The provider of a model; `None` if there is none with its name. Models that answer from a file have none.
    #[must_use]
    pub fn provider_of(&self, model: &ModelId) -> Option<Provider> {
        let mut all = self.all_providers().into_iter();
        all.find(|provider| provider.name == model.provider())
    }

    /// All prices, the configured ones first.
    #[must_use]
    pub fn prices(&self) -> Prices {
        let table = Prices::built_in().behind(self.price.clone());
        self.providers
            .iter()
            .fold(table, |table, (name, own)| table.and_of(&own.named(name)))
    }

    /// What the build may change outside the project.
    #[must_use]
    pub fn writable(&self) -> Vec<PathBuf> {
        let places = self.sandbox.writable.iter();
        places.map(|place| place.0.clone()).collect()
    }

    /// What the build may read outside the project.
    #[must_use]
    pub fn readable(&self) -> Vec<PathBuf> {
        let places = self.sandbox.readable.iter();
        places.map(|place| place.0.clone()).collect()
    }

    /// The limits that no call may exceed.
    #[must_use]
    pub fn budget(&self) -> Budget {
        Budget {
            max_calls: self.limits.max_calls.map(u64::from),
            max_tokens: self.limits.max_tokens.map(u64::from),
            max_cost: self.limits.max_cost.map(|cost| cost.0),
            max_time: self.limits.max_time.map(Duration::from),
        }
    }

    /// The maximum number of rounds of a loop whose own maximum is `most`.
    #[must_use]
    pub fn rounds(&self, most: u32) -> u32 {
        let wanted = self
            .limits
            .rounds
            .and_then(|rounds| u32::try_from(rounds.0).ok());
        wanted.map_or(most, |rounds| rounds.min(most))
    }

    /// How long the service may be silent, and how long a call may take.
    ///
    /// A reply that is not streamed is silent until it is there, so one limit stands in for the other. Without a limit for
    /// the call, a model that thinks for longer than that would be asked, and paid, again.
    #[must_use]
    pub fn patience(&self) -> Patience {
        let (silence, call) = (self.model.timeout, self.model.call_limit);
        let (silence, call) = (silence.map(Duration::from), call.map(Duration::from));
        if self.stream() {
            let silence = silence.unwrap_or(STREAMED_SILENCE);
            return Patience { silence, call };
        }
        // Twice the limit of the call never passes first, so that the error names what was set.
        let twice = call.map(|call| call.saturating_mul(2));
        let silence = silence.or(twice).unwrap_or(WHOLE_SILENCE);
        Patience {
            silence,
            call: call.or(Some(silence)),
        }
    }
}

impl Row {
    /// The value for display.
    #[must_use]
    pub fn text(&self) -> String {
        let text = self.value.as_str().map(str::to_owned);
        if self.value.is_null() {
            return "-".to_owned();
        }
        text.unwrap_or_else(|| self.value.to_string())
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Default => "default",
            Self::User => "user file",
            Self::Project => "project file",
            Self::Environment(variable) => variable,
            Self::Flag => "flag",
        })
    }
}

impl<'b> Bases<'b> {
    /// This root, and the user's home.
    #[must_use]
    pub fn new(root: &'b Path, environment: &Environment) -> Self {
        let home = environment.folder("HOME");
        Self { root, home }
    }

    /// The project's root.
    #[must_use]
    pub fn root(&self) -> &Path {
        self.root
    }

    /// Resolves `~` and `~/x` against the home, and `x` against the root.
    #[must_use]
    pub fn find(&self, path: &Path) -> PathBuf {
        match (path.strip_prefix("~"), &self.home) {
            (Ok(below), Some(home)) => home.join(below),
            _ => self.root.join(path),
        }
    }

    /// What is neither in the project nor in the home is what the user named, and stays.
    fn relative(&self, path: &Path) -> PathBuf {
        let below =
            |folder: &Path, base: &str| Some(Path::new(base).join(path.strip_prefix(folder).ok()?));
        below(self.root, ".")
            .or_else(|| below(self.home.as_deref()?, "~"))
            .unwrap_or_else(|| path.to_owned())
    }
}

/// The place of one key in the settings.
struct Slot<'s> {
    value: &'s mut Value,
    origins: &'s mut Vec<Origin>,
}

impl Slot<'_> {
    fn put(self, (key, class): (&str, Class), given: &Value, origin: &Origin) {
        match (self.value, given) {
            (Value::Array(now), Value::Array(given)) => {
                // An allowance is in force once. Of patterns the order counts.
                let is_new = |value: &&Value| class == Class::Free || !now.contains(value);
                let new: Vec<Value> = given.iter().filter(is_new).cloned().collect();
                // Of prices the first match counts.
                let at = if key == "price" { 0 } else { now.len() };
                self.origins.splice(at..at, vec![origin.clone(); new.len()]);
                now.splice(at..at, new);
            }
            // A later layer replaces a whole provider: half of one could send a key to the address of another.
            (Value::Object(now), Value::Object(given)) => {
                for (name, value) in given {
                    let at = now.keys().take_while(|there| *there < name).count();
                    let replaced = now.insert(name.clone(), value.clone()).iter().len();
                    self.origins.splice(at..at + replaced, [origin.clone()]);
                }
            }
            (now, given) => {
                *now = given.clone();
                *self.origins = vec![origin.clone()];
            }
        }
    }
}

/// The place of a key in the options.
fn pointer(key: &str) -> String {
    format!("/{}", key.replace('.', "/"))
}

#[expect(
    clippy::expect_used,
    reason = "every value was read as one of its key before"
)]
fn options(merged: Value) -> Options {
    serde_json::from_value(merged).expect("options")
}

/// An entry of a list for display: of a price only what it is for.
fn shown(entry: &Value) -> &Value {
    entry.get("prefix").unwrap_or(entry)
}

/// Safe to print: control characters are escaped.
fn quoted(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), |text| format!("{text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Place;

    #[test]
    fn a_record_names_no_folder_above_the_project_and_none_of_the_home() {
        let here = Bases {
            root: Path::new("/h/me/p"),
            home: Some("/h/me".into()),
        };
        let there = Bases {
            root: Path::new("/srv/q"),
            home: Some("/root".into()),
        };
        let mut flags = Options::default();
        flags.sandbox.readable = ["docs", "~/.cache/x", "/opt/tool"]
            .map(|place| Place(place.into()))
            .into();
        let settings = Settings::of_flags(&flags).unpacked(&here);
        let values = |settings: &Settings| -> Vec<PathBuf> {
            let places = settings.sandbox.readable.iter();
            places.map(|place| place.0.clone()).collect()
        };
        let carried = settings.carried(&here);
        assert_eq!(
            values(&carried),
            ["./docs", "~/.cache/x", "/opt/tool"].map(PathBuf::from)
        );
        assert_eq!(
            values(&carried.unpacked(&there)),
            ["/srv/q/./docs", "/root/.cache/x", "/opt/tool"].map(PathBuf::from)
        );
        assert_eq!(carried.unpacked(&here), settings);
    }
}
