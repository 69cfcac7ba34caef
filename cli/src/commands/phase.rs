//! `code-commit phase`: a builder and a verifier, isolated from each other (S3).

mod init;

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::Path;

use anyhow::anyhow;
use code_commit_report::{Output, phrases};
use code_commit_runs::phase::commands::{CLIENT, SERVER, SOCKET, call, serve};
use code_commit_runs::phase::{self, SPECS};
use code_commit_runs::{Exit, Failure, Host};
use code_commit_settings::Environment;

use crate::args::phase::{Action, PhaseArgs};

/// Runs the subcommand in the current folder.
pub fn run(args: &PhaseArgs, host: Host<'_>) -> Result<Exit, Failure> {
    let output = host.output;
    let root = host.root()?;
    phase::refuse_links(&root)?;
    let needs_number = matches!(args.action, Action::Override(_));
    if needs_number != args.number.is_some() {
        let error = if needs_number {
            anyhow!("trust and reopen need the number of a phase")
        } else {
            anyhow!("only trust and reopen take the number of a phase")
        };
        let help = match (args.action, args.number) {
            (Action::Run | Action::Init | Action::Check, Some(number)) => {
                format!("to run that phase: code-commit phase {number}")
            }
            _ => "code-commit phase trust N, code-commit phase reopen N".to_owned(),
        };
        return Err(Failure::new(Exit::Usage, error).help(help));
    }
    match args.action {
        Action::Init => init::run(&root, output),
        Action::Check => check(&root, output),
        Action::Override(word) => {
            phase::overrule(&root, word, args.number.unwrap_or_default(), host)
        }
        Action::Run | Action::Number(_) => phase::run(&root, &args.request(), host),
    }
}

/// The program under another name: `abl-cmd`, which a role calls, or the process that runs its commands. `None` for its
/// own name.
pub fn applet(mut words: impl Iterator<Item = OsString>, environment: &Environment) -> Option<u8> {
    match Path::new(&words.next()?).file_name()?.to_str()? {
        CLIENT => Some(client(words, environment)),
        SERVER => {
            let socket = words.next()?;
            Some(serve(Path::new(&socket), environment, io::stdout()))
        }
        _ => None,
    }
}

/// `abl-cmd NAME [ARGS…]` runs in the sandbox: it passes its arguments on to the harness outside and prints the
/// answer. The exit code is the command's.
fn client(words: impl Iterator<Item = OsString>, environment: &Environment) -> u8 {
    let argv: Vec<String> = words
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let no_socket = || {
        io::Error::other(format!(
            "{SOCKET} is not set: abl-cmd works only for the roles of a phase"
        ))
    };
    let socket = environment.text(SOCKET).ok_or_else(no_socket);
    match socket.and_then(|socket| call(socket, &argv)) {
        Ok(answer) => {
            // Ignore EPIPE: the reader is gone.
            let _ = io::stdout().lock().write_all(answer.output.as_bytes());
            answer.code
        }
        Err(error) => {
            let _ = writeln!(io::stderr().lock(), "abl-cmd: {error}");
            125
        }
    }
}

/// The problems of the specs, one line each.
fn check(root: &Path, output: &Output) -> Result<Exit, Failure> {
    phase::config(root)?;
    let specs = phase::specs(root)?;
    if specs.is_empty() {
        return Err(Failure::refused(
            anyhow!("there are no specs in {SPECS}"),
            "code-commit phase init makes a first one",
        ));
    }
    let mut found = 0;
    let mut tell = |file: &str, line: usize, message: &str| {
        found += 1;
        output.report(&format!("{file}:{line}: {message}"));
        output
            .object(&serde_json::json!({"event": "finding", "file": file, "line": line, "message": message}));
    };
    for (number, text) in &specs {
        let file = format!("{SPECS}/phase{number}.md");
        for finding in code_commit_loop_phase::spec::check(text, *number) {
            tell(&file, finding.line, &finding.message);
        }
    }
    if found == 0 {
        output.report(&format!(
            "{} checked: no findings",
            phrases::count(specs.len() as u64, "spec")
        ));
    }
    output
        .object(&serde_json::json!({"event": "checked", "specs": specs.len(), "findings": found}));
    Ok(if found == 0 { Exit::Done } else { Exit::Failed })
}
