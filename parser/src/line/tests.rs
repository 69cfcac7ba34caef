use super::{MarkerLines, fence, file_marker, glued_end, marker, thought_marker};
use crate::fence::Kind;
use nom::Parser;

/// What a production makes of `input`, and what it leaves.
fn read<'t, O: std::fmt::Debug>(
    mut production: impl Parser<&'t str, Output = O, Error = nom::error::Error<&'t str>>,
    input: &'t str,
) -> String {
    match production.parse(input) {
        Ok((rest, output)) => format!("{output:?} left {rest:?}"),
        Err(_) => "no".to_owned(),
    }
}

#[test]
fn a_fence_is_three_or_more_of_one_sigil() {
    insta::assert_snapshot!(read(fence(Kind::File), "^^"), @"no");
    insta::assert_snapshot!(read(fence(Kind::File), "^^^a"), @r#"3 left "a""#);
    insta::assert_snapshot!(read(fence(Kind::File), "^^^^^"), @r#"5 left """#);
    insta::assert_snapshot!(read(fence(Kind::User), "&&&%"), @r#"3 left "%""#);
    insta::assert_snapshot!(read(fence(Kind::User), "%%%"), @"no");
}

#[test]
fn a_file_marker_opens_ends_deletes_or_is_bare() {
    insta::assert_snapshot!(read(file_marker, "^^^src/main.rs"), @r#"Marker { kind: File, length: 3, role: Open("src/main.rs"), exact: true } left """#);
    insta::assert_snapshot!(read(file_marker, "^^^ \t my file.rs"), @r#"Marker { kind: File, length: 3, role: Open("my file.rs"), exact: true } left """#);
    insta::assert_snapshot!(read(file_marker, "^^^^^end"), @r#"Marker { kind: File, length: 5, role: End, exact: true } left """#);
    insta::assert_snapshot!(read(file_marker, "^^^ delete"), @r#"Marker { kind: File, length: 3, role: Delete, exact: true } left """#);
    insta::assert_snapshot!(read(file_marker, "^^^"), @r#"Marker { kind: File, length: 3, role: Bare, exact: true } left """#);
    insta::assert_snapshot!(read(file_marker, "^^^ ^^ ^"), @r#"Marker { kind: File, length: 3, role: Bare, exact: true } left """#);
    insta::assert_snapshot!(read(file_marker, "^^^End"), @r#"Marker { kind: File, length: 3, role: Open("End"), exact: true } left """#);
    insta::assert_snapshot!(read(file_marker, "^^ a"), @"no");
}

#[test]
fn a_thought_marker_begins_with_start_or_end() {
    insta::assert_snapshot!(read(thought_marker(Kind::User), "&&&start"), @r#"Marker { kind: User, length: 3, role: Open(""), exact: true } left """#);
    insta::assert_snapshot!(read(thought_marker(Kind::User), "&&&& end"), @r#"Marker { kind: User, length: 4, role: End, exact: true } left """#);
    insta::assert_snapshot!(read(thought_marker(Kind::Debug), "%%%\u{a0}start"), @r#"Marker { kind: Debug, length: 3, role: Open(""), exact: true } left """#);
    insta::assert_snapshot!(read(thought_marker(Kind::Debug), "%%%started"), @r#"Marker { kind: Debug, length: 3, role: Open("ed"), exact: false } left """#);
    insta::assert_snapshot!(read(thought_marker(Kind::NoChange), "$$$start now"), @r#"Marker { kind: NoChange, length: 3, role: Open("now"), exact: true } left """#);
    insta::assert_snapshot!(read(thought_marker(Kind::User), "&&&end."), @r#"Marker { kind: User, length: 3, role: End, exact: true } left """#);
    insta::assert_snapshot!(read(thought_marker(Kind::User), "&&&START"), @r#"Marker { kind: User, length: 3, role: Open(""), exact: false } left """#);
    insta::assert_snapshot!(read(thought_marker(Kind::User), "&&&start a b &&& End"), @r#"Marker { kind: User, length: 3, role: Whole("a b"), exact: true } left """#);
    insta::assert_snapshot!(read(thought_marker(Kind::User), "&&&start a &&&&end"), @r#"Marker { kind: User, length: 3, role: Crowded { ends: false }, exact: true } left """#);
    insta::assert_snapshot!(read(thought_marker(Kind::NoChange), "$$$"), @"no");
}

#[test]
fn a_marker_is_of_any_kind() {
    insta::assert_snapshot!(read(marker, "$$$end"), @r#"Marker { kind: NoChange, length: 3, role: End, exact: true } left """#);
    insta::assert_snapshot!(read(marker, "%%%end"), @r#"Marker { kind: Debug, length: 3, role: End, exact: true } left """#);
    insta::assert_snapshot!(read(marker, "&&&end"), @r#"Marker { kind: User, length: 3, role: End, exact: true } left """#);
    insta::assert_snapshot!(read(marker, "^^^end"), @r#"Marker { kind: File, length: 3, role: End, exact: true } left """#);
    insta::assert_snapshot!(read(marker, "###end"), @"no");
}

#[test]
fn a_glued_end_reaches_to_the_end_of_its_line() {
    insta::assert_snapshot!(read(glued_end, "^^^end\nx"), @r#"(File, 3) left "x""#);
    insta::assert_snapshot!(read(glued_end, "&&& end \r\n"), @r#"(User, 3) left """#);
    insta::assert_snapshot!(read(glued_end, "^^^end"), @r#"(File, 3) left """#);
    insta::assert_snapshot!(read(glued_end, "^^^ending"), @"no");
    insta::assert_snapshot!(read(glued_end, "^^^\nend"), @"no");
}

fn lines(text: &str) -> String {
    let line = |line: super::MarkerLine<'_>| {
        let glued = if line.glued { " glued" } else { "" };
        format!("{:?} {:?} {:?}{glued}", line.marker, line.span, line.line)
    };
    MarkerLines::new(text)
        .map(line)
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn a_token_that_ends_the_turn_is_no_part_of_the_last_marker() {
    insta::assert_snapshot!(lines("^^^a</s>\n^^^end<|im_end|>\n \n"), @r#"
    Marker { kind: File, length: 3, role: Open("a</s>"), exact: true } 0..8 0..9
    Marker { kind: File, length: 3, role: End, exact: true } 9..15 9..26
    "#);
}
