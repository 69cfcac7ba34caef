#![doc = include_str!("../README.md")]

mod folder;
mod hashing;
mod journal;
mod layout;
mod names;
mod redact;
mod stamp;

pub use folder::{FolderError, RunFolder, Stored};
pub use journal::{Entry, Journal, JournalError};
pub use layout::Layout;
pub use names::name_as_text;
pub use redact::{RedactWriter, Redactor};
pub use stamp::{Stamp, millis};

use sha2::{Digest as _, Sha256};

/// The SHA-256 of `bytes` as 64 lower-case hex digits.
#[must_use]
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// The SHA-256 of everything that `content` yields, without holding it in memory.
pub fn sha256_of(content: &mut impl std::io::Read) -> std::io::Result<String> {
    let mut hashing = hashing::Hashing::new(std::io::sink());
    std::io::copy(content, &mut hashing)?;
    Ok(hashing.sha256())
}

fn hex(digest: &[u8]) -> String {
    let digits = digest.iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
    digits.map(|digit| char::from_digit(digit.into(), 16).unwrap_or_default()).collect()
}
