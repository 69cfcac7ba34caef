//! A setting that makes an unfit build work, written into the user's own file if the person at the terminal wants that.

use std::io::{self, BufRead as _, IsTerminal as _};

use anyhow::Context as _;
use code_commit_report::printable;
use code_commit_settings::add_for_user;

use crate::exit::Failure;
use crate::host::Host;

/// How a remedy names settings: `[TABLE] KEY = VALUE`.
const SETTINGS: &str = "[sandbox] ";

/// Asks, if the remedy names settings and somebody can answer.
pub(super) fn offer(remedy: &str, host: Host<'_>) -> Result<(), Failure> {
    let settings = remedy
        .split('`')
        .find_map(|part| part.strip_prefix(SETTINGS));
    let Some(settings) =
        settings.filter(|_| io::stdin().is_terminal() && io::stderr().is_terminal())
    else {
        return Ok(());
    };
    let shown = printable(settings);
    host.output.error_block(&format!(
        "Write `{SETTINGS}{shown}` into your own configuration? Type yes:"
    ));
    let mut answer = String::new();
    io::stdin()
        .lock()
        .read_line(&mut answer)
        .context("cannot read the answer")?;
    if !answer.trim().eq_ignore_ascii_case("yes") {
        return Ok(());
    }
    let table = SETTINGS.trim_matches(['[', ']', ' ']);
    let path = add_for_user(host.environment, table, settings)
        .context("cannot write your configuration")?;
    host.output.report(&format!(
        "written into {}; try again: code-commit check",
        path.display()
    ));
    Ok(())
}
