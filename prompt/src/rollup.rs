//! The code roll-up: all files that a model should see, as one text.

mod secrets;

use std::io;

/// Files with more bytes are left out: they would drown the rest.
pub const LARGEST_FILE: u64 = 1024 * 1024;

/// Why a file is not in the roll-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeftOut {
    /// Files with this name usually contain keys or passwords.
    Secret,
    /// It is not UTF-8 text.
    Binary,
    /// It has more than [`LARGEST_FILE`] bytes.
    TooLarge,
    /// It holds a generated list of dependencies.
    LockFile,
    /// It contains something in a form that only keys have; the text says which.
    HoldsSecret(&'static str),
    /// Its name contains a control character, such as a line break: it could imitate the header of
    /// another file, and no model can write it.
    OddName,
}

impl LeftOut {
    /// The reason for a person.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::Secret => "looks like a secret",
            Self::Binary => "not UTF-8 text",
            Self::TooLarge => "larger than 1 MiB",
            Self::HoldsSecret(what) => what,
            Self::LockFile => "a lock file",
            Self::OddName => "a control character in its name",
        }
    }
}

/// Why a file with this name and length does not belong in the roll-up. Does not need its content.
#[must_use]
pub fn left_out(path: &str, bytes: u64) -> Option<LeftOut> {
    let name = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
    if path.contains(char::is_control) {
        Some(LeftOut::OddName)
    } else if names::is_secret(&name) {
        Some(LeftOut::Secret)
    } else if names::is_lock_file(&name) {
        Some(LeftOut::LockFile)
    } else if bytes > LARGEST_FILE {
        Some(LeftOut::TooLarge)
    } else {
        None
    }
}

/// Appends one file: a header line, then its content, with a newline at the end. Writes nothing for
/// a file that is left out.
///
/// A file is also left out if its content looks like a secret: a key that was pasted into a test
/// would be sent like any other text.
pub fn append(out: &mut dyn io::Write, path: &str, content: &[u8]) -> io::Result<Result<(), LeftOut>> {
    if content.contains(&0) || std::str::from_utf8(content).is_err() {
        return Ok(Err(LeftOut::Binary));
    }
    if let Some(what) = secrets::held(content) {
        return Ok(Err(LeftOut::HoldsSecret(what)));
    }
    writeln!(out, "--- FILE {path} ---")?;
    out.write_all(content)?;
    if !content.is_empty() && !content.ends_with(b"\n") {
        out.write_all(b"\n")?;
    }
    out.write_all(b"\n")?;
    Ok(Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_follow_each_other_under_their_headers() {
        let mut text = Vec::new();
        for (path, content) in [("a.rs", "fn a() {}\n"), ("empty", ""), ("no-newline", "x")] {
            append(&mut text, path, content.as_bytes()).unwrap().unwrap();
        }
        insta::assert_snapshot!(String::from_utf8(text).unwrap(), @"
        --- FILE a.rs ---
        fn a() {}

        --- FILE empty ---

        --- FILE no-newline ---
        x
        ");
    }

    #[test]
    fn binary_files_leave_no_trace() {
        let mut text = Vec::new();
        assert_eq!(append(&mut text, "a.png", b"\x89PNG\0").unwrap(), Err(LeftOut::Binary));
        assert_eq!(append(&mut text, "latin1", b"caf\xe9").unwrap(), Err(LeftOut::Binary));
        assert!(text.is_empty());
    }

    #[test]
    fn secret_looking_names_are_left_out_and_examples_are_not() {
        for name in [
            ".env",
            "deploy/.env.production",
            "agent-config/gemini-key.txt",
            "tls/server.pem",
            "id_rsa",
            ".netrc",
        ] {
            assert_eq!(left_out(name, 1), Some(LeftOut::Secret), "{name}");
        }
        for name in [".env.example", "src/key.rs", "keys.md", "environment.rs"] {
            assert_eq!(left_out(name, 1), None, "{name}");
        }
        assert_eq!(left_out("Cargo.lock", 1), Some(LeftOut::LockFile));
        assert_eq!(left_out("a\n--- FILE b ---", 1), Some(LeftOut::OddName));
        assert_eq!(left_out("a.json", LARGEST_FILE + 1), Some(LeftOut::TooLarge));
    }
}
