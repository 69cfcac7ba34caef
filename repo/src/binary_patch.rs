//! Git's patches for files that are not text. No page of its manual specifies them: see git's `diff.c` and `base85.c`.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use gix_object::{Kind, compute_hash};

/// Bytes on a line.
const LINE: usize = 52;
/// The digits of base 85.
const DIGITS: &[u8; 85] =
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";

/// The part of a patch behind the lines with paths and modes, for `git apply` in a repository with SHA-1. `None` stands
/// for no file.
pub fn binary_patch(before: Option<&[u8]>, after: Option<&[u8]>) -> String {
    let id = |side: Option<&[u8]>| {
        let id = side.and_then(|bytes| compute_hash(gix_hash::Kind::Sha1, Kind::Blob, bytes).ok());
        id.unwrap_or_else(|| gix_hash::ObjectId::null(gix_hash::Kind::Sha1))
    };
    format!(
        "index {}..{}\nGIT binary patch\n{}\n{}\n",
        id(before),
        id(after),
        literal(after.unwrap_or_default()),
        literal(before.unwrap_or_default())
    )
}

fn literal(content: &[u8]) -> String {
    let mut text = format!("literal {}\n", content.len());
    for line in zlib(content).chunks(LINE) {
        let letters = (b'A'..=b'Z').chain(b'a'..=b'z');
        text.extend(letters.map(char::from).nth(line.len() - 1));
        for group in line.chunks(4) {
            let bytes = (0..4).map(|at| u32::from(group.get(at).copied().unwrap_or_default()));
            let word = bytes.fold(0, |word, byte| word << 8 | byte);
            let digits = (0..5).rev().map(|place| word / 85_u32.pow(place) % 85);
            text.extend(
                digits.filter_map(|digit| DIGITS.get(digit as usize).copied().map(char::from)),
            );
        }
        text.push('\n');
    }
    text
}

fn zlib(content: &[u8]) -> Vec<u8> {
    let mut stream = ZlibEncoder::new(Vec::new(), Compression::fast());
    // Writing to memory cannot fail.
    let _ = stream.write_all(content);
    stream.finish().unwrap_or_default()
}
