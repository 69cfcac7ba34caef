//! The help of every command, from the book's page of them, which is made and not kept.

use std::process::Command;
use std::sync::OnceLock;

use crate::docs::page::{blocks, root, text};

/// What a command prints for `--help`.
#[derive(Debug)]
pub(crate) struct Help {
    /// `code-commit order run`
    pub(crate) command: String,
    pub(crate) lines: Vec<String>,
}

/// All of them, the main one first. Makes the page on the way.
pub(crate) fn helps() -> &'static [Help] {
    static HELPS: OnceLock<Vec<Help>> = OnceLock::new();
    HELPS.get_or_init(|| {
        let made = Command::new(root().join("docs/commands.sh"))
            .arg(env!("CARGO_BIN_EXE_code-commit"))
            .output()
            .unwrap();
        assert!(made.status.success(), "{made:?}");
        let page = text("docs/reference/commands.md".as_ref());
        let headings = page.lines().filter_map(|line| line.strip_prefix("## "));
        let helps = headings.zip(blocks(&page)).map(|(command, block)| Help {
            command: command.to_owned(),
            lines: block.lines,
        });
        helps.collect()
    })
}
