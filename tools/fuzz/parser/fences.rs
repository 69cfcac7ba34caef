//! Any bytes as a reply: places are true, and edits of a text by itself give the new lines.
#![no_main]

use code_commit_parser::edit::{self, Hunk};
use code_commit_parser::partial::Openers;
use code_commit_parser::{Ask, Errors, FileAction, Reply, parse_bytes};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    match parse_bytes(bytes) {
        Ok(reply) => check_reply(&reply),
        Err(errors) => check_errors(bytes, &errors),
    }
});

fn check_reply(reply: &Reply<'_>) {
    let text = reply.text();
    let mut end = 0;
    for block in reply.blocks() {
        assert!(end <= block.span.start && block.span.end <= text.len());
        assert!(
            text.get(block.span.clone()).is_some() && text.get(block.content.clone()).is_some()
        );
        end = block.span.end;
    }
    assert!(reply.thinking().all(|thought| text.contains(thought)));
    for file in reply.files() {
        if let FileAction::Edit(hunks) = file.action {
            check_hunks(text, &hunks.iter().collect::<Vec<_>>());
        }
    }
    check_openers(reply);
}

/// Hunks fit any text or none of it; what they make of the text of their old lines is its new lines.
fn check_hunks(text: &str, hunks: &[Hunk<'_>]) {
    let _ = edit::apply(text, hunks.iter().copied());
    if let [hunk] = hunks
        && !hunk.search.contains('\r')
        && !hunk.replace.contains('\r')
    {
        assert_eq!(
            edit::apply(hunk.search, [*hunk]).as_deref(),
            Ok(hunk.replace)
        );
    }
}

/// The openings seen in a stream are the files of the reply, unless a thought holds some: its end may be the only sign of it.
fn check_openers(reply: &Reply<'_>) {
    let text = reply.text();
    if reply.thinking().next().is_some() {
        return;
    }
    let mut openers = Openers::default();
    let ends = (0..text.len())
        .filter(|end| text.is_char_boundary(*end))
        .step_by(7)
        .chain([text.len()]);
    let seen: Vec<&str> = ends.flat_map(|end| openers.read(&text[..end])).collect();
    let path = |block: &code_commit_parser::Block| match &block.ask {
        Ask::Write(path) | Ask::Edit(path) | Ask::Delete(path) => {
            Some(text[path.clone()].to_owned())
        }
        Ask::User | Ask::Debug | Ask::NoChange => None,
    };
    assert!(
        seen.iter()
            .map(|seen| (*seen).to_owned())
            .eq(reply.blocks().iter().filter_map(path))
    );
}

fn check_errors(bytes: &[u8], errors: &Errors) {
    assert!(errors.total() > 0 && errors.for_model().len() < 10_000);
    let mut start = 0;
    for error in errors {
        assert!(start <= error.span.start && error.span.end <= bytes.len());
        let head = std::str::from_utf8(&bytes[..error.span.start])
            .expect("a place on a character's boundary");
        assert_eq!(error.line, head.matches('\n').count() + 1);
        start = error.span.start;
    }
}
