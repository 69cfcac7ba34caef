//! Reads texts of a project, where someone may have replaced a file with something else.

use std::io::{self, Read as _};
use std::path::Path;

use anyhow::{Context as _, anyhow};

use crate::exit::Failure;

/// Larger files are not read.
const LARGEST_MIB: u64 = 16;

/// The text of a regular file, also through a symlink; `None` if it does not exist.
pub fn read(path: &Path) -> Result<Option<String>, Failure> {
    let bytes =
        match code_commit_dir::read(path, LARGEST_MIB << 20, code_commit_dir::Links::Followed) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => {
                let message = anyhow!(
                    "{} is not a regular file of at most {LARGEST_MIB} MiB",
                    path.display()
                );
                return Err(Failure::refused(message, "remove it, or make it one"));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                let error = Err(error).with_context(|| format!("cannot read {}", path.display()));
                return error.map_err(|error| Failure::refused(error, "check its permissions"));
            }
        };
    let text = String::from_utf8(bytes);
    text.map(Some).map_err(|_| {
        Failure::refused(
            anyhow!("{} is not UTF-8", path.display()),
            "save it as UTF-8",
        )
    })
}

/// A file's bytes, or those of standard input for `-`.
pub fn read_input(file: &Path) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    if file == Path::new("-") {
        std::io::stdin()
            .lock()
            .read_to_end(&mut bytes)
            .context("cannot read standard input")?;
        return Ok(bytes);
    }
    std::fs::read(file)
        .with_context(|| format!("cannot read {}", file.display()))
        .map_err(|error| Failure::refused(error, "name a readable file, or - for standard input"))
}
