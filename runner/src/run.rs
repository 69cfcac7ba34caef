//! Runs one command from start to end.

use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::probe::forget;
use crate::pump::{Pump, Room, Stop};
use crate::reap::Swept;
use crate::spawn::{connect, start};
use crate::usage::Watch;
use crate::wait::now;
use crate::{Cancel, Command, Confinement, Ended, Leftovers, Output, RunError, Stream, sandbox};

/// How long to wait for open pipes after the command is gone.
const DRAIN: Duration = Duration::from_millis(250);
/// The number of times to try to start a container before the daemon's error is final.
const STARTS: usize = 3;

/// Runs one command to its end and leaves no process behind.
///
/// `live` receives each piece of output as it arrives; while it is busy, nothing else happens, and
/// the deadline is not checked. Any number of commands may run at once. A failing command is not an
/// error: see [`Output::ended`].
pub fn run(
    command: &Command,
    confinement: &Confinement,
    cancel: &Cancel,
    live: &mut dyn FnMut(Stream, &[u8]),
) -> Result<Output, RunError> {
    let mut output = run_now(command, confinement, cancel, live);
    for _ in 1..STARTS {
        if !matches!(&output, Err(RunError::Sandbox { message, .. }) if sandbox::may_start_again(message))
        {
            break;
        }
        output = run_now(command, confinement, cancel, live);
    }
    if matches!(output, Err(RunError::Sandbox { .. })) {
        forget(confinement);
    }
    output
}

fn run_now(
    command: &Command,
    confinement: &Confinement,
    cancel: &Cancel,
    live: &mut dyn FnMut(Stream, &[u8]),
) -> Result<Output, RunError> {
    let _layers = sandbox::lock_caches(confinement).map_err(|error| {
        let message = format!("cannot lock the layers of caches: {error}");
        confinement.backend.failed(message)
    })?;
    let begun = now();
    check_folder(&command.cwd)?;
    let mut pump = Pump::new(command.limits, live);
    let ends = connect(command, &mut pump)?;
    let output = |ended, swept: Swept, pump: Pump<'_>, refused| {
        let (captured, apart) = pump.finish();
        Output {
            ended,
            captured,
            apart,
            elapsed: now().saturating_duration_since(begun),
            survivors_killed: swept.killed,
            survivors_left: swept.left,
            refused,
        }
    };
    let none = Swept::default();
    if cancel.is_set() {
        // Whoever set the flag may be about to exit.
        return Ok(output(Ended::Interrupted, none, pump, Vec::new()));
    }
    let mut running = match alone(|| start(command, confinement, ends))? {
        Ok(running) => running,
        Err(ended) => return Ok(output(ended, none, pump, Vec::new())),
    };
    let end = command.deadline.and_then(|limit| begun.checked_add(limit));
    let find = || running.processes();
    let watch = Watch::new(&find, command.limits.resources);
    let stop = pump.run(running.handle(), cancel, end, watch);
    let (status, swept) = alone(|| running.end(command.leftovers, stop.as_ref().ok()));
    let drained = pump.drain(now() + DRAIN);
    if command.leftovers == Leftovers::Keep {
        pump.hear_out();
    }
    let (stop, status, room) = (stop?, status?, drained?);
    let ended = match (stop, status) {
        (Stop::Exited, Some(status)) => {
            let ended = running.aftercare.read(status, || pump.text())?;
            if room == Room::UsedUp {
                Ended::TooMuchOutput
            } else {
                ended
            }
        }
        (Stop::Exited, None) => {
            return Err(RunError::wait(io::ErrorKind::TimedOut));
        }
        (Stop::TimedOut, _) => Ended::TimedOut,
        (Stop::TooMuchOutput, _) => Ended::TooMuchOutput,
        (Stop::Interrupted, _) => Ended::Interrupted,
        (Stop::Exceeded(ended), _) => ended,
    };
    let refused = running.aftercare.refused();
    Ok(output(ended, swept, pump, refused))
}

/// No other command starts or ends meanwhile: one that starts inherits limits and descriptors that this process has
/// for it alone, and one that ends could not tell it from its own leftovers.
fn alone<T>(start_or_end: impl FnOnce() -> T) -> T {
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    start_or_end()
}

fn check_folder(path: &Path) -> Result<(), RunError> {
    let refused = match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => return Ok(()),
        Ok(_) => io::ErrorKind::NotADirectory.into(),
        Err(error) => error,
    };
    let path = path.to_owned();
    Err(RunError::Cwd {
        path,
        source: refused,
    })
}
