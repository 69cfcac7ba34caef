//! A reply, or its errors, as text for a snapshot.

use std::fmt::Write;

use parser::{Errors, FileAction, Reply, parse};

/// What `parse` makes of `text`, with every place shown as the text that is there.
pub(crate) fn check(text: &str) -> String {
    match parse(text) {
        Ok(reply) => show_reply(&reply),
        Err(errors) => show_errors(text, &errors),
    }
}

fn show_reply(reply: &Reply<'_>) -> String {
    let mut out = String::new();
    for file in reply.files() {
        let _ = match file.action {
            FileAction::Write(content) => {
                writeln!(out, "write {:?} {:?} at {:?}", file.path, content, file.span)
            }
            FileAction::Delete => writeln!(out, "delete {:?} at {:?}", file.path, file.span),
        };
    }
    reply.user().for_each(|text| writeln!(out, "user {text:?}").unwrap());
    reply.debug().for_each(|text| writeln!(out, "debug {text:?}").unwrap());
    reply.no_change().for_each(|text| writeln!(out, "no change {text:?}").unwrap());
    for warning in reply.warnings() {
        writeln!(out, "warning {} {}", warning.code, warning.for_model()).unwrap();
    }
    out
}

fn show_errors(text: &str, errors: &Errors) -> String {
    let mut out = String::new();
    for error in errors {
        let place = &text[error.span.clone()];
        writeln!(out, "{} {}:{} {place:?}", error.code, error.line, error.column).unwrap();
        writeln!(out, "  {}", error.for_model()).unwrap();
    }
    out
}
