//! How layers become the settings in force: each overrides the ones before it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use code_commit_llm::{Budget, ModelId, Prices, Provider};

use crate::{Bases, Environment, KEYS, Layer, Models, Origin, Place, Setting, Settings, Variable};

/// Without a limit of the user's, for a reply that is streamed and for one that is not.
const STREAMED_SILENCE: Duration = Duration::from_mins(5);
const WHOLE_SILENCE: Duration = Duration::from_mins(10);

/// The time limits of a model call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// How long the service may send nothing.
    pub silence: Duration,
    /// How long the call may take, retries included; `None` if silence alone ends it.
    pub call: Option<Duration>,
}

/// Each layer overrides the ones before it.
impl Settings {
    /// The defaults and the flags, without files and environment.
    #[must_use]
    pub fn of_flags(flags: Layer) -> Self {
        let mut settings = Self::default();
        settings.put_flags(flags);
        settings
    }

    /// Applies flags. Relative paths are resolved against `/`.
    pub fn put_flags(&mut self, flags: Layer) {
        self.put(
            flags,
            Origin::Flag,
            Bases {
                root: Path::new("/"),
                home: None,
            },
        );
    }

    /// Applies a layer. Single values are replaced, lists are extended.
    ///
    /// An address belongs to the provider it was written for: if a later layer names a model of
    /// another provider, that provider's key must not be sent there.
    pub fn put(&mut self, mut layer: Layer, origin: Origin, bases: Bases<'_>) {
        let provider = layer
            .model
            .name
            .as_ref()
            .map(|name| name.0.first().provider());
        if provider.is_some_and(|provider| provider != self.model.value.first().provider()) {
            self.base_url = Setting::default(None);
            self.dialect_max_tokens = Setting::default(None);
            self.dialect_system_role = Setting::default(None);
        }
        for key in KEYS {
            (key.put)(self, &mut layer, origin, bases);
        }
    }

    /// Applies the environment's address for the model's provider, if there is one. The address is
    /// not checked.
    pub(crate) fn put_environment(&mut self, environment: &Environment) {
        let provider = Provider::built_in(self.model.value.first().provider());
        let Some(variable) = provider.and_then(|provider| provider.base_env.as_deref()) else {
            return;
        };
        if let Some(address) = environment.text(variable) {
            let value = Some(address.to_owned());
            self.base_url = Setting {
                value,
                origin: Origin::Environment(Variable(variable)),
            };
        }
    }

    /// The provider of a model; `None` if there is none with its name. Models that answer from a file have none.
    pub fn provider_of(&self, model: &ModelId) -> Option<&Provider> {
        let own = self.providers.iter().map(|own| &own.value);
        Provider::all_built_in()
            .iter()
            .chain(own)
            .find(|provider| provider.name == model.provider())
    }

    /// Every model that a run may ask, the first one first.
    pub fn all_models(&self) -> Vec<&ModelId> {
        self.model
            .value
            .iter()
            .chain(self.escalate.value.iter().flat_map(Models::iter))
            .collect()
    }

    /// Every provider, the built-in ones first.
    pub fn all_providers(&self) -> Vec<&Provider> {
        Provider::all_built_in()
            .iter()
            .chain(self.providers.iter().map(|own| &own.value))
            .collect()
    }

    /// The limits that no call may exceed.
    pub fn budget(&self) -> Budget {
        Budget {
            max_calls: self.max_calls.value,
            max_tokens: self.max_tokens.value,
            max_cost: self.max_cost.value,
            max_time: self.max_time.value,
        }
    }

    /// How long the service may be silent, and how long a call may take.
    ///
    /// A reply that is not streamed is silent until it is there, so one limit stands in for the other. Without a limit for
    /// the call, a model that thinks for longer than that would be asked, and paid, again.
    pub fn patience(&self) -> Patience {
        let (silence, call) = (self.timeout.value, self.call_limit.value);
        if self.stream.value {
            return Patience {
                silence: silence.unwrap_or(STREAMED_SILENCE),
                call,
            };
        }
        match (silence, call) {
            // Twice the limit of the call never passes first, so that the error names what was set.
            (None, Some(call)) => Patience {
                silence: call.saturating_mul(2),
                call: Some(call),
            },
            (silence, call) => {
                let silence = silence.unwrap_or(WHOLE_SILENCE);
                Patience {
                    silence,
                    call: Some(call.unwrap_or(silence)),
                }
            }
        }
    }

    /// All prices, the configured ones first.
    pub fn prices(&self) -> Prices {
        let own = self
            .prices
            .iter()
            .map(|price| price.value.clone())
            .collect();
        let table = Prices::built_in().behind(own);
        self.providers
            .iter()
            .fold(table, |table, provider| table.and_of(&provider.value))
    }

    /// The maximum number of rounds of a loop whose own maximum is `most`.
    pub fn rounds(&self, most: u32) -> u32 {
        let wanted = self
            .rounds
            .value
            .and_then(|rounds| u32::try_from(rounds).ok());
        wanted.map_or(most, |rounds| rounds.min(most))
    }

    /// The settings for a record.
    #[must_use]
    pub fn carried(&self, bases: Bases<'_>) -> Self {
        self.with_places(|path| relative(path, bases))
    }

    /// The settings of a record, for the project where it lies now.
    #[must_use]
    pub fn unpacked(&self, bases: Bases<'_>) -> Self {
        self.with_places(|path| {
            path.to_str().map_or_else(
                || path.to_owned(),
                |text| bases.find(&Place(text.to_owned())),
            )
        })
    }

    fn with_places(&self, change: impl Fn(&Path) -> PathBuf) -> Self {
        let mut settings = self.clone();
        for place in settings.writable.iter_mut().chain(&mut settings.readable) {
            place.value = change(&place.value);
        }
        settings
    }
}

/// What is neither in the project nor in the home is what the user named, and stays.
fn relative(path: &Path, Bases { root, home }: Bases<'_>) -> PathBuf {
    let below = |folder: &Path| path.strip_prefix(folder).ok().map(Path::to_owned);
    let below_home = || Some(Path::new("~").join(below(home?)?));
    below(root)
        .map(|path| Path::new(".").join(path))
        .or_else(below_home)
        .unwrap_or_else(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_names_no_folder_above_the_project_and_none_of_the_home() {
        let here = Bases {
            root: Path::new("/h/me/p"),
            home: Some(Path::new("/h/me")),
        };
        let there = Bases {
            root: Path::new("/srv/q"),
            home: Some(Path::new("/root")),
        };
        let mut layer = Layer::default();
        layer.sandbox.readable = ["docs", "~/.cache/x", "/opt/tool"]
            .map(|place| Place(place.to_owned()))
            .into();
        let mut settings = Settings::default();
        settings.put(layer, Origin::Flag, here);
        let values = |settings: &Settings| -> Vec<PathBuf> {
            settings
                .readable
                .iter()
                .map(|place| place.value.clone())
                .collect()
        };
        let carried = settings.carried(here);
        assert_eq!(
            values(&carried),
            ["./docs", "~/.cache/x", "/opt/tool"].map(PathBuf::from)
        );
        assert_eq!(
            values(&carried.unpacked(there)),
            ["/srv/q/./docs", "/root/.cache/x", "/opt/tool"].map(PathBuf::from)
        );
        assert_eq!(carried.unpacked(here), settings);
    }
}
