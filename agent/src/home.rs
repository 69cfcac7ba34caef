//! The settings that a CLI needs to work unattended, in a home directory of its own.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use code_commit_runner::Access;
use serde_json::json;

use crate::{Kind, Spawn};

/// The variable that tells each CLI where its settings and sessions are, and its value. `HOME`
/// alone is not enough, because some sandboxes replace it.
pub(crate) fn variable(kind: Kind, home: &Path) -> (&'static str, PathBuf) {
    match kind {
        Kind::Claude => ("CLAUDE_CONFIG_DIR", home.join(".claude")),
        // It looks for `.gemini` in that folder.
        Kind::Gemini => ("GEMINI_CLI_HOME", home.to_owned()),
        Kind::Codex => ("CODEX_HOME", home.join(".codex")),
    }
}

/// The parts of the user's own settings, login and sessions that a CLI can change in a sandbox;
/// everything else is read-only. Whatever it creates beside them is discarded after the turn, so
/// that it cannot plant anything that configures or is run by the user's next session: hooks, tool
/// servers, commands, skills, plugins, startup files of a shell or git.
struct Own {
    /// Its folder in the home directory.
    folder: &'static str,
    /// Files beside the folder.
    beside: &'static [&'static str],
    /// Writable folders with sessions: nothing in them is executed.
    sessions: &'static [&'static str],
    /// Files that are written in place if they exist, for example to renew a login.
    files: &'static [&'static str],
    /// Folders with programs among the sessions; these are read-only.
    programs: &'static [&'static str],
    /// Prefixes and suffixes of names that are new in each turn: locks, caches, files that sessions
    /// execute.
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
            // Projects are also found by their folders in `tmp`; each folder of `history` is a git
            // repository.
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

/// Opens the user's own files that a CLI needs in the sandbox.
pub(crate) fn open(kind: Kind, home: &Path, access: &mut Access) {
    let own = own(kind);
    let folder = home.join(own.folder);
    let entries = code_commit_dir::list(&folder)
        .into_iter()
        .flatten()
        .flatten();
    let is_anew = |name: &str| {
        own.anew
            .iter()
            .any(|(head, end)| name.starts_with(head) && name.ends_with(end))
    };
    let seen = entries.filter(|entry| !entry.file_name().to_str().is_some_and(is_anew));
    access.readable.extend(seen.map(|entry| entry.path()));
    access
        .readable
        .extend(own.beside.iter().map(|name| home.join(name)));
    // A missing file must not be created as a folder.
    let files = own
        .files
        .iter()
        .map(|name| folder.join(name))
        .filter(|path| path.is_file());
    access.writable.extend(
        own.sessions
            .iter()
            .map(|name| folder.join(name))
            .chain(files),
    );
    let programs = own
        .programs
        .iter()
        .map(|name| folder.join(name))
        .filter(|path| path.exists());
    access.read_only.extend(programs);
}

/// Creates the folder and, for Gemini CLI, the settings without which it refuses a custom service
/// address.
pub(crate) fn prepare(
    kind: Kind,
    home: &Path,
    spawn: &Spawn<'_>,
) -> Result<(), (PathBuf, io::Error)> {
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
    put(
        &home.join(".gemini"),
        "settings.json",
        &settings.to_string(),
    )
}

/// Creates a file in a folder of the home directory. The agent of an earlier turn could write there
/// from its sandbox, so a symlink that it left is replaced and never followed, and a FIFO is never
/// opened.
fn put(folder: &Path, name: &str, text: &str) -> Result<(), (PathBuf, io::Error)> {
    if folder.is_symlink() {
        fs::remove_file(folder).map_err(|error| (folder.to_owned(), error))?;
    }
    fs::create_dir_all(folder).map_err(|error| (folder.to_owned(), error))?;
    let file = folder.join(name);
    let made = tempfile::NamedTempFile::new_in(folder)
        .and_then(|mut new| new.write_all(text.as_bytes()).map(|()| new))
        .and_then(|new| new.persist(&file).map_err(io::Error::from));
    made.map(drop).map_err(|error| (file, error))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use code_commit_runner::Confinement;
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    /// The settings written into a home that an earlier turn left like this.
    #[track_caller]
    fn settings_in(home: &Path) -> String {
        let confinement = Confinement::off();
        prepare(
            Kind::Gemini,
            home,
            &Spawn::new(home, "go", home, &confinement),
        )
        .unwrap();
        let file = home.join(".gemini/settings.json");
        assert!(file.symlink_metadata().unwrap().is_file() && !home.join(".gemini").is_symlink());
        fs::read_to_string(file).unwrap()
    }

    #[test]
    fn settings_are_not_written_through_what_an_earlier_turn_has_planted() {
        let root = tempfile::tempdir().unwrap();
        let (home, outside) = (root.path().join("home"), root.path().join("outside"));
        let (folder, file) = (home.join(".gemini"), home.join(".gemini/settings.json"));
        let all = settings_in(&home);
        assert!(all.contains("gemini-api-key"), "{all}");
        fs::create_dir(&outside).unwrap();
        fs::copy(&file, outside.join("settings.json")).unwrap();
        let theirs = fs::metadata(outside.join("settings.json")).unwrap();
        let is_theirs = || {
            let now = fs::metadata(outside.join("settings.json")).unwrap();
            now.modified().unwrap() == theirs.modified().unwrap()
                && fs::read_dir(&outside).unwrap().count() == 1
        };

        fs::remove_file(&file).unwrap();
        symlink(outside.join("settings.json"), &file).unwrap();
        assert_eq!(settings_in(&home), all);
        assert!(is_theirs(), "through a link in the place of the file");

        fs::remove_dir_all(&folder).unwrap();
        symlink(&outside, &folder).unwrap();
        assert_eq!(settings_in(&home), all);
        assert!(is_theirs(), "through a link in the place of the folder");

        fs::remove_file(&file).unwrap();
        mknodat(CWD, &file, FileType::Fifo, Mode::RWXU, 0).unwrap();
        assert_eq!(settings_in(&home), all);
    }
}
