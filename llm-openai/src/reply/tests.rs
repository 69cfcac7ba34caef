use code_commit_llm::{Secret, in_one_piece};
use proptest::prelude::*;

use super::*;

const PLAIN: &str = include_str!("../../../fixtures/wire/openai-completion.json");
const STREAM: &str = include_str!("../../../fixtures/wire/openai-stream.sse");

fn service(name: &str, key: &str) -> Service {
    let base = "https://api.openai.com/v1".parse().unwrap();
    Service {
        base,
        id: format!("openai/{name}").parse().unwrap(),
        key: Secret::new(key),
    }
}

fn merge() -> Merge {
    Merge::new(service("m", "k"))
}

fn streamed(bytes: &[u8], size: usize) -> Option<Reply> {
    code_commit_fixtures::wire::streamed(Box::new(merge()), bytes, size)
}

#[test]
fn a_stream_reads_the_same_in_pieces_of_any_size() {
    let whole = streamed(STREAM.as_bytes(), STREAM.len()).unwrap();
    for size in 1..200 {
        assert_eq!(
            streamed(STREAM.as_bytes(), size).as_ref(),
            Some(&whole),
            "{size}"
        );
    }
}

#[test]
fn a_stream_cut_anywhere_before_its_end_mark_is_no_answer() {
    let (_, rest) = STREAM.split_once("\"finish_reason\": \"stop\"").unwrap();
    let (event, _) = rest.split_once("\n\n").unwrap();
    let end = STREAM.len() - rest.len() + event.len();
    for length in 0..end {
        assert_eq!(streamed(&STREAM.as_bytes()[..length], 64), None, "{length}");
    }
    let whole = streamed(STREAM.as_bytes(), 64).unwrap();
    let without_done = streamed(
        STREAM
            .trim_end()
            .trim_end_matches("data: [DONE]")
            .as_bytes(),
        64,
    );
    assert_eq!(without_done, Some(whole));
}

#[test]
fn an_answer_cut_anywhere_is_told_from_one_of_another_kind() {
    let bytes = PLAIN.trim_end().as_bytes();
    for length in 0..bytes.len() {
        let body = &bytes[..length];
        assert!(
            matches!(
                in_one_piece(body.to_vec(), None, Box::new(merge()), None),
                Err(Unread::BrokenOff)
            ),
            "{length}"
        );
    }
}

#[test]
fn an_answer_that_does_not_say_how_it_ended_is_whole_if_its_usage_is_below_the_limit() {
    let whole = |usage: &str, limit| {
        let body = format!(
            r#"{{"choices":[{{"message":{{"content":"a"}},"finish_reason":null}}],"usage":{usage}}}"#
        );
        in_one_piece(body.into(), limit, Box::new(merge()), None)
            .is_ok_and(|answer| answer.reply.finish == Finish::Complete)
    };
    let nine = r#"{"completion_tokens":9}"#;
    assert!(whole(nine, None) && whole(nine, Some(10)));
    assert!(!whole(nine, Some(9)) && !whole("null", None));
}

#[test]
fn only_the_first_choice_is_looked_at() {
    let body = r#"{"choices":[{"message":{"content":[{"text":"a"},{"text":"b"}]},"finish_reason":"stop"},{},7,"x"]}"#;
    let answer = in_one_piece(body.into(), None, Box::new(merge()), None).unwrap();
    assert_eq!(
        (answer.reply.text.as_str(), answer.reply.finish),
        ("ab", Finish::Complete)
    );
}

#[test]
fn the_names_of_a_servers_models_are_shown_as_its_other_words_are() {
    let list = format!(
        r#"{{"data":[{{"id":"a\u001b[2Jsk-secret-key-xy"}},{{"id":7}},{{"id":"{}"}}]}}"#,
        "x".repeat(9000)
    );
    let found = |name: &str| find_model(list.as_bytes(), &service(name, "sk-secret-key-xy"));
    assert!(found(&"x".repeat(9000)).is_ok());
    let said = found("m").unwrap_err().to_string();
    assert!(
        said.starts_with("m not found: the server has a [2J…xy, xxx"),
        "{said}"
    );
    assert!(said.chars().count() < 700);
}

proptest! {
    /// Randomly changed bytes give an answer or an error, never a panic, and never a log that is
    /// not JSON.
    #[test]
    fn no_bytes_are_too_odd(edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
        for source in [PLAIN, STREAM] {
            let mut body = source.as_bytes().to_vec();
            for (at, byte) in &edits {
                let at = at.index(body.len());
                body[at] = *byte;
            }
            for reply in [in_one_piece(body.clone(), None, Box::new(merge()), None).ok().map(|answer| answer.reply), streamed(&body, 50)].into_iter().flatten() {
                let raw = code_commit_fixtures::wire::logged(&reply).unwrap();
                prop_assert!(serde_json::from_str::<serde::de::IgnoredAny>(&raw).is_ok());
            }
        }
    }
}
