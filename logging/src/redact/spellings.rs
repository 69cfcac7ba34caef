//! The spellings in which a key is searched for, in a text and in its decoded views.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

use super::SHORTEST_SECRET;
use super::view::{Rest, View};

/// Where programs break lines of base64: MIME and `base64`, PEM.
const LINES: [usize; 2] = [76, 64];

/// Every spelling of one key, each with its replacement. Escaped spellings are not needed: texts
/// are also searched decoded.
pub(super) fn spellings(key: &str) -> Vec<(Vec<u8>, String)> {
    let shown = format!("[key …{}]", last_two(key));
    let mut table = vec![(key.as_bytes().to_vec(), shown.clone())];
    // A key may contain what looks like an escape, which the views decode.
    let decoded = folded(key.as_bytes());
    table.push((folded(&decoded.letters).letters, shown.clone()));
    table.push((decoded.letters, shown));
    table.push((
        crate::hex(key.as_bytes()).into_bytes(),
        "[key in hex]".to_owned(),
    ));
    let cores = in_base64(key.as_bytes())
        .into_iter()
        .chain(in_base64_twice(key.as_bytes()));
    table.extend(cores.map(|core| (folded(&core).letters, "[key in base64]".to_owned())));
    table.retain(|(spelling, _)| spelling.len() >= SHORTEST_SECRET);
    table
}

/// The spelling as the views contain it.
fn folded(spelling: &[u8]) -> View {
    View::decoded(spelling, Rest::None)
}

fn last_two(key: &str) -> String {
    let tail: Vec<char> = key.chars().rev().take(2).collect();
    tail.into_iter().rev().collect()
}

/// Base64 of base64, as `kubectl` shows a secret that was already encoded.
fn in_base64_twice(key: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let whole: Vec<u8> = base64_core(key, 0);
    // The positions of the inner line breaks are known only if nothing precedes the key.
    let broken = LINES
        .into_iter()
        .map(move |line| whole.chunks(line).collect::<Vec<_>>().join(&b'\n'));
    let inner = in_base64(key).into_iter().chain(broken);
    inner
        .flat_map(|inner| [url_safe(&inner), inner])
        .flat_map(|inner| in_base64(&inner))
}

fn in_base64(text: &[u8]) -> [Vec<u8>; 3] {
    [0, 1, 2].map(|offset| base64_core(text, offset))
}

/// The letters that encode `text` in base64 if `offset` (0 to 2) other bytes precede it in its
/// group of three: only those letters that no neighbour affects.
fn base64_core(text: &[u8], offset: usize) -> Vec<u8> {
    let mut padded = vec![0; offset];
    padded.extend_from_slice(text);
    let first = (offset * 8).div_ceil(6);
    let last = padded.len() * 8 / 6;
    STANDARD_NO_PAD
        .encode(&padded)
        .as_bytes()
        .get(first..last)
        .unwrap_or_default()
        .to_vec()
}

fn url_safe(base64: &[u8]) -> Vec<u8> {
    let other = |letter: &u8| match letter {
        b'+' => b'-',
        b'/' => b'_',
        same => *same,
    };
    base64.iter().map(other).collect()
}
