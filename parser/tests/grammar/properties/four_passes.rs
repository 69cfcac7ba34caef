//! S0's way of reading a reply, written as S0 says it: one pass for each syntax, each ignoring the others, and then
//! the rules between them. Slow and plain: it knows the syntax that S0 shows, but for the carets that may stand between
//! thought markers.

use std::collections::HashSet;

use code_commit_parser::fence::check_name;
use code_commit_parser::{FileAction, Reply, Span};
use proptest::prelude::*;

/// Lines with S0's markers, and whole blocks among them, so that a good part of the texts is right.
pub(crate) fn text() -> impl Strategy<Value = String> {
    let marker = "( ?)(\\^{3}([abc]|end|delete)|(&{3}|%{3}|\\${3})(start|end))([ \r]?)";
    let noise = "x\\^{3}b|[x ]{0,3}";
    let block = prop_oneof![
        5 => ("[a-f]", "[x\n]{0,4}").prop_map(|(name, content)| format!("^^^{name}\n{content}\n^^^end")),
        2 => "[a-f]".prop_map(|name| format!("^^^{name}\n\n^^^delete")),
        1 => "[x\n]{0,4}".prop_map(|content| format!("&&&start\n{content}\n&&&end")),
        1 => "[x\n]{0,4}".prop_map(|content| format!("%%%start\n{content}\n%%%end")),
        1 => "[ab]|end".prop_map(|word| format!("&&&start\n^^^{word}\n&&&end")),
        1 => "[x\n]{0,4}".prop_map(|content| format!("$$$start\n{content}\n$$$end")),
    ];
    let piece = prop_oneof![6 => block, 1 => marker, 1 => noise];
    proptest::collection::vec(piece, 0..6).prop_map(|pieces| pieces.join("\n"))
}

#[derive(Debug, PartialEq, Eq, Default)]
pub(crate) struct Blocks {
    /// Path and new content, none for a deletion.
    files: Vec<(String, Option<String>)>,
    user: Vec<String>,
    debug: Vec<String>,
    no_change: Vec<String>,
}

impl Blocks {
    pub(crate) fn of(reply: &Reply<'_>) -> Self {
        let file = |file: code_commit_parser::FileBlock<'_>| match file.action {
            // Nothing here writes a hunk.
            FileAction::Edit(hunks) => (file.path.to_owned(), Some(hunks.text())),
            FileAction::Write(content) => (file.path.to_owned(), Some(content.to_owned())),
            FileAction::Delete => (file.path.to_owned(), None),
        };
        Self {
            files: reply.files().map(file).collect(),
            user: reply.user().map(str::to_owned).collect(),
            debug: reply.debug().map(str::to_owned).collect(),
            no_change: reply.no_change().map(str::to_owned).collect(),
        }
    }
}

/// A block of one pass: its whole place, the word of its opening, its content unless it deletes.
type Found = (Span, String, Option<String>);

/// The blocks of a reply, or nothing if it has any error.
pub(crate) fn read(text: &str) -> Option<Blocks> {
    let [user, debug, no_change] = [
        pass(text, "&&&", &[])?,
        pass(text, "%%%", &[])?,
        pass(text, "$$$", &[])?,
    ];
    let thoughts: Vec<Span> = [&user, &debug, &no_change]
        .into_iter()
        .flatten()
        .map(|found| found.0.clone())
        .collect();
    let files = pass(text, "^^^", &thoughts)?;
    let mut spans: Vec<&Span> = [&files, &user, &debug, &no_change]
        .into_iter()
        .flatten()
        .map(|found| &found.0)
        .collect();
    spans.sort_by_key(|span| span.start);
    let overlap = spans
        .iter()
        .zip(spans.iter().skip(1))
        .any(|(one, next)| one.end > next.start);
    let mut names = HashSet::new();
    let twice = !files.iter().all(|(_, name, _)| names.insert(name.clone()));
    let bad_name = files.iter().any(|(_, name, _)| check_name(name).is_err());
    if overlap || twice || bad_name || files.is_empty() == no_change.is_empty() {
        return None;
    }
    let contents = |found: Vec<Found>| {
        found
            .into_iter()
            .filter_map(|(_, _, content)| content)
            .collect()
    };
    Some(Blocks {
        files: files
            .into_iter()
            .map(|(_, name, content)| (name, content))
            .collect(),
        user: contents(user),
        debug: contents(debug),
        no_change: contents(no_change),
    })
}

/// One pass over the lines, for one fence. Of those in `thoughts` only ends count.
fn pass(text: &str, fence: &str, thoughts: &[Span]) -> Option<Vec<Found>> {
    let is_file = fence == "^^^";
    let mut found = Vec::new();
    let mut open: Option<(usize, usize, String)> = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let (start, end) = (at, at + line.len());
        at = end;
        let Some(word) = line.trim().strip_prefix(fence) else {
            continue;
        };
        let is_end = word == "end" || is_file && word == "delete";
        if !is_end && open.is_none() && thoughts.iter().any(|thought| thought.contains(&start)) {
            continue;
        }
        match (word, open.take()) {
            ("end", Some((from, content, name))) => {
                found.push((from..end, name, Some(text[content..start].to_owned())));
            }
            ("delete", Some((from, content, name))) if text[content..start].trim().is_empty() => {
                found.push((from..end, name, None));
            }
            (name, None) if !is_end => open = Some((start, end, name.to_owned())),
            _ => return None,
        }
    }
    open.is_none().then_some(found)
}
