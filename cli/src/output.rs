//! Standard output and standard error: who may print, in which colour, and what never reaches a terminal.
//!
//! Reports, summaries, diffs and the model's words for the person go to standard output; progress, warnings and errors to standard
//! error. With `--json` standard output is one JSON object a line and nothing else.

mod fold;
mod plain;

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::{Arc, Mutex, PoisonError};

use anstyle::{AnsiColor, Style};
use logging::Redactor;
use settings::Environment;

use fold::fold;
use plain::tame;
pub use plain::{printable, printable_name};

use crate::args::{OutputArgs, Product, When};
use crate::exit::{Exit, Failure};

/// How much is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Volume {
    /// Results and errors.
    Quiet,
    /// What happens, too.
    Normal,
    /// And every line of the build.
    Verbose,
}

/// The one place that prints.
#[expect(clippy::struct_excessive_bools, reason = "four switches that have nothing to do with each other")]
#[derive(Debug, Clone)]
pub struct Output {
    /// One JSON object a line on standard output.
    pub json: bool,
    /// How much is said.
    pub volume: Volume,
    /// Whether standard error is a terminal that a progress line can live on.
    pub live: bool,
    colour_out: bool,
    colour_err: bool,
    /// Filled once the keys are known.
    redactor: Arc<Mutex<Redactor>>,
    /// Why something that was to be printed on standard output could not be.
    lost: Arc<Mutex<Option<io::Error>>>,
}

/// Added lines, good ends.
pub const GOOD: Style = AnsiColor::Green.on_default();
/// Removed lines, bad ends.
pub const BAD: Style = AnsiColor::Red.on_default();
/// Warnings.
pub const WARN: Style = AnsiColor::Yellow.on_default();
/// What is not needed at first sight.
pub const DIM: Style = Style::new().dimmed();
/// Headings.
pub const STRONG: Style = Style::new().bold();

impl Output {
    /// As the flags and the environment (`NO_COLOR`, `TERM`) ask for it.
    pub fn new(flags: &OutputArgs, environment: &Environment) -> Self {
        let plain = environment.text("NO_COLOR").is_some() || environment.text("TERM") == Some("dumb");
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
        let live =
            io::stderr().is_terminal() && volume > Volume::Quiet && environment.text("TERM") != Some("dumb");
        Self {
            json: flags.json,
            volume,
            live,
            colour_out: colour(io::stdout().is_terminal()) && !flags.json,
            colour_err: colour(io::stderr().is_terminal()),
            redactor: Arc::default(),
            lost: Arc::default(),
        }
    }

    /// For a command line that cannot be understood and asks for JSON.
    pub fn of_json(redactor: Redactor) -> Self {
        Self {
            json: true,
            volume: Volume::Normal,
            live: false,
            colour_out: false,
            colour_err: false,
            redactor: Arc::new(Mutex::new(redactor)),
            lost: Arc::default(),
        }
    }

    /// From now on these keys, and no others, are struck out of everything that is printed, panics included. Gives what strikes them out
    /// elsewhere.
    pub fn strike_out<'k>(&self, keys: impl IntoIterator<Item = &'k str>) -> Redactor {
        let mut current = self.redactor.lock().unwrap_or_else(PoisonError::into_inner);
        let redactor = current.with_only(keys);
        *current = redactor.clone();
        let printed = redactor.clone();
        std::panic::set_hook(Box::new(move |panic| {
            let text = printed.redact(&panic.to_string()).into_owned();
            let _ = writeln!(io::stderr(), "error: this is a bug in code-commit: {text}");
        }));
        redactor
    }

    /// `text` in a style of standard output.
    pub fn paint(&self, style: Style, text: &str) -> String {
        paint(self.colour_out, style, text)
    }

    /// `text` in a style of standard error.
    pub fn paint_note(&self, style: Style, text: &str) -> String {
        paint(self.colour_err, style, text)
    }

    /// A line, or several, on standard output. Whoever closed the pipe wants no more of it.
    pub fn report(&self, text: &str) {
        if self.json {
            return;
        }
        self.print(&tame(text, self.colour_out));
    }

    /// The exit code of a command that ended so. What could not be printed is said; where it is all that was asked for, the command is not
    /// `Done`. A run is: its record holds what the report would have told.
    pub fn closing(&self, exit: Exit, product: Product) -> Exit {
        let lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(error) = lost else { return exit };
        let head = self.paint_note(BAD, "error:");
        self.write(&mut io::stderr().lock(), &format!("{head} cannot write to standard output: {error}"));
        if (exit, product) == (Exit::Done, Product::Words) { Exit::Fault } else { exit }
    }

    /// As [`report`](Self::report), for sentences: broken between words where they are wider than the terminal.
    pub fn report_prose(&self, text: &str) {
        self.report(&fold(text, &io::stdout(), None));
    }

    /// The same, where what does not fit goes on at column `hang`.
    pub fn report_below(&self, text: &str, hang: usize) {
        self.report(&fold(text, &io::stdout(), Some(hang)));
    }

    /// One JSON object on standard output, with `--json` only.
    pub fn object(&self, value: &serde_json::Value) {
        if self.json {
            self.print(&plain::json(value));
        }
    }

    /// Bytes on standard output as they are, for what is asked for as a file.
    pub fn raw(&self, bytes: &[u8]) {
        let mut out = io::stdout().lock();
        self.keep(out.write_all(bytes).and_then(|()| out.flush()));
    }

    /// Text on standard error as it is, before it is known how to print.
    pub fn raw_note(text: &str) {
        let _ = io::stderr().lock().write_all(text.as_bytes());
    }

    /// A line on standard error, unless quiet; broken between words where it is wider than the terminal.
    pub fn note(&self, text: &str) {
        self.note_block(&fold(text, &io::stderr(), None));
    }

    /// Lines on standard error that are to stay as they are, unless quiet: what a build prints, a rendered warning.
    pub fn note_block(&self, text: &str) {
        if self.volume > Volume::Quiet {
            self.write_note(text);
        }
    }

    /// A warning on standard error.
    pub fn warn(&self, text: &str) {
        let text = format!("{} {text}", self.paint_note(WARN, "warning:"));
        self.write_note(&fold(&text, &io::stderr(), Some("warning: ".len())));
    }

    /// A rendered error of several lines on standard error.
    pub fn error_block(&self, text: &str) {
        self.write_note(text);
    }

    /// Whether standard error may be coloured.
    pub fn colour_notes(&self) -> bool {
        self.colour_err
    }

    /// An error with its causes and its remedy on standard error; gives the exit code.
    pub fn failure(&self, failure: &Failure) -> Exit {
        let mut text =
            format!("{} {}", self.paint_note(BAD, "error:"), printable(&format!("{:#}", failure.error)));
        if !failure.help.is_empty() {
            let head = self.paint_note(STRONG, "help:");
            text.push_str(&format!("\n {head} {}", printable(&failure.help)));
        }
        self.write_note(&fold(&text, &io::stderr(), Some("error: ".len())));
        self.object(&serde_json::json!({
            "event": "error", "exit": failure.exit.code(),
            "message": format!("{:#}", failure.error), "help": failure.help,
        }));
        failure.exit
    }

    fn write_note(&self, text: &str) {
        self.write(&mut io::stderr().lock(), &tame(text, self.colour_err));
    }

    /// A closed pipe ends the talk, not the work; a full disk loses what was asked for.
    fn keep(&self, printed: io::Result<()>) {
        if let Err(error) = printed
            && error.kind() != io::ErrorKind::BrokenPipe
        {
            self.lost.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        }
    }

    fn print(&self, text: &str) {
        let redactor = self.redactor.lock().unwrap_or_else(PoisonError::into_inner);
        let mut out = io::stdout().lock();
        self.keep(writeln!(out, "{}", redactor.redact(text)).and_then(|()| out.flush()));
    }

    /// For standard error: where not even that can be written there is nobody to tell.
    fn write(&self, sink: &mut dyn io::Write, text: &str) {
        let redactor = self.redactor.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = writeln!(sink, "{}", redactor.redact(text)).and_then(|()| sink.flush());
    }
}

fn paint(colour: bool, style: Style, text: &str) -> String {
    if colour { format!("{style}{text}{style:#}") } else { text.to_owned() }
}

/// The whole lines of a text that comes in pieces, without their last line end; `open` keeps what has not come to the end of its line.
pub fn whole_lines(open: &mut String, piece: &str) -> String {
    let Some((lines, rest)) = piece.rsplit_once('\n') else {
        open.push_str(piece);
        return String::new();
    };
    let mut whole = std::mem::replace(open, rest.to_owned());
    whole.push_str(lines);
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_whole_however_their_text_comes() {
        let mut open = String::new();
        let mut lines = |piece: &str| whole_lines(&mut open, piece);
        assert_eq!([lines("a"), lines("b\nc\nd"), lines("e"), lines("\n")], ["", "ab\nc", "", "de"]);
        assert_eq!(lines(&"\n".repeat(1 << 20)).len(), (1 << 20) - 1);
        assert_eq!(lines("end"), "");
        assert_eq!(open, "end");
    }
}
