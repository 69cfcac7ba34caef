//! Names that sort by time: `UUIDv7` (RFC 9562 §5.7).

use std::fs::File;
use std::io::Read as _;

use anyhow::Context as _;
use jiff::Timestamp;

pub(super) fn v7() -> anyhow::Result<String> {
    let mut random = [0; 10];
    File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut random))
        .context("cannot read /dev/urandom")?;
    Ok(of(
        u64::try_from(Timestamp::now().as_millisecond()).unwrap_or_default(),
        random,
    ))
}

/// 48 bits of time, version, 12 bits, variant, 62 bits.
fn of(unix_ms: u64, random: [u8; 10]) -> String {
    let [_, _, time @ ..] = unix_ms.to_be_bytes();
    let [first, second, third, rest @ ..] = random;
    let marked = [0x70 | (first & 0x0f), second, 0x80 | (third & 0x3f)];
    let hex: String = time
        .iter()
        .chain(&marked)
        .chain(&rest)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let part = |from, to| hex.get(from..to).unwrap_or_default();
    [
        part(0, 8),
        part(8, 12),
        part(12, 16),
        part(16, 20),
        part(20, 32),
    ]
    .join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_and_variant_are_where_the_standard_has_them() {
        // The example of RFC 9562, appendix A.6.
        let random = [0x0c, 0xc3, 0x18, 0xc4, 0xdc, 0x0c, 0x0c, 0x07, 0x39, 0x8f];
        assert_eq!(
            of(0x017F_22E2_79B0, random),
            "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"
        );
    }

    #[test]
    fn a_later_one_sorts_behind() {
        assert!(of(1, [0xff; 10]) < of(2, [0; 10]));
        assert_ne!(v7().unwrap(), v7().unwrap());
    }
}
