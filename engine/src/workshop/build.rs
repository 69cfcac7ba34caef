//! Running the build: its output on disk while it happens, its exit code at the end of it.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::time::Duration;

use runner::{Command, Confinement, Ended, Env, Limits};

use crate::workshop::ask::millis;
use crate::workshop::{Fault, Workshop};
use crate::{Event, Fact, Record, Text};

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
}

impl Workshop<'_> {
    pub(super) fn run_build(&mut self, round: u32, record: &mut Record<'_>) -> Result<Fact, Fault> {
        record.tell(&Event::BuildBegins { round });
        let file = format!("{round}-build.txt");
        let mut log = record.folder().writer(&file)?;
        let mut failed: Option<io::Error> = None;
        // The output passes the redactor on its way to the file, so the runner itself writes none.
        let command = Command {
            deadline: self.build.timeout,
            limits: self.build.limits,
            ..Command::new(&self.build.argv, &self.rules.root, self.build.env.clone(), "/dev/null")
        };
        let output = runner::run(&command, &self.build.confinement, &self.cancel, &mut |_, bytes| {
            if let Err(error) = log.write_all(bytes) {
                failed.get_or_insert(error);
            }
            let shown = record.folder().redactor().redact_bytes(bytes).into_owned();
            record.tell(&Event::BuildPrints { bytes: &shown });
        })
        .map_err(Fault::Run)?;
        if output.ended == Ended::Interrupted {
            return Err(Fault::Interrupted);
        }
        let advice = runner::explain(&output, &self.build.confinement);
        let closed = match failed {
            Some(error) => Err(error),
            None => close(log, &output, advice.as_deref()),
        };
        closed.map_err(|source| record.folder().error("write", &file, source))?;
        let (stored, text) = record.folder().adopt(&file)?;
        let elapsed_ms = millis(output.elapsed);
        Ok(Fact::Built { round, ended: output.ended, output: Text::new(stored, text.into()), elapsed_ms })
    }
}

/// The last lines of `N-build.txt`: what stood in the build's way, if that is known, and how it ended.
fn close(
    mut log: logging::RedactWriter<std::fs::File>,
    output: &runner::Output,
    advice: Option<&str>,
) -> io::Result<()> {
    if output.tail.last().or(output.head.last()).is_some_and(|last| *last != b'\n') {
        log.write_all(b"\n")?;
    }
    if let Some(advice) = advice {
        writeln!(log, "[code-commit] {advice}")?;
    }
    writeln!(log, "{}", ending(output.ended))?;
    log.finish().map(drop)
}

/// How the build ended, as S1 wants it logged: its exit code, or what kept it from having one.
fn ending(ended: Ended) -> String {
    match ended {
        Ended::Exited(code) => format!("exit code: {code}"),
        Ended::Signaled(signal) => format!("ended by signal {signal}, no exit code"),
        Ended::TimedOut => "stopped: it took longer than its time limit allows".to_owned(),
        Ended::TooMuchOutput => "stopped: it printed more than the limit allows".to_owned(),
        Ended::NotFound => "not started: there is no such program".to_owned(),
        Ended::NotExecutable => "not started: the file is not executable (chmod +x)".to_owned(),
        Ended::Interrupted => "interrupted".to_owned(),
        _ => "ended in a way that this version has no word for".to_owned(),
    }
}
