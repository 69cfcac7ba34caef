use proptest::prelude::*;

use super::*;

/// The events of `chunks`, including those completed by the end.
fn events(chunks: &[&[u8]]) -> Vec<String> {
    let mut frames = Frames::default();
    let mut seen = Vec::new();
    let mut note = |data: &[u8]| {
        seen.push(String::from_utf8(data.to_vec()).unwrap());
        Ok(())
    };
    for chunk in chunks {
        frames.push(chunk, &mut note).unwrap();
    }
    frames.finish(&mut note).unwrap();
    seen
}

#[test]
fn lines_may_end_in_any_of_the_three_ways() {
    assert_eq!(
        events(&[b"data: a\n\ndata: b\r\n\r\ndata: c\r\rdata:d\n\n"]),
        ["a", "b", "c", "d"]
    );
}

#[test]
fn data_lines_of_one_event_are_joined() {
    assert_eq!(events(&[b"data: {\ndata:  \"a\":1}\n\n"]), ["{\n \"a\":1}"]);
    assert_eq!(events(&[b"data\ndata\n\n"]), ["\n"]);
}

#[test]
fn comments_other_fields_and_a_byte_order_mark_are_not_data() {
    assert_eq!(events(&[b"\xef\xbb\xbfdata: a\n\n"]), ["a"]);
    assert_eq!(
        events(&[b": ping\n\nevent: x\nid: 3\nretry: 10\ndata: a\n\n:\n\n"]),
        ["a"]
    );
    assert_eq!(events(&[b"database: x\n\n"]), [""; 0]);
}

#[test]
fn the_last_event_may_lack_its_blank_line() {
    assert_eq!(events(&[b"data: a\n\ndata: b"]), ["a", "b"]);
    assert_eq!(events(&[b"data: a\n"]), ["a"]);
}

#[test]
fn an_event_without_end_is_an_error_and_not_all_of_the_memory() {
    let mut frames = Frames::default();
    let chunk = vec![b'x'; 1 << 20];
    let failed = (0..64).find(|_| frames.push(&chunk, |_| Ok(())).is_err());
    assert_eq!(failed, Some(LONGEST_EVENT >> 20));
}

#[test]
fn the_receiver_may_end_it() {
    let mut frames = Frames::default();
    let mut seen = 0;
    let result = frames.push(b"data: a\n\ndata: b\n\n", |_| {
        seen += 1;
        Err(CallError::Cancelled)
    });
    assert!(result.is_err());
    assert_eq!(seen, 1);
}

proptest! {
    #[test]
    fn splitting_the_bytes_anywhere_changes_nothing(
        lines in proptest::collection::vec("(data: ?|: |event: |)[a-zé\u{1F600} ]{0,6}", 0..12),
        ends in proptest::collection::vec(prop_oneof!["\n", "\r\n", "\r", "\n\n", "\r\n\r\n"], 12),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let text: String = lines.iter().zip(&ends).flat_map(|(l, e)| [l.as_str(), e.as_str()]).collect();
        let bytes = text.as_bytes();
        let mut at: Vec<usize> = cuts.iter().map(|c| c.index(bytes.len() + 1)).collect();
        at.extend([0, bytes.len()]);
        at.sort_unstable();
        let chunks: Vec<&[u8]> = at.windows(2).map(|w| &bytes[w[0]..w[1]]).collect();
        prop_assert_eq!(events(&chunks), events(&[bytes]));
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        prop_assert_eq!(events(&single), events(&[bytes]));
    }
}
