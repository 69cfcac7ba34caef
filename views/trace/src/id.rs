//! Identifiers that are the same wherever a run is exported.

use sha2::{Digest as _, Sha256};

/// So many hex digits of the hash of these parts, at most 64.
pub(crate) fn hex(parts: &[&str], digits: usize) -> String {
    let hash = Sha256::digest(parts.join("\n").as_bytes());
    let mut text: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    text.truncate(digits);
    text
}

/// A UUID of version 8, whose content its maker chooses (RFC 9562).
pub(crate) fn uuid(parts: &[&str]) -> String {
    let hex = hex(parts, 32);
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    format!(
        "{}-{}-8{}-8{}-{}",
        part(0, 8),
        part(8, 12),
        part(13, 16),
        part(17, 20),
        part(20, 32)
    )
}
