//! Splits a command line into arguments by the quoting rules of a POSIX shell, without a shell.
//!
//! Whatever only a shell interprets (operators, variables, patterns, braces, `~`, comments, keywords, builtins) is an
//! error unless it is quoted; double quotes protect neither `$` nor backquotes, as in a shell. To run it, use `sh -c '…'`.
//!
//! ```
//! use code_commit_parser::words::{SplitError, split_command};
//!
//! assert_eq!(split_command("make 'all tests'").unwrap(), ["make", "all tests"]);
//! assert_eq!(split_command("./build.sh && ./test.sh"), Err(SplitError::Operator('&')));
//! ```

use std::iter::Peekable;
use std::str::Chars;

use rable::ast::{Node, NodeKind};

/// Why a string is not a plain command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SplitError {
    /// It contains no words.
    Empty,
    /// An unclosed quote.
    OpenQuote(char),
    /// A backslash with nothing after it.
    LoneBackslash,
    /// A NUL character, which no argument can contain.
    Nul,
    /// Longer than Linux allows for an argument.
    TooLong,
    /// Something that only a shell interprets. In single quotes, it is an ordinary argument.
    Operator(char),
    /// A pattern or a brace expansion: a shell would replace the word by others.
    Pattern(char),
    /// A variable that a shell would replace by its value.
    Variable,
    /// A `~` that a shell would replace by the home folder.
    Home,
    /// A `#` that begins a comment.
    Comment,
    /// A variable that a shell would set for the command after it.
    Assignment,
    /// A shell builtin.
    Builtin(&'static str),
    /// A keyword of shells where a program should be.
    Keyword,
}

impl std::fmt::Display for SplitError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Empty => f.write_str("is empty"),
            Self::OpenQuote(quote) => write!(f, "has a {quote} that is not closed"),
            Self::Nul => f.write_str("has a NUL character"),
            Self::TooLong => f.write_str("has 128 KiB or more, which no program can be given"),
            Self::LoneBackslash => f.write_str("ends with a backslash"),
            Self::Operator(sign) => write!(
                f,
                "has the shell operator `{}`, but no shell runs it: give one command, or put the sign in single quotes",
                sign.escape_debug()
            ),
            Self::Pattern(sign) => write!(
                f,
                "has an unquoted `{sign}`, but no shell expands it: quote the word, or run the line with sh -c '…'"
            ),
            Self::Variable => f.write_str(
                "has a variable, but no shell expands it: run the line with sh -c '…', or put the word in single quotes",
            ),
            Self::Home => f.write_str(
                "has an unquoted `~`, but no shell expands it: write the path in full, or quote the word",
            ),
            Self::Comment => f.write_str("has a comment: remove it, or quote the `#`"),
            Self::Assignment => f.write_str("sets a variable before the command, as only a shell can: put `env` first"),
            Self::Builtin(name) => write!(
                f,
                "begins with `{name}`, which is built into shells and is no program: run the line with sh -c '…'"
            ),
            Self::Keyword => f.write_str(
                "begins with a keyword of shells: run the line with sh -c '…', or quote the first word",
            ),
        }
    }
}

impl std::error::Error for SplitError {}

/// Linux's `MAX_ARG_STRLEN`, without the NUL at the end.
const LONGEST: usize = (128 << 10) - 1;

/// Commands that change the shell that runs them. Some systems have programs with these names,
/// which do nothing.
const BUILTINS: [&str; 17] = [
    ".", ":", "alias", "cd", "eval", "exec", "export", "local", "popd", "pushd", "readonly", "set",
    "shopt", "source", "trap", "ulimit", "unset",
];

/// Words are separated by spaces and tabs. `'…'` is literal; in `"…"`, a backslash escapes `"`, `\`,
/// `$` and a backquote; elsewhere it escapes anything. A backslash at the end of a line removes the
/// line break. Nothing is expanded.
///
/// Text that a shell would interpret is an error: its author meant that, but the program would
/// receive the text itself. In single quotes, it is an ordinary argument; double quotes do not
/// protect `$` and backquotes.
pub fn split_command(command: &str) -> Result<Vec<String>, SplitError> {
    if command.contains('\0') {
        return Err(SplitError::Nul);
    }
    let command = without_end(command).trim_start_matches(AROUND);
    if command.len() > LONGEST {
        return Err(SplitError::TooLong);
    }
    let mut words = Vec::new();
    let mut chars = command.chars().peekable();
    while chars.peek().is_some() {
        while chars.next_if(|c| is_blank(*c)).is_some() {}
        let Some(Word { text, bare }) = word(&mut chars)? else {
            continue;
        };
        for_a_shell(&bare, words.is_empty()).map_or(Ok(()), Err)?;
        words.push(text);
    }
    if words.is_empty() {
        return Err(SplitError::Empty);
    }
    one_plain_command(command).map(|()| words)
}

/// The grammar of bash has the last word: it must see one command made of nothing but words. It
/// sees no nested substitutions, which could exhaust the stack: those have been refused before.
fn one_plain_command(command: &str) -> Result<(), SplitError> {
    let parsed = rable::parse(command, true).map_err(|_| SplitError::Keyword)?;
    let [
        Node {
            kind:
                NodeKind::Command {
                    assignments,
                    words,
                    redirects,
                },
            ..
        },
    ] = parsed.as_slice()
    else {
        return Err(SplitError::Keyword);
    };
    if !(assignments.is_empty() && redirects.is_empty()) {
        return Err(SplitError::Assignment);
    }
    let is_literal = |part: &Node| matches!(part.kind, NodeKind::WordLiteral { .. });
    let is_plain = |word: &Node| matches!(&word.kind, NodeKind::Word { parts, .. } if parts.iter().all(is_literal));
    if words.iter().all(is_plain) {
        Ok(())
    } else {
        Err(SplitError::Pattern('{'))
    }
}

/// White space before and after a command.
const AROUND: [char; 4] = [' ', '\t', '\r', '\n'];

/// The command without trailing white space; if a backslash escapes its first character, that one
/// stays.
fn without_end(command: &str) -> &str {
    let said = command.trim_end_matches(AROUND);
    let backslashes = said.len() - said.trim_end_matches('\\').len();
    // All of them are a single byte long.
    if backslashes % 2 == 1 {
        command.get(..=said.len()).unwrap_or(command)
    } else {
        said
    }
}

/// One argument.
#[derive(Default)]
struct Word {
    /// As the program receives it.
    text: String,
    /// Its unquoted part, with a NUL for everything quoted: the part that a shell would interpret.
    bare: String,
}

impl Word {
    fn push_bare(&mut self, c: char) {
        self.text.push(c);
        self.bare.push(c);
    }
}

/// What a shell would make of a word. Decided from the word alone: `--include=*.c`, the `?` in a
/// URL and the brackets of `test.py::test[a-b]` match no existing files, so a shell would leave them
/// unchanged, too.
fn for_a_shell(bare: &str, is_first: bool) -> Option<SplitError> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let sets = |(name, _): &(&str, &str)| {
        name.starts_with(|c: char| !c.is_ascii_digit()) && name.chars().all(is_name)
    };
    let assigned = bare.split_once('=').filter(sets);
    if is_first && assigned.is_some() {
        return Some(SplitError::Assignment);
    }
    if let Some(builtin) = BUILTINS.iter().find(|name| is_first && **name == bare) {
        return Some(SplitError::Builtin(builtin));
    }
    // bash replaces it in all that looks like an assignment, even in an argument.
    let mut homes = assigned
        .map_or("", |(_, value)| value)
        .split(':')
        .chain([bare]);
    if homes.any(|text| text.starts_with('~')) {
        return Some(SplitError::Home);
    }
    if bare.starts_with('#') {
        return Some(SplitError::Comment);
    }
    let is_left_alone = bare.starts_with('-') || bare.contains("://") || bare.contains("::");
    // `[` and `[]` are no patterns.
    let is_bracketed = bare
        .split_once('[')
        .is_some_and(|(_, behind)| behind.rfind(']') > Some(0));
    let is_pattern = |c: &char| matches!(c, '*' | '?') || (*c == '[' && is_bracketed);
    bare.chars()
        .find(|c| !is_left_alone && is_pattern(c))
        .map(SplitError::Pattern)
}

/// word = (plain | `\` any | quoted)+; `None` if there were only escaped line breaks.
fn word(chars: &mut Peekable<Chars<'_>>) -> Result<Option<Word>, SplitError> {
    let (mut word, mut is_word) = (Word::default(), false);
    while let Some(c) = chars.next_if(|c| !is_blank(*c)) {
        if c == '\\' && chars.next_if_eq(&'\n').is_some() {
            continue;
        }
        is_word = true;
        if matches!(c, '\'' | '"' | '\\') {
            word.bare.push('\0');
        }
        match c {
            '\'' => single_quoted(chars, &mut word.text)?,
            '"' => double_quoted(chars, &mut word.text)?,
            '\\' => word
                .text
                .push(chars.next().ok_or(SplitError::LoneBackslash)?),
            '|' | '&' | ';' | '<' | '>' | '(' | ')' | '\n' => return Err(SplitError::Operator(c)),
            '$' if matches!(after(chars), Some('\'' | '"')) => return Err(SplitError::Operator(c)),
            plain => word.push_bare(literal(plain, chars)?),
        }
    }
    Ok(is_word.then_some(word))
}

/// A character where shells substitute: everywhere but in single quotes. A `$` stands for itself
/// only before what can be no name of a variable.
fn literal(c: char, chars: &Peekable<Chars<'_>>) -> Result<char, SplitError> {
    match (c, after(chars)) {
        ('`', _) | ('$', Some('(' | '{' | '[')) => Err(SplitError::Operator(c)),
        ('$', Some('_' | '@' | '*' | '#' | '?' | '-' | '$' | '!')) => Err(SplitError::Variable),
        ('$', Some(next)) if next.is_ascii_alphanumeric() => Err(SplitError::Variable),
        _ => Ok(c),
    }
}

/// The next character, behind line breaks that backslashes remove.
fn after(chars: &Peekable<Chars<'_>>) -> Option<char> {
    let mut ahead = chars.clone();
    loop {
        match ahead.next() {
            Some('\\') if ahead.next_if_eq(&'\n').is_some() => {}
            next => return next,
        }
    }
}

fn single_quoted(chars: &mut Peekable<Chars<'_>>, word: &mut String) -> Result<(), SplitError> {
    loop {
        match chars.next().ok_or(SplitError::OpenQuote('\''))? {
            '\'' => return Ok(()),
            c => word.push(c),
        }
    }
}

fn double_quoted(chars: &mut Peekable<Chars<'_>>, word: &mut String) -> Result<(), SplitError> {
    let open = SplitError::OpenQuote('"');
    loop {
        match chars.next().ok_or(open)? {
            '"' => return Ok(()),
            '\\' => {
                let escaped = chars.next().ok_or(open)?;
                if escaped == '\n' {
                    continue;
                }
                if !matches!(escaped, '"' | '\\' | '$' | '`') {
                    word.push('\\');
                }
                word.push(escaped);
            }
            c => word.push(literal(c, chars)?),
        }
    }
}

/// A line break between two words would end a shell's command: it is an operator, not white space.
fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t')
}

#[cfg(test)]
mod tests;
