//! Any text in pieces of any sizes: the same markers as in one piece. The first byte of the input sets the sizes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use parser::marker::{End, Event, Markers};

fuzz_target!(|input: &[u8]| {
    let Some((seed, bytes)) = input.split_first() else { return };
    let whole = read(&[bytes]);
    assert_eq!(read(&pieces(bytes, *seed)), whole);
    assert_eq!(read(&bytes.chunks(1).collect::<Vec<_>>()), whole);
});

/// Everything that was told, neighbouring texts joined; nothing if the bytes are not UTF-8.
fn read(pieces: &[&[u8]]) -> Option<(Vec<Event>, End)> {
    let mut markers = Markers::new(["NOTE", "NOTES", "D"]);
    let mut all: Vec<Event> = Vec::new();
    for piece in pieces {
        for event in markers.push_bytes(piece).ok()? {
            match (all.last_mut(), event) {
                (Some(Event::Text(before)), Event::Text(text)) => before.push_str(&text),
                (_, event) => all.push(event),
            }
        }
    }
    Some((all, markers.finish()))
}

fn pieces(bytes: &[u8], seed: u8) -> Vec<&[u8]> {
    let mut pieces = Vec::new();
    let (mut rest, mut random) = (bytes, u32::from(seed) | 1);
    while !rest.is_empty() {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let (piece, after) = rest.split_at((random >> 28) as usize % (rest.len() + 1));
        pieces.push(piece);
        rest = after;
    }
    pieces
}
