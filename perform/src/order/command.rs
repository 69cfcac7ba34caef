//! Runs a command of a work order: each stream goes to its own file, and its last lines to the fact.

use std::cell::RefCell;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write as _};

use code_commit_changes::ChangeEngine;
use code_commit_guard::Guard;
use code_commit_logging::{RedactWriter, millis};
use code_commit_runner::{Cancel, Command, Ended, Output, Stream, Streams};

use code_commit_engine::{Ran, Tail};

use crate::Progress;
use crate::fault::Fault;
use crate::record::Record;
use crate::spending::Spending;
use crate::trial::{Broken, CommandSettings};

/// Last lines of a stream that go to the record (S2 §6.4).
const KEPT_LINES: usize = 200;
/// Characters at most.
const KEPT_CHARS: usize = 8000;

/// The last 200 lines of a text, or its last 8,000 characters where those are fewer.
fn last_part(text: &str) -> &str {
    let by_chars = text
        .char_indices()
        .rev()
        .nth(KEPT_CHARS - 1)
        .map_or(0, |(at, _)| at);
    let body = text.strip_suffix('\n').unwrap_or(text);
    let by_lines = body
        .rmatch_indices('\n')
        .nth(KEPT_LINES - 1)
        .map_or(0, |(at, _)| at + 1);
    text.get(by_chars.max(by_lines)..).unwrap_or_default()
}

pub(super) struct Run<'r> {
    pub(super) settings: &'r CommandSettings,
    pub(super) account: &'r mut ChangeEngine,
    pub(super) guard: &'r Guard,
    pub(super) cancel: &'r Cancel,
    pub(super) spending: &'r Spending,
    /// Prefix of its file names.
    pub(super) log: &'r str,
    pub(super) argv: &'r [String],
}

impl Run<'_> {
    /// Runs it and says how it ended; failing to start is one way to end. A command that breaks the seal has
    /// failed, whatever its exit code.
    pub(super) fn run(self, record: &mut Record) -> Result<Ran, Fault> {
        let (settings, log, argv) = (self.settings, self.log, self.argv);
        let files = ["stdout", "stderr"].map(|stream| format!("{log}_{stream}.txt"));
        let [out_file, err_file] = &files;
        let mut sinks = Sinks {
            out: record.folder().output_writer(out_file)?,
            err: record.folder().output_writer(err_file)?,
            failed: None,
        };
        let started = self.start(&mut sinks, record);
        let run = record.folder().path();
        let broken = Broken::restore("command", self.account, self.guard, run)?;
        if let Some(broken) = &broken {
            broken.tell(started.is_ok(), record)?;
        }
        let output = started?;
        let why = broken.as_ref().map(Broken::note);
        let why = why.or_else(|| self.note(&output));
        let note = why.map(|why| format!("\n[code-commit] {why}\n"));
        sinks
            .close(note.as_deref())
            .map_err(|source| record.folder().error("write", log, source))?;
        settings.tell_about("command", &output, record)?;
        let apart = output.apart.unwrap_or_default();
        let tail = |file: &str, text: String| {
            let text = record
                .folder()
                .redactor()
                .with_tokens()
                .redact(&text)
                .into_owned();
            Tail {
                file: file.to_owned(),
                text: last_part(&text).to_owned(),
            }
        };
        let err_text = apart.err.text() + &note.unwrap_or_default();
        Ok(Ran {
            log: log.to_owned(),
            argv: argv.to_vec(),
            ended: output.ended,
            seal_broken: broken.is_some(),
            stdout: tail(out_file, apart.out.text()),
            stderr: tail(err_file, err_text),
            elapsed_ms: millis(output.elapsed),
        })
    }

    fn start(&self, sinks: &mut Sinks, record: &mut Record) -> Result<Output, Fault> {
        let Self {
            settings,
            account,
            guard,
            cancel,
            spending,
            argv,
            ..
        } = self;
        let command = Command {
            deadline: settings.deadline(spending),
            limits: settings.limits,
            streams: Streams::Apart,
            ..Command::new(
                argv.iter().map(OsString::from),
                guard.root(),
                settings.env.clone(),
            )
        };
        let confinement = settings.confined(account)?;
        let redactor = record.folder().redactor().with_tokens();
        let record = RefCell::new(record);
        // One for each stream: a key may be split across writes.
        let mut out = redactor.writer(Told(&record));
        let mut err = redactor.writer(Told(&record));
        let ran = code_commit_runner::run(&command, &confinement, cancel, &mut |stream, bytes| {
            sinks.take(stream, bytes);
            let told = if stream == Stream::Out {
                &mut out
            } else {
                &mut err
            };
            // The observer cannot fail.
            let _ = told.write_all(bytes);
        });
        let _ = (out.finish(), err.finish());
        let output = ran.map_err(Fault::Run)?;
        if output.ended == Ended::Interrupted {
            Err(Fault::Interrupted)
        } else {
            Ok(output)
        }
    }

    /// Why there is no exit code.
    fn note(&self, output: &Output) -> Option<String> {
        let Self {
            settings,
            spending,
            argv,
            ..
        } = self;
        let program = argv.first().map(String::as_str).unwrap_or_default();
        match output.ended {
            Ended::Exited(_) => None,
            Ended::TimedOut if spending.out_of_time().is_some() => {
                Some("stopped: the whole run has reached its time limit".to_owned())
            }
            Ended::TimedOut => Some(format!(
                "stopped after {} s, the limit for one command",
                settings.timeout.unwrap_or_default().as_secs()
            )),
            Ended::TooMuchOutput => Some(format!(
                "stopped: it printed more than {} MiB",
                settings.limits.output_bytes >> 20
            )),
            ended @ (Ended::Signaled(_)
            | Ended::TooMuchMemory
            | Ended::TooManyProcesses
            | Ended::NotFound
            | Ended::NotExecutable
            | Ended::Interrupted) => Some(format!("{program} {ended}")),
        }
    }
}

/// Passes a command's output to the observer.
struct Told<'c, 'r>(&'c RefCell<&'r mut Record>);

impl io::Write for Told<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().tell(&Progress::BuildPrints { bytes });
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The two files of a command.
struct Sinks {
    out: RedactWriter<File>,
    err: RedactWriter<File>,
    failed: Option<io::Error>,
}

impl Sinks {
    fn take(&mut self, stream: Stream, bytes: &[u8]) {
        let sink = match stream {
            Stream::Out => &mut self.out,
            Stream::Err => &mut self.err,
        };
        if let Err(error) = sink.write_all(bytes) {
            self.failed.get_or_insert(error);
        }
    }

    fn close(mut self, note: Option<&str>) -> io::Result<()> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        if let Some(note) = note {
            self.err.write_all(note.as_bytes())?;
        }
        self.out.finish()?;
        self.err.finish().map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_200_lines_or_8000_characters_are_kept() {
        assert_eq!(last_part("one\ntwo\n"), "one\ntwo\n");
        let lines: String = (1..=500).map(|n| format!("{n}\n")).collect();
        assert!(last_part(&lines).starts_with("301\n") && last_part(&lines).ends_with("\n500\n"));
        let wide = "ä".repeat(9000);
        assert_eq!(last_part(&wide).chars().count(), KEPT_CHARS);
        assert_eq!(last_part(""), "");
    }
}
