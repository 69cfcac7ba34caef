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
    let shown = tree.paths().filter(|path| !path.split('/').any(|name| name.starts_with('.')));
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

    pub(super) fn hear(&mut self, event: &Event) {
        if let Event::ToolCall { id, name, input, .. } = event {
            let paths: Vec<PathBuf> =
                told_to_read(name, input).into_iter().filter_map(|word| self.named(word)).collect();
            self.named.entry(id.clone()).or_default().extend(paths);
        } else if let Event::ToolResult { id, ok, output, .. } = event {
            let named = self.named.remove(id).unwrap_or_default();
            if *ok {
                let lines: Vec<&str> = output.lines().map(str::trim_end).collect();
                let printed = self.files.iter().filter(|(_, first)| is_printed(first, &lines));
                self.seen.extend(printed.map(|(path, _)| path.clone()).chain(named));
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
        let path = self.roots.iter().find_map(|root| path.strip_prefix(root).ok()).unwrap_or(path);
        let path: PathBuf = path.components().filter(|part| *part != Component::CurDir).collect();
        self.files.contains_key(&path).then_some(path)
    }
}

/// Tools number lines, and put the file before each: the end of a line is compared.
fn is_printed(first: &[String], lines: &[&str]) -> bool {
    let found = first.iter().filter(|wanted| lines.iter().any(|line| line.ends_with(wanted.as_str())));
    !first.is_empty() && found.count() * 2 >= first.len()
}

/// What may be paths of files: all texts given to a tool that reads, and what a command line gives to a program that
/// prints, unless the output goes elsewhere.
fn told_to_read<'v>(tool: &str, input: &'v Value) -> Vec<&'v str> {
    if tool.to_lowercase().contains("read") {
        let values = input.as_object().into_iter().flat_map(|all| all.values());
        let texts =
            values.flat_map(|value| value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice));
        return texts.filter_map(Value::as_str).collect();
    }
    let line = input.get("command").or(input.get("cmd")).and_then(Value::as_str).unwrap_or_default();
    let words = line.split(['\n', ';', '|', '&']).map(|part| part.split_whitespace());
    let prints = words.filter(|words| words.clone().next().is_some_and(|name| PRINTERS.contains(&name)));
    let shown =
        prints.filter(|words| !words.clone().any(|word| word.contains('>') && !word.starts_with("2>")));
    shown.flatten().collect()
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the tests write the files that an agent opens")]
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
                (true, "# B\n"),
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
