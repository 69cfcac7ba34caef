//! The files and programs that an order names, before the model is called.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use code_commit_loop_order::{Command, FieldProblem, VERIFY_SCRIPT, WorkOrder, verification};
use code_commit_parser::proposal::normalized_path;
use code_commit_prompt::order::{Allowed, Context};
use code_commit_repo::{Index, WorkTree};
use code_commit_report::printable;
use code_commit_settings::Environment;

use crate::host::Host;
use crate::preflight::on_path;

/// The current content of the allowed files.
pub struct Files {
    /// All of them, with their hashes.
    pub allowed: Vec<Allowed>,
    /// Those that are shown to the model.
    pub context: Vec<Context>,
}

/// Checks every allowed file, and reads those that are shown.
pub fn read(root: &Path, order: &WorkOrder) -> Result<Files, Vec<FieldProblem>> {
    let mut problems = Vec::new();
    let mut allowed = Vec::new();
    for (at, path) in order.allowed_files.iter().enumerate() {
        match content(root, path) {
            Ok(bytes) => {
                let sha256 = bytes.as_deref().map(code_commit_logging::sha256_hex);
                allowed.push(Allowed {
                    path: path.clone(),
                    sha256,
                });
            }
            Err(message) => problems.push(FieldProblem {
                field: format!("allowed_files[{at}]"),
                message,
            }),
        }
    }
    let mut context = Vec::new();
    for (at, path) in order.context_files.iter().enumerate() {
        match content(root, path).and_then(|bytes| bytes.map(text).transpose()) {
            Ok(text) => context.push((path.clone(), text)),
            Err(message) => problems.push(FieldProblem {
                field: format!("context_files[{at}]"),
                message,
            }),
        }
    }
    if problems.is_empty() {
        Ok(Files {
            allowed,
            context: code_commit_loop_order::shown_context(context),
        })
    } else {
        Err(problems)
    }
}

/// The bytes of a regular file; `None` if it does not exist. Follows no symlink at any level, since it could
/// point anywhere.
fn content(root: &Path, path: &str) -> Result<Option<Vec<u8>>, String> {
    let mut place = root.to_owned();
    for part in path.split('/') {
        place.push(part);
        match fs::symlink_metadata(&place) {
            Ok(found) if found.is_symlink() => {
                return Err(format!("`{path}` is a symbolic link or leads through one"));
            }
            Ok(_) => {}
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound) => return Ok(None),
            Err(error) => return Err(format!("`{path}` cannot be looked at: {error}")),
        }
    }
    match code_commit_dir::read(&place, u64::MAX, code_commit_dir::Links::Refused) {
        Ok(None) => Err(format!("`{path}` is not a regular file")),
        read => read.map_err(|error| format!("`{path}` cannot be read: {error}")),
    }
}

fn text(bytes: Vec<u8>) -> Result<String, String> {
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        format!("is not UTF-8 (at byte {at})")
    })
}

/// Why nothing could come of an order: nobody has filled it in, or there are commands whose program does not
/// exist and cannot appear. The change, or an earlier command, may still create files in the project, including
/// those found through a PATH into it. A program that disappears during the run makes its command fail.
pub fn unfit(order: &WorkOrder, root: &Path, environment: &Environment) -> Vec<FieldProblem> {
    let missing = |(at, command): (usize, &Command)| {
        let program = command.argv.first()?;
        let needed = || missing(&interpreter_of(program, order, root)?, root, environment);
        let needed = || {
            needed().map(|missing| format!("`{}` cannot be started: {missing}", printable(program)))
        };
        let message = missing(program, root, environment).or_else(needed)?;
        Some(FieldProblem {
            field: format!("acceptance_commands[{at}]"),
            message,
        })
    };
    let template = "is that of the template; say what is wanted";
    let template = order
        .is_template()
        .then(|| FieldProblem::new("intent", template));
    template
        .into_iter()
        .chain(
            order
                .acceptance_commands
                .iter()
                .enumerate()
                .filter_map(missing),
        )
        .collect()
}

/// What verifies every attempt, for a person.
pub(super) fn verification_line(root: &Path) -> String {
    let has_script = root.join(VERIFY_SCRIPT).is_file();
    let commands: Vec<String> = verification(has_script)
        .iter()
        .map(|words| words.join(" "))
        .collect();
    let why = if has_script {
        String::new()
    } else {
        format!(" (there is no {VERIFY_SCRIPT})")
    };
    format!("verification: {}{why}", commands.join(", "))
}

/// The commands that decide about an order, each with its command line: verification, then acceptance.
pub(super) fn deciding(order: &WorkOrder, root: &Path) -> Vec<(String, Vec<String>)> {
    let words = |words: &&[&str]| {
        words
            .iter()
            .map(|word| (*word).to_owned())
            .collect::<Vec<String>>()
    };
    let verify = verification(root.join(VERIFY_SCRIPT).is_file())
        .iter()
        .map(words);
    let accept = order
        .acceptance_commands
        .iter()
        .map(|command| (command.text.clone(), command.argv.clone()));
    verify
        .map(|argv| (argv.join(" "), argv))
        .chain(accept)
        .collect()
}

/// The program that a script of the project names in its first line; what `env` would start, if it names that. What
/// the change may write is still open.
fn interpreter_of(path: &str, order: &WorkOrder, root: &Path) -> Option<String> {
    let path = normalized_path(path);
    if !path.contains('/') || order.allowed_files.contains(&path) {
        return None;
    }
    let text = text(content(root, &path).ok()??).ok()?;
    let mut words = text
        .lines()
        .next()?
        .strip_prefix("#!")?
        .split_ascii_whitespace();
    let program = words.next()?;
    let started = if program.ends_with("/env") {
        words.find(|word| !word.starts_with('-'))?
    } else {
        program
    };
    Some(started.to_owned())
}

/// Without these programs every attempt would fail in its verification, whatever the model writes (S2 §6.5).
/// The order is not wrong and cannot change these commands, so this is a warning.
pub fn warn_of_verification(order: &WorkOrder, tree: &WorkTree, host: Host<'_>) {
    let root = tree.root();
    let Host {
        environment,
        output,
        ..
    } = host;
    let has_script = fs::symlink_metadata(root.join(VERIFY_SCRIPT)).is_ok();
    let may_write_script = order.allowed_files.iter().any(|path| path == VERIFY_SCRIPT);
    let (program, way_out) = match (has_script, may_write_script) {
        (true, _) => ("bash", String::new()),
        (false, true) => return,
        (false, false) => (
            "python",
            format!(", or write {VERIFY_SCRIPT}, which then takes its place"),
        ),
    };
    let is_python = |path: &Path| path.extension().is_some_and(|end| end == "py");
    let allowed = || {
        order
            .allowed_files
            .iter()
            .any(|path| is_python(Path::new(path)))
    };
    let tracked = |index: Index| index.iter().any(|one| is_python(one.path));
    if let Some(missing) = missing(program, root, environment) {
        output.warn(&format!(
            "{missing}, so the verification of every attempt will fail: install it{way_out}"
        ));
    } else if !has_script && !allowed() && !tree.index().is_ok_and(tracked) {
        let [.., tests] = verification(false) else {
            return;
        };
        output.warn(&format!(
            "there is no Python file for `{}` to test, so the verification of every attempt will fail: write {VERIFY_SCRIPT}, which then takes its place",
            tests.join(" ")
        ));
    }
    let written_for = interpreter_of(VERIFY_SCRIPT, order, root);
    if let Some(missing) =
        written_for.and_then(|program| self::missing(&program, root, environment))
    {
        output.warn(&format!(
            "{VERIFY_SCRIPT} is run by bash, but its first line names another program: {missing}"
        ));
    }
}

/// Why a program cannot be started, if it cannot.
pub(super) fn missing(program: &str, root: &Path, environment: &Environment) -> Option<String> {
    let missing = format!("there is no program {}", printable(program));
    if program.contains('/') {
        let path = root.join(program);
        let may_come = without_parents(&path).starts_with(root);
        return (!may_come && !code_commit_runner::is_program(&path)).then_some(missing);
    }
    // Without a PATH the system searches default folders.
    let path = environment.path()?;
    let may_come = std::env::split_paths(path).any(|folder| root.join(folder).starts_with(root));
    if may_come || on_path(program, environment).is_some() {
        return None;
    }
    // Many systems have only one of the two names.
    let other = format!("{program}3");
    let hint = on_path(&other, environment).map(|_| format!(" ({} is there)", printable(&other)));
    Some(format!("{missing} on PATH{}", hint.unwrap_or_default()))
}

/// The path with each `..` resolved against the name before it.
fn without_parents(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        if part == Component::ParentDir {
            plain.pop();
        } else {
            plain.push(part);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_of_a_script_names_its_interpreter_and_no_symlink_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let mut order = WorkOrder::parse(code_commit_loop_order::TEMPLATE.as_bytes()).unwrap();
        order.allowed_files = vec!["bin/open".to_owned()];
        for (path, text, program) in [
            ("bin/a", "#!/bin/sh -e\n", Some("/bin/sh")),
            ("./bin/a", "#! /usr/bin/env -S python3 -u", Some("python3")),
            ("bin/a", "# no script\n", None),
            ("bin/open", "#!/bin/sh\n", None),
            ("bare", "#!/bin/sh\n", None),
        ] {
            code_commit_dir::replace(&root.join(path), text.as_bytes()).unwrap();
            let found = interpreter_of(path, &order, root);
            assert_eq!(found.as_deref(), program, "{path}: {text}");
        }
        std::os::unix::fs::symlink("bin", root.join("link")).unwrap();
        content(root, "link/a").unwrap_err();
    }
}
