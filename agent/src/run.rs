//! A turn from start to end.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use code_commit_model::Usage;
use code_commit_runner::{Cancel, Command, Limits, Output, RunError, Stream, Streams};

use crate::collected::Collected;
use crate::judge::{Facts, judge};
use crate::lines::{Line, Lines};
use crate::{Event, Home, Installed, Kind, Outcome, Spawn, home, start};

/// How often a running agent is checked: a stop takes effect within this time.
const TICK: Duration = Duration::from_millis(50);

/// The session is named within this many lines.
const FIRST_LINES: usize = 20;

/// This much of each end of standard error is kept.
const STDERR_BYTES: usize = 16 << 10;

/// Why a turn could not be run or observed to its end. Nothing of it is left running.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The folder or the settings of the CLI could not be created.
    #[error("cannot prepare {}", path.display())]
    Prepare {
        /// What could not be created.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The raw output could not be written to the caller's log.
    #[error("cannot write the agent's output")]
    Log(#[source] io::Error),
    /// The process could not be started or watched.
    #[error("cannot run the agent")]
    Run(#[source] RunError),
}

/// Runs one turn. `log` receives the CLI's standard output as it arrives, with the key redacted in
/// each line; `on_event` receives each event at once.
///
/// A failure of the agent is not an error: see [`Outcome::end`].
pub fn run(
    cli: &Installed,
    spawn: &Spawn<'_>,
    cancel: &Cancel,
    log: &mut dyn Write,
    on_event: &mut dyn FnMut(&Event),
) -> Result<Outcome, AgentError> {
    let tmp = prepare(cli.kind, spawn)?;
    let command = command(cli, spawn, tmp.path())?;
    let confinement = start::confinement(cli, spawn);
    let mut hearing = Hearing::new(cli.kind, spawn, log, on_event);
    let watch = Watch::new(cancel, spawn).map_err(|source| at(tmp.path(), source))?;
    let output = watch
        .over(|stopper| {
            code_commit_runner::run(&command, &confinement, stopper, &mut |stream, bytes| {
                watch.heard();
                hearing.hear(stream, bytes);
            })
        })
        .map_err(AgentError::Run)?;
    let told = hearing.finish()?;
    Ok(outcome(cli.kind, spawn, told, &output, watch.was_idle()))
}

/// The session that the beginning of a CLI's output names.
pub fn session_in(kind: Kind, output: impl io::BufRead) -> Option<String> {
    let mut told = Collected::default();
    for line in output.lines().take(FIRST_LINES).map_while(Result::ok) {
        told.line(kind, line.as_bytes(), &mut |_| {});
        if told.session.is_some() {
            break;
        }
    }
    told.session
}

/// Lets a person talk to the agent on the caller's own three streams. Returns the exit code as
/// [`code_commit_runner::Ended::shell_code`] does.
pub fn interactive(cli: &Installed, spawn: &Spawn<'_>, cancel: &Cancel) -> Result<u8, AgentError> {
    let tmp = prepare(cli.kind, spawn)?;
    let argv = start::interactive_argv(cli, spawn);
    let command = Command {
        streams: Streams::Inherited,
        deadline: spawn.timeout,
        ..Command::new(argv, spawn.cwd, start::env(cli, spawn, Some(tmp.path())))
    };
    let output = code_commit_runner::run(
        &command,
        &start::confinement(cli, spawn),
        cancel,
        &mut |_, _| {},
    )
    .map_err(AgentError::Run)?;
    Ok(output.ended.shell_code())
}

fn at(path: &Path, source: io::Error) -> AgentError {
    AgentError::Prepare {
        path: path.to_owned(),
        source,
    }
}

/// Creates the CLI's home, and a folder for what it needs during this turn only.
fn prepare(
    kind: Kind,
    spawn: &Spawn<'_>,
) -> Result<code_commit_runner::TemporaryFolder, AgentError> {
    if let Home::Own(folder) = spawn.home {
        home::prepare(kind, folder, spawn)
            .map_err(|(path, source)| AgentError::Prepare { path, source })?;
    }
    let parent = std::env::temp_dir();
    code_commit_runner::temporary_folder(&parent).map_err(|source| at(&parent, source))
}

fn command(cli: &Installed, spawn: &Spawn<'_>, tmp: &Path) -> Result<Command, AgentError> {
    let prompt = start::prompt(cli.kind, spawn);
    let argv = start::argv(cli, spawn, &prompt);
    let input = match start::way(&prompt) {
        start::Way::Argument => None,
        start::Way::Input => {
            let file = tmp.join("prompt");
            fs::File::create(&file)
                .and_then(|mut open| open.write_all(prompt.as_bytes()))
                .map_err(|source| at(&file, source))?;
            Some(file)
        }
    };
    Ok(Command {
        deadline: spawn.timeout,
        input,
        streams: Streams::Apart,
        limits: Limits {
            head_bytes: STDERR_BYTES,
            tail_bytes: STDERR_BYTES,
            ..Limits::default()
        },
        ..Command::new(argv, spawn.cwd, start::env(cli, spawn, Some(tmp)))
    })
}

fn outcome(
    kind: Kind,
    spawn: &Spawn<'_>,
    told: Collected,
    output: &Output,
    was_idle: bool,
) -> Outcome {
    let stderr = output.apart.as_ref().map(|apart| &apart.err);
    let stderr = stderr.map(|said| {
        spawn
            .key
            .as_ref()
            .map_or_else(|| said.text(), |key| key.strike_out_of(said))
    });
    let stderr = stderr.unwrap_or_default();
    let end = judge(&Facts {
        kind,
        ended: output.ended,
        was_idle,
        told: &told,
        stderr: &stderr,
    });
    let mut usage = told.usage;
    if let (Kind::Codex, Some(before)) = (kind, spawn.used_before) {
        usage
            .iter_mut()
            .for_each(|of| of.usage = since(of.usage, before));
    }
    let elapsed_ms = u64::try_from(output.elapsed.as_millis()).unwrap_or(u64::MAX);
    let Collected {
        answer: text,
        cost_usd,
        session,
        denials,
        ..
    } = told;
    Outcome {
        end,
        text,
        usage,
        cost_usd,
        session,
        denials,
        elapsed_ms,
        stderr,
    }
}

fn strike_out(spawn: &Spawn<'_>, text: &str) -> String {
    spawn
        .key
        .as_ref()
        .map_or_else(|| text.to_owned(), |key| key.strike_out(text))
}

fn since(now: Usage, before: Usage) -> Usage {
    let less = |now: Option<u64>, before: Option<u64>| {
        now.map(|now| now.saturating_sub(before.unwrap_or(0)))
    };
    Usage {
        input_tokens: less(now.input_tokens, before.input_tokens),
        cache_read_tokens: less(now.cache_read_tokens, before.cache_read_tokens),
        cache_write_tokens: less(now.cache_write_tokens, before.cache_write_tokens),
        output_tokens: less(now.output_tokens, before.output_tokens),
        reasoning_tokens: less(now.reasoning_tokens, before.reasoning_tokens),
        tier: now.tier,
    }
}

/// Processes the output as it arrives.
struct Hearing<'a, 's> {
    kind: Kind,
    spawn: &'a Spawn<'s>,
    lines: Lines,
    told: Collected,
    log: &'a mut dyn Write,
    failed: Option<io::Error>,
    on_event: &'a mut dyn FnMut(&Event),
}

impl<'a, 's> Hearing<'a, 's> {
    fn new(
        kind: Kind,
        spawn: &'a Spawn<'s>,
        log: &'a mut dyn Write,
        on_event: &'a mut dyn FnMut(&Event),
    ) -> Self {
        // Codex does not say which model it uses.
        let told = Collected {
            model: spawn.model.map(str::to_owned),
            ..Collected::default()
        };
        Self {
            kind,
            spawn,
            lines: Lines::default(),
            told,
            log,
            failed: None,
            on_event,
        }
    }

    fn hear(&mut self, stream: Stream, bytes: &[u8]) {
        if stream == Stream::Out {
            let mut lines = std::mem::take(&mut self.lines);
            lines.push(bytes, &mut |line| self.line(line));
            self.lines = lines;
        }
    }

    fn line(&mut self, line: Line<'_>) {
        let text = match line {
            Line::Whole(line) => strike_out(self.spawn, &String::from_utf8_lossy(line)),
            Line::TooLong(bytes) => {
                format!("[code-commit] a line of {bytes} bytes was skipped")
            }
        };
        if let Err(error) = writeln!(self.log, "{text}") {
            self.failed.get_or_insert(error);
        }
        let on_event = &mut *self.on_event;
        self.told
            .line(self.kind, text.as_bytes(), &mut |event| on_event(&event));
    }

    fn finish(mut self) -> Result<Collected, AgentError> {
        std::mem::take(&mut self.lines).finish(&mut |line| self.line(line));
        match self.failed {
            Some(error) => Err(AgentError::Log(error)),
            None => Ok(self.told),
        }
    }
}

/// Stops a turn that is cancelled or silent for too long.
struct Watch<'c> {
    cancel: &'c Cancel,
    enough: Option<&'c Cancel>,
    stopper: Cancel,
    idle: Option<Duration>,
    last: Mutex<Instant>,
    was_idle: AtomicBool,
}

impl<'c> Watch<'c> {
    fn new(cancel: &'c Cancel, spawn: &'c Spawn<'_>) -> io::Result<Self> {
        let (stopper, last) = (Cancel::new()?, Mutex::new(now()));
        let (enough, idle) = (spawn.enough.as_ref(), spawn.idle_timeout);
        Ok(Self {
            cancel,
            enough,
            stopper,
            idle,
            last,
            was_idle: AtomicBool::new(false),
        })
    }

    fn is_cancelled(&self) -> bool {
        self.cancel.is_set() || self.enough.is_some_and(Cancel::is_set)
    }

    /// Called for any output.
    fn heard(&self) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = now();
    }

    fn was_idle(&self) -> bool {
        self.was_idle.load(Ordering::SeqCst)
    }

    /// Runs `work` while another thread watches. The work stays on this thread, because a sandbox
    /// dies with the thread that started it.
    fn over<T>(&self, work: impl FnOnce(&Cancel) -> T) -> T {
        let (over, is_over) = channel::<()>();
        std::thread::scope(|scope| {
            scope.spawn(move || self.look_on(&is_over));
            let result = work(&self.stopper);
            drop(over);
            result
        })
    }

    fn look_on(&self, is_over: &Receiver<()>) {
        while is_over.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
            let silent = self
                .last
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .elapsed();
            let too_long = self.idle.is_some_and(|limit| silent > limit);
            if too_long && !self.is_cancelled() {
                self.was_idle.store(true, Ordering::SeqCst);
            }
            if too_long || self.is_cancelled() {
                return self.stopper.set();
            }
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "silence is measured by the monotonic clock"
)]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests;
