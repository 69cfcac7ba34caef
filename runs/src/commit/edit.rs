//! `--edit`: the supervisor writes the query in an editor.

use std::ffi::OsString;
use std::fs;
use std::io::{self, IsTerminal as _};

use anyhow::{Context as _, anyhow};
use code_commit_runner::{Cancel, Command, Confinement, Env, Leftovers, Streams};
use code_commit_settings::{Environment, Keys, Settings};

use crate::exit::Failure;
use crate::trusted::Trusted;

const EDITOR: &str = "vi";

/// Opens `file`, relative to `root`, in `$VISUAL` or `$EDITOR`, and waits until it is closed. Requires a
/// terminal.
pub(super) fn open(
    trusted: &Trusted,
    file: &str,
    settings: &Settings,
    environment: &Environment,
    keys: &Keys,
) -> Result<(), Failure> {
    if !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
        return Err(Failure::refused(
            anyhow!("--edit needs a terminal"),
            format!("write {file} before, and leave --edit away"),
        ));
    }
    let root = trusted.root();
    let path = root.join(file);
    let folder = path.parent().unwrap_or(root);
    fs::create_dir_all(folder)
        .with_context(|| format!("cannot make {}", folder.display()))
        .map_err(|error| Failure::refused(error, "see who may write there"))?;
    let mut argv = editor(environment)?.into_iter().map(OsString::from);
    let program = argv.next().unwrap_or_default();
    let program = trusted.under(settings).program(program)?;
    let argv = [program.into_os_string()]
        .into_iter()
        .chain(argv)
        .chain([path.into_os_string()]);
    let env = surroundings(environment, keys);
    // An editor may leave its window open, with other files in it.
    let (streams, leftovers) = (Streams::Inherited, Leftovers::Leave);
    let command = Command {
        streams,
        leftovers,
        ..Command::new(argv, root, env)
    };
    let cancel = Cancel::new().context("cannot watch for Ctrl-C")?;
    let done = code_commit_runner::run(&command, &Confinement::off(), &cancel, &mut |_, _| {})
        .map_err(|error| {
            Failure::refused(
                error,
                "set VISUAL or EDITOR to a program that can be started",
            )
        })?;
    if done.ended.exit_code() == Some(0) {
        return Ok(());
    }
    Err(Failure::refused(
        anyhow!("the editor {}", done.ended),
        "nothing was sent; set VISUAL or EDITOR to another one",
    ))
}

/// `$VISUAL` or `$EDITOR`, which may include arguments: `code --wait`.
fn editor(environment: &Environment) -> Result<Vec<String>, Failure> {
    let wanted = environment
        .text("VISUAL")
        .or_else(|| environment.text("EDITOR"))
        .unwrap_or(EDITOR);
    let words = shlex::split(wanted).filter(|words| !words.is_empty());
    words.ok_or_else(|| {
        Failure::refused(
            anyhow!("`{wanted}` is no command"),
            "set VISUAL or EDITOR to a program and its arguments",
        )
    })
}

/// The editor is the user's own program: it gets the whole environment except the keys.
fn surroundings(environment: &Environment, keys: &Keys) -> Env {
    let mut env = Env::default();
    for (name, value) in environment.all() {
        if !keys.is_variable(name) {
            env.set(name, value);
        }
    }
    env
}
