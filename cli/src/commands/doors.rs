//! `code-commit acp` and `code-commit mcp`: serve editors and agents on standard input and output.

use std::io::IsTerminal as _;

use anyhow::anyhow;
use code_commit_report::Output;
use code_commit_runs::{Exit, Failure, Host};

use crate::args::{AcpArgs, McpArgs};

pub fn acp(args: &AcpArgs, host: Host<'_>) -> Result<Exit, Failure> {
    tell_a_person("an editor", host.output);
    code_commit_acp::serve(&args.settings.layer, host)
}

pub fn mcp(args: &McpArgs, host: Host<'_>) -> Result<Exit, Failure> {
    let root = &args.root;
    if !root.is_dir() {
        let error = anyhow!("there is no folder {}", root.display());
        return Err(Failure::refused(
            error,
            "name the project's folder with --root",
        ));
    }
    tell_a_person("an agent", host.output);
    let host = Host {
        folder: Ok(root),
        ..host
    };
    code_commit_mcp::serve(&args.settings.layer, host)
}

/// Whoever typed the command waits for a prompt that never comes.
fn tell_a_person(who: &str, output: &Output) {
    if std::io::stdin().is_terminal() {
        output.note(&format!(
            r#"waiting for messages from {who}; to make a change from here: code-commit -m "…""#
        ));
    }
}
