//! What a file defines, and its outline: the lines on which that begins.

use std::ops::ControlFlow;

use tree_sitter::{Node, ParseOptions, Parser};

use crate::language::{self, Grammar, TESTS};

/// A longer text is read by words only.
const LONGEST: usize = 1 << 20;
/// The parser reports after every hundred steps; code takes about one report for 100 bytes.
const BYTES_A_REPORT: usize = 4;
/// Deeper definitions are details.
const DEEPEST: usize = 4;
/// Characters of a line that are shown.
const WIDEST: usize = 100;

/// A definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Definition {
    pub name: String,
    /// The place of its line, from 0.
    pub row: usize,
    /// In how many other definitions it is.
    pub depth: usize,
}

/// What a file defines, in its order. By the grammar of its language; for other languages, and where a parser takes too
/// long, by the first words of lines.
pub(crate) fn definitions(path: &str, text: &str) -> Vec<Definition> {
    let parsed = language::of(path, text)
        .filter(|_| text.len() <= LONGEST)
        .and_then(|grammar| by_grammar(&grammar, text));
    parsed.unwrap_or_else(|| by_words(path, text))
}

/// The outline: each definition's first line, with its number; where `is_terse` says so, only its name. Empty if nothing
/// is defined.
pub(crate) fn outline(
    definitions: &[Definition],
    text: &str,
    is_terse: impl Fn(&Definition) -> bool,
) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut outline = String::new();
    let (mut last, mut names) = (None, 0);
    for definition in definitions
        .iter()
        .filter(|definition| last.replace(definition.row) != Some(definition.row))
    {
        let number = definition.row + 1;
        let is_short = definition.depth + 1 < DEEPEST && is_terse(definition);
        if is_short && names > 0 && names < WIDEST {
            let more = format!(", {number} {}", definition.name);
            names += more.len();
            outline.push_str(&more);
            continue;
        }
        let line = lines
            .get(definition.row)
            .copied()
            .unwrap_or_default()
            .trim();
        let shown: String = line
            .trim_end_matches([' ', '{', ':'])
            .chars()
            .take(WIDEST)
            .collect();
        let shown = if is_short { &definition.name } else { &shown };
        let line = format!("{number}{}{shown}", " ".repeat(definition.depth + 1));
        if !outline.is_empty() {
            outline.push('\n');
        }
        names = if is_short { line.len() } else { 0 };
        outline.push_str(&line);
    }
    outline
}

fn by_grammar(grammar: &Grammar, text: &str) -> Option<Vec<Definition>> {
    let mut parser = Parser::new();
    parser.set_language(&grammar.language).ok()?;
    // Some texts take a parser far longer than their length.
    let mut reports = 1000 + text.len() / BYTES_A_REPORT;
    let mut report = |_: &tree_sitter::ParseState| {
        reports = reports.saturating_sub(1);
        if reports == 0 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let options = ParseOptions::new().progress_callback(&mut report);
    let mut read = |at: usize, _| text.as_bytes().get(at..).unwrap_or_default();
    let tree = parser.parse_with_options(&mut read, None, Some(options))?;
    let mut found = Vec::new();
    let mut cursor = tree.walk();
    // The nodes on the way down that are definitions.
    let mut open: Vec<bool> = Vec::new();
    loop {
        let node = cursor.node();
        let depth = open.iter().filter(|is_open| **is_open).count();
        let name = name_of(grammar, node, text).filter(|_| depth < DEEPEST);
        let is_leaf = name.is_some() && !grammar.nests && node.kind().contains("func");
        let is_definition = name.is_some();
        if let Some((name, row)) = name {
            found.push(Definition { name, row, depth });
        }
        if !is_leaf && cursor.goto_first_child() {
            open.push(is_definition);
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return Some(found);
            }
            open.pop();
        }
    }
}

/// The name of what a node defines, and its row.
fn name_of(grammar: &Grammar, node: Node<'_>, text: &str) -> Option<(String, usize)> {
    let kind = node.kind();
    let field = |name| node.child_by_field_name(name);
    let name = if grammar.definitions.contains(&kind) {
        let body = kind != "mod_item" || field("body").is_some();
        field("name")
            .or_else(|| field("declarator"))
            .or_else(|| field("type"))
            .filter(|_| body)
    } else if grammar.with_body.contains(&kind) {
        field("name").filter(|_| field("body").is_some())
    } else if grammar.with_function.contains(&kind) {
        let value = field("value").or_else(|| field("right"))?;
        let is_function = value.kind().contains("function") || value.kind() == "class";
        field("name")
            .or_else(|| field("left"))
            .or_else(|| field("key"))
            .or_else(|| field("property"))
            .filter(|_| is_function)
    } else if matches!(kind, "call_expression" | "call") && grammar.nests {
        let function = field("function").or_else(|| field("method"))?;
        let function = function.utf8_text(text.as_bytes()).ok()?;
        let first = field("arguments")?.named_child(0)?;
        let is_test = TESTS.contains(&function.split('.').next().unwrap_or(function));
        Some(first).filter(|first| is_test && first.kind().contains("string"))
    } else {
        None
    }?;
    let row = name.start_position().row;
    Some((last_identifier(name.utf8_text(text.as_bytes()).ok()?), row))
}

/// `Guard` of `http::Guard<T>`, `open` of `*open(int)`, `use` of `app.use`.
fn last_identifier(text: &str) -> String {
    let is_of_name = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    let head = text
        .split(['(', '<', '{', '['])
        .find(|part| part.contains(is_of_name))
        .unwrap_or(text);
    head.trim_end_matches(|c| !is_of_name(c))
        .rsplit(|c| !is_of_name(c))
        .next()
        .unwrap_or_default()
        .to_owned()
}

/// Words that may stand before the word that begins a definition.
const BEFORE: [&str; 19] = [
    "pub",
    "public",
    "private",
    "protected",
    "internal",
    "static",
    "export",
    "default",
    "async",
    "abstract",
    "final",
    "open",
    "override",
    "sealed",
    "data",
    "inline",
    "suspend",
    "local",
    "partial",
];
/// Words that begin a definition in many languages.
const BEGIN: [&str; 24] = [
    "def",
    "defp",
    "defmodule",
    "defmacro",
    "class",
    "function",
    "fn",
    "func",
    "fun",
    "sub",
    "module",
    "struct",
    "interface",
    "trait",
    "enum",
    "object",
    "record",
    "type",
    "package",
    "namespace",
    "proc",
    "protocol",
    "extension",
    "@test",
];

fn by_words(path: &str, text: &str) -> Vec<Definition> {
    let end = path.rsplit('.').next().unwrap_or_default();
    let mut is_code = false;
    let lines = text.lines().enumerate().filter_map(|(row, line)| {
        let start = line.trim_start();
        is_code ^= start.starts_with("```");
        let name = match end {
            "md" | "markdown" => line.strip_prefix('#').filter(|_| !is_code)?,
            "toml" | "ini" | "cfg" => line.strip_prefix('[')?,
            "yml" | "yaml" => {
                line.split_once(':')
                    .filter(|_| line.starts_with(char::is_alphabetic))?
                    .0
            }
            "txt" | "rst" | "json" | "lock" | "html" | "css" | "svg" => return None,
            _ => {
                let mut words = start
                    .split_whitespace()
                    .skip_while(|word| BEFORE.contains(word));
                words.next().filter(|word| BEGIN.contains(word))?;
                words.next()?
            }
        };
        let depth = (line.len() - start.len()).min(DEEPEST);
        Some(Definition {
            name: last_identifier(name),
            row,
            depth,
        })
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::{definitions, outline};

    fn check(path: &str, text: &str) -> String {
        outline(&definitions(path, text), text, |_| false)
    }

    #[test]
    fn signatures_are_shown_with_their_lines_below_what_holds_them() {
        insta::assert_snapshot!(check("a.rs", "struct A;\n\nimpl A {\n    fn b(&self) -> u8 {\n        let c = || 1;\n        c()\n    }\n}\n"), @"
        1 struct A;
        3 impl A
        4  fn b(&self) -> u8
        ");
        insta::assert_snapshot!(check("a.py", "@wraps\nclass A(B):\n    def c(self,\n          d):\n        pass\n"), @"
        2 class A(B)
        3  def c(self,
        ");
        insta::assert_snapshot!(check("a.js", "const a = (b) => b;\nvar c = 1;\napp.use = function (d) {\n};\ndescribe('app', () => {});\n"), @"
        1 const a = (b) => b;
        3 app.use = function (d)
        5 describe('app', () => {});
        ");
        insta::assert_snapshot!(check("a.c", "int a;\nstruct b { int c; };\nstatic int\nd(struct b *e)\n{\n}\n"), @"
        2 struct b { int c; };
        4 d(struct b *e)
        ");
    }

    #[test]
    fn every_grammar_finds_a_function() {
        for (path, text) in [
            ("a.rs", "fn f() {}"),
            ("a.py", "def f(): pass"),
            ("a.js", "function f() {}"),
            ("a.ts", "export function f(a: string): void {}"),
            ("a.tsx", "function f() { return <a/>; }"),
            ("a.go", "package a\nfunc f() {}"),
            ("a.c", "int f(void) {}"),
            ("a.hpp", "int f(int);"),
            ("a.java", "class A { int f() { return 1; } }"),
            ("a.rb", "def f; end"),
            ("a.php", "<?php function f() {}"),
            ("a.sh", "f() { :; }"),
            ("bin/a", "#!/usr/bin/env bash\nf() { :; }"),
            ("a.pl", "sub f { 1 }"),
            ("a.kt", "private fun f(): Int"),
        ] {
            assert!(
                definitions(path, text).iter().any(|one| one.name == "f"),
                "{path}"
            );
        }
    }

    #[test]
    fn names_alone_share_lines() {
        let text = "fn a() {}\nfn b() {}\nfn c() {}\n";
        assert_eq!(
            outline(&definitions("a.rs", text), text, |one| one.name != "b"),
            "1 a\n2 fn b() {}\n3 c"
        );
        assert_eq!(
            outline(&definitions("a.rs", text), text, |_| true),
            "1 a, 2 b, 3 c"
        );
    }

    #[test]
    fn prose_and_settings_have_headings() {
        assert_eq!(
            check("a.md", "# One\n```\n# no\n```\n## Two\n"),
            "1 # One\n5 ## Two"
        );
        assert_eq!(check("a.toml", "[a]\nb = 1\n"), "1 [a]");
        assert_eq!(check("a.txt", "def x\n"), "");
    }

    #[test]
    fn a_hostile_text_ends() {
        for (path, part) in [
            ("a.cpp", "<a<"),
            ("a.rb", "<<A\n"),
            ("a.js", "`${"),
            ("a.py", "(["),
            ("a.rs", "fn f("),
        ] {
            definitions(path, &part.repeat(20_000));
        }
    }
}
