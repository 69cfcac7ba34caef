//! Standard output and standard error: who may print, in which colours, and what must not reach a
//! terminal.
//!
//! Reports, summaries, diffs and the model's messages for the user go to standard output; progress,
//! warnings and errors to standard error. With `--json`, standard output is one JSON object per
//! line and nothing else.

mod fold;
mod plain;

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use anstyle::AnsiColor;
pub use anstyle::Style;
use code_commit_logging::Redactor;

use fold::fold;
use plain::tame;
pub use plain::{printable, printable_name, visible};

use crate::stream::Stream;

/// How much to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Volume {
    /// Results and errors.
    Quiet,
    /// Also progress.
    Normal,
    /// Also every line of the build.
    Verbose,
}

/// The one place that prints.
#[derive(Debug, Clone)]
pub struct Output {
    /// Print one JSON object per line on standard output.
    pub json: bool,
    /// How much to print.
    pub volume: Volume,
    /// Whether standard error is a terminal that can show a progress line.
    pub live: bool,
    out: Stream,
    err: Stream,
    /// Set once the keys are known.
    redactor: Arc<Mutex<Redactor>>,
    /// Why standard output could not be written, if it could not.
    lost: Arc<Mutex<Option<io::Error>>>,
}

/// Added lines, success.
pub const GOOD: Style = AnsiColor::Green.on_default();
/// Removed lines, failure.
pub const BAD: Style = AnsiColor::Red.on_default();
/// Warnings.
pub const WARN: Style = AnsiColor::Yellow.on_default();
/// Details.
pub const DIM: Style = Style::new().dimmed();
/// Headings.
pub const STRONG: Style = Style::new().bold();

impl Output {
    /// Reports go to `out`, notes to `err`. Volume is normal, without a progress line.
    pub fn new(out: Stream, err: Stream) -> Self {
        Self {
            json: false,
            volume: Volume::Normal,
            live: false,
            out,
            err,
            redactor: Arc::default(),
            lost: Arc::default(),
        }
    }

    /// Redacts with this redactor, which already knows keys.
    #[must_use]
    pub fn with_redactor(self, redactor: Redactor) -> Self {
        Self {
            redactor: Arc::new(Mutex::new(redactor)),
            ..self
        }
    }

    /// One that prints to these streams, and redacts the same keys.
    #[must_use]
    pub fn onto(&self, out: Stream, err: Stream) -> Self {
        Self {
            out,
            err,
            lost: Arc::default(),
            ..self.clone()
        }
    }

    /// From now on, redacts these keys and no others in everything that is printed. Returns the
    /// redactor, for use elsewhere.
    pub fn strike_out<'k>(&self, keys: impl IntoIterator<Item = &'k str>) -> Redactor {
        let mut current = self.redactor.lock().unwrap_or_else(PoisonError::into_inner);
        let redactor = current.with_only(keys);
        *current = redactor.clone();
        redactor
    }

    /// `text` with the keys redacted, for printing it elsewhere; `None` while the keys are still
    /// being searched for.
    pub fn redacted(&self, text: &str) -> Option<String> {
        Some(self.redactor.try_lock().ok()?.redact(text).into_owned())
    }

    /// `text` in a style, for standard output.
    pub fn paint(&self, style: Style, text: &str) -> String {
        paint(self.out.colour, style, text)
    }

    /// `text` in a style, for standard error.
    pub fn paint_note(&self, style: Style, text: &str) -> String {
        paint(self.err.colour, style, text)
    }

    /// Prints one or more lines on standard output. Ignores EPIPE: the reader is gone.
    pub fn report(&self, text: &str) {
        if self.json {
            return;
        }
        self.print(&tame(text, self.out.colour));
    }

    /// Whether standard output could not be written; prints why.
    pub fn has_lost(&self) -> bool {
        let lost = self
            .lost
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let Some(error) = lost else { return false };
        let head = self.paint_note(BAD, "error:");
        self.write(&format!("{head} cannot write to standard output: {error}"));
        true
    }

    /// Like [`report`](Self::report), for sentences: wraps lines that are wider than the terminal.
    pub fn report_prose(&self, text: &str) {
        self.report(&fold(text, &self.out, None));
    }

    /// Like [`report_prose`](Self::report_prose), with continuation lines indented to column
    /// `hang`.
    pub fn report_below(&self, text: &str, hang: usize) {
        self.report(&fold(text, &self.out, Some(hang)));
    }

    /// One JSON object on standard output, with `--json` only.
    pub fn object(&self, value: &serde_json::Value) {
        if self.json {
            self.print(&plain::json(value));
        }
    }

    /// Whether standard output shows colours or is a terminal, and so may hold only what is safe there.
    pub fn is_for_a_person(&self) -> bool {
        self.out.colour || self.out.columns().is_some()
    }

    /// Prints bytes on standard output unchanged, for output that is requested as a file.
    pub fn raw(&self, bytes: &[u8]) {
        self.keep(self.out.write(bytes));
    }

    /// Prints a line on standard error, wrapped to the terminal, unless quiet.
    pub fn note(&self, text: &str) {
        self.note_block(&fold(text, &self.err, None));
    }

    /// Prints lines on standard error without wrapping, unless quiet: a build's output, a rendered
    /// warning.
    pub fn note_block(&self, text: &str) {
        if self.volume > Volume::Quiet {
            self.error_block(text);
        }
    }

    /// Prints a line on standard error with `--verbose` only.
    pub fn detail(&self, text: &str) {
        if self.volume == Volume::Verbose {
            self.note(text);
        }
    }

    /// A warning on standard error: one line, whatever names it holds.
    pub fn warn(&self, text: &str) {
        let text = format!(
            "{} {}",
            self.paint_note(WARN, "warning:"),
            printable_name(text)
        );
        self.error_block(&fold(&text, &self.err, Some("warning: ".len())));
    }

    /// Prints lines on standard error, also where it is quiet: a rendered error.
    pub fn error_block(&self, text: &str) {
        self.write(&tame(text, self.err.colour));
    }

    /// Whether standard error may be coloured.
    pub fn colour_notes(&self) -> bool {
        self.err.colour
    }

    /// Prints an error that ends the command with this exit code, and its hint, on standard error.
    pub fn failure(&self, message: &str, help: &str, exit: u8) {
        let mut text = format!("{} {}", self.paint_note(BAD, "error:"), printable(message));
        if !help.is_empty() {
            let head = self.paint_note(STRONG, "help:");
            text.push_str(&format!("\n {head} {}", printable(help)));
        }
        self.error_block(&fold(&text, &self.err, Some("error: ".len())));
        self.object(&serde_json::json!({ "event": "error", "exit": exit, "message": message, "help": help }));
    }

    /// A closed pipe ends the output, not the work; a full disk loses what was requested.
    fn keep(&self, printed: io::Result<()>) {
        if let Err(error) = printed
            && error.kind() != io::ErrorKind::BrokenPipe
        {
            self.lost
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .get_or_insert(error);
        }
    }

    fn print(&self, text: &str) {
        self.keep(self.out.write(&self.line(text)));
    }

    /// Errors are ignored: if standard error cannot be written, nobody can be told.
    fn write(&self, text: &str) {
        let _ = self.err.write(&self.line(text));
    }

    fn line(&self, text: &str) -> Vec<u8> {
        let redactor = self.redactor.lock().unwrap_or_else(PoisonError::into_inner);
        format!("{}\n", redactor.redact(text)).into_bytes()
    }
}

fn paint(colour: bool, style: Style, text: &str) -> String {
    if colour {
        format!("{style}{text}{style:#}")
    } else {
        text.to_owned()
    }
}

/// The complete lines of a text that arrives in pieces, without the last newline; `open` keeps the
/// incomplete line.
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
        assert_eq!(
            [lines("a"), lines("b\nc\nd"), lines("e"), lines("\n")],
            ["", "ab\nc", "", "de"]
        );
        assert_eq!(lines(&"\n".repeat(1 << 20)).len(), (1 << 20) - 1);
        assert_eq!(lines("end"), "");
        assert_eq!(open, "end");
    }
}
