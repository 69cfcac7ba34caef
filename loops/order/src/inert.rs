//! Commands that cannot fail, and so prove nothing. The list is short on purpose: whatever could fail in
//! some way is not on it.

use code_commit_parser::words::split_command;

/// Whether a command succeeds whatever the project holds. `text` gives the text of a script of the
/// project, by its path and by whether it is started without naming a shell.
pub fn cannot_fail(argv: &[String], text: impl Fn(&str, bool) -> Option<String>) -> bool {
    let words: Vec<&str> = argv.iter().map(String::as_str).collect();
    match words[..] {
        ["true" | "/bin/true" | "/usr/bin/true"] | ["echo", ..] => true,
        [shell, "-c", script, ..] if is_shell(shell) => does_nothing(script),
        [shell, file, ..] if is_shell(shell) => {
            text(file, false).is_some_and(|text| does_nothing(&text))
        }
        [file, ..] if file.contains('/') => {
            let is_inert =
                |text: &str| interpreter(text).is_some_and(is_shell) && does_nothing(text);
            text(file, true).is_some_and(|text| is_inert(&text))
        }
        _ => false,
    }
}

/// What a person is told about such a command.
pub fn message(command: &str) -> String {
    format!("`{command}` cannot fail, so that it passes proves nothing")
}

/// The program that the first line of a script names; what `env` would start, if it names that.
pub fn interpreter(script: &str) -> Option<&str> {
    let mut words = script
        .lines()
        .next()?
        .strip_prefix("#!")?
        .split_ascii_whitespace();
    let program = words.next()?;
    if program.ends_with("/env") {
        words.find(|word| !word.starts_with('-'))
    } else {
        Some(program)
    }
}

fn is_shell(program: &str) -> bool {
    let known = ["/usr/bin/", "/bin/"]
        .into_iter()
        .find_map(|folder| program.strip_prefix(folder));
    matches!(known.unwrap_or(program), "sh" | "bash" | "dash")
}

/// Whether a shell script has only comments and commands without effect, up to its end or an `exit 0`.
fn does_nothing(script: &str) -> bool {
    // To a shell, a carriage return is a part of the word before it.
    let is_unix = !script.contains('\r');
    for line in script
        .split('\n')
        .map(|line| line.trim_matches([' ', '\t']))
    {
        // One that goes on in the next line is not read here.
        let words = if line.ends_with('\\') {
            Vec::new()
        } else {
            split_command(line).unwrap_or_default()
        };
        match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            ["exit"] | ["exit", "0"] => return is_unix,
            ["true"] | ["echo", ..] => {}
            _ if line.is_empty() || line.starts_with('#') => {}
            _ if matches!(line, ":" | "set -e" | "set -u" | "set -eu" | "set -eux") => {}
            _ => return false,
        }
    }
    is_unix
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether it cannot fail, if the project has these two scripts.
    fn check(command: &str) -> bool {
        let text = |path: &str, _| match path {
            "inert.sh" | "./inert.sh" => {
                Some("#!/usr/bin/env bash\nset -eu\n\n# later\nexit 0\ntest -f x\n")
            }
            "tests.sh" | "./tests.sh" => Some("#!/bin/sh\ntest -f x\nexit 0\n"),
            "./no-first-line" | "empty.sh" => Some(""),
            _ => None,
        };
        cannot_fail(&split_command(command).unwrap(), |path, is_program| {
            text(path, is_program).map(str::to_owned)
        })
    }

    #[test]
    fn what_cannot_fail_is_known() {
        for command in [
            "true",
            "/bin/true",
            "echo done",
            "sh -c true",
            "sh -c ':'",
            "bash -c 'exit 0'",
            "sh -c ''",
            "/bin/sh -c 'echo \"all good\"'",
            "sh inert.sh --all",
            "bash empty.sh",
            "./inert.sh",
        ] {
            assert!(check(command), "{command}");
        }
    }

    #[test]
    fn what_could_fail_is_not_called_unable_to_fail() {
        for command in [
            "false",
            "sh tests.sh",
            "./tests.sh",
            "./true",
            "tools/sh inert.sh",
            "sh missing.sh",
            "sh -n inert.sh",
            "./no-first-line",
            "sh -c 'true && make'",
            "sh -c 'exit 1'",
            "sh -c 'exit $code'",
            "sh -c 'echo $(make)'",
            "sh -c 'echo x > /no/such/file'",
            "sh -c 'echo ${x:?}'",
            "sh -c 'make || true'",
            "sh -c 'exit 0; if'",
            "sh -c 'echo \\\nexit 0\nmake'",
            "printf %s x",
            "python -c pass",
            "test -f x",
        ] {
            assert!(!check(command), "{command}");
        }
        let carriage_return = ["sh".to_owned(), "-c".to_owned(), "true\r\n".to_owned()];
        assert!(!cannot_fail(&carriage_return, |_, _| None));
    }

    #[test]
    fn the_interpreter_is_what_env_starts() {
        for (first, program) in [
            ("#!/bin/sh -e", Some("/bin/sh")),
            ("#! /usr/bin/fish", Some("/usr/bin/fish")),
            ("#!/usr/bin/env -S deno run", Some("deno")),
            ("# a comment", None),
            ("", None),
        ] {
            assert_eq!(interpreter(first), program, "{first}");
        }
    }
}
