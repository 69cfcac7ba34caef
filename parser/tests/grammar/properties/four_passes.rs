//! S0's way of reading a reply, written as S0 says it: one pass for each syntax, each ignoring the others, and then
//! the rules between them. Slow and plain; it knows fences of three characters only. Where the grammar says more than S0 it
//! says so here: lines of carets between thought markers are content but for ends, underlines outside of blocks are prose, and
//! a thought may have text on the lines of its markers.

use std::collections::HashSet;

use code_commit_parser::fence::check_name;
use code_commit_parser::{FileAction, Reply, Span};
use proptest::prelude::*;

/// Texts whose fences are of three characters; longer rows of carets stand alone.
pub(crate) fn text() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        6 => Just("start"), 6 => Just("end"), 2 => Just("delete"), 2 => Just(""),
        1 => Just("start x"), 1 => Just("end.")
    ];
    let thought = (prop_oneof![Just("&&&"), Just("%%%"), Just("$$$")], word)
        .prop_map(|(f, w)| format!("{f}{w}"));
    let name = "[abc]|a b|start|b [(]new[)]|edit c| \\^";
    let file =
        prop_oneof![4 => name, 3 => Just("end".into()), 1 => Just("delete".into()), 1 => Just(String::new())]
            .prop_map(|word| format!("^^^{word}"));
    let marker = (" ?", prop_oneof![thought, file], "[ \r]?").prop_map(|(a, m, b)| a + &m + &b);
    let noise = prop_oneof![
        Just(String::new()),
        Just("^^^^^".into()),
        Just("x^^^end".into()),
        "[x ]{0,3}"
    ];
    let line = prop_oneof![5 => marker, 1 => noise];
    // Whole blocks among the lines, so that a good part of the texts is right.
    let block = prop_oneof![
        5 => ("[a-f]", "[x\n]{0,4}").prop_map(|(name, content)| format!("^^^{name}\n{content}\n^^^end")),
        2 => "[a-f]".prop_map(|name| format!("^^^{name}\n\n^^^delete")),
        1 => "[x\n]{0,4}".prop_map(|content| format!("&&&start\n{content}\n&&&end")),
        1 => "[x\n]{0,4}".prop_map(|content| format!("%%%start\n{content}\n%%%end")),
        1 => "[ab]( c)?|start||end".prop_map(|word| format!("&&&start\n^^^{word}\n&&&end")),
        1 => "[x\n]{0,4}".prop_map(|content| format!("$$$start\n{content}\n$$$end")),
        1 => "&&&start( x)?( &&&|\n&&&|\nx &&&)end",
        1 => "%%%start( x)?( %%%|\n%%%|\nx %%%)end( x)?",
    ];
    let piece = prop_oneof![6 => block, 1 => line];
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
        let word = line
            .trim()
            .strip_prefix(fence)
            .filter(|word| !word.starts_with(&fence[..1]));
        let behind = line
            .trim_end()
            .strip_suffix("end")
            .and_then(|said| said.trim_end().strip_suffix(fence));
        let Some(word) = word else {
            // An end behind text. Another end behind it, with no marker between them, is the end of the same thought.
            let said = behind.filter(|said| !is_file && !said.ends_with(&fence[..1]));
            if let (Some(said), Some((from, content, name))) =
                (said, open.take_if(|_| said.is_some()))
            {
                found.push((
                    from..end,
                    name,
                    Some(text[content..start + said.len()].to_owned()),
                ));
            } else if let (Some(said), true) = (said, goes_on(text, &found, start)) {
                extend(text, &mut found, start + said.len(), end);
            }
            continue;
        };
        let is_edit = word.starts_with("edit ");
        let word = word.trim();
        let is_underline = word.trim_matches(['^', ' ']).is_empty()
            || line.starts_with(' ') && word.contains(' ') && !is_edit;
        let is_content = is_underline || thoughts.iter().any(|thought| thought.contains(&start));
        if is_file
            && is_content
            && (open.is_none() || word.is_empty())
            && !matches!(word, "end" | "delete")
        {
            continue;
        }
        if !is_file && word.starts_with("start") && open.is_none() {
            let said = word["start".len()..].trim();
            let whole = said
                .strip_suffix("end")
                .and_then(|said| said.trim_end().strip_suffix(fence));
            if has_fence(whole.unwrap_or(said)) {
                return None;
            }
            let content = if said.is_empty() {
                end
            } else {
                end - line.len() + line.find(said).unwrap_or(0)
            };
            match whole {
                Some(whole) => found.push((
                    start..end,
                    "start".to_owned(),
                    Some(whole.trim().to_owned()),
                )),
                None => open = Some((start, content, "start".to_owned())),
            }
            continue;
        }
        let crowded = ["start", "end"]
            .iter()
            .any(|begin| word.starts_with(begin) && word != *begin);
        let closes = crowded && word.starts_with("end") && !has_fence(word) && open.is_some();
        if !is_file && crowded && !closes {
            return None;
        }
        let word = if !is_file && closes { "end" } else { word };
        match (word, open.take()) {
            ("end", Some((from, content, name))) => {
                found.push((from..end, name, Some(text[content..start].to_owned())));
            }
            ("delete", Some((from, content, name)))
                if is_file && text[content..start].trim().is_empty() =>
            {
                found.push((from..end, name, None));
            }
            ("end", None) if !is_file && goes_on(text, &found, start) => {
                extend(text, &mut found, start, end);
            }
            ("end", None) => return None,
            ("delete", _) if is_file => return None,
            (name, None) if is_file || name == "start" => {
                open = Some((start, end, name.to_owned()));
            }
            (name, Some(_)) if is_file || name == "start" => return None,
            (_, as_it_was) => open = as_it_was,
        }
    }
    open.is_none().then_some(found)
}

fn has_fence(text: &str) -> bool {
    ["^^^", "&&&", "%%%", "$$$"]
        .iter()
        .any(|fence| text.contains(fence))
}

/// Whether the last thought ended behind text, with no marker between it and the line at `start`.
fn goes_on(text: &str, found: &[Found], start: usize) -> bool {
    let Some((span, ..)) = found.last() else {
        return false;
    };
    let last = text[span.clone()]
        .trim_end()
        .rsplit('\n')
        .next()
        .unwrap_or_default();
    let is_marker = |line: &str| {
        let begins = line.trim_start().starts_with("^^^")
            || has_fence(line) && !line.trim().ends_with(['&', '%', '$']);
        begins && !line.is_empty()
    };
    let is_behind_text =
        last.len() > 6 && !last.trim_start().starts_with(['&', '%', '$']) || last.contains("start");
    is_behind_text && !text[span.end..start].lines().any(is_marker)
}

fn extend(text: &str, found: &mut [Found], content: usize, end: usize) {
    if let Some((span, _, said)) = found.last_mut() {
        let from = said
            .as_deref()
            .and_then(|said| text[span.clone()].find(said))
            .unwrap_or(0)
            + span.start;
        (span.end, *said) = (end, Some(text[from..content].to_owned()));
    }
}
