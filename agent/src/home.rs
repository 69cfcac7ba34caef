//! The settings that a CLI needs to work without a person, in a home of its own.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use runner::Walls;
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

/// What of the user's own settings, login and sessions a CLI gets behind a wall: all of it to read but what is named here. Whatever it
/// makes beside that is thrown away after the turn, so that nothing which the user's next session runs or is configured by can be
/// planted: hooks, servers of tools, commands, skills, plugins, what a shell or git reads first.
struct Own {
    /// Its folder, below the home folder.
    folder: &'static str,
    /// Files beside the folder.
    beside: &'static [&'static str],
    /// Folders of sessions, to be written: nothing in them is run.
    sessions: &'static [&'static str],
    /// Files that are written where they are, if they are there: a login is renewed.
    files: &'static [&'static str],
    /// Folders of programs among the sessions: they are held.
    programs: &'static [&'static str],
    /// How the names begin and end of what each turn has anew: locks, caches, what is run by sessions.
    anew: &'static [(&'static str, &'static str)],
}

const fn own(kind: Kind) -> Own {
    match kind {
        Kind::Claude => Own {
            folder: ".claude",
            beside: &[".claude.json"],
            sessions: &["projects", "todos", "tasks"],
            files: &[".credentials.json", "history.jsonl"],
            programs: &[],
            anew: &[
                ("shell-snapshots", ""),
                ("session-env", ""),
                ("sessions", ""),
                ("backups", ""),
                ("statsig", ""),
                ("debug", ""),
            ],
        },
        Kind::Gemini => Own {
            folder: ".gemini",
            beside: &[],
            sessions: &["tmp"],
            files: &["oauth_creds.json", "google_accounts.json"],
            programs: &["tmp/bin"],
            // Projects are found by their folders in `tmp`, too; each folder of `history` is a git repository.
            anew: &[("projects.json", ""), ("state.json", ""), ("history", "")],
        },
        Kind::Codex => Own {
            folder: ".codex",
            beside: &[],
            sessions: &["sessions"],
            files: &["auth.json", "history.jsonl", "installation_id"],
            programs: &[],
            anew: &[
                ("", ".sqlite"),
                ("", ".sqlite-shm"),
                ("", ".sqlite-wal"),
                ("thread-writer-locks", ""),
                ("shell_snapshots", ""),
                ("log", ""),
                ("tmp", ""),
                (".tmp", ""),
            ],
        },
    }
}

/// Opens in the walls what a CLI needs of the user's own.
pub(crate) fn open(kind: Kind, home: &Path, walls: &mut Walls) {
    let own = own(kind);
    let folder = home.join(own.folder);
    let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
    let is_anew =
        |name: &str| own.anew.iter().any(|(head, end)| name.starts_with(head) && name.ends_with(end));
    let seen = entries.filter(|entry| !entry.file_name().to_str().is_some_and(is_anew));
    walls.readable.extend(seen.map(|entry| entry.path()));
    walls.readable.extend(own.beside.iter().map(|name| home.join(name)));
    // A file that is not there must not be made into a folder.
    let files = own.files.iter().map(|name| folder.join(name)).filter(|path| path.is_file());
    walls.writable.extend(own.sessions.iter().map(|name| folder.join(name)).chain(files));
    let programs = own.programs.iter().map(|name| folder.join(name)).filter(|path| path.exists());
    walls.read_only.extend(programs);
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
