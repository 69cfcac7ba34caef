//! The settings that a CLI needs to work without a person, in a home of its own.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::{Kind, Spawn};

/// The variable with which each CLI is told where its settings and sessions are, and its value. `HOME` alone does not do:
/// some walls put another one in its place.
pub(crate) fn variable(kind: Kind, home: &Path) -> (&'static str, PathBuf) {
    match kind {
        Kind::Claude => ("CLAUDE_CONFIG_DIR", home.join(".claude")),
        // It looks for `.gemini` below.
        Kind::Gemini => ("GEMINI_CLI_HOME", home.to_owned()),
        Kind::Codex => ("CODEX_HOME", home.join(".codex")),
    }
}

/// Where the user's own settings and login of a CLI are, below the home folder.
pub(crate) fn of_user(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Claude => &[".claude", ".claude.json"],
        Kind::Gemini => &[".gemini"],
        Kind::Codex => &[".codex"],
    }
}

/// Makes the folder and, for Gemini CLI, the settings without which it refuses a service's address.
pub(crate) fn prepare(kind: Kind, home: &Path, spawn: &Spawn<'_>) -> Result<(), (PathBuf, io::Error)> {
    let (_, folder) = variable(kind, home);
    fs::create_dir_all(&folder).map_err(|error| (folder, error))?;
    if kind != Kind::Gemini {
        return Ok(());
    }
    let settings = json!({
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": false},
        "general": {
            "enableAutoUpdate": false, "enableAutoUpdateNotification": false,
            "maxAttempts": spawn.retries.saturating_add(1).min(10),
        },
    });
    let file = home.join(".gemini/settings.json");
    let made = fs::create_dir_all(home.join(".gemini")).and_then(|()| write(&file, &settings.to_string()));
    made.map_err(|error| (file, error))
}

#[expect(clippy::disallowed_methods, reason = "the CLI reads its settings from a file")]
fn write(file: &Path, text: &str) -> io::Result<()> {
    fs::write(file, text)
}
