//! S4's markers, whole and in pieces. `PROPTEST_CASES` (default 64) sets how many texts are tried.
#![expect(clippy::string_slice, reason = "a test that panics has failed")]

use code_commit_parser::marker::{End, Event, Markers};
use proptest::prelude::*;

const NAMES: [&str; 3] = ["NOTE", "NOTES", "DONE"];

/// All events of `pieces`, neighbouring texts joined, and what is left.
fn read<'t>(pieces: impl IntoIterator<Item = &'t str>) -> (Vec<Event>, End) {
    let mut markers = Markers::new(NAMES);
    let mut all: Vec<Event> = Vec::new();
    for event in pieces.into_iter().flat_map(|piece| markers.push(piece)) {
        match (all.last_mut(), event) {
            (Some(Event::Text(before)), Event::Text(text)) => before.push_str(&text),
            (_, event) => all.push(event),
        }
    }
    let mut end = markers.finish();
    match all.last_mut() {
        Some(Event::Text(before)) => before.push_str(&std::mem::take(&mut end.text)),
        Some(Event::Marker { .. }) | None if end.text.is_empty() => {}
        Some(Event::Marker { .. }) | None => all.push(Event::Text(std::mem::take(&mut end.text))),
    }
    (all, end)
}

fn check(text: &str) -> String {
    let (events, end) = read([text]);
    let show = |event: &Event| match event {
        Event::Text(text) => format!("text {text:?}"),
        Event::Marker { name, content } => format!("{name} {content:?}"),
    };
    let half = end
        .half
        .map(|half| format!("half {} {:?}", half.name, half.content));
    events
        .iter()
        .map(show)
        .chain(half)
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn text_and_markers_keep_their_order() {
    insta::assert_snapshot!(check("a\n<NOTE>\nb\n</NOTE>\nc <DONE>d</DONE><DONE></DONE>e"), @r#"
    text "a\n"
    NOTE "\nb\n"
    text "\nc "
    DONE "d"
    DONE ""
    text "e"
    "#);
}

#[test]
fn only_allowed_names_are_markers() {
    insta::assert_snapshot!(check("<APPROVED>x</APPROVED> <note>y</note> < NOTE> <NOTE/> </NOTE> <"), @r#"text "<APPROVED>x</APPROVED> <note>y</note> < NOTE> <NOTE/> </NOTE> <""#);
}

#[test]
fn a_name_that_begins_another_is_told_from_it() {
    insta::assert_snapshot!(check("<NOTES>x</NOTE></NOTES><NOTE>y</NOTES></NOTE>"), @r#"
    NOTES "x</NOTE>"
    NOTE "y</NOTES>"
    "#);
}

#[test]
fn tags_inside_a_marker_are_content() {
    insta::assert_snapshot!(check("<NOTE>a <DONE>b</DONE> <NOTE>c</NOTE> d</NOTE>"), @r#"
    NOTE "a <DONE>b</DONE> <NOTE>c"
    text " d</NOTE>"
    "#);
}

#[test]
fn half_a_marker_is_dropped_and_reported() {
    insta::assert_snapshot!(check("a<NOTE>b</NOT"), @r#"
    text "a"
    half NOTE "b</NOT"
    "#);
}

#[test]
fn half_a_tag_at_the_end_is_text() {
    insta::assert_snapshot!(check("x <NOT"), @r#"text "x <NOT""#);
}

#[test]
fn text_is_told_as_soon_as_it_cannot_be_a_tag() {
    let mut markers = Markers::new(NAMES);
    assert_eq!(markers.push("a <NO"), [Event::Text("a ".into())]);
    assert_eq!(markers.push("TE"), []);
    assert_eq!(markers.push("D>"), [Event::Text("<NOTED>".into())]);
}

#[test]
fn a_marker_that_arrives_in_a_million_pieces_is_read_in_linear_time() {
    let mut markers = Markers::new(NAMES);
    markers.push("<NOTE>");
    let told: usize = (0..1_000_000).map(|_| markers.push("x").len()).sum();
    assert_eq!(told, 0);
    assert!(
        matches!(markers.push("</NOTE>").as_slice(), [Event::Marker { content, .. }] if content.len() == 1_000_000)
    );
}

/// Finds the markers by searching the whole text, as one would without a stream.
fn naive(text: &str) -> (Vec<Event>, bool) {
    let mut events = Vec::new();
    let mut rest = text;
    loop {
        let opening = |name: &&str| {
            rest.find(&format!("<{name}>"))
                .map(|at| (at, (*name).to_owned()))
        };
        let Some((at, name)) = NAMES.iter().filter_map(opening).min() else {
            events.extend((!rest.is_empty()).then(|| Event::Text(rest.to_owned())));
            return (events, false);
        };
        events.extend((at > 0).then(|| Event::Text(rest[..at].to_owned())));
        let inner = &rest[at + name.len() + 2..];
        let Some((content, after)) = inner.split_once(&format!("</{name}>")) else {
            return (events, true);
        };
        events.push(Event::Marker {
            name,
            content: content.to_owned(),
        });
        rest = after;
    }
}

fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("<NOTE>"),
        Just("</NOTE>"),
        Just("<NOTES>"),
        Just("</NOTES>"),
        Just("<DONE>"),
        Just("</DONE>"),
        Just("<"),
        Just("<NO"),
        Just("</"),
        Just("TE>"),
        Just("x"),
        Just("é\n"),
        Just("🦀"),
    ];
    proptest::collection::vec(piece, 0..20).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn the_stream_finds_what_a_search_of_the_whole_finds(text in text()) {
        let (events, end) = read([text.as_str()]);
        prop_assert_eq!((events, end.half.is_some()), naive(&text));
    }

    #[test]
    fn splitting_at_every_character_changes_nothing(text in text(), sizes in proptest::collection::vec(1_usize..9, 1..9)) {
        let whole = read([text.as_str()]);
        let starts: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
        for at in &starts {
            let (head, tail) = text.split_at(*at);
            prop_assert_eq!(&read([head, tail]), &whole);
        }
        for size in sizes.into_iter().chain([1]) {
            let cuts: Vec<usize> = starts.iter().copied().step_by(size).chain([text.len()]).collect();
            prop_assert_eq!(&read(cuts.windows(2).map(|cut| &text[cut[0]..cut[1]])), &whole);
        }
    }
}
