//! The desk: a process that runs the configured commands for a role, by name and nothing else, in a sandbox of
//! their own: they see what the role must not see, and run what a model wrote.
//!
//! It is a separate process because the harness is busy with the role's agent and runs one command at a time.
//! It lives as long as the role's turn: when its input ends, because the turn is over or the harness was
//! killed, it ends everything that the commands left running and exits.

use std::any::Any;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use code_commit_report::Output;
use code_commit_runner::{Cancel, Command, Confinement, Ended, Leftovers, Limits, View, run};

use crate::phase::request::{Answer, CLIENT, DESK, Desk, READY, Side, WITHOUT_VIEW};

mod arguments;
mod door;
mod inside;
mod ports;

use arguments::uses_arguments;
use door::Door;

/// For a person: what [`WITHOUT_VIEW`] means.
pub(super) const READ_ONLY: &str =
    "no view of the source can be made here: commands of the verifier see it read-only";
/// Bytes to pass on from each end of a command's output.
const SHOWN_BYTES: usize = 32 << 10;

/// The folder that a role sees: `bin/abl-cmd` and the socket. Removed when dropped.
#[derive(Debug)]
pub(crate) struct Counter {
    folder: code_commit_runner::TemporaryFolder,
    program: PathBuf,
    desk: Desk,
    output: Output,
}

impl Counter {
    /// Makes the folder for one role. `program` is this program.
    pub(super) fn new(program: &Path, mut desk: Desk, output: &Output) -> io::Result<Self> {
        // A socket's path is limited to 107 bytes, so it cannot be below the project.
        let folder = code_commit_runner::temporary_folder(Path::new("/tmp"))?;
        fs::create_dir(folder.path().join("bin"))?;
        symlink(program, folder.path().join("bin").join(CLIENT))?;
        desk.socket = folder.path().join("desk");
        Ok(Self {
            folder,
            program: program.to_owned(),
            desk,
            output: output.clone(),
        })
    }

    pub(super) fn confine(&mut self, mut confinement: Confinement) {
        confinement.access.readable.push(self.program.clone());
        self.desk.confinement = Some(confinement);
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
        code_commit_dir::remove(self.socket())?;
        let mut open = Open {
            child: self.start()?,
            _layers: self.layers()?,
        };
        if let Some(stdin) = &mut open.child.stdin {
            serde_json::to_writer(&mut *stdin, &self.desk)?;
            stdin.write_all(b"\n")?;
        }
        let answers = open
            .child
            .stdout
            .take()
            .map(BufReader::new)
            .into_iter()
            .flat_map(BufRead::lines);
        for answer in answers {
            match answer?.as_str() {
                READY => return Ok(Box::new(open)),
                WITHOUT_VIEW => self.output.warn(READ_ONLY),
                other => {
                    return Err(io::Error::other(format!(
                        "the desk for abl-cmd did not open: {other}"
                    )));
                }
            }
        }
        Err(io::Error::other("the desk for abl-cmd did not open"))
    }

    /// New layers for a view: the kernel does not allow one to be mounted twice.
    fn layers(&self) -> io::Result<Option<Layers>> {
        let view = self
            .desk
            .confinement
            .as_ref()
            .and_then(|confinement| confinement.access.view.clone());
        view.map(Layers::make).transpose()
    }

    /// In its own process group: the harness handles Ctrl-C, then closes the desk.
    #[expect(
        clippy::disallowed_methods,
        reason = "the runner is busy with the agent; the desk uses a runner of its own"
    )]
    fn start(&self) -> io::Result<Child> {
        std::process::Command::new(&self.program)
            .arg0(DESK)
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
    _layers: Option<Layers>,
}

/// What commands change in a view of the source, which nobody keeps.
struct Layers(View);

impl Layers {
    fn make(view: View) -> io::Result<Self> {
        remove_layers(&view)?;
        fs::create_dir_all(&view.upper)?;
        fs::create_dir(&view.work)?;
        Ok(Self(view))
    }
}

impl Drop for Layers {
    fn drop(&mut self) {
        // The next turn removes them, too.
        let _ = remove_layers(&self.0);
    }
}

/// The kernel and the commands leave folders that even their owner may not enter.
fn remove_layers(view: &View) -> io::Result<()> {
    let folder = view
        .upper
        .parent()
        .and_then(|folder| Some((folder.parent()?, folder.file_name()?)));
    let Some((above, name)) = folder else {
        return Ok(());
    };
    code_commit_dir::reach::remove(
        &code_commit_dir::reach::root(above, code_commit_dir::reach::CHANGE)?,
        name,
    )
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
pub fn serve(input: impl Read + Send, ready: impl Write) -> u8 {
    match try_serve(BufReader::new(input), ready) {
        Ok(()) => 0,
        Err(_) => 1,
    }
}

fn try_serve(mut input: impl BufRead + Send, mut ready: impl Write) -> io::Result<()> {
    let mut line = String::new();
    input.read_line(&mut line)?;
    let mut desk: Desk = serde_json::from_str(&line)?;
    if let Some(confinement) = desk.confinement.take() {
        return inside::serve_around(desk, confinement, input, ready);
    }
    let (cancel, is_inside) = (Cancel::new()?, desk.side == Side::Inside);
    if is_inside {
        ports::serve(UnixListener::bind(
            desk.socket.with_file_name(ports::SOCKET),
        )?)?;
    }
    Door::new(desk, cancel.clone())?.open()?;
    writeln!(ready, "{READY}")?;
    ready.flush()?;
    if is_inside {
        // The sandbox ends it, and all that it has started.
        loop {
            std::thread::park();
        }
    }
    // Until the harness closes it or exits.
    io::copy(&mut input, &mut io::sink())?;
    cancel.set();
    // By now running commands have been ended, and waiting ones are no longer started.
    let _none_at_work = at_work();
    code_commit_runner::sweep();
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
            [] => Answer {
                code: 0,
                output: self.list(),
            },
            [name, rest @ ..] if name == "get-spec" => self.spec(rest),
            [name, rest @ ..] => match (self.commands.get(name), &self.side) {
                (Some(_), Side::Outside(inner)) => inside::ask(inner, argv),
                (Some(entry), Side::Open | Side::Inside) => self.run(&entry.command, rest, cancel),
                (None, _) => Answer {
                    code: 127,
                    output: format!("abl-cmd: there is no command {name}\n{}", self.list()),
                },
            },
        }
    }

    fn list(&self) -> String {
        let each = self
            .commands
            .iter()
            .map(|(name, entry)| format!("{name}\t{}\n", entry.description));
        std::iter::once("get-spec\tprints the spec of a phase: get-spec N\n".to_owned())
            .chain(each)
            .collect()
    }

    fn spec(&self, arguments: &[String]) -> Answer {
        let spec = match arguments {
            [number] => number
                .parse()
                .ok()
                .and_then(|number: u32| self.specs.get(&number)),
            _ => None,
        };
        match spec {
            Some(text) => Answer {
                code: 0,
                output: text.clone(),
            },
            None => Answer {
                code: 1,
                output: format!(
                    "abl-cmd: get-spec takes one of {}\n",
                    numbers(self.specs.keys())
                ),
            },
        }
    }

    /// The arguments become the shell line's `"$@"`, never a part of it.
    fn run(&self, line: &str, arguments: &[String], cancel: &Cancel) -> Answer {
        let line = if arguments.is_empty() || uses_arguments(line) {
            line.to_owned()
        } else {
            format!("{line} \"$@\"")
        };
        let words = ["sh", "-c", &line, CLIENT]
            .map(str::to_owned)
            .into_iter()
            .chain(arguments.iter().cloned());
        let command = Command {
            deadline: Some(Duration::from_secs(self.timeout_seconds)),
            limits: Limits {
                head_bytes: SHOWN_BYTES,
                tail_bytes: SHOWN_BYTES,
                ..Limits::default()
            },
            leftovers: Leftovers::Keep,
            ..Command::new(words, &self.cwd, self.env())
        };
        let ran = {
            let _at_work = at_work();
            run(&command, &Confinement::off(), cancel, &mut |_, _| {})
        };
        match ran {
            Ok(output) => Answer {
                code: output.ended.shell_code(),
                output: with_ending(output.text(), output.ended),
            },
            Err(error) => Answer {
                code: 125,
                output: format!("abl-cmd: {error}\n"),
            },
        }
    }
}

fn numbers<'a>(numbers: impl Iterator<Item = &'a u32>) -> String {
    numbers.map(u32::to_string).collect::<Vec<_>>().join(", ")
}

fn with_ending(text: String, ended: Ended) -> String {
    if ended.exit_code().is_some() {
        text
    } else {
        format!("{text}\nabl-cmd: the command {ended}\n")
    }
}

#[cfg(test)]
mod tests;
