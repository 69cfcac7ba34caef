//! Reading `.cuggino.json`.

use std::path::Path;

use anyhow::anyhow;
use code_commit_loop_spec::STORE;
use code_commit_names::ours::{SPEC_CONFIG, STATE};
use code_commit_settings::spec::Config;

use crate::exit::Failure;
use crate::text;

/// Where git, the loop and the harness keep their own files.
pub const TAKEN: [&str; 3] = [".git", STORE, STATE];

/// What the project's file says. One that is not there gives the defaults; one with an error is a refusal.
pub fn read(root: &Path) -> Result<Config, Failure> {
    let text = text::read(&root.join(SPEC_CONFIG))?.unwrap_or_default();
    Config::parse(&text, &TAKEN).map_err(|why| {
        Failure::refused(
            anyhow!("{SPEC_CONFIG}: {why}"),
            "mend the file, or answer the questions of: code-commit spec setup",
        )
    })
}
