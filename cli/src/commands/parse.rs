//! `code-commit parse`: shows what a reply contains, or its errors.

use std::borrow::Cow;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use code_commit_parser::{Diagnostic, FileAction, Reply, Wording};
use code_commit_report::{Output, phrases, printable, printable_name};
use code_commit_runs::{Exit, Failure, text};
use serde_json::{Value, json};

use crate::args::ParseArgs;

pub fn run(args: &ParseArgs, output: &Output) -> Result<Exit, Failure> {
    let bytes = text::read_input(&args.file)?;
    let name = args.file.display().to_string();
    match code_commit_parser::parse_bytes(&bytes) {
        Ok(reply) => {
            output.object(&good(&reply));
            report(&reply, output);
            for warning in reply.warnings() {
                let title = Level::WARNING.primary_title(warning.message());
                output.note_block(&render(title, &bytes, &name, warning, output));
            }
            Ok(Exit::Done)
        }
        Err(errors) => {
            output.object(&with_more(
                json!({ "ok": false, "errors": errors_json(&errors) }),
                &errors,
            ));
            print_errors(&errors, &bytes, &name, output);
            Ok(Exit::Failed)
        }
    }
}

/// `{"ok":true,"files":[…],"user":[…],"debug":[…],"thinking":[…],"no_change":null|"…"}`.
fn good(reply: &Reply<'_>) -> Value {
    let files: Vec<Value> = reply
        .files()
        .map(|file| {
            let (action, content) = match file.action {
                FileAction::Write(content) => ("write", Cow::Borrowed(content)),
                FileAction::Edit(hunks) => ("edit", Cow::Owned(hunks.text())),
                FileAction::Delete => ("delete", Cow::default()),
            };
            json!({
                "path": file.path, "action": action, "bytes": content.len(),
                "sha256": code_commit_logging::sha256_hex(content.as_bytes()), "span": [file.span.start, file.span.end],
            })
        })
        .collect();
    let reasons: Vec<&str> = reply.no_change().collect();
    json!({
        "ok": true, "files": files,
        "user": reply.user().collect::<Vec<_>>(), "debug": reply.debug().collect::<Vec<_>>(),
        "thinking": reply.thinking().collect::<Vec<_>>(),
        "no_change": if reasons.is_empty() { Value::Null } else { reasons.join("\n").into() },
    })
}

/// `[{"code","message","line","column","span":[start,end]}]`.
pub fn errors_json(errors: &code_commit_parser::Errors) -> Vec<Value> {
    errors
        .iter()
        .map(|error| {
            json!({
                "code": error.code.as_str(), "message": error.in_full(), "line": error.line,
                "column": error.column, "span": [error.span.start, error.span.end],
            })
        })
        .collect()
}

/// Adds the number of errors not listed, if any.
pub fn with_more(mut object: Value, errors: &code_commit_parser::Errors) -> Value {
    let more = more(errors);
    if let Some(object) = object.as_object_mut().filter(|_| more > 0) {
        object.insert("more".to_owned(), more.into());
    }
    object
}

fn more(errors: &code_commit_parser::Errors) -> usize {
    errors.total() - errors.iter().len()
}

/// Every error with the surrounding lines, and the number of errors not shown.
pub fn print_errors(
    errors: &code_commit_parser::Errors,
    bytes: &[u8],
    name: &str,
    output: &Output,
) {
    for error in errors {
        let title = Level::ERROR.primary_title(error.message());
        output.error_block(&render(title, bytes, name, error, output));
    }
    if more(errors) > 0 {
        output.error_block(&format!("and {} more errors", more(errors)));
    }
}

fn report(reply: &Reply<'_>, output: &Output) {
    for file in reply.files() {
        let what = match file.action {
            FileAction::Write(content) => {
                format!(
                    "write   {}  {}",
                    printable_name(file.path),
                    phrases::bytes(content.len() as u64)
                )
            }
            FileAction::Edit(hunks) => {
                let hunks = phrases::count(hunks.iter().count() as u64, "hunk");
                format!("edit    {}  {hunks}", printable_name(file.path))
            }
            FileAction::Delete => format!("delete  {}", printable_name(file.path)),
        };
        output.report(&what);
    }
    for (kind, texts) in [
        ("for the user", reply.user().collect::<Vec<_>>()),
        ("for the next prompt", reply.debug().collect()),
        ("thought", reply.thinking().collect()),
        ("nothing to change", reply.no_change().collect()),
    ] {
        for text in texts {
            output.report(&format!("{kind}:\n{}", printable(text.trim_end())));
        }
    }
}

/// The lines of a location with a marker, and what to write instead.
fn render<C: Wording>(
    title: annotate_snippets::Title<'_>,
    source: &[u8],
    name: &str,
    found: &Diagnostic<C>,
    output: &Output,
) -> String {
    let [before, place, behind] = lines_of(source, &found.span).map(harmless);
    let marked = before.len()..before.len() + place.len();
    let text = [before, place, behind].concat();
    let snippet = Snippet::source(&text)
        .line_start(found.line)
        .path(name)
        .annotation(AnnotationKind::Primary.span(marked));
    let renderer = if output.colour_notes() {
        Renderer::styled()
    } else {
        Renderer::plain()
    };
    renderer.render(&[title
        .element(snippet)
        .element(Level::HELP.message(found.advice()))])
}

/// The lines of a location: the part before it, the location, the part after it. Even with a thousand errors,
/// each reads only its own lines.
fn lines_of<'s>(source: &'s [u8], span: &code_commit_parser::Span) -> [&'s [u8]; 3] {
    let (above, rest) = source.split_at(span.start.min(source.len()));
    let (place, below) = rest.split_at(span.len().min(rest.len()));
    let before = above
        .rsplit(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    let behind = below
        .split(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    [before, place, behind]
}

/// Replaces invalid UTF-8 and terminal control characters one by one, so that the lines keep their layout.
fn harmless(part: &[u8]) -> String {
    let is_plain = |c: &char| !c.is_control() || matches!(c, '\n' | '\r' | '\t');
    String::from_utf8_lossy(part)
        .chars()
        .map(|c| if is_plain(&c) { c } else { '\u{fffd}' })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_shown_with_its_own_lines_only() {
        let source = b"one\ntwo three\nfour\n";
        assert_eq!(lines_of(source, &(8..13)), [&b"two "[..], b"three", b""]);
        assert_eq!(
            lines_of(source, &(6..16)),
            [&b"tw"[..], b"o three\nfo", b"ur"]
        );
        assert_eq!(lines_of(source, &(0..0)), [&b""[..], b"", b"one"]);
        assert_eq!(lines_of(source, &(90..99)), [&b""[..], b"", b""]);
    }
}
