//! What a file defines, and its outline: the lines on which that begins.

use std::sync::OnceLock;

use regex::bytes::{Regex, RegexBuilder};

/// Deeper definitions are details.
const DEEPEST: usize = 4;
/// Characters of a line that are shown.
pub(crate) const WIDEST: usize = 100;
/// Bytes of a line that are searched: what defines something says so at its beginning.
const SEARCHED: usize = 400;

/// A definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Definition {
    pub name: String,
    /// The place of its line, from 0.
    pub row: usize,
    /// In how many other definitions it is, as its indentation shows.
    pub depth: usize,
}

/// How the lines look on which a language defines something.
struct Language {
    endings: &'static [&'static str],
    /// What its first group that matches holds is the name.
    pattern: &'static str,
    compiled: OnceLock<Option<Regex>>,
}

const fn language(endings: &'static [&'static str], pattern: &'static str) -> Language {
    Language {
        endings,
        pattern,
        compiled: OnceLock::new(),
    }
}

/// The patterns by the ends of names, in the manner of git's userdiff; the last one is for all other languages. `NAME`
/// stands for an identifier, `BEFORE` for words like `public`.
static LANGUAGES: [Language; 11] = [
    language(
        &["txt", "rst", "json", "lock", "html", "css", "svg"],
        r"[^\s\S]",
    ),
    language(&["md", "markdown"], r"^\#+\s*(.+)"),
    language(&["toml", "ini", "cfg"], r"^\[+(.+)"),
    language(&["yml", "yaml"], r"^([A-Za-z][^:]*):"),
    language(
        &["rs"],
        r#"^\s*(?:pub(?:\([^)]*\))?\s+)?(?:(?:default|async|unsafe|extern(?:\s+"[^"]*")?|const)\s+)*
            (?: (?:fn|struct|enum|union|trait|type|macro_rules!|static(?:\s+mut)?)\s+(NAME)
              | mod\s+(NAME)\s*(?:\{|$)
              | (NAME)\s*:.*=
              | impl\b.*\sfor\s+[&(]?(?:NAME::)*(NAME)
              | impl(?:<[^>]*>+)?\s+[&(]?(?:NAME::)*(NAME) )"#,
    ),
    language(
        &[
            "js", "jsx", "mjs", "cjs", "ts", "mts", "cts", "tsx", "vue", "svelte",
        ],
        r#"^\s*(?:BEFORE)(?:function\s*\*?|class|interface|enum|namespace|module|type)\s+(NAME)
         | ^\s*(?:BEFORE(?:const|let|var)\s+|(?:NAME\.)+|BEFORE)(NAME)\s*(?:[?!]?:[^=(]+)?[=:]\s*(?:async\s*)?
           (?:function\b|class\b|NAME\s*=>|(?:<[^(]*>)?\([^()]*\)\s*(?::[^=]*)?=>|\([^)]*$)
         | ^\s+(?:BEFORE)(?:[gs]et\s+)?[*\#]?(NAME)\s*(?:<[^>]*>)?\([^;]*\)\s*(?::[^;=]*)?\{
         | ^\s+(?:BEFORE)(NAME)\??(?:<[^>]*>)?\(.*\)\s*:\s*[^={]+;$
         | ^\s*(?:describe|it|test|context|suite)(?:\.NAME)*\(\s*["'`].*?(NAME)[^\w"'`]*["'`]"#,
    ),
    language(
        &["go"],
        r"^(?:func\s+(?:\([^)]*\)\s*)?|type\s+)(NAME) | ^\s+(NAME)(?:\[.*\])?\s+(?:struct|interface)\s*\{",
    ),
    language(
        &[
            "c", "h", "cc", "cpp", "cxx", "hh", "hpp", "hxx", "ipp", "inl", "m", "mm", "cu",
        ],
        r"^\s*(?:BEFORE)(?:typedef\s+|template\s*<.*>\s*)*(?:struct|union|class|enum(?:\s+class|\s+struct)?)\s+
           (?:[A-Z_]+(?:\(.*?\))?\s+)*(?:NAME::)*(NAME)(?:<.*>)?\s*(?:final\s*)?(?::[^:;][^;]*)?(?:\{.*)?$
         | ^\s*\#\s*define\s+(NAME)\(
         | ^\s*(?:inline\s+)?namespace\s+(?:NAME::)*(NAME)
         | ^\s*(?:using|concept)\s+(NAME)\s*=
         | ^\s*typedef\s.*?(NAME)\s*(?:\[.*\])?;
         | ^\}\s*(NAME)\s*;
         | ^(?:NAME::)*~?(NAME)\s*\([^;]*$
         | ^\s*(?:template\s*<.*>\s*)?(?:\[\[.*\]\]\s*)?[A-Za-z_][\w:<>,&*~\s\[\]]*?[\s*&>](?:NAME(?:<[^(]*>)?::)*~?(NAME|operator\W+)\s*\(
         | ^\s+(?:explicit\s+|constexpr\s+|virtual\s+)*(?:NAME::)*~?(NAME)\s*\(.*\)[^;(]*\{",
    ),
    language(
        &["java", "cs", "dart", "groovy", "gradle"],
        r"^\s*(?:@NAME(?:\(.*?\))?\s+)*(?:BEFORE)(?:class|@?interface|enum|record|struct|namespace|mixin|extension)\s+(NAME)
         | ^\s*(?:[@\[]NAME(?:\(.*?\))?\]?\s+)*[A-Za-z_][\w.<>\[\],?&\s]*[\w>\]?]\s+(NAME)\s*(?:<.*>)?\(
         | ^\s+([A-Z]\w*)\s*\([^;]*\)[^;]*\{",
    ),
    language(
        &["sh", "bash", "zsh", "bats", "ksh"],
        r#"^\s*(?:function\s+)?([\w:.-]+)\s*\(\s*\) | ^\s*function\s+([\w:.-]+) | ^@test\s+["'].*?(NAME)[^\w"']*["']"#,
    ),
    language(
        &[],
        r#"^\s*(?:BEFORE)(?:async\s+)?
           (?:defp?|defmodule|defmacro|class|function|fn|func|fun|sub|module|struct|interface|trait|enum|object|record|type
             |package|namespace|proc|protocol|extension|actor|impl|@test)\s+
           (?:<[^>]*>\s*)?&?(?:NAME(?:\.|::|\\))*(NAME)
         | ^\s*(?:describe|it|test|context|should|specify|scenario)[\s(]+["'].*?(NAME)[^\w"']*["']"#,
    ),
];
const NAME: &str = r"[\w$\x80-\xff]+";
const BEFORE: &str = r"(?:(?:pub|public|private|protected|internal|static|export|default|declare|async|abstract|final|open
    |override|sealed|data|inline|suspend|local|partial|readonly|case|implicit|unsafe)\s+)*";
/// The program of a script without an ending, by a word of its first line, and the ending that it stands for.
const SCRIPTS: [(&str, &str); 3] = [("node", "js"), ("deno", "ts"), ("sh", "sh")];

/// Words that begin a statement and no definition.
const STATEMENTS: [&str; 20] = [
    "if", "for", "foreach", "while", "switch", "catch", "return", "else", "new", "throw", "delete",
    "case", "await", "yield", "goto", "assert", "do", "in", "lock", "elif",
];
/// What is no name where a block follows.
const NO_NAMES: [&str; 13] = [
    "if", "for", "foreach", "while", "switch", "catch", "return", "function", "sizeof", "with",
    "do", "using", "defined",
];

impl Language {
    fn of(path: &str, text: &str) -> Option<&'static Self> {
        let name = path.rsplit('/').next().unwrap_or(path);
        let program = text.lines().next().filter(|line| line.starts_with("#!"));
        let script = || {
            let program = program.unwrap_or_default();
            SCRIPTS.iter().find(|(word, _)| program.contains(word))
        };
        let ending = name.rsplit_once('.').map(|(_, ending)| ending);
        let ending = ending
            .or_else(|| script().map(|(_, ending)| *ending))
            .unwrap_or_default();
        LANGUAGES
            .iter()
            .find(|one| one.endings.contains(&ending))
            .or(LANGUAGES.last())
    }

    /// The name of what a line defines.
    fn name<'l>(&self, line: &'l str) -> Option<&'l str> {
        let compile = || {
            let pattern = self.pattern.replace("BEFORE", BEFORE).replace("NAME", NAME);
            RegexBuilder::new(&pattern)
                .unicode(false)
                .ignore_whitespace(true)
                .build()
                .ok()
        };
        let pattern = self.compiled.get_or_init(compile).as_ref()?;
        let line = line.get(..line.floor_char_boundary(SEARCHED))?;
        let found = pattern.captures(line.as_bytes())?;
        let name = found.iter().skip(1).flatten().next()?;
        let name = line.get(name.range())?;
        let first = line
            .trim_start()
            .split(|c: char| !c.is_alphanumeric())
            .next();
        (!STATEMENTS.contains(&first?) && !NO_NAMES.contains(&name)).then_some(name)
    }
}

/// What a file defines, in its order, as its lines look. Takes time in proportion to its length.
pub(crate) fn definitions(path: &str, text: &str) -> Vec<Definition> {
    let Some(language) = Language::of(path, text) else {
        return Vec::new();
    };
    let is_prose = language.endings.contains(&"md");
    let mut is_fenced = false;
    // The indentations of the definitions that a line is in.
    let mut around: Vec<usize> = Vec::new();
    let mut found = Vec::new();
    for (row, line) in text.lines().enumerate() {
        let start = line.trim_start();
        is_fenced ^= is_prose && start.starts_with("```");
        let Some(name) = language.name(line).filter(|_| !is_fenced) else {
            continue;
        };
        let indentation = line.len() - start.len();
        while around.last().is_some_and(|last| *last >= indentation) {
            around.pop();
        }
        let depth = around.len();
        around.push(indentation);
        if depth < DEEPEST {
            let name = last_identifier(name);
            found.push(Definition { name, row, depth });
        }
    }
    found
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
    let mut names = 0;
    for definition in definitions {
        let number = definition.row + 1;
        let is_short = definition.depth + 1 < DEEPEST && is_terse(definition);
        if is_short && names > 0 && names < WIDEST {
            let more = format!(", {number} {}", definition.name);
            names += more.len();
            outline.push_str(&more);
            continue;
        }
        let line = lines.get(definition.row).copied().unwrap_or_default();
        let line = line.trim().trim_end_matches([' ', '{', ':']);
        let shown = if is_short {
            definition.name.clone()
        } else {
            line.chars().take(WIDEST).collect()
        };
        let line = format!("{number}{}{shown}", " ".repeat(definition.depth + 1));
        if !outline.is_empty() {
            outline.push('\n');
        }
        names = if is_short { line.len() } else { 0 };
        outline.push_str(&line);
    }
    outline
}

/// The last word of a heading or of the text of a test.
fn last_identifier(text: &str) -> String {
    let is_of_name = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    let text = text.trim_end_matches(|c| !is_of_name(c));
    text.rsplit(|c| !is_of_name(c))
        .next()
        .unwrap_or_default()
        .to_owned()
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
    fn every_pattern_finds_a_function() {
        for (path, text) in [
            ("a.rs", "fn f() {}"),
            ("a.py", "def f(): pass"),
            ("a.js", "function f() {}"),
            ("a.ts", "export function f(a: string): void {}"),
            ("a.tsx", "function f() { return <a/>; }"),
            ("a.go", "package a\nfunc f() {}"),
            ("a.c", "int f(void) {}"),
            ("a.hpp", "int f(int);"),
            ("a.java", "class A {\n    int f() {}\n}"),
            ("a.rb", "def f; end"),
            ("a.php", "<?php\nfunction f() {}"),
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
