//! Runs the build: its output goes to disk as it happens, its exit code at the end.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write as _};
use std::time::Duration;

use code_commit_changes::ChangeEngine;
use code_commit_engine::Built;
use code_commit_guard::Guard;
use code_commit_logging::{RedactWriter, millis};
use code_commit_runner::{Cancel, Captured, Command, Ended, Output};

use crate::Progress;
use crate::fault::Fault;
use crate::record::{Record, output_text};
use crate::spending::Spending;
use crate::trial::{Broken, CommandSettings};

/// The command that decides whether the work is done.
#[derive(Debug, Clone, Default)]
pub struct BuildCommand {
    /// Program and arguments, run at the root; never a shell line.
    pub argv: Vec<OsString>,
    /// How it runs.
    pub settings: CommandSettings,
}

impl BuildCommand {
    /// Runs it at the guard's root. Output goes to `file`.
    pub(crate) fn run(
        &self,
        round: u32,
        file: &str,
        (guard, changes): (&Guard, &mut ChangeEngine),
        cancel: &Cancel,
        spending: &Spending,
        record: &mut Record,
    ) -> Result<Built, Fault> {
        record.tell(&Progress::BuildBegins { round });
        let deadline = self.settings.deadline(spending);
        let (output, broken) = self.once(file, (guard, changes), (cancel, deadline), record)?;
        Ok(Built {
            round,
            ended: output.ended,
            seal_broken: broken.is_some(),
            output: output_text(record.folder(), file)?,
            elapsed_ms: millis(output.elapsed),
            changes: Vec::new(),
            present: Vec::new(),
            put_back: Vec::new(),
            ignored_bytes: 0,
        })
    }

    fn once(
        &self,
        file: &str,
        (guard, changes): (&Guard, &mut ChangeEngine),
        (cancel, deadline): (&Cancel, Option<Duration>),
        record: &mut Record,
    ) -> Result<(Output, Option<Broken>), Fault> {
        let folder = record.folder().clone();
        let failed = |source| folder.error("write", file, source);
        let mut log = folder.redactor().with_tokens().writer(Tee {
            file: folder.create_file(file)?,
            record,
        });
        let command = Command {
            deadline,
            limits: self.settings.limits,
            ..Command::new(&self.argv, guard.root(), self.settings.env.clone())
        };
        let mut lost: Option<io::Error> = None;
        let confinement = self.settings.confined(changes)?;
        let ran = code_commit_runner::run(&command, &confinement, cancel, &mut |_, bytes| {
            if let Err(error) = log.write_all(bytes) {
                lost.get_or_insert(error);
            }
        });
        let broken = Broken::restore("build", changes, guard, folder.path())?;
        let output = match ran.map_err(Fault::Run) {
            Ok(output) if output.ended != Ended::Interrupted => output,
            ended => {
                drop(log);
                if let Some(broken) = broken {
                    broken.tell(false, record)?;
                }
                return Err(ended.err().unwrap_or(Fault::Interrupted));
            }
        };
        let note = broken.as_ref().map(Broken::note);
        lost.map_or_else(|| close(log, &output, note.as_deref()), Err)
            .map_err(failed)?;
        if let Some(broken) = &broken {
            broken.tell(true, record)?;
        }
        self.settings.tell_about("build", &output, record)?;
        Ok((output, broken))
    }
}

/// Writes redacted output to the file and to the observer.
struct Tee<'t> {
    file: File,
    record: &'t mut Record,
}

impl io::Write for Tee<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write_all(bytes)?;
        if !bytes.is_empty() {
            self.record.tell(&Progress::BuildPrints { bytes });
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// The last lines of `N-build.txt`: the harness's notes about the build, and how it ended.
fn close(mut log: RedactWriter<Tee<'_>>, output: &Output, note: Option<&str>) -> io::Result<()> {
    let Captured { head, tail, .. } = &output.captured;
    if tail
        .last()
        .or(head.last())
        .is_some_and(|last| *last != b'\n')
    {
        log.write_all(b"\n")?;
    }
    if let Some(note) = note {
        writeln!(log, "[code-commit] {note}")?;
    }
    let mut tee = log.finish()?;
    writeln!(tee.file, "{}", ending(output.ended))
}

/// How the build ended, as S1 logs it: its exit code, or why it has none.
fn ending(ended: Ended) -> String {
    match ended.exit_code() {
        Some(code) => format!("exit code: {code}"),
        None => format!("no exit code: the build {ended}"),
    }
}
