//! `code-commit trust`: the user lets a project's file weaken limits and the sandbox.

use std::io::{self, BufRead as _, IsTerminal as _};

use anyhow::{Context as _, anyhow};
use code_commit_names::ours::PROJECT_FILE;
use code_commit_report::{Output, printable};
use code_commit_runs::{Exit, Failure, Host};
use code_commit_settings::{File, Files, PinError, Standing};
use serde_json::json;

use crate::args::TrustArgs;

/// Shows what the file would weaken, asks, and pins exactly the bytes that were shown.
pub fn run(args: &TrustArgs, host: Host<'_>) -> Result<Exit, Failure> {
    let (environment, output) = (host.environment, host.output);
    let files = Files::read(&host.root()?, environment)?;
    let Some(file) = &files.project else {
        return Err(Failure::refused(
            anyhow!("there is no {PROJECT_FILE} here"),
            "change to the project's root",
        ));
    };
    if files.standing == Standing::Trusted {
        output.report(&format!("{PROJECT_FILE} is trusted already"));
        output.object(&object(&files, file));
        return Ok(Exit::Done);
    }
    if file.path.to_str().is_none() {
        let help = "rename the folder; until then the file can only tighten, and flags can weaken";
        return Err(Failure::not_utf8(
            &file.path,
            "the list of trusted files",
            help,
        ));
    }
    show(&files, output);
    if !args.yes {
        ask(output)?;
    }
    let store = code_commit_settings::trust_of(environment).pin(&file.path, &file.sha256);
    let store = store.map_err(|error| Failure::hinted(error, PinError::hint))?;
    output.report(&format!(
        "{PROJECT_FILE} is trusted until it changes ({})",
        store.display()
    ));
    output.object(&object(&files, file));
    Ok(Exit::Done)
}

fn object(files: &Files, file: &File) -> serde_json::Value {
    json!({ "path": file.path, "sha256": file.sha256, "weakens": files.weakening(), "trusted": true })
}

fn show(files: &Files, output: &Output) {
    if files.standing == Standing::Changed {
        output.report(&format!("{PROJECT_FILE} has changed since it was trusted"));
    }
    let weakening = files.weakening();
    if weakening.is_empty() {
        output.report(&format!(
            "nothing in {PROJECT_FILE} weakens anything; it is in force also without this"
        ));
    } else {
        output.report(&format!("what {PROJECT_FILE} would weaken:"));
    }
    for what in &weakening {
        output.report(&format!("  {}", printable(what)));
    }
}

/// Only a user at a terminal can agree.
fn ask(output: &Output) -> Result<(), Failure> {
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        return Err(Failure::refused(
            anyhow!("cannot ask without a terminal"),
            "review the file, then: code-commit trust --yes",
        ));
    }
    output.error_block("Trust it? Type yes:");
    let mut answer = String::new();
    io::stdin()
        .lock()
        .read_line(&mut answer)
        .context("cannot read the answer")?;
    if answer.trim().eq_ignore_ascii_case("yes") {
        return Ok(());
    }
    Err(Failure::refused(
        anyhow!("{PROJECT_FILE} is not trusted"),
        "nothing was changed",
    ))
}
