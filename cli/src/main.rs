//! `code-commit`: the model proposes, the harness decides.
//!
//! The only crate that reads the environment, names model services, prints and exits.

#![expect(
    unreachable_pub,
    reason = "a program has no outside: `pub` is for the rest of it"
)]

mod args;
mod commands;
mod models;
mod printing;
mod process;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::ExitCode;

use anyhow::anyhow;
use code_commit_logging::Redactor;
use code_commit_runs::{Exit, Failure, Host, LOOPS, Product};
use code_commit_settings::{Bases, Environment, Keys};

use crate::models::Services;

fn main() -> ExitCode {
    if let Some(code) = code_commit_runner::helper() {
        return code;
    }
    process::protect();
    let environment = environment();
    if let Some(code) = commands::phase::applet(std::env::args_os(), &environment) {
        return ExitCode::from(code);
    }
    let folder = std::env::current_dir();
    let folder = folder.as_deref();
    let bases = Bases::new(folder.unwrap_or(Path::new("")), &environment);
    let read = args::Cli::read(std::env::args_os(), &bases);
    let arguments = match read {
        Ok(arguments) => arguments,
        Err(error) => return usage(&error, &environment),
    };
    let output = printing::output(&arguments.output, &environment);
    printing::redact_panics(&output);
    // Before anything is printed; a command that works in another folder also finds the keys of that folder.
    output.strike_out(keys(&environment).exposed());
    let host = Host {
        folder,
        environment: &environment,
        output: &output,
        loops: LOOPS,
        models: &Services,
        cancel: None,
    };
    let done = or_fault(|| commands::run(&arguments, host));
    let exit = done.unwrap_or_else(|failure| failure.tell(&output));
    ExitCode::from(exit.closing(arguments.product(), &output))
}

/// A panic, which was already printed, is an internal error.
fn or_fault<T>(run: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| {
        Err(Failure::from(anyhow!(
            "internal error: unreachable state; please report this"
        )))
    })
}

/// Help and version go to standard output, usage errors to standard error: they may contain a key. With
/// `--json` they are reported like any other error.
fn usage(error: &clap::Error, environment: &Environment) -> ExitCode {
    let redactor = Redactor::new(keys(environment).exposed());
    let text = error.render().to_string();
    let code = u8::try_from(error.exit_code()).unwrap_or(2);
    if error.use_stderr() && args::wants_json(std::env::args_os()) {
        let (message, help) = text.split_once("\n\n").unwrap_or((&text, ""));
        let message: Vec<&str> = message
            .trim_start_matches("error: ")
            .lines()
            .map(str::trim)
            .collect();
        let output = printing::of_json(&redactor);
        output.object(&serde_json::json!({
            "event": "error", "exit": code,
            "message": message.join(" "), "help": help.trim(),
        }));
        // The exit code stays that of a usage error; lost output is reported.
        let _ = Exit::Failed.closing(Product::Words, &output);
    }
    if error.use_stderr() && redactor.finds_key(&text) {
        printing::raw_note(&redactor.redact(&text));
    } else {
        // Ignore EPIPE: the reader is gone.
        if let Err(lost) = error.print()
            && lost.kind() != std::io::ErrorKind::BrokenPipe
        {
            printing::raw_note(&format!("error: cannot write to standard output: {lost}\n"));
            return Exit::Fault.into();
        }
    }
    ExitCode::from(code)
}

/// The environment of the process. Nothing else in the program reads it.
#[expect(
    clippy::disallowed_methods,
    reason = "this is the one place that reads the environment"
)]
fn environment() -> Environment {
    Environment::of(std::env::vars_os())
}

/// Every key in the environment and the current folder.
fn keys(environment: &Environment) -> Keys {
    Keys::find(environment, Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use code_commit_runs::Exit;

    #[test]
    fn a_panic_ends_as_a_fault_of_ours() {
        let failure =
            or_fault(|| -> Result<(), Failure> { panic!("told where it comes") }).unwrap_err();
        assert_eq!(failure.exit, Exit::Fault);
        assert_eq!(or_fault(|| Ok(7)).unwrap(), 7);
    }
}
