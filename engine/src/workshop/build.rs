//! Running the build: its output on disk while it happens, its exit code at the end of it.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use logging::{RedactWriter, RunFolder};
use runner::{Captured, Command, Confinement, Ended, Env, Limits, Output};

use crate::workshop::ask::millis;
use crate::workshop::seal::Seal;
use crate::workshop::{Fault, Workshop};
use crate::{Event, Fact, Problem, Record, Text};

/// What decides whether the work is done.
#[derive(Debug, Clone)]
pub struct BuildCommand {
    /// Program and arguments, run at the root; never a shell line.
    pub argv: Vec<OsString>,
    /// Everything that it finds in its environment.
    pub env: Env,
    /// It may take so long.
    pub timeout: Option<Duration>,
    /// It may print so much.
    pub limits: Limits,
    /// What it can see and touch.
    pub confinement: Confinement,
    /// What it may not change, relative to the root; put back where it did.
    pub sealed: Vec<PathBuf>,
}

impl Workshop<'_> {
    pub(super) fn run_build(&mut self, round: u32, record: &mut Record<'_>) -> Result<Fact, Fault> {
        record.tell(&Event::BuildBegins { round });
        let file = self.layout.build(round);
        let root = &self.rules.root;
        let seal = Seal::take(root, &self.build.sealed).map_err(Fault::file("look at", root))?;
        let (mut output, mut changed) = self.build_once(&file, "", &seal, record)?;
        if !changed.is_empty() {
            let names = changed.join(", ");
            let note = format!("the build changed {names}; it was put back and the build run again");
            record.tell(&Event::Warning(&Problem {
                code: "seal".to_owned(),
                path: Some(names),
                line: None,
                message: note.clone(),
            }));
            (output, changed) = self.build_once(&file, &format!("[code-commit] {note}\n"), &seal, record)?;
        }
        let (stored, text) = record.folder().adopt(&file)?;
        let elapsed_ms = millis(output.elapsed);
        let output_text = Text::new(stored, text.into());
        let seal_broken = !changed.is_empty();
        Ok(Fact::Built { round, ended: output.ended, seal_broken, output: output_text, elapsed_ms })
    }

    /// Runs the build once, however it ends puts back what it may not change, and names that. A second time has a head in its log.
    fn build_once(
        &self,
        file: &str,
        head: &str,
        seal: &Seal,
        record: &mut Record<'_>,
    ) -> Result<(Output, Vec<String>), Fault> {
        let folder = record.folder().clone();
        let failed = |source| folder.error("write", file, source);
        let mut log = folder.redactor().writer(Tee { file: folder.create_file(file)?, record });
        log.write_all(head.as_bytes()).map_err(failed)?;
        let command = Command {
            deadline: self.build.timeout,
            limits: self.build.limits,
            ..Command::new(&self.build.argv, &self.rules.root, self.build.env.clone())
        };
        let mut lost: Option<io::Error> = None;
        let ran = runner::run(&command, &self.build.confinement, &self.cancel, &mut |_, bytes| {
            if let Err(error) = log.write_all(bytes) {
                lost.get_or_insert(error);
            }
        });
        let changed = seal.restore()?;
        let output = ran.map_err(Fault::Run)?;
        if output.ended == Ended::Interrupted {
            return Err(Fault::Interrupted);
        }
        let again = (!head.is_empty() && !changed.is_empty())
            .then(|| format!("the build changed {} again: it counts as failed", changed.join(", ")));
        lost.map_or_else(|| close(log, &output, again.as_deref()), Err).map_err(failed)?;
        if let Some(warning) = about_walls(&output, &self.build.confinement, &folder) {
            record.tell(&Event::Warning(&warning));
        }
        Ok((output, changed))
    }
}

/// What was redacted goes to the file and to whoever watches.
struct Tee<'t, 'o> {
    file: File,
    record: &'t mut Record<'o>,
}

impl io::Write for Tee<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write_all(bytes)?;
        if !bytes.is_empty() {
            self.record.tell(&Event::BuildPrints { bytes });
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// How to open the walls, if they are what a command failed at. It goes to the person alone: a model decides nothing about them, and what
/// it learned here it could ask for.
pub(crate) fn about_walls(output: &Output, confinement: &Confinement, folder: &RunFolder) -> Option<Problem> {
    let message = runner::explain(output, confinement)?;
    let message = folder.redactor().redact(&message).into_owned();
    Some(Problem { code: "wall".to_owned(), path: None, line: None, message })
}

/// The last lines of `N-build.txt`: what the harness has to say about it, and how it ended.
fn close(mut log: RedactWriter<Tee<'_, '_>>, output: &Output, note: Option<&str>) -> io::Result<()> {
    let Captured { head, tail, .. } = &output.captured;
    if tail.last().or(head.last()).is_some_and(|last| *last != b'\n') {
        log.write_all(b"\n")?;
    }
    if let Some(note) = note {
        writeln!(log, "[code-commit] {note}")?;
    }
    let mut tee = log.finish()?;
    writeln!(tee.file, "{}", ending(output.ended))
}

/// How the build ended, as S1 wants it logged: its exit code, or what kept it from having one.
fn ending(ended: Ended) -> String {
    match ended.exit_code() {
        Some(code) => format!("exit code: {code}"),
        None => format!("no exit code: the build {ended}"),
    }
}
