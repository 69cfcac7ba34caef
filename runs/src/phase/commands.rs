//! `abl-cmd`: runs the configured commands for a role, by name and nothing else, in a sandbox of their own: they see
//! what the role must not see, and run what a model wrote.
//!
//! Threads of the harness serve the socket that the role sees: they list the commands and print specs. A process of
//! this program in the sandbox (`inside`) runs the commands. It lives as long as the role's turn, and so does what
//! they leave running. It shares the sandbox with the builder's code, so nothing that it says is believed, and no role
//! sees its socket.

mod inside;
mod ports;

use std::any::Any;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufReader, Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::fs::symlink;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use code_commit_report::Output;
use code_commit_runner::{
    Backend, Cancel, Command, Confinement, Env, RunError, TemporaryFolder, View, run,
};
use code_commit_settings::phase::Entry;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub use inside::serve;
use inside::{Ask, connect};
use ports::Ports;

/// The name of the client program that roles call.
pub const CLIENT: &str = "abl-cmd";
/// The name by which this program runs commands in the sandbox; its argument is the socket to make.
pub const SERVER: &str = "abl-server";
/// The variable that tells `abl-cmd` where its server is.
pub const SOCKET: &str = "CODE_COMMIT_COMMANDS";
/// What the process in the sandbox prints once it serves.
const READY: &str = "ready";
/// Where no view of the source can be made.
pub(super) const READ_ONLY: &str =
    "no overlay of the source is possible here: commands of the verifier see it read-only";

/// Callers served at once; others wait in the socket's queue.
const CALLERS: usize = 32;
/// Longer messages are refused.
const LONGEST: u64 = 1 << 20;
/// A caller that neither sends nor receives for this long is disconnected.
const PATIENCE: Duration = Duration::from_secs(30);
/// Pause after a failed accept: there may be no file descriptor left, and retrying at once would be a busy loop.
/// Also how often new servers are looked for while no command ends.
const PAUSE: Duration = Duration::from_millis(100);

/// What `abl-cmd` prints and exits with.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Answer {
    /// The exit code.
    pub code: u8,
    /// What it prints.
    pub output: String,
}

impl Answer {
    fn new(code: u8, output: impl Into<String>) -> Self {
        let output = output.into();
        Self { code, output }
    }
}

/// Has the server run `argv`: the name of a command and its arguments.
pub fn call(socket: impl AsRef<Path>, argv: &[String]) -> io::Result<Answer> {
    exchange(&UnixStream::connect(socket)?, &argv)
}

fn exchange<T: DeserializeOwned>(stream: &UnixStream, message: &impl Serialize) -> io::Result<T> {
    send(stream, message)?;
    stream.shutdown(Shutdown::Write)?;
    receive(stream)
}

fn send(mut stream: &UnixStream, message: &impl Serialize) -> io::Result<()> {
    stream.write_all(&serde_json::to_vec(message)?)
}

/// The other side's one message.
fn receive<T: DeserializeOwned>(stream: &UnixStream) -> io::Result<T> {
    Ok(serde_json::from_reader(BufReader::new(
        stream.take(LONGEST),
    ))?)
}

/// What a role may ask for, and how its commands run.
#[derive(Debug)]
pub(super) struct Commands {
    pub(super) entries: BTreeMap<String, Entry>,
    pub(super) specs: BTreeMap<u32, String>,
    pub(super) cwd: PathBuf,
    pub(super) env: Env,
    /// Time limit of one command.
    pub(super) timeout: Duration,
    pub(super) confinement: Confinement,
}

impl Commands {
    /// `run` runs a command.
    fn answer(&self, argv: &[String], run: impl FnOnce(Vec<String>) -> Answer) -> Answer {
        match argv {
            [] => Answer::new(0, self.list()),
            [name, arguments @ ..] if name == "get-spec" => self.spec(arguments),
            [name, arguments @ ..] => match self.entries.get(name) {
                Some(entry) => run(shell(&entry.command, arguments)),
                None => {
                    let list = self.list();
                    Answer::new(127, format!("abl-cmd: there is no command {name}\n{list}"))
                }
            },
        }
    }

    fn list(&self) -> String {
        let each = self.entries.iter();
        let each = each.map(|(name, entry)| format!("{name}\t{}\n", entry.description));
        let own = "get-spec\tprints the spec of a phase: get-spec N\n".to_owned();
        std::iter::once(own).chain(each).collect()
    }

    fn spec(&self, arguments: &[String]) -> Answer {
        if let [number] = arguments
            && let Ok(number) = number.parse::<u32>()
            && let Some(text) = self.specs.get(&number)
        {
            return Answer::new(0, text);
        }
        let known: Vec<String> = self.specs.keys().map(u32::to_string).collect();
        let known = known.join(", ");
        Answer::new(1, format!("abl-cmd: get-spec takes one of {known}\n"))
    }
}

/// The arguments become the line's `"$@"`, never a part of it.
fn shell(line: &str, arguments: &[String]) -> Vec<String> {
    let end = if arguments.is_empty() || places_arguments(line) {
        ""
    } else {
        " \"$@\""
    };
    let words = ["sh", "-c", &format!("{line}{end}"), CLIENT].map(str::to_owned);
    words.into_iter().chain(arguments.iter().cloned()).collect()
}

/// Whether a line says itself where its arguments go: `$1`, `${2}`, `$@` or `$*` without a backslash before it.
/// Quotes make no difference.
fn places_arguments(line: &str) -> bool {
    line.match_indices('$').any(|(at, _)| {
        let (before, name) = line.split_at(at);
        let name = name.trim_start_matches(['$', '{']);
        !before.ends_with('\\')
            && name.starts_with(['@', '*', '1', '2', '3', '4', '5', '6', '7', '8', '9'])
    })
}

/// The commands of one role. Its folder, removed when this is dropped, has what the role sees: `bin/abl-cmd` and
/// `role/socket`; and what commands see: `bin` and `inside/socket`.
#[derive(Debug)]
pub(crate) struct CommandServer {
    folder: TemporaryFolder,
    program: PathBuf,
    commands: Arc<Commands>,
    output: Output,
}

impl CommandServer {
    /// `program` is this program.
    pub(super) fn new(
        program: PathBuf,
        mut commands: Commands,
        output: Output,
    ) -> io::Result<Self> {
        // A socket's path is limited to 107 bytes, so it cannot be below the project.
        let folder = code_commit_runner::temporary_folder(Path::new("/tmp"))?;
        let bin = folder.path().join("bin");
        fs::create_dir(&bin)?;
        fs::create_dir(folder.path().join("role"))?;
        for name in [CLIENT, SERVER] {
            symlink(&program, bin.join(name))?;
        }
        let access = &mut commands.confinement.access;
        access.readable.extend([bin, program.clone()]);
        access.writable.push(folder.path().join("inside"));
        let commands = Arc::new(commands);
        Ok(Self {
            folder,
            program,
            commands,
            output,
        })
    }

    /// What the role must be able to see.
    pub(super) fn visible(&self) -> [PathBuf; 3] {
        let [bin, role] = ["bin", "role"].map(|name| self.folder.path().join(name));
        [bin, role, self.program.clone()]
    }

    /// The folder to add to its PATH.
    pub(super) fn bin(&self) -> PathBuf {
        self.folder.path().join("bin")
    }

    /// A home folder for the role's agent that lasts as long as the run.
    pub(super) fn home(&self, role: &str) -> PathBuf {
        self.folder.path().join("home").join(role)
    }

    pub(super) fn socket(&self) -> PathBuf {
        self.folder.path().join("role/socket")
    }

    /// Serves for one turn; dropping the result ends the turn, and everything that commands left running.
    pub(super) fn open(&self) -> io::Result<Box<dyn Any>> {
        code_commit_dir::remove(&self.socket())?;
        let mut turn = Turn::new(self)?;
        if !self.commands.entries.is_empty() {
            turn.start_sandbox(self)?;
        }
        turn.serve()?;
        Ok(Box::new(turn))
    }
}

/// One turn of a role.
struct Turn {
    served: Arc<Served>,
    /// Runs the process in the sandbox, which ends when this connection does, even if the harness is killed.
    sandbox: Option<JoinHandle<()>>,
    connection: Option<UnixStream>,
    /// The folder for what commands change in a view of the source, which nobody keeps.
    layers: Option<PathBuf>,
}

/// What the threads of a turn share.
struct Served {
    commands: Arc<Commands>,
    listener: UnixListener,
    /// The socket of the process in the sandbox.
    inside: PathBuf,
    /// With the machine's network, the role finds servers without help.
    ports: Option<Ports>,
    cancel: Cancel,
    patience: Duration,
}

impl Turn {
    fn new(server: &CommandServer) -> io::Result<Self> {
        let Confinement { backend, access } = &server.commands.confinement;
        let has_ports = *backend != Backend::Off && !access.network;
        let inside = server.folder.path().join("inside/socket");
        let served = Served {
            commands: Arc::clone(&server.commands),
            listener: UnixListener::bind(server.socket())?,
            ports: has_ports.then(|| Ports::new(inside.clone())),
            inside,
            cancel: Cancel::new()?,
            patience: PATIENCE,
        };
        Ok(Self {
            served: Arc::new(served),
            sandbox: None,
            connection: None,
            layers: None,
        })
    }

    /// Starts the process that runs commands, and waits until it serves. Where the system allows no view of the source,
    /// the source is read-only.
    fn start_sandbox(&mut self, server: &CommandServer) -> io::Result<()> {
        let Commands {
            cwd,
            env,
            confinement,
            ..
        } = &*server.commands;
        let inside = self.served.inside.clone();
        let own = server.folder.path().join("inside");
        code_commit_dir::remove(&own)?;
        fs::create_dir(own)?;
        if let Some(View { upper, work }) = &confinement.access.view {
            // New ones: the kernel does not allow layers to be mounted twice.
            self.layers = upper.parent().map(Path::to_owned);
            self.remove_layers()?;
            fs::create_dir_all(upper)?;
            fs::create_dir(work)?;
        }
        let argv = [server.bin().join(SERVER), inside.clone()];
        let command = Command::new(argv, cwd, env.clone());
        let (cancel, output) = (self.served.cancel.clone(), server.output.clone());
        let mut confinement = confinement.clone();
        let (tell, told) = mpsc::channel();
        self.sandbox = Some(thread::Builder::new().spawn(move || {
            let serve = |confinement: &Confinement| {
                run(&command, confinement, &cancel, &mut |_, bytes| {
                    if bytes.trim_ascii() == READY.as_bytes() {
                        let _ = tell.send(Ok(()));
                    }
                })
            };
            let mut served = serve(&confinement);
            if matches!(served, Err(RunError::View { .. })) {
                output.warn(READ_ONLY);
                let access = &mut confinement.access;
                access.view = None;
                access.read_only.push(access.tree.clone());
                served = serve(&confinement);
            }
            let why = served.map_or_else(
                |error| error.to_string(),
                |output| format!("it {}: {}", output.ended, output.text()),
            );
            let _ = tell.send(Err(format!("abl-cmd cannot run commands: {why}")));
        })?);
        told.recv()
            .map_err(io::Error::other)?
            .map_err(io::Error::other)?;
        self.connection = Some(connect(&inside)?);
        Ok(())
    }

    fn remove_layers(&self) -> io::Result<()> {
        let mut layers = self.layers.iter();
        layers.try_for_each(|layers| code_commit_dir::remove(layers))
    }

    /// All threads are started here, so none can fail to start later.
    fn serve(&self) -> io::Result<()> {
        for _ in 0..CALLERS {
            let served = Arc::clone(&self.served);
            thread::Builder::new().spawn(move || served.attend_to_all())?;
        }
        let served = Arc::clone(&self.served);
        thread::Builder::new().spawn(move || {
            while let Some(ports) = &served.ports
                && !served.cancel.wait(PAUSE)
            {
                ports.follow();
            }
        })?;
        Ok(())
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.served.cancel.set();
        // Wakes the threads that wait for callers.
        let _ = rustix::net::shutdown(&self.served.listener, rustix::net::Shutdown::Both);
        self.served.ports.iter().for_each(Ports::close);
        if let Some(sandbox) = self.sandbox.take() {
            let _ = sandbox.join();
        }
        // The next turn removes what cannot be removed now.
        let _ = self.remove_layers();
    }
}

impl Served {
    fn attend_to_all(&self) {
        while !self.cancel.is_set() {
            match self.listener.accept() {
                // One that leaves early only loses its answer.
                Ok((caller, _)) => drop(self.attend(&caller)),
                Err(_) => drop(self.cancel.wait(PAUSE)),
            }
        }
    }

    fn attend(&self, caller: &UnixStream) -> io::Result<()> {
        caller.set_read_timeout(Some(self.patience))?;
        caller.set_write_timeout(Some(self.patience))?;
        let mut answer = match receive::<Vec<String>>(caller) {
            Ok(argv) => self.commands.answer(&argv, |argv| self.run(argv)),
            Err(_) => Answer::new(125, "abl-cmd: invalid request\n"),
        };
        // Before the caller gets its answer: it may use the server that its command has started.
        if let Some(ports) = &self.ports {
            ports.follow();
            answer.output += &ports.unreachable();
        }
        send(caller, &answer)
    }

    /// Has the process in the sandbox run a command.
    fn run(&self, argv: Vec<String>) -> Answer {
        let Commands { cwd, timeout, .. } = &*self.commands;
        let ask = Ask::Run {
            argv,
            cwd: cwd.clone(),
            timeout: *timeout,
        };
        let answer = connect(&self.inside).and_then(|stream| exchange(&stream, &ask));
        answer.unwrap_or_else(|error| Answer::new(125, format!("abl-cmd: no answer: {error}\n")))
    }
}

#[cfg(test)]
mod tests;
