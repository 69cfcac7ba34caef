//! File names as the record writes them: JSON texts are Unicode, file names may not be.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::str::Utf8Chunk;

/// The name as text, such that different names stay different: in names that are not UTF-8, invalid
/// bytes become `\xNN` and backslashes are doubled.
#[must_use]
pub fn name_as_text(name: &(impl AsRef<OsStr> + ?Sized)) -> Cow<'_, str> {
    let name = name.as_ref();
    if let Some(text) = name.to_str() {
        return Cow::Borrowed(text);
    }
    let chunk = |chunk: Utf8Chunk<'_>| {
        let odd: String = chunk
            .invalid()
            .iter()
            .map(|byte| format!("\\x{byte:02x}"))
            .collect();
        chunk.valid().replace('\\', "\\\\") + &odd
    };
    Cow::Owned(name.as_bytes().utf8_chunks().map(chunk).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_not_utf8_stay_different() {
        let text = |name: &[u8]| name_as_text(OsStr::from_bytes(name)).into_owned();
        assert_eq!(text("a\\xff é".as_bytes()), "a\\xff é");
        assert_eq!(text(b"a\xff\xfe\xc3\xa9"), "a\\xff\\xfeé");
        assert_eq!(text(b"a\\xff\xff"), "a\\\\xff\\xff");
    }
}
