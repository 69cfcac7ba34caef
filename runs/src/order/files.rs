//! The files that an order names, before the model is called.

use std::fs;
use std::io;
use std::path::Path;

use code_commit_loop_order::{FieldProblem, WorkOrder};
use code_commit_prompt::order::{Allowed, Context};

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
                allowed.push(Allowed { path: path.clone(), sha256 });
            }
            Err(message) => problems.push(FieldProblem { field: format!("allowed_files[{at}]"), message }),
        }
    }
    let mut context = Vec::new();
    for (at, path) in order.context_files.iter().enumerate() {
        match content(root, path).and_then(|bytes| bytes.map(text).transpose()) {
            Ok(text) => context.push((path.clone(), text)),
            Err(message) => problems.push(FieldProblem { field: format!("context_files[{at}]"), message }),
        }
    }
    if problems.is_empty() {
        Ok(Files { allowed, context: code_commit_loop_order::shown_context(context) })
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
