//! The names of runs in completions: the scripts ask the program, which reads the list of runs and nothing else.

use clap::{Arg, Command, CommandFactory as _};
use clap_complete::Shell;
use code_commit_runs::{Exit, Host, Site};

use crate::args::Cli;

/// Set by the scripts, to [`RUNS`].
const VARIABLE: &str = "CODE_COMMIT_COMPLETE";
const RUNS: &str = "runs";
/// Names to offer: older runs have to be named by hand.
const MOST: usize = 20;
/// What the help calls an argument that names a run.
const ARGUMENTS: [&str; 2] = ["RUN", "FROM"];

/// Whether a script asks for names, so that nothing else may happen: a person has only pressed Tab.
pub fn are_wanted(host: Host<'_>) -> bool {
    host.environment.text(VARIABLE) == Some(RUNS)
}

/// Prints `@` and the names of the newest runs, one a line. Whatever is wrong here is told by the command itself.
pub fn print(host: Host<'_>) -> Exit {
    let known = Site::here(host).and_then(|site| {
        let runs = site.registry().all()?;
        Ok(runs
            .iter()
            .map(|run| run.name(&site.root))
            .collect::<Vec<_>>())
    });
    // A shell splits and expands what it is given.
    let is_plain = |name: &String| {
        name.chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
    };
    let names = known
        .unwrap_or_default()
        .into_iter()
        .filter(is_plain)
        .take(MOST);
    let lines: Vec<String> = ["@".to_owned()].into_iter().chain(names).collect();
    host.output
        .raw(format!("{}\n", lines.join("\n")).as_bytes());
    Exit::Done
}

/// The script, which now offers names where a command takes a run.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "other shells, and those to come, complete all but names"
)]
pub(super) fn offered_by(shell: Shell, script: &str) -> String {
    match shell {
        Shell::Bash => bash(script),
        Shell::Zsh => zsh(script),
        Shell::Fish => format!("{script}{}", fish()),
        _ => script.to_owned(),
    }
}

/// The commands that take a run as their first argument.
fn commands() -> Vec<String> {
    let mut cli = Cli::command();
    cli.build();
    let takes_run = |command: &&Command| command.get_positionals().next().is_some_and(is_run);
    cli.get_subcommands()
        .filter(takes_run)
        .map(|command| command.get_name().to_owned())
        .collect()
}

fn is_run(argument: &Arg) -> bool {
    let names = argument.get_value_names().unwrap_or_default();
    names.iter().any(|name| ARGUMENTS.contains(&name.as_str()))
}

/// Calls the generated function first. It knows no names, and offers the word `[RUN]` itself.
fn bash(script: &str) -> String {
    let function = format!(
        r#"
_code__commit_with_runs() {{
    _code__commit "$@"
    local cur="${{COMP_WORDS[COMP_CWORD]}}" word takes_run=""
    [[ "${{cur}}" == -* || "${{COMP_WORDS[COMP_CWORD - 1]}}" == -* ]] && return 0
    for word in "${{COMP_WORDS[@]:1:COMP_CWORD - 1}}"; do
        case "${{takes_run}}${{word}}" in
            -* | yes-*) ;;
            {}) takes_run="yes" ;;
            yes*) COMPREPLY=(); return 0 ;;
            *) return 0 ;;
        esac
    done
    if [[ -n "${{takes_run}}" ]]; then
        COMPREPLY=( $(compgen -W "$({VARIABLE}={RUNS} "$1" 2>/dev/null)" -- "${{cur}}") )
    fi
}}
"#,
        commands().join(" | ")
    );
    let registered = script.replace(
        "complete -F _code__commit -o",
        "complete -F _code__commit_with_runs -o",
    );
    let (functions, register) = registered
        .split_once("\nif [[ \"${BASH_VERSINFO")
        .unwrap_or((&registered, ""));
    format!("{functions}{function}\nif [[ \"${{BASH_VERSINFO{register}")
}

fn zsh(script: &str) -> String {
    let function = format!(
        r#"(( $+functions[_code-commit_runs] )) ||
_code-commit_runs() {{
    local -a runs
    runs=(${{(f)"$({VARIABLE}={RUNS} code-commit 2>/dev/null)"}})
    compadd -V runs -a runs
    _files
}}

"#
    );
    let is_run = |line: &str| {
        ARGUMENTS
            .iter()
            .any(|name| line.starts_with(&format!("'::{} -- ", name.to_lowercase())))
    };
    let argument = |line: &str| {
        if is_run(line) {
            line.replace(":_default'", ":_code-commit_runs'")
        } else {
            line.to_owned()
        }
    };
    let lines: Vec<String> = script.lines().map(argument).collect();
    let script = lines.join("\n") + "\n";
    let begins = "if [ \"$funcstack[1]\"";
    script.replacen(begins, &(function + begins), 1)
}

fn fish() -> String {
    let commands = commands().join(" ");
    format!(
        "complete -c code-commit -n \"__fish_code_commit_using_subcommand {commands}\" -k -a \"({VARIABLE}={RUNS} code-commit 2>/dev/null)\"\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_with_a_run_is_completed() {
        assert_eq!(
            commands(),
            ["show", "diff", "page", "resume", "again", "undo", "redo"]
        );
    }
}
