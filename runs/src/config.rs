//! The settings of a run, and warnings about them.

use std::path::Path;

use code_commit_settings::{Bases, Environment, Files, Layer, ReadError, Settings};

use crate::exit::Failure;
use crate::host::Host;

/// The settings of a run in `root`. Omits what the project may not set, with a warning for each.
pub fn load(root: &Path, flags: Layer, host: Host<'_>) -> Result<Settings, Failure> {
    let Host {
        environment,
        output,
        ..
    } = host;
    let files = Files::read(root, environment)?;
    let loaded = files.settings(environment, flags);
    loaded
        .ignored
        .iter()
        .for_each(|what| output.warn(&files.why_ignored(what)));
    Ok(loaded.settings)
}

/// The settings as a record holds them: the project may lie elsewhere when the run goes on.
pub(crate) fn carried(settings: &Settings, root: &Path, environment: &Environment) -> Settings {
    settings.carried(Bases {
        root,
        home: environment.folder("HOME").as_deref(),
    })
}

/// The settings of a record, for the project and the home as they are here.
pub(crate) fn unpacked(settings: &Settings, root: &Path, environment: &Environment) -> Settings {
    settings.unpacked(Bases {
        root,
        home: environment.folder("HOME").as_deref(),
    })
}

/// An error in a file keeps a command from starting.
impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        Self::hinted(error, ReadError::hint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_is_sent_as_much_of_a_build_as_the_loop_takes() {
        let bytes = Settings::default().build_prompt.value;
        assert_eq!(
            usize::try_from(bytes),
            Ok(code_commit_loop_commit::BUILD_OUTPUT_BYTES)
        );
    }
}
