//! A reply, or its errors, as text for a snapshot.

use code_commit_parser::{Errors, FileAction, FileBlock, Reply, parse};

/// What `parse` makes of `text`, with every place shown as the text that is there.
pub(crate) fn check(text: &str) -> String {
    match parse(text) {
        Ok(reply) => show_reply(&reply),
        Err(errors) => show_errors(text, &errors),
    }
}

fn show_reply(reply: &Reply<'_>) -> String {
    let file = |file: FileBlock<'_>| match file.action {
        FileAction::Write(content) => {
            format!("write {:?} {content:?} at {:?}", file.path, file.span)
        }
        FileAction::Edit(hunks) => {
            format!(
                "edit {:?} {:?} at {:?}",
                file.path,
                hunks.iter().collect::<Vec<_>>(),
                file.span
            )
        }
        FileAction::Delete => format!("delete {:?} at {:?}", file.path, file.span),
    };
    let mut lines: Vec<String> = reply.files().map(file).collect();
    lines.extend(reply.user().map(|text| format!("user {text:?}")));
    lines.extend(reply.debug().map(|text| format!("debug {text:?}")));
    lines.extend(reply.no_change().map(|text| format!("no change {text:?}")));
    lines.extend(reply.thinking().map(|text| format!("thinking {text:?}")));
    lines.extend(
        reply
            .warnings()
            .iter()
            .map(|warning| format!("warning {} {}", warning.code, warning.for_model())),
    );
    lines.join("\n")
}

fn show_errors(text: &str, errors: &Errors) -> String {
    let show = |error: &code_commit_parser::Diagnostic| {
        let place = text.get(error.span.clone());
        format!(
            "{} {}:{} {:?}\n  {}",
            error.code,
            error.line,
            error.column,
            place.unwrap_or("no place"),
            error.for_model()
        )
    };
    errors.iter().map(show).collect::<Vec<_>>().join("\n")
}
