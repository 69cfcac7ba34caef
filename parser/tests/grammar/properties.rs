//! What holds for every reply. `PROPTEST_CASES` (default 64) sets how many are tried.
#![expect(
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "a test that panics has failed"
)]

mod four_passes;

use std::collections::HashSet;

use code_commit_parser::edit::{self, Hunk};
use code_commit_parser::fence::check_name;
use code_commit_parser::partial::Openers;
use code_commit_parser::{Ask, Diagnostic, FileAction, Reply, parse, parse_bytes};
use proptest::prelude::*;

/// Lines that a parser of fences could stumble over, and lines that it should not notice.
fn line() -> impl Strategy<Value = String> {
    let marker = (
        "[ \t]{0,2}",
        "\\^{2,5}|&{3,4}|%{3,4}|\\${3,4}",
        "[ \t]?",
        word(),
        "[ \t\r]{0,2}",
    )
        .prop_map(|(before, fence, between, word, after)| {
            format!("{before}{fence}{between}{word}{after}")
        });
    let hunk = "<{7,8} SEARCH|={6,8}|>{7,8} REPLACE|<{7} HEAD";
    prop_oneof![4 => marker, 2 => hunk, 2 => "[a-z^&%$ é\u{a0}]{0,6}", 1 => "x\\^{3}end", 1 => Just(String::new())]
}

fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("start".into()),
        Just("end".into()),
        Just("delete".into()),
        "END|Delete|end x|end[.]|\\^|started|start x|edit a|edit a b|a [(]new[)]|a b",
        Just(String::new()),
        "[ab]/?[c`]?"
    ]
}

fn text() -> impl Strategy<Value = String> {
    (
        proptest::collection::vec(line(), 0..12),
        prop_oneof![Just("\n"), Just("\r\n")],
        "[\u{feff}\n]?",
    )
        .prop_map(|(lines, ending, head)| head + &lines.join(ending))
}

/// Content that can be printed: empty, or whole lines.
fn content() -> impl Strategy<Value = String> {
    prop_oneof![
        text().prop_map(|text| text + "\n"),
        any::<String>().prop_map(|text| text + "\n"),
        Just(String::new())
    ]
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Owned {
    Write(String, String),
    Edit(String, Vec<(String, String)>),
    Delete(String),
    User(String),
    Debug(String),
    NoChange(String),
}

/// The blocks as a reply has them.
fn printed(blocks: &[Owned]) -> String {
    blocks.iter().map(block).collect()
}

fn block(block: &Owned) -> String {
    match block {
        Owned::Write(path, content) => fenced('^', path, content, "end"),
        Owned::Edit(path, hunks) => {
            let hunks: String = hunks.iter().map(hunk).collect();
            fenced('^', &format!("edit {path}"), &hunks, "end")
        }
        Owned::Delete(path) => fenced('^', path, "", "delete"),
        Owned::User(content) => fenced('&', "start", content, "end"),
        Owned::Debug(content) => fenced('%', "start", content, "end"),
        Owned::NoChange(content) => fenced('$', "start", content, "end"),
    }
}

/// Longer than any fence of the content, if it has one.
fn fenced(sigil: char, name: &str, content: &str, close: &str) -> String {
    let is_plain = !content.contains(['^', '&', '%', '$']);
    let fence = String::from(sigil).repeat(if is_plain { 3 } else { 12 });
    format!("{fence}{name}\n{content}{fence}{close}\n")
}

fn hunk((search, replace): &(String, String)) -> String {
    format!(
        "{} SEARCH\n{search}{}\n{replace}{} REPLACE\n",
        "<".repeat(12),
        "=".repeat(12),
        ">".repeat(12)
    )
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z]{1,3}(/[a-zé &]{1,4}){0,2}", any::<String>()]
        .prop_filter("a name that can be written", |name| {
            check_name(name).is_ok()
        })
}

fn blocks() -> impl Strategy<Value = Vec<Owned>> {
    let hunk = (content(), content()).prop_filter("old lines", |(search, _)| !search.is_empty());
    let file = prop_oneof![
        (name(), proptest::collection::vec(hunk, 1..4))
            .prop_map(|(name, hunks)| Owned::Edit(name, hunks)),
        (name(), content()).prop_map(|(name, content)| Owned::Write(name, content)),
        name().prop_map(Owned::Delete)
    ];
    let thoughts = prop_oneof![
        content().prop_map(Owned::User),
        content().prop_map(Owned::Debug)
    ];
    let files = prop_oneof![file, thoughts.clone()];
    let none = prop_oneof![content().prop_map(Owned::NoChange), thoughts];
    prop_oneof![
        proptest::collection::vec(files, 0..6),
        proptest::collection::vec(none, 0..6)
    ]
    .prop_filter("no file twice", |blocks| {
        let mut names = HashSet::new();
        blocks.iter().all(|block| match block {
            Owned::Write(name, _) | Owned::Edit(name, _) | Owned::Delete(name) => {
                names.insert(name.clone())
            }
            Owned::User(_) | Owned::Debug(_) | Owned::NoChange(_) => true,
        })
    })
}

/// What was read.
fn owned(reply: &Reply<'_>) -> Vec<Owned> {
    let text = reply.text();
    let mut files = reply.files();
    let block = |block: &code_commit_parser::Block| match block.ask {
        Ask::Write(_) | Ask::Edit(_) | Ask::Delete(_) => {
            let file = files.next().unwrap();
            assert_eq!(file.span, block.span);
            let path = file.path.to_owned();
            match file.action {
                FileAction::Write(content) => Owned::Write(path, content.to_owned()),
                FileAction::Edit(hunks) => {
                    let hunk = |hunk: Hunk<'_>| (hunk.search.to_owned(), hunk.replace.to_owned());
                    Owned::Edit(path, hunks.iter().map(hunk).collect())
                }
                FileAction::Delete => Owned::Delete(path),
            }
        }
        Ask::User => Owned::User(text[block.content.clone()].to_owned()),
        Ask::Debug => Owned::Debug(text[block.content.clone()].to_owned()),
        Ask::NoChange => Owned::NoChange(text[block.content.clone()].to_owned()),
    };
    reply.blocks().iter().map(block).collect()
}

fn check_place<C>(bytes: &[u8], found: &Diagnostic<C>) {
    let head = std::str::from_utf8(&bytes[..found.span.start]).unwrap();
    let line_start = head.rfind('\n').map_or(0, |newline| newline + 1);
    assert_eq!(found.line, head.matches('\n').count() + 1);
    assert_eq!(found.column, head[line_start..].chars().count() + 1);
    assert!(found.span.start <= found.span.end && found.span.end <= bytes.len());
}

fn check_spans(text: &str, reply: &Reply<'_>) {
    let mut end = 0;
    for block in reply.blocks() {
        assert!(end <= block.span.start && block.span.start <= block.content.start);
        assert!(block.content.start <= block.content.end && block.content.end <= block.span.end);
        assert!(
            text.is_char_boundary(block.span.start) && text.is_char_boundary(block.content.start)
        );
        assert!(text.is_char_boundary(block.content.end) && text.is_char_boundary(block.span.end));
        end = block.span.end;
    }
    for file in reply.files() {
        assert!(text[file.span.clone()].contains(file.path));
        if let FileAction::Write(content) = file.action {
            assert!(text[file.span].contains(content));
        }
    }
    reply
        .warnings()
        .iter()
        .for_each(|warning| check_place(text.as_bytes(), warning));
}

proptest! {
    #[test]
    fn what_is_printed_is_read_back(blocks in blocks()) {
        let text = printed(&blocks);
        let actionable = blocks.iter().any(|block| !matches!(block, Owned::User(_) | Owned::Debug(_)));
        match parse(&text) {
            Ok(reply) => prop_assert_eq!(owned(&reply), blocks),
            Err(errors) => prop_assert!(!actionable, "{}\n{}", errors.for_model(), text),
        }
    }

    /// Of a thought whose end alone is in the reply, the blocks are closed.
    #[test]
    fn a_thought_between_tags_changes_nothing_of_the_reply_behind_it(
        noise in text(), drafts in blocks(), blocks in blocks()
    ) {
        let (drafts, text) = (printed(&drafts), printed(&blocks));
        for thought in [format!("<think>{noise}</think>"), format!("{drafts}</think>\n"), format!("{drafts}\n \t</think>")] {
            let whole = format!("{thought}{text}");
            match (parse(&text), parse(&whole)) {
                (Ok(reply), Ok(behind)) => {
                    prop_assert_eq!(owned(&behind), owned(&reply));
                    prop_assert_eq!(behind.thinking().count(), 1);
                    behind.files().for_each(|file| assert!(file.span.start >= thought.len()));
                }
                (reply, behind) => prop_assert!(reply.is_err() && behind.is_err(), "{}", whole),
            }
        }
    }

    #[test]
    fn one_pass_finds_what_four_passes_find(text in four_passes::text()) {
        let expected = four_passes::read(&text);
        match parse(&text) {
            Ok(reply) => prop_assert_eq!(Some(four_passes::Blocks::of(&reply)), expected),
            Err(errors) => prop_assert_eq!(None, expected, "{}", errors.for_model()),
        }
    }

    #[test]
    fn places_are_true_for_any_text(text in text()) {
        match parse(&text) {
            Ok(reply) => check_spans(&text, &reply),
            Err(errors) => {
                prop_assert!(errors.total() > 0);
                errors.iter().for_each(|error| check_place(text.as_bytes(), error));
                prop_assert!(errors.iter().is_sorted_by_key(|error| error.span.start));
                prop_assert!(errors.for_model().len() < 10_000);
            }
        }
    }

    #[test]
    fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(
        prop_oneof![Just(b'^'), Just(b'&'), Just(b'\n'), Just(b'e'), any::<u8>()], 0..200)
    ) {
        match parse_bytes(&bytes) {
            Ok(reply) => check_spans(reply.text(), &reply),
            Err(errors) => errors.iter().for_each(|error| check_place(&bytes, error)),
        }
    }

    #[test]
    fn a_growing_text_names_the_files_that_the_whole_text_has(blocks in blocks(), step in 1_usize..40) {
        let text = printed(&blocks);
        let mut openers = Openers::default();
        let ends = (0..text.len()).step_by(step).filter(|end| text.is_char_boundary(*end)).chain([text.len()]);
        let seen: Vec<&str> = ends.flat_map(|end| openers.read(&text[..end])).collect();
        let named: Vec<&str> = blocks.iter().filter_map(|block| match block {
            Owned::Write(name, _) | Owned::Edit(name, _) | Owned::Delete(name) => Some(name.as_str()),
            Owned::User(_) | Owned::Debug(_) | Owned::NoChange(_) => None,
        }).collect();
        prop_assert_eq!(seen, named);
    }

    /// Lines that occur once are found whatever stands around them.
    #[test]
    fn an_edit_gives_the_same_bytes_as_the_whole_file(
        lines in proptest::collection::vec("[ab<=>^ é\r]{0,9}", 0..12),
        ends in prop_oneof![Just("\n"), Just("\r\n")],
        is_open in any::<bool>(),
        edits in proptest::collection::vec((any::<bool>(), proptest::collection::vec("[xy<=>^ ]{0,9}", 0..3)), 12),
    ) {
        // A line without an end shows no way to end lines.
        let ends = if is_open && lines.len() < 2 { "\n" } else { ends };
        // Numbers make each line the only one of its kind; the ends are those of the file.
        let lines: Vec<String> = lines.iter().enumerate().map(|(at, line)| format!("{at}{}", line.trim_end())).collect();
        let old: String = lines.iter().map(|line| format!("{line}{ends}")).collect();
        let edits: Vec<_> = lines.iter().zip(&edits).map(|(line, (is_edited, new))| (line, is_edited.then_some(new))).collect();
        let whole: String = edits.iter().map(|(line, new)| match new {
            Some(new) => new.iter().map(|line| format!("{line}{ends}")).collect(),
            None => format!("{line}{ends}"),
        }).collect();
        let hunks: Vec<(String, String)> = edits.iter().filter_map(|(line, new)| {
            let new: String = new.as_ref()?.iter().map(|line| format!("{line}\n")).collect();
            Some((format!("{line}\n"), new))
        }).collect();
        let removes_the_last = edits.last().is_some_and(|(_, new)| new.as_ref().is_some_and(|new| new.is_empty()));
        let open = |text: &str| text.strip_suffix(ends).unwrap_or(text).to_owned();
        let (old, whole) = if is_open { (open(&old), if removes_the_last { whole } else { open(&whole) }) } else { (old, whole) };
        if hunks.is_empty() {
            return Ok(());
        }
        let text = printed(&[Owned::Edit("a".to_owned(), hunks)]);
        let reply = parse(&text).unwrap();
        let Some(FileAction::Edit(hunks)) = reply.files().next().map(|file| file.action) else { panic!("{text}") };
        prop_assert_eq!(edit::apply(&old, hunks.iter()), Ok(whole));
    }
}
