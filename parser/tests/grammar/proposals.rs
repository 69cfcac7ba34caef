//! S2's strict JSON write proposal, each error with its place. `PROPTEST_CASES` (default 64) sets how many texts
//! are tried.
#![expect(
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "a test that panics has failed"
)]

use std::collections::HashSet;

use code_commit_parser::proposal::{Change, Limits, Proposal, parse};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};

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

/// The proposal, or each error with the text at its place.
fn check(text: &str) -> String {
    let show = |proposal: Proposal<'_>| {
        let write = |write: &code_commit_parser::proposal::FileWrite<'_>| match &write.change {
            Change::Content(content) => format!("\n{} {content:?}", write.path),
            Change::Edits(edits) => {
                let edit = |edit: &code_commit_parser::proposal::Edit<'_>| {
                    format!(" {:?}->{:?}", edit.search, edit.replace)
                };
                format!(
                    "\n{}{}",
                    write.path,
                    edits.iter().map(edit).collect::<String>()
                )
            }
        };
        format!(
            "{:?}{}",
            proposal.summary,
            proposal.writes.iter().map(write).collect::<String>()
        )
    };
    let tell = |errors: code_commit_parser::Errors<_>| {
        let place = |span: &code_commit_parser::Span| {
            text[span.clone()].chars().take(20).collect::<String>()
        };
        let tell =
            |e: &code_commit_parser::Diagnostic<code_commit_parser::proposal::ProposalCode>| {
                format!(
                    "{} {}:{} {:?}\n  {}",
                    e.code,
                    e.line,
                    e.column,
                    place(&e.span),
                    e.for_model()
                )
            };
        errors.iter().map(tell).collect::<Vec<_>>().join("\n")
    };
    parse(text.as_bytes(), &SMALL).map_or_else(tell, show)
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
    let both = write("a", "x").replace(
        "\"content\"",
        "\"edits\":[{\"search\":\"a\",\"replace\":\"\"}],\"content\"",
    );
    insta::assert_snapshot!(check(&proposal(&both)), @r#"
    content-and-edits 2:11 "{\"path\":\"a\",\"base_sh"
      line 2: `a` has both `content` and `edits`; give the whole new content, or edits, but not both
    "#);
    let neither = write("a", "x").replace(",\"content\":\"x\"", "");
    insta::assert_snapshot!(check(&proposal(&neither)), @r#"
    no-content 2:11 "{\"path\":\"a\",\"base_sh"
      line 2: `a` has no `content`; give `summary` and `writes` once, and for each file `path`, `base_sha256` and `content`
    "#);
    let unusable = write("a", "x").replace("\"x\"", "null");
    insta::assert_snapshot!(check(&proposal(&unusable)), @r#"
    wrong-type 2:114 "null"
      line 2: the value of `content` has the wrong type; `writes` is a list of objects, every other value is a string
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
    empty-edits 2:112 "[]"
      line 2: the `edits` of `a` are empty; give at least one edit, or the whole new content
    empty-search 3:102 "[{\"search\":\"\",\"repla"
      line 3: an edit of `b` has no lines to search for; repeat the lines that the new ones go next to, or give the whole new content
    binary-content 4:102 "[{\"search\":\"x\",\"repl"
      line 4: the content of `c` contains a NUL character; propose files of text only
    file-too-large 5:102 "[{\"search\":\"yyyyyyyy"
      line 5: the content of `d` is too large; propose less at once
    "#);
}

#[test]
fn edits_have_their_own_schema() {
    for (edits, errors) in [
        (r#"[{"search":"a"}]"#, "missing-key"),
        (
            r#"[{"search":"a","replace":"b","all":true}]"#,
            "unknown-key",
        ),
        (
            r#"[{"search":"a","search":"a","replace":"b"}]"#,
            "duplicate-key",
        ),
        (r#"[{"search":1,"replace":"b"}]"#, "wrong-type"),
        (r#"["a"]"#, "wrong-type"),
        (r#"{"search":"a","replace":"b"}"#, "wrong-type"),
        (r#""a""#, "wrong-type"),
        (r#"[{"search":"a","replace":"b"},]"#, "syntax"),
        (
            r#"[{"search":"a","replace":"b"} {"search":"a","replace":"b"}]"#,
            "syntax",
        ),
        (r"[,]", "syntax"),
    ] {
        let text = proposal(&edited("a", edits));
        let found = parse(text.as_bytes(), &SMALL).unwrap_err();
        assert_eq!(
            found
                .iter()
                .map(|error| error.code.as_str())
                .collect::<Vec<_>>(),
            [errors],
            "{edits}"
        );
    }
    insta::assert_snapshot!(check(&proposal(&edited("a", r#"[{"search":null}]"#))), @r#"
    missing-key 2:113 "{\"search\":null}"
      line 2: `replace` is missing; `edits` is a list of objects, each with `search` and `replace`, which are strings
    wrong-type 2:123 "null"
      line 2: the value of `search` has the wrong type; `edits` is a list of objects, each with `search` and `replace`, which are strings
    "#);
}

#[test]
fn unknown_keys_are_errors() {
    insta::assert_snapshot!(check(&proposal(&write("a", "")).replace("\"summary\"", "\"why\":1,\"summary\"")), @r#"
    unknown-key 1:2 "\"why\""
      line 1: "why" is not a key of a proposal; give `summary` and `writes` once, and for each file `path`, `base_sha256` and `content`
    "#);
    insta::assert_snapshot!(check(&proposal(&write("a", "")).replace("\"path\"", "\"mode\":\"x\",\"path\"")), @r#"
    unknown-key 2:12 "\"mode\""
      line 2: "mode" is not a key of a proposal; give `summary` and `writes` once, and for each file `path`, `base_sha256` and `content`
    "#);
    insta::assert_snapshot!(check(&proposal(&write("a", "")).replace("\"summary\"", "\"plan\":[1],\"summary\"")), @r#"
    unknown-key 1:2 "\"plan\""
      line 1: "plan" is not a key of a proposal; give `summary` and `writes` once, and for each file `path`, `base_sha256` and `content`
    "#);
}

#[test]
fn missing_keys_are_errors() {
    insta::assert_snapshot!(check("{}"), @r#"
    missing-key 1:1 "{}"
      line 1: `summary` is missing; give `summary` and `writes` once, and for each file `path`, `base_sha256` and `content`
    missing-key 1:1 "{}"
      line 1: `writes` is missing; give `summary` and `writes` once, and for each file `path`, `base_sha256` and `content`
    "#);
    insta::assert_snapshot!(check(&proposal("{\"path\":\"a\"}, {}")), @r#"
    missing-key 2:11 "{\"path\":\"a\"}"
      line 2: `base_sha256` is missing; give `summary` and `writes` once, and for each file `path`, `base_sha256` and `content`
    no-content 2:11 "{\"path\":\"a\"}"
      line 2: `a` has no `content`; give `summary` and `writes` once, and for each file `path`, `base_sha256` and `content`
    missing-key 2:25 "{}"
      line 2: `path` is missing; give `summary` and `writes` once, and for each file `path`, `base_sha256` and `content`
    missing-key 2:25 "{}"
      line 2: `base_sha256` is missing; give `summary` and `writes` once, and for each file `path`, `base_sha256` and `content`
    missing-key 2:25 "{}"
      line 2: `content` is missing; give `summary` and `writes` once, and for each file `path`, `base_sha256` and `content`
    "#);
}

#[test]
fn duplicate_keys_are_errors() {
    insta::assert_snapshot!(check(&proposal(&write("a", "")).replace("\"summary\"", "\"summary\":\"t\",\"summary\"")), @r#"
    duplicate-key 1:16 "\"summary\""
      line 1: "summary" appears twice in one object; give `summary` and `writes` once, and for each file `path`, `base_sha256` and `content`
    "#);
    insta::assert_snapshot!(check(&proposal(&write("a", "")).replace("\"content\"", "\"p\\u0061th\":\"t\",\"content\"")), @r#"
    duplicate-key 2:104 "\"p\\u0061th\""
      line 2: "p\u0061th" appears twice in one object; give `summary` and `writes` once, and for each file `path`, `base_sha256` and `content`
    "#);
}

#[test]
fn wrong_types_are_errors() {
    insta::assert_snapshot!(check("[]"), @r#"
    wrong-type 1:1 "["
      line 1: the value of `proposal` has the wrong type; `writes` is a list of objects, every other value is a string
    "#);
    insta::assert_snapshot!(check("null"), @r#"
    wrong-type 1:1 "null"
      line 1: the value of `proposal` has the wrong type; `writes` is a list of objects, every other value is a string
    "#);
    insta::assert_snapshot!(check("{\"summary\":1.5e3,\"writes\":{}}"), @r#"
    wrong-type 1:12 "1.5e3"
      line 1: the value of `summary` has the wrong type; `writes` is a list of objects, every other value is a string
    wrong-type 1:27 "{"
      line 1: the value of `writes` has the wrong type; `writes` is a list of objects, every other value is a string
    "#);
    insta::assert_snapshot!(check(&proposal("\"a\"")), @r#"
    wrong-type 2:11 "\"a\""
      line 2: the value of `writes` has the wrong type; `writes` is a list of objects, every other value is a string
    "#);
    insta::assert_snapshot!(check(&proposal("{\"path\":[\"a\"]}")), @r#"
    wrong-type 2:19 "["
      line 2: the value of `path` has the wrong type; `writes` is a list of objects, every other value is a string
    "#);
    insta::assert_snapshot!(check(&proposal(&write("a", "")).replace(&format!("\"{EMPTY}\""), "null")), @r#"
    wrong-type 2:37 "null"
      line 2: the value of `base_sha256` has the wrong type; `writes` is a list of objects, every other value is a string
    "#);
}

#[test]
fn what_is_not_json_is_an_error() {
    insta::assert_snapshot!(check(&proposal("").replace("\"s\"", "s")), @r#"
    syntax 1:12 "s"
      line 1: `s` is not JSON here; write one JSON object and nothing else
    "#);
    insta::assert_snapshot!(check("{'summary':''}"), @r#"
    syntax 1:2 "'"
      line 1: `'` is not JSON here; write one JSON object and nothing else
    "#);
    insta::assert_snapshot!(check("{\"summary\":\"s\",}"), @r#"
    syntax 1:16 "}"
      line 1: `}` is not JSON here; write one JSON object and nothing else
    "#);
    insta::assert_snapshot!(check("{\"summary\" \"s\"}"), @r#"
    syntax 1:12 "\"s\""
      line 1: `"s"` is not JSON here; write one JSON object and nothing else
    "#);
    insta::assert_snapshot!(check("{\"summary\":\"s\" \"writes\":[]}"), @r#"
    syntax 1:16 "\"writes\""
      line 1: `"writes"` is not JSON here; write one JSON object and nothing else
    "#);
    insta::assert_snapshot!(check(&proposal(&(write("a", "") + ","))), @r#"
    syntax 2:118 "]"
      line 2: `]` is not JSON here; write one JSON object and nothing else
    "#);
    insta::assert_snapshot!(check("// {}"), @r#"
    syntax 1:1 "/"
      line 1: `/` is not JSON here; write one JSON object and nothing else
    "#);
    insta::assert_snapshot!(check("{\"summary\":007}"), @r#"
    syntax 1:12 "007"
      line 1: `007` is not JSON here; write one JSON object and nothing else
    "#);
    insta::assert_snapshot!(check("\u{feff}{}"), @r#"
    syntax 1:1 "\u{feff}"
      line 1: `﻿` is not JSON here; write one JSON object and nothing else
    "#);
}

#[test]
fn a_cut_off_proposal_is_an_error() {
    insta::assert_snapshot!(check(""), @r#"
    cut-off 1:1 ""
      line 1: the proposal ends too early; write the whole object, or fewer files
    "#);
    insta::assert_snapshot!(check("{\"summary\":\"s"), @r#"
    cut-off 1:12 "\"s"
      line 1: the proposal ends too early; write the whole object, or fewer files
    "#);
    insta::assert_snapshot!(check("{\"summary\":\"s\\"), @r#"
    cut-off 1:14 "\\"
      line 1: the proposal ends too early; write the whole object, or fewer files
    "#);
    insta::assert_snapshot!(check("{\"summary\":\"s\",\"writes\":["), @r#"
    cut-off 1:26 ""
      line 1: the proposal ends too early; write the whole object, or fewer files
    "#);
}

#[test]
fn trailing_data_is_an_error() {
    insta::assert_snapshot!(check(&(proposal(&write("a", "")) + "\n{}")), @r#"
    trailing-data 3:1 "{}"
      line 3: there is text after the proposal; end with the `}` of the object
    "#);
    insta::assert_snapshot!(check(&(proposal(&write("a", "")) + " Done.")), @r#"
    trailing-data 2:120 "Done."
      line 2: there is text after the proposal; end with the `}` of the object
    "#);
}

#[test]
fn nan_and_infinities_are_errors() {
    insta::assert_snapshot!(check("{\"summary\":NaN}"), @r#"
    not-a-number 1:12 "NaN"
      line 1: `NaN` is not a JSON value; write one JSON object and nothing else
    "#);
    insta::assert_snapshot!(check("{\"summary\":-Infinity}"), @r#"
    not-a-number 1:12 "-Infinity"
      line 1: `-Infinity` is not a JSON value; write one JSON object and nothing else
    "#);
}

#[test]
fn a_bad_string_is_an_error() {
    insta::assert_snapshot!(check("{\"summary\":\"a\nb\"}"), @r#"
    bad-string 1:14 "\n"
      line 1: `\n` is not allowed in a string; escape control characters, as in `\n`, and write surrogates in pairs
    "#);
    insta::assert_snapshot!(check("{\"summary\":\"\u{1f}\"}"), @r#"
    bad-string 1:13 "\u{1f}"
      line 1: `\u{1f}` is not allowed in a string; escape control characters, as in `\n`, and write surrogates in pairs
    "#);
    insta::assert_snapshot!(check("{\"summary\":\"\\x\"}"), @r#"
    bad-string 1:13 "\\x"
      line 1: `\x` is not allowed in a string; escape control characters, as in `\n`, and write surrogates in pairs
    "#);
    insta::assert_snapshot!(check("{\"summary\":\"\\ud800x\"}"), @r#"
    bad-string 1:13 "\\ud800"
      line 1: `\ud800` is not allowed in a string; escape control characters, as in `\n`, and write surrogates in pairs
    "#);
    insta::assert_snapshot!(check("{\"summary\":\"\\udc00\"}"), @r#"
    bad-string 1:13 "\\udc00"
      line 1: `\udc00` is not allowed in a string; escape control characters, as in `\n`, and write surrogates in pairs
    "#);
    insta::assert_snapshot!(check("{\"summary\":\"\\u+123\"}"), @r#"
    bad-string 1:13 "\\u"
      line 1: `\u` is not allowed in a string; escape control characters, as in `\n`, and write surrogates in pairs
    "#);
}

#[test]
fn a_markdown_fence_has_its_own_error() {
    insta::assert_snapshot!(check(&format!("\n```json\n{}\n```", proposal(&write("a", "")))), @r#"
    markdown-fence 2:1 "```"
      line 2: the proposal is wrapped in a Markdown fence; begin with `{` and end with `}`, without lines of backquotes
    "#);
}

#[test]
fn empty_writes_are_an_error() {
    insta::assert_snapshot!(check(&proposal("")), @r#"
    empty-writes 2:10 "[]"
      line 2: `writes` is empty; propose at least one file
    "#);
}

#[test]
fn all_faults_of_the_files_are_told_at_once() {
    let writes = [
        write("", ""),
        write("a", "x"),
        write("a", &"y".repeat(21)),
        write("b", &"z".repeat(20)),
    ];
    let text = proposal(&writes.join(",\n"));
    insta::assert_snapshot!(check(&text), @r#"
    proposal-too-large 1:1 ""
      line 1: the contents are too large together; propose less at once
    empty-path 2:19 "\"\""
      line 2: a file has no path; give the path relative to the root of the repository
    duplicate-path 4:9 "\"a\""
      line 4: `a` is written twice; give each file once, with its final content
    file-too-large 4:104 "\"yyyyyyyyyyyyyyyyyyy"
      line 4: the content of `a` is too large; propose less at once
    "#);
}

#[test]
fn a_content_that_is_no_text_is_an_error() {
    insta::assert_snapshot!(check(&proposal(&write("a", "x\\u0000y"))), @r#"
    binary-content 2:114 "\"x\\u0000y\""
      line 2: the content of `a` contains a NUL character; propose files of text only
    "#);
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
fn a_proposal_that_is_not_utf8_is_refused_with_its_place() {
    let errors = parse(b"{\n\"summary\":\"\xff\"}", &SMALL).unwrap_err();
    insta::assert_snapshot!(errors.for_model(), @"line 2: the proposal is not valid UTF-8; write plain UTF-8 text");
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

/// A proposal as a schema of serde, which checks keys and types.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Schema {
    summary: String,
    writes: Vec<WriteSchema>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WriteSchema {
    path: String,
    base_sha256: String,
    #[serde(
        default,
        deserialize_with = "given",
        skip_serializing_if = "Option::is_none"
    )]
    content: Option<String>,
    #[serde(
        default,
        deserialize_with = "given",
        skip_serializing_if = "Option::is_none"
    )]
    edits: Option<Vec<EditSchema>>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EditSchema {
    search: String,
    replace: String,
}

/// An explicit null is refused; only a missing key means none.
fn given<'d, T: Deserialize<'d>, D: serde::Deserializer<'d>>(
    value: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(value).map(Some)
}

impl WriteSchema {
    fn texts(&self) -> impl Iterator<Item = &String> {
        let edits = self
            .edits
            .iter()
            .flatten()
            .flat_map(|edit| [&edit.search, &edit.replace]);
        self.content.iter().chain(edits)
    }

    fn bytes(&self) -> usize {
        self.texts().map(String::len).sum()
    }

    fn is_good(&self) -> bool {
        let are_edits = |edits: &Vec<EditSchema>| {
            !edits.is_empty() && edits.iter().all(|edit| !edit.search.is_empty())
        };
        let is_change = match (&self.content, &self.edits) {
            (Some(_), None) => true,
            (None, Some(edits)) => are_edits(edits),
            (Some(_), Some(_)) | (None, None) => false,
        };
        is_change && !self.path.is_empty()
    }
}

/// Whether serde accepts it, and S2's rules for the files hold. (Serde takes lists for objects; a proposal does not.)
fn accepted(bytes: &[u8]) -> Option<Schema> {
    let schema: Schema = serde_json::from_slice(bytes).ok()?;
    let value: serde_json::Value = serde_json::from_slice(bytes).ok()?;
    let mut paths = HashSet::new();
    let is_text = |write: &WriteSchema| write.texts().all(|text| !text.contains('\0'));
    let fits = schema
        .writes
        .iter()
        .all(|write| is_text(write) && write.bytes() <= SMALL.file_bytes)
        && schema.writes.iter().map(WriteSchema::bytes).sum::<usize>() <= SMALL.total_bytes;
    let are_objects = |list: &serde_json::Value| {
        list.as_array()
            .unwrap()
            .iter()
            .all(serde_json::Value::is_object)
    };
    let objects = value.is_object()
        && are_objects(&value["writes"])
        && value["writes"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|write| write.get("edits"))
            .all(are_objects);
    let good = schema
        .writes
        .iter()
        .all(|write| write.is_good() && paths.insert(write.path.clone()));
    (good && fits && objects && !schema.writes.is_empty()).then_some(schema)
}

fn schema() -> impl Strategy<Value = Schema> {
    let edit =
        ("[ab\n]{0,3}", "[ab\n]{0,3}").prop_map(|(search, replace)| EditSchema { search, replace });
    let change = prop_oneof![
        any::<String>().prop_map(|content| (Some(content), None)),
        proptest::collection::vec(edit, 0..3).prop_map(|edits| (None, Some(edits))),
    ];
    let write = ("[ab\n\"]{0,3}", any::<String>(), change).prop_map(
        |(path, base_sha256, (content, edits))| WriteSchema {
            path,
            base_sha256,
            content,
            edits,
        },
    );
    (any::<String>(), proptest::collection::vec(write, 0..3))
        .prop_map(|(summary, writes)| Schema { summary, writes })
}

/// JSON with a few bytes changed, so that most of the ways to be wrong are met.
fn nearly_json() -> impl Strategy<Value = Vec<u8>> {
    let bytes = prop_oneof![
        schema().prop_map(|schema| serde_json::to_vec(&schema).unwrap()),
        schema().prop_map(|schema| serde_json::to_vec_pretty(&schema).unwrap()),
    ];
    let bits: &[&[u8]] = &[
        b"", b"\"", b"\\", b"\\u00e9", b",", b":", b"{", b"}", b"]", b"1", b"-0.5e+1", b" ",
        b"null", b"\xff", b"\x01",
    ];
    let edit = (
        any::<proptest::sample::Index>(),
        0_usize..2,
        proptest::sample::select(bits),
    );
    (bytes, proptest::collection::vec(edit, 0..3)).prop_map(|(mut bytes, edits)| {
        for (at, removed, inserted) in edits {
            let at = at.index(bytes.len() + 1);
            let end = (at + removed).min(bytes.len());
            bytes.splice(at..end, inserted.iter().copied());
        }
        bytes
    })
}

proptest! {
    #[test]
    fn a_proposal_is_read_as_a_reference_parser_reads_it(bytes in nearly_json()) {
        match (parse(&bytes, &SMALL), accepted(&bytes)) {
            (Ok(ours), Some(theirs)) => {
                prop_assert_eq!(&ours.summary, &theirs.summary);
                prop_assert_eq!(ours.writes.len(), theirs.writes.len());
                for (our, their) in ours.writes.iter().zip(&theirs.writes) {
                    prop_assert_eq!(&our.path, &their.path);
                    prop_assert_eq!(&our.base_sha256, &their.base_sha256);
                    match (&our.change, &their.content, &their.edits) {
                        (Change::Content(our), Some(their), None) => prop_assert_eq!(our, their),
                        (Change::Edits(ours), None, Some(theirs)) => {
                            let theirs = theirs.iter().map(|edit| (&*edit.search, &*edit.replace));
                            prop_assert!(ours.iter().map(|edit| (&*edit.search, &*edit.replace)).eq(theirs));
                        }
                        (our, ..) => prop_assert!(false, "{our:?} but {their:?}"),
                    }
                }
            }
            (Err(_), None) => {}
            (ours, theirs) => prop_assert!(false, "{ours:?} but {theirs:?}"),
        }
    }
}
