//! `code-commit completions` and `code-commit man`: files that a package installs beside the program.

use std::fs;

use anyhow::Context as _;
use clap::CommandFactory as _;
use clap_complete::Shell;
use code_commit_report::Output;
use code_commit_runs::{Exit, Failure};

use crate::args::{Cli, CompletionsArgs, ManArgs};

/// Prints the completion script for a shell.
pub fn completions(args: &CompletionsArgs, output: &Output) -> Exit {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "code-commit", &mut script);
    let mut script = String::from_utf8_lossy(&script).into_owned();
    if args.shell == Shell::Bash {
        script = script.replace(CASES_OF_NOBODY, CASES);
    }
    output.raw(script.as_bytes());
    Exit::Done
}

/// Prefix of the command cases in the bash script, for the program name code-commit.
const CASES: &str = "code__commit";
/// The prefix that `clap_complete` 4.6 wrongly writes in the cases: it turns the hyphen into `__`, then
/// mistakes that for its own separator between commands. No case would match, and nothing after a command's
/// name would be completed.
const CASES_OF_NOBODY: &str = "code__subcmd__commit";

/// Prints the main page, or writes a page for every command to a folder.
pub fn man(args: &ManArgs, output: &Output) -> Result<Exit, Failure> {
    let Some(folder) = &args.folder else {
        let mut page = Vec::new();
        clap_mangen::Man::new(Cli::command())
            .render(&mut page)
            .context("cannot write the page")?;
        output.raw(&page);
        return Ok(Exit::Done);
    };
    fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), folder))
        .with_context(|| format!("cannot write the pages into {}", folder.display()))
        .map_err(|error| Failure::refused(error, "name a writable folder"))?;
    output.report(&format!(
        "the pages are in {}: man -l {0}/code-commit.1",
        folder.display()
    ));
    Ok(Exit::Done)
}
