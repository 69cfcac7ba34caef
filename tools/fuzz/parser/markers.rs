//! Any text in pieces of any sizes: the same markers as in one piece. The first byte of the input sets the sizes.
#![no_main]

use code_commit_parser::marker::{End, Event, Markers};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((seed, bytes)) = input.split_first() else {
        return;
    };
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let whole = read(&[text]);
    assert_eq!(read(&pieces(text, *seed)), whole);
    assert_eq!(
        read(&text.split_inclusive(|_| true).collect::<Vec<_>>()),
        whole
    );
});

/// Everything that was told, neighbouring texts joined.
fn read(pieces: &[&str]) -> (Vec<Event>, End) {
    let mut markers = Markers::new(["NOTE", "NOTES", "D"]);
    let mut all: Vec<Event> = Vec::new();
    for piece in pieces {
        for event in markers.push(piece) {
            match (all.last_mut(), event) {
                (Some(Event::Text(before)), Event::Text(text)) => before.push_str(&text),
                (_, event) => all.push(event),
            }
        }
    }
    (all, markers.finish())
}

/// Cut anywhere between two characters.
fn pieces(text: &str, seed: u8) -> Vec<&str> {
    let mut pieces = Vec::new();
    let (mut rest, mut random) = (text, u32::from(seed) | 1);
    while !rest.is_empty() {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let (piece, after) =
            rest.split_at(rest.floor_char_boundary((random >> 28) as usize % (rest.len() + 1)));
        pieces.push(piece);
        rest = after;
    }
    pieces
}
