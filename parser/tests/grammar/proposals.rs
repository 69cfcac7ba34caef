//! S2's strict JSON write proposal, each fault with its path.

use code_commit_parser::proposal::{Change, Edit, Fault, FileWrite, Limits, Proposal, parse};

const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
const SMALL: Limits = Limits {
    file_bytes: 20,
    total_bytes: 30,
};

fn write(path: &str, content: &str) -> String {
    format!(r#"{{"path":"{path}","base_sha256":"{EMPTY}","content":"{content}"}}"#)
}

fn proposal(writes: &str) -> String {
    format!("{{\"summary\":\"s\",\n\"writes\":[{writes}]}}")
}

/// The proposal, or each fault with its code and line.
fn check(text: &str) -> String {
    let show = |proposal: Proposal| {
        let write = |write: &FileWrite| match &write.change {
            Change::Content(content) => format!("\n{} {content:?}", write.path),
            Change::Edits(edits) => {
                let edit = |edit: &Edit| format!(" {:?}->{:?}", edit.search, edit.replace);
                let edits: String = edits.iter().map(edit).collect();
                format!("\n{}{edits}", write.path)
            }
        };
        let writes: String = proposal.writes.iter().map(write).collect();
        format!("{:?}{writes}", proposal.summary)
    };
    let tell = |faults: Vec<Fault>| {
        let tell = |fault: &Fault| format!("{} {:?} {fault}", fault.code, fault.line);
        faults.iter().map(tell).collect::<Vec<_>>().join("\n")
    };
    parse(text.as_bytes(), &SMALL).map_or_else(tell, show)
}

/// The result of each text, a blank line between them.
fn check_all<'t>(texts: impl IntoIterator<Item = &'t str>) -> String {
    let shown: Vec<String> = texts.into_iter().map(check).collect();
    shown.join("\n\n")
}

#[test]
fn a_proposal_has_a_summary_and_writes() {
    insta::assert_snapshot!(check(&proposal(&(write("a", "x\\n\\u00e9\\ud83e\\udd80\\/") + " ,\t" + &write("b", "")))), @r#"
    "s"
    a "x\né🦀/"
    b ""
    "#);
    insta::assert_snapshot!(check(&format!(" {{ \"writes\" : [ {} ] , \"summary\" : \"\" }}\r\n", write("a", "é"))), @r#"
    ""
    a "é"
    "#);
}

/// A file whose `edits` are this.
fn edited(path: &str, edits: &str) -> String {
    format!(r#"{{"path":"{path}","base_sha256":"{EMPTY}","edits":{edits}}}"#)
}

#[test]
fn a_file_has_edits_in_place_of_its_content() {
    let two = r#"[{"search":"a\n","replace":""} , {"replace":"c","search":"b"}]"#;
    insta::assert_snapshot!(check(&proposal(&(edited("a", two) + "," + &write("b", "x")))), @r#"
    "s"
    a "a\n"->"" "b"->"c"
    b "x"
    "#);
}

#[test]
fn a_file_has_either_content_or_edits() {
    let both = edited("a", r#"[{"search":"a","replace":""}],"content":"x""#);
    let neither = write("a", "x").replace(",\"content\":\"x\"", "");
    let unusable = write("a", "x").replace("\"x\"", "null");
    let writes = [both, neither, unusable].map(|write| proposal(&write));
    insta::assert_snapshot!(check_all(writes.iter().map(String::as_str)), @r#"
    content-and-edits None writes[0]: `a` has both `content` and `edits`; give the whole new content, or edits, but not both

    no-content None writes[0]: `a` has no `content`; give `summary` and `writes` once, and for each file `path`, `base_sha256` and `content`

    schema Some(2) writes[0].content: invalid type: null, expected a string at line 2 column 117; give `summary` and `writes` once, and for each file `path`, `base_sha256` and `content`
    "#);
}

#[test]
fn edits_that_say_nothing_or_too_much_are_errors() {
    let edits = [
        edited("a", "[]"),
        edited("b", r#"[{"search":"","replace":"x"}]"#),
        edited("c", r#"[{"search":"x","replace":"\u0000"}]"#),
        edited(
            "d",
            r#"[{"search":"yyyyyyyyyy","replace":"yyyyyyyyyy"},{"search":"y","replace":""}]"#,
        ),
    ];
    insta::assert_snapshot!(check(&proposal(&edits.join(",\n"))), @r#"
    empty-edits None writes[0].edits: `a` has no edits; give at least one edit, or the whole new content
    empty-search None writes[1].edits: `b` has an edit with no lines to search for; repeat the lines that the new ones go next to, or give the whole new content
    binary-content None writes[2].edits: `c` has a NUL character in its content; propose files of text only
    file-too-large None writes[3].edits: `d` is too large; propose less at once
    "#);
}

#[test]
fn edits_have_their_own_schema() {
    let edits = [
        r#"[{"search":"a"}]"#,
        r#"[{"search":"a","replace":"b","all":true}]"#,
        r#"[["a","b"]]"#,
    ];
    let texts = edits.map(|edits| proposal(&edited("a", edits)));
    insta::assert_snapshot!(check_all(texts.iter().map(String::as_str)), @r#"
    schema Some(2) writes[0].edits[0]: missing field `replace` at line 2 column 126; give `summary` and `writes` once, and for each file `path`, `base_sha256` and `content`

    schema Some(2) writes[0].edits[0].all: unknown field `all`, expected `search` or `replace` at line 2 column 145; give `summary` and `writes` once, and for each file `path`, `base_sha256` and `content`

    schema Some(2) writes[0].edits[0]: invalid type: sequence, expected an object at line 2 column 112; give `summary` and `writes` once, and for each file `path`, `base_sha256` and `content`
    "#);
}

#[test]
fn keys_are_neither_unknown_nor_missing_nor_given_twice() {
    let good = proposal(&write("a", ""));
    let texts = [
        good.replace("\"summary\"", "\"why\":[1],\"summary\""),
        good.replace("\"path\"", "\"mode\":\"x\",\"path\""),
        "{}".to_owned(),
        proposal("{\"path\":\"a\"}"),
        good.replace("\"summary\"", "\"summary\":\"t\",\"summary\""),
        good.replace("\"content\"", "\"p\\u0061th\":\"t\",\"content\""),
    ];
    insta::assert_snapshot!(check_all(texts.iter().map(String::as_str)), @r#"
    schema Some(1) why: unknown field `why`, expected `summary` or `writes` at line 1 column 6; give `summary` and `writes` once, and for each file `path`, `base_sha256` and `content`

    schema Some(2) writes[0].mode: unknown field `mode`, expected one of `path`, `base_sha256`, `content`, `edits` at line 2 column 17; give `summary` and `writes` once, and for each file `path`, `base_sha256` and `content`

    schema Some(1) missing field `summary` at line 1 column 2; give `summary` and `writes` once, and for each file `path`, `base_sha256` and `content`

    schema Some(2) writes[0]: missing field `base_sha256` at line 2 column 22; give `summary` and `writes` once, and for each file `path`, `base_sha256` and `content`

    schema Some(1) duplicate field `summary` at line 1 column 24; give `summary` and `writes` once, and for each file `path`, `base_sha256` and `content`

    schema Some(2) writes[0]: duplicate field `path` at line 2 column 114; give `summary` and `writes` once, and for each file `path`, `base_sha256` and `content`
    "#);
}

#[test]
fn wrong_types_are_errors_and_no_list_is_taken_for_an_object() {
    let texts = [
        "[\"s\",[]]".to_owned(),
        "null".to_owned(),
        "{\"summary\":1.5e3}".to_owned(),
        "{\"writes\":{}}".to_owned(),
        proposal("\"a\""),
        proposal(&format!("[\"a\",\"{EMPTY}\",\"x\"]")),
        proposal("{\"path\":[\"a\"]}"),
        proposal(&write("a", "")).replace(&format!("\"{EMPTY}\""), "null"),
    ];
    insta::assert_snapshot!(check_all(texts.iter().map(String::as_str)), @r#"
    schema Some(1) invalid type: sequence, expected an object at line 1 column 0; give `summary` and `writes` once, and for each file `path`, `base_sha256` and `content`

    schema Some(1) invalid type: null, expected an object at line 1 column 4; give `summary` and `writes` once, and for each file `path`, `base_sha256` and `content`

    schema Some(1) summary: invalid type: floating point `1500.0`, expected a string at line 1 column 16; give `summary` and `writes` once, and for each file `path`, `base_sha256` and `content`

    schema Some(1) writes: invalid type: map, expected a sequence at line 1 column 10; give `summary` and `writes` once, and for each file `path`, `base_sha256` and `content`

    schema Some(2) writes[0]: invalid type: string "a", expected an object at line 2 column 13; give `summary` and `writes` once, and for each file `path`, `base_sha256` and `content`

    schema Some(2) writes[0]: invalid type: sequence, expected an object at line 2 column 10; give `summary` and `writes` once, and for each file `path`, `base_sha256` and `content`

    schema Some(2) writes[0].path: invalid type: sequence, expected a string at line 2 column 18; give `summary` and `writes` once, and for each file `path`, `base_sha256` and `content`

    schema Some(2) writes[0].base_sha256: invalid type: null, expected a string at line 2 column 40; give `summary` and `writes` once, and for each file `path`, `base_sha256` and `content`
    "#);
}

#[test]
fn what_is_not_json_is_an_error() {
    let texts = [
        "{'summary':''}",
        "\u{feff}{}",
        "{\"summary\":NaN}",
        "{\"summary\":\"a\nb\"}",
        "{\"summary\":\"\\ud800x\"}",
    ];
    insta::assert_snapshot!(check_all(texts), @r#"
    syntax Some(1) key must be a string at line 1 column 2; write one JSON object and nothing else; in strings, escape control characters, as in `\n`, and write surrogates in pairs

    syntax Some(1) expected value at line 1 column 1; write one JSON object and nothing else; in strings, escape control characters, as in `\n`, and write surrogates in pairs

    syntax Some(1) summary: expected value at line 1 column 12; write one JSON object and nothing else; in strings, escape control characters, as in `\n`, and write surrogates in pairs

    syntax Some(2) summary: control character (\u0000-\u001F) found while parsing a string at line 2 column 0; write one JSON object and nothing else; in strings, escape control characters, as in `\n`, and write surrogates in pairs

    syntax Some(1) summary: unexpected end of hex escape at line 1 column 19; write one JSON object and nothing else; in strings, escape control characters, as in `\n`, and write surrogates in pairs
    "#);
}

#[test]
fn a_proposal_has_nothing_before_it_or_after_it_and_is_whole() {
    let whole = proposal(&write("a", ""));
    let texts = [
        format!("\n```json\n{whole}\n```"),
        whole.clone() + "\n{}",
        whole + " Done.",
        String::new(),
        "{\"summary\":\"s\\".to_owned(),
        "{\"summary\":\"s\",\"writes\":[".to_owned(),
    ];
    insta::assert_snapshot!(check_all(texts.iter().map(String::as_str)), @r#"
    markdown-fence None the proposal is wrapped in a Markdown fence; begin with `{` and end with `}`, without lines of backquotes

    trailing-data Some(3) trailing characters at line 3 column 1; end with the `}` of the object

    trailing-data Some(2) trailing characters at line 2 column 120; end with the `}` of the object

    cut-off Some(1) EOF while parsing a value at line 1 column 0; write the whole object, or fewer files

    cut-off Some(1) summary: EOF while parsing a string at line 1 column 14; write the whole object, or fewer files

    cut-off Some(1) writes: EOF while parsing a list at line 1 column 25; write the whole object, or fewer files
    "#);
}

#[test]
fn a_hostile_proposal_gets_a_short_error_without_recursion() {
    let long = "é\\n".repeat(100_000);
    let deep = "[".repeat(1_000_000);
    let texts = [
        deep.clone(),
        "{\"summary\":".repeat(1_000_000),
        format!("{{\"why\":{deep}"),
        format!("{{\"{long}\":1}}"),
        format!("{{\"writes\":\"{long}\"}}"),
    ];
    insta::assert_snapshot!(check_all(texts.iter().map(String::as_str)), @r#"
    schema Some(1) invalid type: sequence, expected an object at line 1 column 0; give `summary` and `writes` once, and for each file `path`, `base_sha256` and `content`

    schema Some(1) summary: invalid type: map, expected a string at line 1 column 11; give `summary` and `writes` once, and for each file `path`, `base_sha256` and `content`

    schema Some(1) why: unknown field `why`, expected `summary` or `writes` at line 1 column 6; give `summary` and `writes` once, and for each file `path`, `base_sha256` and `content`

    schema Some(1) é: unknown field `é\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\…; give `summary` and `writes` once, and for each file `path`, `base_sha256` and `content`

    schema Some(1) writes: invalid type: string "é\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né\né…; give `summary` and `writes` once, and for each file `path`, `base_sha256` and `content`
    "#);
    let many = vec![r#"{"path":"a","base_sha256":""}"#; 2_000].join(",");
    assert_eq!(
        parse(proposal(&many).as_bytes(), &SMALL).unwrap_err().len(),
        code_commit_parser::MOST_KEPT
    );
}

#[test]
fn all_faults_of_the_files_are_told_at_once() {
    let writes = [
        write("", ""),
        write("a", "x"),
        write("a", &"y".repeat(21)),
        write("b", &("z".repeat(14) + "\\u0000")),
    ];
    insta::assert_snapshot!(check(&proposal(&writes.join(",\n"))), @r#"
    empty-path None writes[0].path: `` is not a path; give the path relative to the root of the repository
    duplicate-path None writes[2].path: `a` is written twice; give each file once, with its final content
    file-too-large None writes[2].content: `a` is too large; propose less at once
    binary-content None writes[3].content: `b` has a NUL character in its content; propose files of text only
    proposal-too-large None writes: the contents are too large together; propose less at once
    "#);
    insta::assert_snapshot!(check(&proposal("")), @"empty-writes None writes: there is no file; propose at least one file");
    assert!(parse(proposal(&write("a", "\\u001b\\u0007")).as_bytes(), &SMALL).is_ok());
}

#[test]
fn the_limits_are_reached_but_not_passed() {
    assert!(parse(proposal(&write("a", &"y".repeat(20))).as_bytes(), &SMALL).is_ok());
    let two = [write("a", &"y".repeat(20)), write("b", &"y".repeat(10))].join(",");
    assert!(parse(proposal(&two).as_bytes(), &SMALL).is_ok());
    assert_eq!(
        (Limits::default().file_bytes, Limits::default().total_bytes),
        (204_800, 512_000)
    );
}

#[test]
fn a_proposal_that_is_not_utf8_is_refused_with_its_line() {
    let faults = parse(b"{\n\"summary\":\"\xff\"}", &SMALL).unwrap_err();
    assert_eq!(faults[0].line, Some(2));
    insta::assert_snapshot!(faults[0], @r#"the proposal is not valid UTF-8; write plain UTF-8 text"#);
}

#[test]
fn a_base_hash_is_kept_as_it_was_written_whatever_it_is() {
    for hash in [EMPTY, &EMPTY.to_uppercase(), "", "deadbeef"] {
        let text = proposal(&write("a", "x")).replace(EMPTY, hash);
        assert_eq!(
            parse(text.as_bytes(), &SMALL).unwrap().writes[0].base_sha256,
            hash
        );
    }
}
