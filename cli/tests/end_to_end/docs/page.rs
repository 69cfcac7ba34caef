//! A page of the documentation: its fenced blocks, in order.

use std::path::{Path, PathBuf};

/// A fenced block.
#[derive(Debug)]
pub(crate) struct Block {
    /// What stands behind the opening fence: `console`, `sh`, `toml`.
    pub(crate) info: String,
    /// The lines between the fences.
    pub(crate) lines: Vec<String>,
    /// The index of the first of them in the page.
    pub(crate) at: usize,
    /// The file that the line before it asks to make: "Save this as `NAME`:".
    pub(crate) save_as: Option<String>,
}

/// A command of a `console` block and what it is said to print.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) command: String,
    pub(crate) expected: Vec<String>,
    /// The index of the first expected line in the page.
    pub(crate) at: usize,
}

/// The project's root.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_owned()
}

/// README.md, the program's own, and every page below `docs/`, relative to the root, sorted.
pub(crate) fn all() -> Vec<PathBuf> {
    let root = root();
    let mut pages = vec![PathBuf::from("README.md"), PathBuf::from("cli/README.md")];
    let mut folders = vec![root.join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path.strip_prefix(&root).unwrap().to_owned());
            }
        }
    }
    pages.sort();
    pages
}

/// The text of a page.
pub(crate) fn text(page: &Path) -> String {
    let path = root().join(page);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The fenced blocks of a page. A block ends at a fence of at least the length that opened it.
pub(crate) fn blocks(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<(&str, Block)> = None;
    let mut last_prose = "";
    for (index, line) in text.lines().enumerate() {
        match &mut open {
            Some((fence, _)) if line.starts_with(*fence) && line.trim_matches('`').is_empty() => {
                blocks.extend(open.take().map(|(_, block)| block));
            }
            Some((_, block)) => block.lines.push(line.to_owned()),
            None if line.starts_with("```") => {
                let info = line.trim_start_matches('`');
                let fence = line.strip_suffix(info).unwrap_or(line);
                let save_as = saved_as(std::mem::take(&mut last_prose)).map(str::to_owned);
                open = Some((
                    fence,
                    Block {
                        info: info.to_owned(),
                        lines: Vec::new(),
                        at: index + 1,
                        save_as,
                    },
                ));
            }
            None if line.trim().is_empty() => {}
            None => last_prose = line,
        }
    }
    assert!(open.is_none(), "a block is never closed");
    blocks
}

/// `NAME` of "… Save this as `NAME`:".
fn saved_as(line: &str) -> Option<&str> {
    line.split_once("ave this as `")?.1.strip_suffix("`:")
}

/// The commands of a `console` block: `$ ` begins one, `> ` goes on with it, other lines are what it prints.
pub(crate) fn steps(block: &Block) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for (offset, line) in block.lines.iter().enumerate() {
        let at = block.at + offset + 1;
        if let Some(command) = line.strip_prefix("$ ") {
            steps.push(Step {
                command: command.to_owned(),
                expected: Vec::new(),
                at,
            });
            continue;
        }
        let Some(step) = steps.last_mut() else {
            panic!("line {at}: a console block begins with `$ `")
        };
        match line.strip_prefix("> ") {
            Some(more) if step.expected.is_empty() => {
                step.command = format!("{}\n{more}", step.command);
                step.at = at;
            }
            _ => step.expected.push(line.clone()),
        }
    }
    steps
}
