//! The built program, and others, in an environment made from nothing.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use rustix::fs::Mode;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// The program in the folder `root`: the toolchain that runs this test and the system's folders before the caller's PATH, a home of its
/// own, the usual umask, and nothing else of the caller's.
pub fn program(root: &Path, home: &Path, args: &[&str], environment: &[(&str, &str)]) -> Command {
    let mut command = tool(env!("CARGO_BIN_EXE_code-commit"), root, home, args);
    command.envs(environment.iter().copied());
    command
}

/// Another program in the environment that [`program`] describes.
pub fn tool(program: &str, root: &Path, home: &Path, args: &[&str]) -> Command {
    rustix::process::umask(Mode::from_raw_mode(0o022));
    let mut command = Command::new(program);
    command
        .args(args)
        .current_dir(root)
        .env_clear()
        .env("PATH", search_path())
        .env("HOME", home)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .stdin(Stdio::null());
    command
}

/// The command with a copy of its program in `folder` that everybody may start: the one that was built may be, or lie in, a place of
/// its owner's alone. Copied by another process: what this one has open for writing, or a child of another test, could not be started.
pub fn in_reach(command: &Command, folder: &Path) -> Command {
    let copy = folder.join("program");
    let done = Command::new("install")
        .args(["-m", "755", "-T"])
        .args([command.get_program(), copy.as_os_str()])
        .status();
    assert!(done.unwrap().success());
    let mut copied = Command::new(copy);
    copied.args(command.get_args());
    surrounded(&mut copied, command);
    copied
}

/// The command as the last arguments of another one, which starts it: a shell, strace, unshare.
pub fn below<S: AsRef<OsStr>>(words: impl IntoIterator<Item = S>, command: &Command) -> Command {
    let mut words = words.into_iter();
    let mut starter = Command::new(words.next().unwrap());
    starter
        .args(words)
        .arg(command.get_program())
        .args(command.get_args());
    surrounded(&mut starter, command);
    starter
}

/// Gives `other` the environment and the folder of `command`.
pub fn surrounded(other: &mut Command, command: &Command) {
    other.env_clear().envs(
        command
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    other
        .current_dir(command.get_current_dir().unwrap())
        .stdin(Stdio::null());
}

/// The command below a shell that may mount, and exits with 99 where it cannot: the first lines of `script` have `$0` for `place`.
pub fn mounted(script: &str, place: &Path, command: &Command) -> Command {
    let words = ["unshare", "-rm", "sh", "-c", script]
        .map(OsStr::new)
        .into_iter()
        .chain([place.as_os_str()]);
    below(words, command)
}

/// Runs it. None where nothing can be mounted, which is said.
pub fn where_mounted(script: &str, place: &Path, command: &Command) -> Option<Ran> {
    if_mounted(Ran::of(&mut mounted(script, place, command)))
}

pub fn if_mounted(ran: Ran) -> Option<Ran> {
    if ran.code == Some(99) || ran.err.contains("unshare") {
        let name = std::thread::current().name().unwrap_or_default().to_owned();
        eprintln!(
            "SKIPPED: {name}, because no mount can be had here: {}",
            ran.err.trim()
        );
        return None;
    }
    Some(ran)
}

/// Starts a command that nobody hears.
pub fn start_quietly(command: &mut Command) -> Child {
    let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
    quiet.spawn().unwrap()
}

/// Starts a command whose output is read later.
pub fn start_heard(command: &mut Command) -> Child {
    let heard = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    heard.spawn().unwrap()
}

/// Ctrl-C.
pub fn interrupt(child: &Child) {
    kill_process(Pid::from_child(child), Signal::INT).unwrap();
}

/// What a run of a program printed, and its exit code: none where a signal ended it.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Ran {
    /// Runs a command to its end.
    pub fn of(command: &mut Command) -> Self {
        command.output().unwrap().into()
    }

    /// Runs a command that reads this from standard input.
    pub fn fed(command: &mut Command, input: impl AsRef<[u8]>) -> Self {
        let mut child = start_heard(command.stdin(Stdio::piped()));
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(input.as_ref()).unwrap();
        drop(stdin);
        child.wait_with_output().unwrap().into()
    }

    /// Itself, once its exit code is this one.
    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self}");
        self
    }

    /// Standard output has these words somewhere.
    #[track_caller]
    pub fn out_has(&self, words: &str) -> &Self {
        assert!(self.out.contains(words), "no {words:?} in {self}");
        self
    }

    /// Standard error has these words somewhere.
    #[track_caller]
    pub fn err_has(&self, words: &str) -> &Self {
        assert!(self.err.contains(words), "no {words:?} in {self}");
        self
    }

    /// Standard output as JSON, one value a line.
    #[track_caller]
    pub fn objects(&self) -> Vec<Value> {
        let object = |line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {self}"));
        self.out.lines().map(object).collect()
    }

    /// With a change to both streams.
    pub fn map(self, change: impl Fn(&str) -> String) -> Self {
        Self {
            code: self.code,
            out: change(&self.out),
            err: change(&self.err),
        }
    }
}

impl From<Output> for Ran {
    fn from(done: Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self {
            code: done.status.code(),
            out: text(&done.stdout),
            err: text(&done.stderr),
        }
    }
}

/// Fails unless the text has these words somewhere.
#[track_caller]
pub fn must_have(text: &str, words: &str) {
    assert!(text.contains(words), "no {words:?} in {text}");
}

/// Exit code, standard output, standard error, as a snapshot shows them.
impl fmt::Display for Ran {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let code = self
            .code
            .map_or("signal".to_owned(), |code| code.to_string());
        write!(f, "exit {code}\n--- out\n{}--- err\n{}", self.out, self.err)
    }
}

/// Cargo itself and the system's programs stand before the wrappers of version managers, which look for the real ones in places that a
/// sandbox hides.
pub fn search_path() -> OsString {
    let toolchain = Path::new(env!("CARGO")).parent().unwrap_or(Path::new("/"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/local/bin", "/usr/bin", "/bin"].map(PathBuf::from);
    let folders = [toolchain.to_owned()]
        .into_iter()
        .chain(system)
        .chain(std::env::split_paths(&path));
    std::env::join_paths(folders).unwrap_or(path)
}
