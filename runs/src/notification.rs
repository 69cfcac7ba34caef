//! Tells a person who has turned to other work that something here has ended, or needs them.

use std::ffi::OsString;
use std::time::Duration;

use code_commit_report::Output;
use code_commit_runner::{Cancel, Command, Confinement, Env};
use code_commit_settings::{CommandLine, Files, Layer};

use crate::exit::Exit;
use crate::site::Site;
use crate::trusted::Trusted;

/// How long the command may take.
const LONGEST: Duration = Duration::from_mins(1);
/// No shorter time can be configured, so that a quick run need not read the configuration again.
const SHORTEST: Duration = Duration::from_secs(1);
/// How a program of the desktop finds it.
const DESKTOP: [&str; 4] = [
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XDG_RUNTIME_DIR",
];

/// The command of a key, with a message as its last argument. It works outside of every sandbox, so only trusted files can
/// name it. A failure is a warning, and never more.
pub(crate) fn call(
    (key, line): (&str, &CommandLine),
    message: &str,
    trusted: &Trusted,
    cancel: &Cancel,
    output: &Output,
) {
    let Some((name, arguments)) = line.argv.split_first() else {
        return;
    };
    let program = match trusted.programs().find(name) {
        Ok(program) => program.into_os_string(),
        Err(error) => return output.warn(&format!("{key}: {error}")),
    };
    let words = arguments
        .iter()
        .map(String::as_str)
        .chain([message])
        .map(OsString::from);
    let argv = [program].into_iter().chain(words);
    let env = Env::allowed(
        trusted.environment().all().clone(),
        &DESKTOP.map(OsString::from),
    );
    let command = Command {
        deadline: Some(LONGEST),
        ..Command::new(argv, trusted.root(), env)
    };
    match code_commit_runner::run(&command, &Confinement::off(), cancel, &mut |_, _| {}) {
        Ok(done) if done.ended.exit_code() == Some(0) => {}
        Ok(done) => output.warn(&format!("{key}: `{}` {}", line.text, done.ended)),
        Err(error) => output.warn(&format!("{key}: {error}")),
    }
}

/// Tells the end of a long run. Whoever has pressed Ctrl-C knows.
pub(crate) fn ended(name: &str, exit: Exit, took: Duration, site: &Site<'_>, cancel: &Cancel) {
    if took < SHORTEST || cancel.is_set() {
        return;
    }
    // Whatever is wrong with a file kept the run from starting.
    let Ok(files) = Files::read(&site.root, site.host.environment) else {
        return;
    };
    let settings = files
        .settings(site.host.environment, Layer::default())
        .settings;
    let Some(line) = settings
        .notify_command
        .value
        .filter(|_| took >= settings.notify_after.value)
    else {
        return;
    };
    let message = format!("{}: {name}", verdict(exit));
    call(
        ("notify.command", &line),
        &message,
        &site.trusted,
        cancel,
        site.host.output,
    );
}

fn verdict(exit: Exit) -> &'static str {
    match exit {
        Exit::Done => "done",
        Exit::Failed => "failed",
        Exit::NeedsPerson => "needs a person",
        Exit::Unfit => "unfit",
        Exit::ModelUnavailable => "no model replies",
        Exit::Usage
        | Exit::Refused
        | Exit::TreeNotRestored
        | Exit::NothingToDo
        | Exit::Fault
        | Exit::Interrupted
        | Exit::Handed(_) => "stopped by an error",
    }
}
