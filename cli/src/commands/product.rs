//! Where a command puts what it makes: a file, or standard output.

use std::path::Path;

use anyhow::Context as _;
use code_commit_logging::Redactor;
use code_commit_report::{phrases, printable};
use code_commit_runs::{Exit, Failure, Host};
use code_commit_settings::Keys;
use serde_json::json;

/// Redacts every key that is known here, also where the terminal shows it.
pub fn redactor(root: &Path, host: Host<'_>) -> Redactor {
    host.output.strike_out(Keys::find(host.environment, root).exposed())
}

/// Writes to the file, or to standard output if none is named.
pub fn deliver(event: &str, bytes: &[u8], file: Option<&Path>, host: Host<'_>) -> Result<Exit, Failure> {
    let output = host.output;
    let Some(file) = file else {
        output.raw(bytes);
        return Ok(Exit::Done);
    };
    code_commit_dir::replace(file, bytes)
        .with_context(|| format!("cannot write {}", file.display()))
        .map_err(|error| Failure::refused(error, "name a file in a folder that exists and is writable"))?;
    let (name, size) = (file.to_string_lossy(), bytes.len());
    output.object(&json!({ "event": event, "file": name, "bytes": size }));
    output.report(&format!("{}: {}", printable(&name), phrases::bytes(size as u64)));
    Ok(Exit::Done)
}
