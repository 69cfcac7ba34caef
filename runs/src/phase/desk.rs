//! The desk: a process outside the sandbox that runs the configured commands for a role, by name and nothing
//! else.
//!
//! It is a separate process because the harness is busy with the role's agent and runs one command at a time.
//! It lives as long as the role's turn: when its input ends, because the turn is over or the harness was
//! killed, it ends everything that the commands left running and exits.

use std::any::Any;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use runner::{Cancel, Command, Confinement, Ended, Env, Leftovers, Limits, run};

use crate::phase::request::{Answer, CLIENT, Desk};

mod door;

use door::Door;

/// The program name that starts the desk.
pub const NAME: &str = "abl-desk";
/// Bytes to pass on from each end of a command's output.
const SHOWN_BYTES: usize = 32 << 10;

/// The folder that a role sees: `bin/abl-cmd` and the socket. Removed when dropped.
#[derive(Debug)]
pub(super) struct Counter {
    folder: tempfile::TempDir,
    program: PathBuf,
    desk: Desk,
}

impl Counter {
    /// Makes the folder for one role. `program` is this program.
    pub(super) fn new(program: &Path, mut desk: Desk) -> io::Result<Self> {
        // A socket's path is limited to 107 bytes, so it cannot be below the project.
        let folder = runner::temporary_folder(Path::new("/tmp"))?;
        fs::create_dir(folder.path().join("bin"))?;
        symlink(program, folder.path().join("bin").join(CLIENT))?;
        desk.socket = folder.path().join("desk");
        Ok(Self { folder, program: program.to_owned(), desk })
    }

    /// What a role must be able to see.
    pub(super) fn visible(&self) -> [PathBuf; 2] {
        [self.folder.path().to_owned(), self.program.clone()]
    }

    /// The folder to add to its PATH.
    pub(super) fn bin(&self) -> PathBuf {
        self.folder.path().join("bin")
    }

    /// A home folder for the role's agent that lasts as long as the run.
    pub(super) fn home(&self, role: &str) -> PathBuf {
        self.folder.path().join(role)
    }

    pub(super) fn socket(&self) -> &Path {
        &self.desk.socket
    }

    /// Opens the desk for one turn; dropping the result closes it.
    pub(super) fn open(&self) -> io::Result<Box<dyn Any>> {
        dir::remove(self.socket())?;
        let mut open = Open { child: self.start()? };
        if let Some(stdin) = &mut open.child.stdin {
            serde_json::to_writer(&mut *stdin, &self.desk)?;
            stdin.write_all(b"\n")?;
        }
        let mut ready = String::new();
        if let Some(stdout) = open.child.stdout.take() {
            BufReader::new(stdout).read_line(&mut ready)?;
        }
        if ready.trim() == "ready" {
            Ok(Box::new(open))
        } else {
            Err(io::Error::other("the desk for abl-cmd did not open"))
        }
    }

    /// In its own process group: the harness handles Ctrl-C, then closes the desk.
    #[expect(
        clippy::disallowed_methods,
        reason = "the runner is busy with the agent; the desk uses a runner of its own"
    )]
    fn start(&self) -> io::Result<Child> {
        std::process::Command::new(&self.program)
            .arg0(NAME)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
    }
}

struct Open {
    child: Child,
}

impl Drop for Open {
    fn drop(&mut self) {
        // Its input ends, so it cleans up and exits, within two seconds.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// Runs the desk: reports when it is ready, and runs until its input ends. Gives the exit code of its
/// process.
pub fn serve(input: impl Read, ready: impl Write) -> u8 {
    match try_serve(BufReader::new(input), ready) {
        Ok(()) => 0,
        Err(_) => 1,
    }
}

fn try_serve(mut input: impl BufRead, mut ready: impl Write) -> io::Result<()> {
    let mut line = String::new();
    input.read_line(&mut line)?;
    let cancel = Cancel::new()?;
    Door::new(serde_json::from_str(&line)?, cancel.clone())?.open()?;
    writeln!(ready, "ready")?;
    ready.flush()?;
    // Until the harness closes it or exits.
    io::copy(&mut input, &mut io::sink())?;
    cancel.set();
    // By now running commands have been ended, and waiting ones are no longer started.
    let _none_at_work = at_work();
    runner::sweep();
    Ok(())
}

/// Held while a command is started and runs.
fn at_work() -> MutexGuard<'static, ()> {
    static AT_WORK: Mutex<()> = Mutex::new(());
    AT_WORK.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Desk {
    fn answer(&self, argv: &[String], cancel: &Cancel) -> Answer {
        match argv {
            [] => Answer { code: 0, output: self.list() },
            [name, rest @ ..] if name == "get-spec" => self.spec(rest),
            [name, rest @ ..] => match self.commands.get(name) {
                Some(entry) => self.run(&entry.command, rest, cancel),
                None => Answer {
                    code: 127,
                    output: format!("abl-cmd: there is no command {name}\n{}", self.list()),
                },
            },
        }
    }

    fn list(&self) -> String {
        let each = self.commands.iter().map(|(name, entry)| format!("{name}\t{}\n", entry.description));
        std::iter::once("get-spec\tprints the spec of a phase: get-spec N\n".to_owned()).chain(each).collect()
    }

    fn spec(&self, arguments: &[String]) -> Answer {
        let spec = match arguments {
            [number] => number.parse().ok().and_then(|number: u32| self.specs.get(&number)),
            _ => None,
        };
        match spec {
            Some(text) => Answer { code: 0, output: text.clone() },
            None => Answer {
                code: 1,
                output: format!("abl-cmd: get-spec takes one of {}\n", numbers(self.specs.keys())),
            },
        }
    }

    /// The arguments become the shell line's `"$@"`, never a part of it.
    fn run(&self, line: &str, arguments: &[String], cancel: &Cancel) -> Answer {
        let uses_them = line.contains("$@") || line.contains("$*") || line.contains("$1");
        let line = if arguments.is_empty() || uses_them { line.to_owned() } else { format!("{line} \"$@\"") };
        let words =
            ["sh", "-c", &line, CLIENT].map(str::to_owned).into_iter().chain(arguments.iter().cloned());
        let env = self.env.iter().fold(Env::default(), |mut env, (name, value)| {
            env.set(name, value);
            env
        });
        let command = Command {
            deadline: Some(Duration::from_secs(self.timeout_seconds)),
            limits: Limits { head_bytes: SHOWN_BYTES, tail_bytes: SHOWN_BYTES, ..Limits::default() },
            leftovers: Leftovers::Keep,
            ..Command::new(words, &self.cwd, env)
        };
        let ran = {
            let _at_work = at_work();
            run(&command, &Confinement::off(), cancel, &mut |_, _| {})
        };
        match ran {
            Ok(output) => {
                Answer { code: output.ended.shell_code(), output: with_ending(output.text(), output.ended) }
            }
            Err(error) => Answer { code: 125, output: format!("abl-cmd: {error}\n") },
        }
    }
}

fn numbers<'a>(numbers: impl Iterator<Item = &'a u32>) -> String {
    numbers.map(u32::to_string).collect::<Vec<_>>().join(", ")
}

fn with_ending(text: String, ended: Ended) -> String {
    if ended.exit_code().is_some() { text } else { format!("{text}\nabl-cmd: the command {ended}\n") }
}

#[cfg(test)]
mod tests;
