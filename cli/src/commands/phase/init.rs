//! `phase init`: creates what a project with phases needs. Overwrites nothing.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use anyhow::Context as _;
use code_commit_names::ours::PHASE_CONFIG;
use code_commit_report::Output;
use code_commit_runs::phase::{PROJECT, SPECS};
use code_commit_runs::{Exit, Failure};

const CONFIG: &str = include_str!("init/abl.config.yaml");
const DESCRIPTION: &str = include_str!("init/project.md");
const FIRST_SPEC: &str = include_str!("init/phase1.md");

/// Creates what is missing and lists it.
pub fn run(root: &Path, output: &Output) -> Result<Exit, Failure> {
    let first_spec = format!("{SPECS}/phase1.md");
    let files = [
        (PHASE_CONFIG, CONFIG),
        (PROJECT, DESCRIPTION),
        (first_spec.as_str(), FIRST_SPEC),
        ("prompts/builder.md", code_commit_prompt::phase::BUILDER),
        ("prompts/verifier.md", code_commit_prompt::phase::VERIFIER),
    ];
    let mut made = Vec::new();
    for (path, text) in files {
        let is_new = make(&root.join(path), text).with_context(|| format!("cannot make {path}"));
        let is_new = is_new.map_err(Failure::cannot_make)?;
        output.report(&format!("{} {path}", if is_new { "made" } else { "kept" }));
        made.extend(is_new.then(|| path.to_owned()));
    }
    if ignore_secrets(root).map_err(Failure::cannot_make)? {
        output.report("made .gitignore: /.env");
        made.push(".gitignore: /.env".to_owned());
    }
    output.object(&serde_json::json!({ "event": "init", "made": made }));
    output.report("next: describe the project in .abl/project.md and its first phase in .abl/specs/phase1.md,\nput GEMINI_API_KEY=… into .env, then: code-commit phase run");
    Ok(Exit::Done)
}

/// `false` if it existed.
fn make(path: &Path, text: &str) -> io::Result<bool> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    match OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(mut file) => file.write_all(text.as_bytes()).map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

/// The file with the key must not be committed. Gives whether the rule was added.
fn ignore_secrets(root: &Path) -> anyhow::Result<bool> {
    let path = root.join(".gitignore");
    let rules = match fs::read_to_string(&path) {
        Ok(rules) => rules,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(anyhow::Error::from(error).context("cannot read .gitignore")),
    };
    if rules
        .lines()
        .any(|line| matches!(line.trim(), ".env" | "/.env"))
    {
        return Ok(false);
    }
    // A cloned repository may have a symlink there.
    code_commit_dir::append(&path, "/.env").context("cannot write .gitignore")?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use code_commit_loop_phase::spec::left_of_template;

    use super::*;

    #[test]
    fn the_template_is_known_by_the_sentence_that_asks_for_what_to_write() {
        assert_eq!(left_of_template(FIRST_SPEC), Some(3));
        assert_eq!(
            left_of_template(&FIRST_SPEC.replace("What this phase is for; ", "Phase one. ")),
            None
        );
    }
}
