//! Whether the programs of an order can be started here: checked before anything is paid for (S2 §6.1, §6.6).

use std::fs;
use std::path::{Component, Path, PathBuf};

use code_commit_loop_order::VERIFY_SCRIPT;
use code_commit_loop_order::{Command, FieldProblem, WorkOrder};
use code_commit_report::printable;
use code_commit_settings::Environment;

use crate::host::Host;
use crate::preflight::on_path;

/// Commands whose program does not exist and cannot appear: the change, or an earlier command, may still
/// create files in the project, including those found through a PATH into it. A program that disappears
/// during the run makes its command fail.
pub fn programs(order: &WorkOrder, root: &Path, environment: &Environment) -> Vec<FieldProblem> {
    let missing = |(at, command): (usize, &Command)| {
        let message = missing(command.argv.first()?, root, environment)?;
        Some(FieldProblem { field: format!("acceptance_commands[{at}]"), message })
    };
    order.acceptance_commands.iter().enumerate().filter_map(missing).collect()
}

/// Without these programs every attempt would fail in its verification, whatever the model writes (S2 §6.5).
/// The order is not wrong and cannot change these commands, so this is a warning.
pub fn warn_of_verification(order: &WorkOrder, root: &Path, host: Host<'_>) {
    let Host { environment, output, .. } = host;
    let has_script = fs::symlink_metadata(root.join(VERIFY_SCRIPT)).is_ok();
    let may_write_script = order.allowed_files.iter().any(|path| path == VERIFY_SCRIPT);
    let (program, way_out) = match (has_script, may_write_script) {
        (true, _) => ("bash", String::new()),
        (false, true) => return,
        (false, false) => ("python", format!(", or write {VERIFY_SCRIPT}, which then takes its place")),
    };
    if let Some(missing) = missing(program, root, environment) {
        output
            .warn(&format!("{missing}, so the verification of every attempt will fail: install it{way_out}"));
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
