//! Which files of a folder an agent has opened: its prompt held one whole, or a tool was told to read it or printed it.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Component, Path, PathBuf};

use code_commit_agent::Event;
use code_commit_dir::Links;
use serde_json::Value;

use crate::agents::snapshot::Tree;

/// Programs that print the files that they are given. Of what others print, the text counts.
const PRINTERS: [&str; 6] = ["cat", "head", "tail", "less", "nl", "sed"];
/// A file was printed if the output of one tool has half of its first lines, of at most so many.
const FIRST_LINES: usize = 20;
/// Of a longer file only the name is known.
const LONGEST: u64 = 4 << 20;

/// The files below a folder, relative to it, with their texts; `None` for one that is no text. Skips names that begin
/// with a dot.
pub fn texts_below(folder: &Path) -> io::Result<BTreeMap<String, Option<String>>> {
    let text = |path: &str| {
        let bytes = code_commit_dir::read(&folder.join(path), LONGEST, Links::Followed).ok()??;
        String::from_utf8(bytes).ok()
    };
    let tree = Tree::whole(folder, &[])?;
    let shown = tree
        .paths()
        .filter(|path| !path.split('/').any(|name| name.starts_with('.')));
    Ok(shown.map(|path| (path.to_owned(), text(path))).collect())
}

/// Watches the tools of an agent in one turn.
#[derive(Default)]
pub(super) struct Opened {
    /// The project, as we name it and as an agent may.
    roots: [PathBuf; 2],
    /// By their paths relative to the root, with the first lines.
    files: BTreeMap<PathBuf, Vec<String>>,
    seen: BTreeSet<PathBuf>,
    /// What running tools were told to read.
    named: BTreeMap<String, Vec<PathBuf>>,
}

impl Opened {
    /// Of the files in `folder` below `root`, where the agent works.
    pub(super) fn new(root: &Path, folder: Option<&Path>, prompt: &str) -> io::Result<Self> {
        let Some(folder) = folder else {
            return Ok(Self::default());
        };
        let mut opened = Self {
            roots: [root.to_owned(), root.canonicalize()?],
            ..Self::default()
        };
        for (name, text) in texts_below(&root.join(folder))? {
            let (path, text) = (folder.join(name), text.unwrap_or_default());
            if !text.trim().is_empty() && prompt.contains(text.trim()) {
                opened.seen.insert(path.clone());
            }
            let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
            opened
                .files
                .insert(path, lines.take(FIRST_LINES).map(str::to_owned).collect());
        }
        Ok(opened)
    }

    pub(super) fn hear(&mut self, event: &Event) {
        if let Event::ToolCall {
            id, name, input, ..
        } = event
        {
            let paths: Vec<PathBuf> = told_to_read(name, input)
                .into_iter()
                .filter_map(|word| self.named(word))
                .collect();
            self.named.entry(id.clone()).or_default().extend(paths);
        } else if let Event::ToolResult { id, ok, output, .. } = event {
            let named = self.named.remove(id).unwrap_or_default();
            if *ok {
                let lines: Vec<&str> = output.lines().map(str::trim_end).collect();
                let printed = self
                    .files
                    .iter()
                    .filter(|(_, first)| is_printed(first, &lines));
                self.seen
                    .extend(printed.map(|(path, _)| path.clone()).chain(named));
            }
        }
    }

    /// Those that were opened, and those that were not. What a tool without a result was told to read is opened.
    pub(super) fn finish(mut self) -> (Vec<String>, Vec<String>) {
        self.seen.extend(self.named.into_values().flatten());
        let names = self.files.keys().map(|path| path.display().to_string());
        names.partition(|name| self.seen.contains(Path::new(name)))
    }

    fn named(&self, word: &str) -> Option<PathBuf> {
        let path = Path::new(word);
        let path = self
            .roots
            .iter()
            .find_map(|root| path.strip_prefix(root).ok())
            .unwrap_or(path);
        let path: PathBuf = path
            .components()
            .filter(|part| *part != Component::CurDir)
            .collect();
        self.files.contains_key(&path).then_some(path)
    }
}

/// Tools number lines, and put the file before each: the end of a line is compared.
fn is_printed(first: &[String], lines: &[&str]) -> bool {
    let found = first
        .iter()
        .filter(|wanted| lines.iter().any(|line| line.ends_with(wanted.as_str())));
    !first.is_empty() && found.count() * 2 >= first.len()
}

/// What may be paths of files: all texts given to a tool that reads, and what a command line gives to a program that
/// prints, unless the output goes elsewhere.
fn told_to_read<'v>(tool: &str, input: &'v Value) -> Vec<&'v str> {
    if tool.to_lowercase().contains("read") {
        let values = input.as_object().into_iter().flat_map(|all| all.values());
        let texts = values.flat_map(|value| {
            value
                .as_array()
                .map_or(std::slice::from_ref(value), Vec::as_slice)
        });
        return texts.filter_map(Value::as_str).collect();
    }
    let line = input
        .get("command")
        .or(input.get("cmd"))
        .and_then(Value::as_str)
        .unwrap_or_default();
    let words = line
        .split(['\n', ';', '|', '&'])
        .map(|part| part.split_whitespace());
    let prints = words.filter(|words| {
        words
            .clone()
            .next()
            .is_some_and(|name| PRINTERS.contains(&name))
    });
    let shown = prints.filter(|words| {
        !words
            .clone()
            .any(|word| word.contains('>') && !word.starts_with("2>"))
    });
    shown.flatten().collect()
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "the tests write the files that an agent opens"
)]
mod tests;
