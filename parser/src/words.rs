//! Splits a command line into arguments by the quoting rules of a POSIX shell, without a shell.
//!
//! Whatever only a shell interprets (operators, variables, patterns, braces, `~`, comments, keywords, builtins) is an
//! error unless it is quoted; double quotes protect neither `$` nor backquotes, as in a shell. To run it, use `sh -c '…'`.
//!
//! ```
//! use code_commit_parser::words::{SplitError, split_command};
//!
//! assert_eq!(split_command("make 'all tests'").unwrap(), ["make", "all tests"]);
//! assert_eq!(split_command("./build.sh && ./test.sh"), Err(SplitError::NeedsShell("&".to_owned())));
//! ```

use std::iter::Peekable;
use std::str::Chars;

/// Why a string is not a plain command.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    /// A sign or a word that only a shell interprets. In single quotes, it is an ordinary argument.
    NeedsShell(String),
}

impl std::fmt::Display for SplitError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Empty => f.write_str("is empty"),
            Self::OpenQuote(quote) => write!(f, "has a {quote} that is not closed"),
            Self::Nul => f.write_str("has a NUL character"),
            Self::TooLong => f.write_str("has 128 KiB or more, which no program can be given"),
            Self::LoneBackslash => f.write_str("ends with a backslash"),
            Self::NeedsShell(what) => write!(
                f,
                "needs a shell for `{}`, but none runs it: put it in single quotes, or run the line with sh -c '…'",
                what.escape_debug()
            ),
        }
    }
}

impl std::error::Error for SplitError {}

/// Linux's `MAX_ARG_STRLEN`, without the NUL at the end.
const LONGEST: usize = (128 << 10) - 1;

/// First words that are no programs: keywords, and commands that change the shell that runs them. Some systems have
/// programs with the names of the latter, which do nothing.
const NO_PROGRAMS: &str = " ! [[ case coproc do done elif else esac fi for function if select then time until while { } \
. : alias cd eval exec export local popd pushd readonly set shopt source trap ulimit unset ";

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
    let bare: Vec<String> = bare_words(command)?
        .iter()
        .map(|word| word.replace(LINE_BREAK, ""))
        .collect();
    if bare.iter().any(|word| word.starts_with('#')) {
        return Err(SplitError::NeedsShell("#".to_owned()));
    }
    // What it could not split has been refused.
    let mut words = shlex::split(command).unwrap_or_default();
    let mut bare = bare.into_iter();
    let mut is_first = true;
    let mut fault = None;
    words.retain(|word| {
        let bare = bare.next().unwrap_or_default();
        if !bare.is_empty() && needs_shell(&bare, std::mem::replace(&mut is_first, false)) {
            fault.get_or_insert_with(|| word.clone());
        }
        !bare.is_empty()
    });
    match fault {
        Some(word) => Err(SplitError::NeedsShell(word)),
        None if words.is_empty() => Err(SplitError::Empty),
        None => Ok(words),
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

/// Stands for what is quoted, in a bare word.
const QUOTED: char = '\0';
/// Stands for a line break that a backslash removes.
const LINE_BREAK: char = '\u{1}';

/// The words as a shell interprets them: without what quotes protect.
fn bare_words(command: &str) -> Result<Vec<String>, SplitError> {
    let mut words = vec![String::new()];
    let mut quote = None;
    let mut chars = command.chars().peekable();
    while let Some(c) = chars.next() {
        let bare = match (quote, c) {
            (Some('\''), '\'') | (Some('"'), '"') => {
                quote = None;
                continue;
            }
            (Some('\''), _) => continue,
            (_, '\\') => match (chars.next(), quote) {
                (None, Some(open)) => return Err(SplitError::OpenQuote(open)),
                (None, None) => return Err(SplitError::LoneBackslash),
                (Some(_), Some(_)) => continue,
                (Some('\n'), None) => LINE_BREAK,
                (Some(_), None) => QUOTED,
            },
            (_, '`') => return Err(SplitError::NeedsShell(c.to_string())),
            (_, '$') if expands(after(&chars), quote) => {
                return Err(SplitError::NeedsShell(c.to_string()));
            }
            (Some(_), _) => continue,
            (None, '\'' | '"') => {
                quote = Some(c);
                QUOTED
            }
            (None, '|' | '&' | ';' | '<' | '>' | '(' | ')' | '\n') => {
                return Err(SplitError::NeedsShell(c.to_string()));
            }
            (None, ' ' | '\t') => {
                words.push(String::new());
                continue;
            }
            (None, plain) => plain,
        };
        if let Some(word) = words.last_mut() {
            word.push(bare);
        }
    }
    if let Some(open) = quote {
        return Err(SplitError::OpenQuote(open));
    }
    words.retain(|word| !word.is_empty());
    Ok(words)
}

/// Whether a `$` before this character is more than itself.
fn expands(next: Option<char>, quote: Option<char>) -> bool {
    next.is_some_and(|next| {
        let opens = quote.is_none() && matches!(next, '\'' | '"');
        opens || next.is_ascii_alphanumeric() || "({[_@*#?-$!".contains(next)
    })
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

/// Whether a shell would make something else of a word. Decided from the word alone: `--include=*.c`, the `?` in a
/// URL and the brackets of `test.py::test[a-b]` match no existing files, so a shell would leave them
/// unchanged, too.
fn needs_shell(bare: &str, is_first: bool) -> bool {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let sets = |(name, _): &(&str, &str)| {
        let name = name.strip_suffix('+').unwrap_or(name);
        name.starts_with(|c: char| !c.is_ascii_digit()) && name.chars().all(is_name)
    };
    let assigned = bare.split_once('=').filter(sets).map(|(_, value)| value);
    if is_first && (assigned.is_some() || NO_PROGRAMS.contains(&format!(" {bare} "))) {
        return true;
    }
    // bash replaces it in all that looks like an assignment, even in an argument.
    let mut homes = assigned.unwrap_or_default().split(':').chain([bare]);
    if homes.any(|text| text.starts_with('~')) {
        return true;
    }
    let braced = bare
        .split_once('{')
        .and_then(|(_, behind)| behind.rsplit_once('}'));
    if braced.is_some_and(|(inside, _)| inside.contains(',') || inside.contains("..")) {
        return true;
    }
    let is_left_alone = bare.starts_with('-') || bare.contains("://") || bare.contains("::");
    // `[` and `[]` are no patterns.
    let is_bracketed = bare
        .split_once('[')
        .is_some_and(|(_, behind)| behind.rfind(']') > Some(0));
    !is_left_alone && (bare.contains(['*', '?']) || is_bracketed)
}

#[cfg(test)]
mod tests;
