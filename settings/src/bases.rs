//! The folders that paths in settings are relative to. A record can be carried to another machine, so it names
//! what lies in the project or in the home relative to these.

use std::path::{Path, PathBuf};

use crate::{Place, Settings};

/// What relative paths and `~` refer to.
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
        let below_home = if place.0 == "~" { Some("") } else { place.0.strip_prefix("~/") };
        match (below_home, self.home) {
            (Some(below), Some(home)) => home.join(below),
            _ => self.root.join(&place.0),
        }
    }
}

impl Settings {
    /// The settings for a record.
    #[must_use]
    pub fn carried(&self, bases: Bases<'_>) -> Self {
        self.with_places(|path| relative(path, bases))
    }

    /// The settings of a record, for the project where it lies now.
    #[must_use]
    pub fn unpacked(&self, bases: Bases<'_>) -> Self {
        self.with_places(|path| {
            path.to_str().map_or_else(|| path.to_owned(), |text| bases.find(&Place(text.to_owned())))
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
    below(root).map(|path| Path::new(".").join(path)).or_else(below_home).unwrap_or_else(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Layer, Origin};

    #[test]
    fn a_record_names_no_folder_above_the_project_and_none_of_the_home() {
        let here = Bases { root: Path::new("/h/me/p"), home: Some(Path::new("/h/me")) };
        let there = Bases { root: Path::new("/srv/q"), home: Some(Path::new("/root")) };
        let mut layer = Layer::default();
        layer.sandbox.readable =
            ["docs", "~/.cache/x", "/opt/tool"].map(|place| Place(place.to_owned())).into();
        let mut settings = Settings::default();
        settings.put(layer, Origin::Flag, here);
        let values = |settings: &Settings| -> Vec<PathBuf> {
            settings.readable.iter().map(|place| place.value.clone()).collect()
        };
        let carried = settings.carried(here);
        assert_eq!(values(&carried), ["./docs", "~/.cache/x", "/opt/tool"].map(PathBuf::from));
        assert_eq!(
            values(&carried.unpacked(there)),
            ["/srv/q/./docs", "/root/.cache/x", "/opt/tool"].map(PathBuf::from)
        );
        assert_eq!(carried.unpacked(here), settings);
    }
}
