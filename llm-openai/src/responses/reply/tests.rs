use code_commit_llm::{Secret, in_one_piece};
use proptest::prelude::*;

use super::*;

const PLAIN: &str = r#"{"id":"resp_1","model":"m","status":"completed","output":[{"type":"message","role":"assistant",
    "content":[{"type":"output_text","text":"Hello."}]}],"usage":{"input_tokens":1,"output_tokens":2}}"#;
const STREAM: &str = include_str!("../../../../fixtures/wire/openai-responses-stream.sse");

fn merge() -> Merge {
    let base = "https://api.openai.com/v1".parse().unwrap();
    Merge::new(Service {
        base,
        id: "openai-responses/m".parse().unwrap(),
        key: Secret::new("k"),
    })
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
    let end = STREAM.trim_end().len();
    for length in 0..end {
        assert_eq!(streamed(&STREAM.as_bytes()[..length], 64), None, "{length}");
    }
    assert!(streamed(STREAM.as_bytes(), 64).is_some());
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
