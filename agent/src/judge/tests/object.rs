//! The single object of a Gemini CLI that does not support `stream-json`.

use super::*;

const OBJECT: &str = include_str!("../../../../fixtures/agents/gemini-object.json");

#[test]
fn one_indented_object_is_the_result_of_a_gemini_that_knows_no_stream() {
    insta::assert_snapshot!(check(Kind::Gemini, OBJECT, 0), @r#"
    {"event":"system","data":{"model":null,"session":"2e8a39cc-f33e-4192-8e24-ed94e9458eb8"}}
    {"event":"text","data":"It is done.\nReally."}
    answer "It is done.\nReally."
    session Some("2e8a39cc-f33e-4192-8e24-ed94e9458eb8")
    usage [{"model":"gemini-3.5-flash-lite","input_tokens":7,"cache_read_tokens":0,"cache_write_tokens":null,"output_tokens":2,"reasoning_tokens":0,"cost_usd":null},{"model":"gemini-3.8-flash","input_tokens":100,"cache_read_tokens":60,"cache_write_tokens":null,"output_tokens":20,"reasoning_tokens":16,"cost_usd":null}]
    cost None
    end Ok
    "#);
}

#[test]
fn an_object_on_one_line_is_the_result_too() {
    let object: serde_json::Value = serde_json::from_str(OBJECT).unwrap();
    assert_eq!(check(Kind::Gemini, &object.to_string(), 0), check(Kind::Gemini, OBJECT, 0));
}

#[test]
fn lines_before_the_object_are_notes_or_nothing() {
    let (after_words, after_braces) =
        (format!("warning: old node\n\n{OBJECT}"), format!("{{old}}\n{OBJECT}"));
    let (_, events) = hear(Kind::Gemini, &after_words);
    assert!(events.starts_with(r#"{"event":"note","data":"warning: old node"}"#), "{events}");
    assert_eq!(check(Kind::Gemini, &after_braces, 0), check(Kind::Gemini, OBJECT, 0));
    assert_eq!(end(Kind::Gemini, &after_words, 0, ""), End::Ok);
}

#[test]
fn an_object_with_an_error_is_a_bad_end() {
    let object = |error: &str| format!("{{\n  \"session_id\": \"s\",\n  \"error\": {error}\n}}\n");
    let told = |error: &str, code| end(Kind::Gemini, &object(error), code, "");
    let ends = [
        told(r#"{"type": "Error", "message": "quota exceeded", "code": 429}"#, 1),
        told(r#"{"type": "FatalTurnLimitedError", "message": "too many turns", "code": 53}"#, 53),
        told(r#"{"message": "API key not valid"}"#, 1),
        told(r#""it broke""#, 1),
        end(Kind::Gemini, r#"{"response": "Half of it.", "error": {"message": "blocked"}}"#, 0, ""),
        end(Kind::Gemini, r#"{"response": null, "stats": {}, "error": null}"#, 0, ""),
        end(Kind::Gemini, OBJECT, 1, ""),
    ];
    let ends: String = ends.iter().map(|end| format!("{end:?}\n")).collect();
    insta::assert_snapshot!(ends, @r#"
    ApiError { status: Some(429), message: "quota exceeded" }
    TurnLimit { message: "too many turns" }
    Auth { message: "API key not valid" }
    ApiError { status: None, message: "it broke" }
    Refused { message: "blocked" }
    NoResult
    Crashed { code: Some(1), signal: None, message: "" }
    "#);
}

#[test]
fn an_error_object_is_found_behind_the_noise_of_standard_error() {
    let stderr = "YOLO mode is enabled.\n{\n  \"session_id\": \"s\",\n  \"error\": {\n    \"type\": \"Error\",\n    \"message\": \"[API Error: overloaded]\",\n    \"code\": 503\n  }\n}\n";
    let overloaded = End::ApiError { status: Some(503), message: "[API Error: overloaded]".to_owned() };
    assert_eq!(end(Kind::Gemini, "", 247, stderr), overloaded);
    assert_eq!(end(Kind::Gemini, "", 0, "{\"response\": \"Done.\"}\n"), End::NoResult);
    assert_eq!(end(Kind::Gemini, recorded!("gemini-tools"), 0, stderr), End::Ok);
}

#[test]
fn an_object_is_no_result_where_a_stream_was_heard_or_where_it_is_cut() {
    let stream = recorded!("gemini-tools");
    let first: String = stream.lines().take(3).map(|line| format!("{line}\n")).collect();
    assert_eq!(end(Kind::Gemini, &format!("{first}{OBJECT}"), 0, ""), End::NoResult);
    assert_eq!(end(Kind::Gemini, &format!("{OBJECT}{first}"), 0, ""), End::NoResult);
    assert_eq!(check(Kind::Gemini, &format!("{{old}}\n{stream}"), 0).lines().last(), Some("end Ok"));
    let (cut, _) = OBJECT.split_at(OBJECT.len() - 3);
    let (told, events) = hear(Kind::Gemini, cut);
    assert_eq!((told.last, events.lines().count()), (None, cut.lines().count()));
    assert_eq!(end(Kind::Claude, OBJECT, 0, ""), End::NoResult);
}

#[test]
fn an_object_without_end_is_kept_up_to_its_bound() {
    let (mut told, mut notes) = (Collected::default(), 0);
    let line = format!("\"{}\",", "é".repeat(1 << 19));
    told.line(Kind::Gemini, b"{", &mut |_| notes += 1);
    (0..20).for_each(|_| told.line(Kind::Gemini, line.as_bytes(), &mut |_| notes += 1));
    assert_eq!((notes, told.object), (21, crate::gemini::Object::RuledOut));
}
