#![doc = include_str!("../README.md")]

use std::iter::Peekable;
use std::str::Chars;

/// Why a string is not a plain command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SplitError {
    /// It contains no words.
    Empty,
    /// An unclosed quote.
    OpenQuote(char),
    /// A backslash with nothing after it.
    LoneBackslash,
    /// A NUL character, which no argument can contain.
    Nul,
    /// A word that is longer than Linux allows for an argument.
    TooLong,
    /// Something that only a shell interprets. Quoted, it is an ordinary argument.
    Operator(char),
    /// A pattern that a shell would replace by file names.
    Pattern(char),
    /// A variable that a shell would replace by its value.
    Variable,
    /// A `~` that a shell would replace by the home folder.
    Home,
    /// A variable that a shell would set for the command after it.
    Assignment,
    /// A shell builtin.
    Builtin(&'static str),
}

impl std::fmt::Display for SplitError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Empty => f.write_str("is empty"),
            Self::OpenQuote(quote) => write!(f, "has a {quote} that is not closed"),
            Self::Nul => f.write_str("has a NUL character"),
            Self::TooLong => f.write_str("has a word of 128 KiB or more, which no program can be given"),
            Self::LoneBackslash => f.write_str("ends with a backslash"),
            Self::Operator(sign) => write!(
                f,
                "has the shell operator `{}`, but no shell runs it: give one command, or quote the sign",
                sign.escape_debug()
            ),
            Self::Pattern(sign) => write!(
                f,
                "has an unquoted `{sign}`, but no shell expands it: quote the word, or run the line with sh -c '…'"
            ),
            Self::Variable => f.write_str(
                "has an unquoted variable, but no shell expands it: run the line with sh -c '…', or quote the word",
            ),
            Self::Home => f.write_str(
                "has an unquoted `~`, but no shell expands it: write the path in full, or quote the word",
            ),
            Self::Assignment => f.write_str("sets a variable before the command, as only a shell can: put `env` first"),
            Self::Builtin(name) => write!(
                f,
                "begins with `{name}`, which is built into shells and is no program: run the line with sh -c '…'"
            ),
        }
    }
}

impl std::error::Error for SplitError {}

/// Linux's `MAX_ARG_STRLEN`, without the NUL at the end.
const LONGEST_WORD: usize = (128 << 10) - 1;

/// Commands that change the shell that runs them. Some systems have programs with these names,
/// which do nothing.
const BUILTINS: [&str; 17] = [
    ".", ":", "alias", "cd", "eval", "exec", "export", "local", "popd", "pushd", "readonly", "set", "shopt",
    "source", "trap", "ulimit", "unset",
];

/// Words are separated by white space. `'…'` is literal; in `"…"`, a backslash escapes `"`, `\`,
/// `$` and a backquote; elsewhere it escapes anything. A backslash at the end of a line removes the
/// line break. Nothing is expanded, and `#` does not begin a comment.
///
/// Unquoted text that a shell would interpret is an error: its author meant that, but the program
/// would receive the text itself. Quoted, it is an ordinary argument.
pub fn split_command(command: &str) -> Result<Vec<String>, SplitError> {
    if command.contains('\0') {
        return Err(SplitError::Nul);
    }
    let mut words = Vec::new();
    let mut chars = without_end(command).trim_start_matches(AROUND).chars().peekable();
    while chars.peek().is_some() {
        while chars.next_if(|c| is_blank(*c)).is_some() {}
        let Some(Word { text, bare }) = word(&mut chars)? else { continue };
        for_a_shell(&bare, words.is_empty()).map_or(Ok(()), Err)?;
        words.push(text);
    }
    if words.iter().any(|word| word.len() > LONGEST_WORD) {
        return Err(SplitError::TooLong);
    }
    if words.is_empty() { Err(SplitError::Empty) } else { Ok(words) }
}

/// White space before and after a command.
const AROUND: [char; 4] = [' ', '\t', '\r', '\n'];

/// The command without trailing white space; if a backslash escapes its first character, that one
/// stays.
fn without_end(command: &str) -> &str {
    let said = command.trim_end_matches(AROUND);
    let backslashes = said.len() - said.trim_end_matches('\\').len();
    // All of them are a single byte long.
    if backslashes % 2 == 1 { command.get(..=said.len()).unwrap_or(command) } else { said }
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

/// What a shell would make of a word. Decided from the word alone: `--include=*.c` and the `?` in a
/// URL match no existing files, so a shell would leave them unchanged, too.
fn for_a_shell(bare: &str, is_first: bool) -> Option<SplitError> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let sets = |(name, _): (&str, &str)| {
        name.starts_with(|c: char| !c.is_ascii_digit()) && name.chars().all(is_name)
    };
    if is_first && bare.split_once('=').is_some_and(sets) {
        return Some(SplitError::Assignment);
    }
    if let Some(builtin) = BUILTINS.iter().find(|name| is_first && **name == bare) {
        return Some(SplitError::Builtin(builtin));
    }
    if bare == "~" || bare.starts_with("~/") {
        return Some(SplitError::Home);
    }
    if bare.split('$').skip(1).any(|behind| behind.starts_with(is_name)) {
        return Some(SplitError::Variable);
    }
    let is_left_alone = bare.starts_with('-') || bare.contains("://");
    bare.chars().find(|c| !is_left_alone && matches!(c, '*' | '?')).map(SplitError::Pattern)
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
            '\\' => word.text.push(chars.next().ok_or(SplitError::LoneBackslash)?),
            '|' | '&' | ';' | '<' | '>' | '(' | ')' | '`' | '\n' => return Err(SplitError::Operator(c)),
            '$' if matches!(chars.peek(), Some('(' | '{')) => return Err(SplitError::Operator(c)),
            plain => word.push_bare(plain),
        }
    }
    Ok(is_word.then_some(word))
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
            c => word.push(c),
        }
    }
}

/// A line break between two words would end a shell's command: it is an operator, not white space.
fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(command: &str, words: &[&str]) {
        assert_eq!(split_command(command).unwrap(), words, "{command}");
    }

    #[test]
    fn quoting_is_that_of_a_posix_shell() {
        check("python -m pytest -q", &["python", "-m", "pytest", "-q"]);
        check("  a \t b  ", &["a", "b"]);
        check(r"sh -c 'a && b | c' x", &["sh", "-c", "a && b | c", "x"]);
        check(r#"a "b \" \\ \$ \x" c\ d"#, &["a", r#"b " \ $ \x"#, "c d"]);
        check("a '' \"\"", &["a", "", ""]);
        check("a'b'\"c\"d", &["abcd"]);
        check("grep -E ^x$ a#b # no", &["grep", "-E", "^x$", "a#b", "#", "no"]);
        check("echo '$HOME' \"*.py\" \\~", &["echo", "$HOME", "*.py", "~"]);
        check("a \"b\nc\"", &["a", "b\nc"]);
        check("a b\\ ", &["a", "b "]);
        check("a \\\n", &["a"]);
        check("a \\\n  b\\\nc \"d\\\ne\" 'f\\\ng'", &["a", "bc", "de", "f\\\ng"]);
    }

    #[test]
    fn what_only_a_shell_could_do_is_refused() {
        for (command, sign) in [
            ("a && b", '&'),
            ("a | b", '|'),
            ("a; b", ';'),
            ("a > b", '>'),
            ("a<b", '<'),
            ("a $(b)", '$'),
            ("a ${b}", '$'),
            ("a `b`", '`'),
            ("(a)", '('),
            ("a\nb", '\n'),
        ] {
            assert_eq!(split_command(command), Err(SplitError::Operator(sign)), "{command}");
        }
    }

    #[test]
    fn what_a_shell_would_have_replaced_is_refused_unless_it_is_quoted() {
        use SplitError::{Assignment, Builtin, Home, Pattern, Variable};
        for (command, error) in [
            ("FOO=1 sh x", Assignment),
            ("_a1='b c' sh x", Assignment),
            ("FOO= make", Assignment),
            ("cd src", Builtin("cd")),
            (". ./env.sh", Builtin(".")),
            ("export A=1", Builtin("export")),
            ("ls *.txt", Pattern('*')),
            ("./*.sh", Pattern('*')),
            ("ls src/'a b'?.c", Pattern('?')),
            ("ls ~/x", Home),
            ("~/x --flag", Home),
            ("ls ~", Home),
            ("$HOME/x", Variable),
            ("ls a$b", Variable),
            ("echo $1 $$", Variable),
        ] {
            assert_eq!(split_command(command), Err(error), "{command}");
            let quoted: Vec<String> = command.split(' ').map(|word| format!("\"{word}\"")).collect();
            assert_eq!(
                split_command(&quoted.join(" ").replace('$', "\\$")).map(|words| words.len()),
                Ok(quoted.len())
            );
        }
    }

    #[test]
    fn what_a_shell_would_leave_as_it_is_is_taken_as_it_is() {
        check("grep \"a*\" 'b?' c\\*", &["grep", "a*", "b?", "c*"]);
        check("grep -r --include=*.rs ^x$ .", &["grep", "-r", "--include=*.rs", "^x$", "."]);
        check("pytest t.py::test_a[1-b]", &["pytest", "t.py::test_a[1-b]"]);
        check("curl http://127.0.0.1:1/x?y=1", &["curl", "http://127.0.0.1:1/x?y=1"]);
        check("env A=1 make B=2", &["env", "A=1", "make", "B=2"]);
        check("git show HEAD~1 HEAD^ a$ $", &["git", "show", "HEAD~1", "HEAD^", "a$", "$"]);
        check("make cd . [ ] {a,b}", &["make", "cd", ".", "[", "]", "{a,b}"]);
        check("./a=b 1=2 -x=~/y", &["./a=b", "1=2", "-x=~/y"]);
        check("'cd' x", &["cd", "x"]);
    }

    #[test]
    fn what_is_not_closed_is_refused() {
        assert_eq!(split_command("a 'b"), Err(SplitError::OpenQuote('\'')));
        assert_eq!(split_command("a \"b\\\""), Err(SplitError::OpenQuote('"')));
        assert_eq!(split_command("a \\"), Err(SplitError::LoneBackslash));
        assert_eq!(split_command(" \t"), Err(SplitError::Empty));
        assert_eq!(split_command("a '\0'"), Err(SplitError::Nul));
    }

    #[test]
    fn a_word_that_linux_starts_no_program_with_is_refused() {
        let longest = "x".repeat(131_071);
        check(&format!("true {longest}"), &["true", &longest]);
        assert_eq!(split_command(&format!("true '{longest}x'")), Err(SplitError::TooLong));
    }

    proptest! {
        #[test]
        fn any_words_come_back_from_their_quoted_form(words in prop::collection::vec("[ -~\n]{0,12}", 1..6)) {
            let quoted: Vec<String> = words.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''"))).collect();
            prop_assert_eq!(split_command(&quoted.join(" ")).unwrap(), words);
        }

        #[test]
        fn no_text_panics(text in ".*") {
            let _ = split_command(&text);
        }
    }
}
