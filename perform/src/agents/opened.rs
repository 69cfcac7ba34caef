//! Which files of a folder an agent has opened: the prompt held one whole, a tool was told to read it, or a tool
//! printed it.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Component, Path, PathBuf};

use code_commit_agent::Event;
use code_commit_dir::Links;
use serde_json::Value;

use crate::agents::snapshot::Tree;

/// Programs that print the files that they are given. Of what others print, the text counts.
const PRINTERS: [&str; 12] =
    ["cat", "bat", "batcat", "head", "tail", "less", "more", "nl", "sed", "awk", "tac", "xxd"];
/// What may stand before the program of a command line.
const SHELLS: [&str; 4] = ["sh", "bash", "zsh", "dash"];

/// A file counts as printed if half of its first lines, at most so many, are in the output of one tool.
const FIRST_LINES: usize = 20;
/// Of a longer file nothing is known but its name.
const LONGEST: u64 = 4 << 20;

/// The files below a folder, relative to it, with their texts; `None` for one that is no text. Skips names that begin
/// with a dot.
pub fn texts_below(folder: &Path) -> io::Result<BTreeMap<String, Option<String>>> {
    let tree = Tree::whole(folder, &[])?;
    let is_shown = |path: &&str| !path.split('/').any(|name| name.starts_with('.'));
    let text = |path: &str| {
        let bytes = code_commit_dir::read(&folder.join(path), LONGEST, Links::Followed).ok()??;
        String::from_utf8(bytes).ok()
    };
    Ok(tree.paths().filter(is_shown).map(|path| (path.to_owned(), text(path))).collect())
}

/// Watches the tools of an agent in one turn.
#[derive(Default)]
pub(super) struct Opened {
    /// The project, as we name it and as an agent may.
    roots: [PathBuf; 2],
    /// By their paths relative to the root, with the first lines.
    files: BTreeMap<PathBuf, Vec<String>>,
    seen: BTreeSet<PathBuf>,
    /// What running tools were told to read. A result is an error or leaves it seen.
    named: BTreeMap<String, Vec<PathBuf>>,
}

impl Opened {
    /// Of the files in `folder` below `root`, which is where the agent works.
    pub(super) fn new(root: &Path, folder: Option<&Path>, prompt: &str) -> io::Result<Self> {
        let Some(folder) = folder else { return Ok(Self::default()) };
        let mut opened = Self { roots: [root.to_owned(), root.canonicalize()?], ..Self::default() };
        for (name, text) in texts_below(&root.join(folder))? {
            let (path, text) = (folder.join(name), text.unwrap_or_default());
            if !text.trim().is_empty() && prompt.contains(text.trim()) {
                opened.seen.insert(path.clone());
            }
            let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
            opened.files.insert(path, lines.take(FIRST_LINES).map(str::to_owned).collect());
        }
        Ok(opened)
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "only tools open files")]
    pub(super) fn hear(&mut self, event: &Event) {
        match event {
            Event::ToolCall { id, name, input, .. } => {
                let words = told_to_read(name, input);
                let paths: Vec<PathBuf> = words.iter().filter_map(|word| self.named(word)).collect();
                self.named.entry(id.clone()).or_default().extend(paths);
            }
            Event::ToolResult { id, ok: true, output, .. } => {
                self.seen.extend(self.named.remove(id).unwrap_or_default());
                let lines: Vec<&str> = output.lines().map(str::trim_end).collect();
                let printed = self.files.iter().filter(|(_, first)| is_printed(first, &lines));
                self.seen.extend(printed.map(|(path, _)| path.clone()));
            }
            Event::ToolResult { id, .. } => drop(self.named.remove(id)),
            _ => {}
        }
    }

    /// Those that were opened, and those that were not. What a tool without a result was told to read is opened.
    pub(super) fn finish(mut self) -> (Vec<String>, Vec<String>) {
        self.seen.extend(self.named.into_values().flatten());
        let all = self.files.into_keys();
        let (seen, unseen): (Vec<_>, Vec<_>) = all.partition(|path| self.seen.contains(path));
        let names = |paths: Vec<PathBuf>| paths.iter().map(|path| path.display().to_string()).collect();
        (names(seen), names(unseen))
    }

    fn named(&self, word: &str) -> Option<PathBuf> {
        let path = Path::new(word);
        let below =
            self.roots.iter().find_map(|root| path.strip_prefix(root).ok()).unwrap_or(path).components();
        let path: PathBuf = below.filter(|part| *part != Component::CurDir).collect();
        self.files.contains_key(&path).then_some(path)
    }
}

/// Tools number lines, and search tools name the file before each: the end of a line is compared.
fn is_printed(first: &[String], lines: &[&str]) -> bool {
    let found = first.iter().filter(|wanted| lines.iter().any(|line| line.ends_with(wanted.as_str())));
    !first.is_empty() && found.count() * 2 >= first.len()
}

/// The words of a call that may be paths of files to read: all texts given to a tool that reads, and what a command
/// line has a program print.
fn told_to_read(tool: &str, input: &Value) -> Vec<String> {
    let texts = input.as_object().into_iter().flat_map(|all| all.values());
    let texts = texts.flat_map(|value| value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice));
    if tool.to_lowercase().contains("read") {
        return texts.filter_map(Value::as_str).map(str::to_owned).collect();
    }
    let line = ["command", "cmd"].iter().find_map(|name| input.get(name)?.as_str()).unwrap_or_default();
    line.split(['\n', ';', '|', '&', '(', ')']).flat_map(printed_by).map(str::to_owned).collect()
}

/// The arguments of a simple command, if it prints files and nothing but errors is redirected.
fn printed_by(command: &str) -> Vec<&str> {
    let words =
        command.split(|c: char| c.is_whitespace() || "'\"`".contains(c)).filter(|word| !word.is_empty());
    let name = |word: &str| word.rsplit('/').next().unwrap_or(word).to_owned();
    let mut words = words.skip_while(|word| word.starts_with('-') || SHELLS.contains(&name(word).as_str()));
    let prints = words.next().is_some_and(|program| PRINTERS.contains(&name(program).as_str()));
    let arguments: Vec<&str> = words.collect();
    let is_redirected = arguments.iter().any(|word| word.contains('>') && !word.starts_with("2>"));
    if prints && !is_redirected { arguments } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What of `specs/a.md` and `specs/deep/b.md` was opened by a tool with this input, result and output.
    fn check(tool: &str, input: &Value, (ok, output): (bool, &str)) -> String {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("specs/deep")).unwrap();
        for (path, text) in [("a.md", "# A\n\nfirst\nsecond\n"), ("deep/b.md", "# B\n"), (".gitkeep", "")] {
            std::fs::write(root.path().join("specs").join(path), text).unwrap();
        }
        let input = input.to_string().replace("ROOT", &root.path().display().to_string());
        let input: Value = serde_json::from_str(&input).unwrap();
        let mut opened = Opened::new(root.path(), Some(Path::new("specs")), "do A").unwrap();
        let id = || "1".to_owned();
        opened.hear(&Event::ToolCall { id: id(), name: tool.to_owned(), argument: None, input });
        let output = output.to_owned();
        opened.hear(&Event::ToolResult { id: id(), ok, message: None, output });
        let (seen, unseen) = opened.finish();
        assert_eq!(seen.len() + unseen.len(), 2);
        seen.join(" ")
    }

    #[test]
    fn a_file_is_opened_by_a_tool_that_reads_it_or_prints_it() {
        let table = [
            ("Read", json!({ "file_path": "ROOT/specs/a.md" }), (true, ""), "specs/a.md"),
            ("Read", json!({ "file_path": "ROOT/specs/a.md" }), (false, "no"), ""),
            ("Read", json!({ "file_path": "ROOT/specs" }), (true, ""), ""),
            ("Write", json!({ "file_path": "specs/a.md" }), (true, ""), ""),
            (
                "read_many_files",
                json!({ "include": ["./specs/a.md", "specs/deep/b.md"] }),
                (true, ""),
                "specs/a.md specs/deep/b.md",
            ),
            (
                "Bash",
                json!({ "command": "cd . && cat specs/a.md 2>/dev/null | head" }),
                (true, ""),
                "specs/a.md",
            ),
            (
                "command_execution",
                json!({ "command": "/bin/bash -lc 'sed -n 1,9p specs/deep/b.md'" }),
                (true, ""),
                "specs/deep/b.md",
            ),
            ("Bash", json!({ "command": "cat specs/a.md > /dev/null" }), (true, ""), ""),
            (
                "Bash",
                json!({ "command": "echo cat specs/a.md; ls specs/a.md; wc -l specs/a.md" }),
                (true, "3 specs/a.md"),
                "",
            ),
            (
                "Bash",
                json!({ "command": "find specs -exec more {} +" }),
                (true, "# A\n\nfirst\nsecond\n# B"),
                "specs/a.md specs/deep/b.md",
            ),
            ("Grep", json!({ "pattern": "first" }), (true, "specs/a.md:3:first"), ""),
            (
                "Grep",
                json!({ "pattern": "." }),
                (true, "specs/a.md:1:# A\nspecs/a.md:3:first\n"),
                "specs/a.md",
            ),
        ];
        for (tool, input, result, wanted) in table {
            assert_eq!(check(tool, &input, result), wanted, "{tool} {input}");
        }
    }

    #[test]
    fn a_file_that_the_prompt_holds_whole_is_opened() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("a.md"), "# A\nfirst\n").unwrap();
        let opened = |prompt| Opened::new(root.path(), Some(Path::new("")), prompt).unwrap().finish().0;
        assert_eq!(opened("From `a.md`:\n\n# A\nfirst\n\n# Specs"), ["a.md"]);
        assert!(opened("# A").is_empty());
    }
}
