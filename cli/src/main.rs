//! `code-commit`: the model proposes, the harness decides.
//!
//! The only crate that reads the environment, names model services, prints and exits.

#![expect(unreachable_pub, reason = "a program has no outside: `pub` is for the rest of it")]

mod args;
mod changes;
mod commands;
mod config;
mod edit;
mod environment;
mod exit;
mod interrupt;
mod keys;
mod models;
mod ndjson;
mod output;
mod plan;
mod preflight;
mod summary;
mod terminal;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    let environment = environment::Environment::read();
    if let Some(code) = commands::phase::applet(std::env::args_os().next().as_deref(), &environment) {
        return ExitCode::from(code);
    }
    let arguments = args::Cli::parse();
    let output = output::Output::new(&arguments.output, &environment);
    let exit =
        commands::run(&arguments, &environment, &output).unwrap_or_else(|failure| output.failure(&failure));
    ExitCode::from(output.closing(exit))
}
