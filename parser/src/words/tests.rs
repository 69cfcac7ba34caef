#![expect(
    clippy::disallowed_methods,
    reason = "the reference is the shells themselves"
)]

use std::path::Path;
use std::process::Command;

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
    check("grep -E ^x$ a#b", &["grep", "-E", "^x$", "a#b"]);
    check("echo '$HOME' \"*.py\" \\~", &["echo", "$HOME", "*.py", "~"]);
    check("a \"b\nc\"", &["a", "b\nc"]);
    check("a b\\ ", &["a", "b "]);
    check("a \\\n", &["a"]);
    check(
        "a \\\n  b\\\nc \"d\\\ne\" 'f\\\ng'",
        &["a", "bc", "de", "f\\\ng"],
    );
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
        (r#"test -n "$(grep DONE a.txt)""#, '$'),
        (r#"test -n "`grep DONE a.txt`""#, '`'),
        (r#"a "${b}""#, '$'),
        (r#"a "$[1]""#, '$'),
        ("a $'b'", '$'),
        ("a $\"b\"", '$'),
        ("a \"$\\\n(b)\"", '$'),
        ("(a)", '('),
        ("a\nb", '\n'),
    ] {
        assert_eq!(
            split_command(command),
            Err(SplitError::NeedsShell(sign.to_string())),
            "{command}"
        );
    }
}

#[test]
fn what_a_shell_would_have_replaced_is_refused_unless_it_is_quoted() {
    for (command, what) in [
        ("FOO=1 sh x", "FOO=1"),
        ("_a1='b c' sh x", "_a1=b c"),
        ("FOO= make", "FOO="),
        ("cd src", "cd"),
        (". ./env.sh", "."),
        ("export A=1", "export"),
        ("ls *.txt", "*.txt"),
        ("./*.sh", "./*.sh"),
        ("ls src/'a b'?.c", "src/a b?.c"),
        ("ls [ab].txt", "[ab].txt"),
        ("ls x{a,b}", "x{a,b}"),
        ("ls {1..3}", "{1..3}"),
        ("./build.sh # quick", "#"),
        ("#x", "#"),
        ("! true", "!"),
        ("time make", "time"),
        ("if true", "if"),
        ("[[ -f x ]]", "[["),
        ("{ true", "{"),
        ("coproc x", "coproc"),
        ("ls ~root ~/x", "~root"),
        ("make A=~/x", "A=~/x"),
        ("make A=x:~", "A=x:~"),
        ("ls ~/x", "~/x"),
        ("~/x --flag", "~/x"),
        ("ls ~", "~"),
        ("$HOME/x", "$"),
        ("ls a$b", "$"),
        ("echo $1 $$", "$"),
    ] {
        assert_eq!(
            split_command(command),
            Err(SplitError::NeedsShell(what.to_owned())),
            "{command}"
        );
        let quoted: Vec<String> = command
            .split(' ')
            .map(|word| format!("\"{word}\""))
            .collect();
        assert_eq!(
            split_command(&quoted.join(" ").replace('$', "\\$")).map(|words| words.len()),
            Ok(quoted.len())
        );
    }
}

#[test]
fn double_quotes_protect_no_variable_and_single_quotes_do() {
    for variable in ["$HOME", "a$b", "$1", "$$", "$?", "$@", "$_", "$!"] {
        assert_eq!(
            split_command(&format!("echo \"{variable}\"")),
            Err(SplitError::NeedsShell("$".to_owned())),
            "{variable}"
        );
        check(&format!("echo '{variable}'"), &["echo", variable]);
    }
    check(
        r#"grep "^a$" "$" '$(b)' "\$(b)" "\`""#,
        &["grep", "^a$", "$", "$(b)", "$(b)", "`"],
    );
}

#[test]
fn what_a_shell_would_leave_as_it_is_is_taken_as_it_is() {
    check("grep \"a*\" 'b?' c\\*", &["grep", "a*", "b?", "c*"]);
    check(
        "grep -r --include=*.rs ^x$ .",
        &["grep", "-r", "--include=*.rs", "^x$", "."],
    );
    check("pytest t.py::test_a[1-b]", &["pytest", "t.py::test_a[1-b]"]);
    check(
        "curl http://127.0.0.1:1/x?y=1",
        &["curl", "http://127.0.0.1:1/x?y=1"],
    );
    check("env A=1 make B=2", &["env", "A=1", "make", "B=2"]);
    check(
        "git show HEAD~1 HEAD^ a$ $",
        &["git", "show", "HEAD~1", "HEAD^", "a$", "$"],
    );
    check(
        "[ -f x ] . cd {} [] {a}",
        &["[", "-f", "x", "]", ".", "cd", "{}", "[]", "{a}"],
    );
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
    check(&format!(" {longest} "), &[&longest]);
    assert_eq!(
        split_command(&format!("{longest}x")),
        Err(SplitError::TooLong)
    );
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

/// What a shell passes to the program `p` in each of the commands: its arguments, a line each.
fn arguments_in(shell: &str, folder: &Path, commands: &[String]) -> String {
    let prints = r#"p() { for arg in "$@"; do printf '%s\0' "$arg"; done; printf '\n'; }"#;
    let ran = Command::new(shell)
        .args(["-c", &format!("{prints}\n{}", commands.join("\n"))])
        .env_clear()
        .envs([
            ("HOME", "/home"),
            ("PATH", "/nowhere"),
            ("a", "b c"),
            ("b", "a"),
            ("LC_ALL", "C.UTF-8"),
        ])
        .current_dir(folder)
        .output()
        .unwrap();
    String::from_utf8_lossy(&ran.stdout).into_owned()
}

/// Words of what shells interpret, and of what they quote it with.
const WORDS: &str = r#"[-ab1$`\\"'*?~=:#!{},.@+^%/ \t\r\n\[\]]{0,6}|"[ab$`\\\\{!@#*]{0,4}"|'[ab$\\\\]{0,3}'|[\[{][ab,^!]{0,3}[\]}]"#;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// The shells are the reference, in a folder with files that patterns match.
    #[test]
    fn what_is_taken_means_the_same_to_a_shell(lines in prop::collection::vec(prop::collection::vec(WORDS, 0..5), 1..150)) {
        // The last word keeps what stands before it from being trimmed.
        let mut commands: Vec<String> = lines.iter().map(|words| format!("p {} z", words.join(" "))).collect();
        commands.retain(|command| split_command(command).is_ok());
        let folder = tempfile::tempdir().unwrap();
        for name in ["a", "b", "ab", "a.b", "1", "a=b", "b:a", "]", "^", "a1"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let line = |words: Vec<String>| words[1..].iter().map(|word| format!("{word}\0")).collect::<String>() + "\n";
        let taken: String = commands.iter().map(|command| line(split_command(command).unwrap())).collect();
        for shell in ["/bin/bash", "/bin/sh"] {
            prop_assert_eq!(arguments_in(shell, folder.path(), &commands), taken.as_str(), "{} {:?}", shell, commands);
        }
    }
}
