//! `code-commit acp` and `code-commit mcp`: serve editors and agents on standard input and output.

use code_commit_runs::{Exit, Failure, Host};

use crate::args::{AcpArgs, McpArgs};

pub fn acp(args: &AcpArgs, host: Host<'_>) -> Result<Exit, Failure> {
    code_commit_acp::serve(&args.settings.layer, host)
}

pub fn mcp(args: &McpArgs, host: Host<'_>) -> Result<Exit, Failure> {
    let host = Host {
        folder: Ok(&args.root),
        ..host
    };
    code_commit_mcp::serve(&args.settings.layer, host)
}
