//! Sets up standard output and standard error from flags and environment.

use std::io::{self, IsTerminal as _, Write as _};

use code_commit_logging::Redactor;
use code_commit_report::{Output, Stream, Volume};
use code_commit_settings::Environment;
use terminal_size::{Width, terminal_size_of};

use crate::args::{OutputArgs, When};

/// From the flags and the environment (`NO_COLOR`, `TERM`, `CI`).
pub fn output(flags: &OutputArgs, environment: &Environment) -> Output {
    let is_dumb = environment.text("TERM") == Some("dumb");
    let plain = environment.text("NO_COLOR").is_some() || is_dumb;
    let colour = |terminal: bool| match flags.color {
        When::Always => true,
        When::Never => false,
        When::Auto => terminal && !plain,
    };
    let volume = match (flags.quiet, flags.verbose) {
        (true, _) => Volume::Quiet,
        (false, true) => Volume::Verbose,
        (false, false) => Volume::Normal,
    };
    // Some CI services give a job a terminal, and keep every line that is drawn there.
    let is_watched = environment.text("CI").is_none_or(|ci| ci == "false");
    let live = io::stderr().is_terminal() && volume > Volume::Quiet && !is_dumb && is_watched;
    let (out, err) = (io::stdout().is_terminal(), io::stderr().is_terminal());
    let mut output = streams(colour(out) && !flags.json, colour(err));
    (output.json, output.volume, output.live) = (flags.json, volume, live);
    output
}

/// For an invalid command line with `--json`.
pub fn of_json(redactor: &Redactor) -> Output {
    let mut output = streams(false, false).with_redactor(redactor.clone());
    output.json = true;
    output
}

fn streams(colour_out: bool, colour_err: bool) -> Output {
    let out = Stream::new(io::stdout(), colour_out).as_wide_as(|| columns(&io::stdout()));
    let err = Stream::new(io::stderr(), colour_err).as_wide_as(|| columns(&io::stderr()));
    Output::new(out, err)
}

fn columns(sink: &(impl std::os::fd::AsFd + io::IsTerminal)) -> Option<usize> {
    let (Width(columns), _) = terminal_size_of(sink).filter(|_| sink.is_terminal())?;
    Some(columns.into())
}

/// Also redacts keys in panic messages.
pub fn redact_panics(output: &Output) {
    let output = output.clone();
    std::panic::set_hook(Box::new(move |panic| {
        let text = output.redacted(&panic.to_string()).unwrap_or_default();
        raw_note(&format!("error: this is a bug in code-commit: {text}\n"));
    }));
}

/// Prints to standard error unchanged, before the output settings are known.
pub fn raw_note(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}
