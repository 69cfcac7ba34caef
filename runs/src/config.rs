//! The settings of a run, and warnings about them.

use std::path::Path;

use code_commit_settings::{Files, Options, ReadError, Settings};

use crate::exit::Failure;
use crate::host::Host;

/// The settings of a run in `root`. Omits what the project may not set, with a warning for each.
pub fn load(root: &Path, flags: &Options, host: Host<'_>) -> Result<Settings, Failure> {
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
        let bytes = Settings::default().build_prompt();
        assert_eq!(
            usize::try_from(bytes),
            Ok(code_commit_loop_commit::BUILD_OUTPUT_BYTES)
        );
    }
}
