//! Remarks on a reply that is applied anyway.

use std::path::Path;

use code_commit_guard::{Admitted, Guard};
use code_commit_parser::{FileAction, Reply, habits};

use code_commit_engine::Problem;

/// Larger files get no remarks.
const LARGEST: u64 = 64 << 20;

/// Common mistakes of models that break no rule; found by comparing with the old files.
pub(super) fn habits(reply: &Reply<'_>, edited: &[Option<String>], root: &Path) -> Vec<Problem> {
    let parsed = reply.warnings().iter().map(|warning| Problem {
        code: warning.code.as_str().to_owned(),
        path: None,
        line: Some(warning.line),
        message: warning.message(),
    });
    let beside_the_old =
        reply
            .files()
            .zip(edited)
            .flat_map(|(file, edited)| match (file.action, edited) {
                (FileAction::Write(content), _) => changed_content(file.path, content, root),
                (FileAction::Edit(_), Some(content)) => changed_content(file.path, content, root),
                (FileAction::Edit(_) | FileAction::Delete, _) => Vec::new(),
            });
    parsed.chain(beside_the_old).collect()
}

/// Files that the model was not shown, placeholders for omitted code, and files that lose most of their
/// lines.
pub(super) fn changed_content(path: &str, content: &str, root: &Path) -> Vec<Problem> {
    let Ok(Some(old)) =
        code_commit_dir::read(&root.join(path), LARGEST, code_commit_dir::Links::Refused)
    else {
        return Vec::new();
    };
    let Some(old_text) = text(&old) else {
        return vec![not_text(path)];
    };
    let placeholders = habits::placeholders(old_text, content)
        .into_iter()
        .map(|found| {
            problem(
                code_commit_engine::PLACEHOLDER,
                path,
                format!(
                    "`{path}`, line {}: \"{}\" may stand for code that was left out.",
                    found.line, found.text
                ),
            )
        });
    let shrunk = habits::shrink(&old, content.as_bytes()).map(|shrink| {
        problem(
            "shrunk",
            path,
            format!(
                "`{path}` shrinks from {} to {} bytes.",
                shrink.before, shrink.after
            ),
        )
    });
    placeholders
        .chain(shrunk)
        .chain(encoding(&old, content.as_bytes(), path))
        .collect()
}

/// The content, if the roll-up would treat it as text.
fn text(content: &[u8]) -> Option<&str> {
    std::str::from_utf8(content)
        .ok()
        .filter(|text| !text.contains('\0'))
}

fn not_text(path: &str) -> Problem {
    let message = format!(
        "`{path}` was not UTF-8 text, so no roll-up shows it; it is replaced by text, and code-commit undo restores it."
    );
    problem("not-text", path, message)
}

/// Changes that a diff hardly shows: line endings, a removed byte order mark.
fn encoding(old: &[u8], new: &[u8], path: &str) -> Vec<Problem> {
    let line_ends = habits::line_ends_changed(old, new).map(|(before, after)| {
        let (before, after) = (before.as_str(), after.as_str());
        problem(
            "line-ends",
            path,
            format!("`{path}` had lines that end in {before}; now it has {after}."),
        )
    });
    let mark = habits::loses_byte_order_mark(old, new).then(|| {
        problem(
            "byte-order-mark",
            path,
            format!("`{path}` lost the byte order mark that it began with."),
        )
    });
    line_ends.into_iter().chain(mark).collect()
}

/// Files that run code, affect others, or decide whether the work is done deserve a review.
pub(super) fn flagged(path: &Admitted, guard: &Guard) -> Option<Problem> {
    if let Some(why) = guard.flags(path.path()) {
        let path = path.path();
        return Some(problem(
            code_commit_engine::GRADER,
            path,
            format!("`{path}` was changed, and {why}."),
        ));
    }
    let path = path.is_flagged().then(|| path.path())?;
    let message = format!(
        "`{path}` can run code or change what others see; look at it before you commit it."
    );
    Some(problem("worth-a-look", path, message))
}

fn problem(code: &str, path: &str, message: String) -> Problem {
    Problem {
        code: code.to_owned(),
        path: Some(path.to_owned()),
        line: None,
        message,
    }
}
