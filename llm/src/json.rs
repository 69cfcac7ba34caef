//! JSON in and out; large strings are decoded once.
//!
//! A reply of 100 MB is one JSON string. `serde_json` decodes such a string into a scratch buffer and copies it out
//! of there, so that three copies live at once; here it goes straight from the received bytes into the text.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::CallError;

/// `value` as the bytes of a request.
pub fn body(value: &impl Serialize) -> Result<Vec<u8>, CallError> {
    serde_json::to_vec(value).map_err(|e| CallError::Setup { source: e.into() })
}

/// An answer as text. All of it must be: what is skipped over is logged too.
pub fn text(body: &[u8]) -> Result<&str, CallError> {
    std::str::from_utf8(body).map_err(|e| match e.error_len() {
        None => CallError::StreamCut { received: 0 },
        Some(_) => CallError::BadReply { detail: format!("not UTF-8 from byte {} on", e.valid_up_to()) },
    })
}

/// What it means that an answer is no JSON: it broke off, or it is something else.
pub fn unreadable(error: &serde_json::Error) -> CallError {
    if error.is_eof() {
        return CallError::StreamCut { received: 0 };
    }
    // Its own words may quote the answer.
    let detail = format!("not the JSON expected, line {} column {}", error.line(), error.column());
    CallError::BadReply { detail }
}

/// The text of a JSON string, appended to `text`. `None` if `raw` is no string, or holds half a surrogate pair:
/// replacing what the model wrote is not ours to do.
pub fn append_string(raw: &RawValue, text: &mut String) -> Option<()> {
    let mut rest = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    text.reserve(rest.len());
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        let (plain, escape) = rest.split_at_checked(at)?;
        text.push_str(plain);
        let (decoded, length) = decode(escape)?;
        text.push(decoded);
        rest = escape.get(length..)?;
    }
    text.push_str(rest);
    Some(())
}

/// The character that `escape` begins with, and how many bytes spell it.
fn decode(escape: &str) -> Option<(char, usize)> {
    let plain = |c| Some((c, 2));
    match *escape.as_bytes().get(1)? {
        b'"' => plain('"'),
        b'\\' => plain('\\'),
        b'/' => plain('/'),
        b'b' => plain('\u{8}'),
        b'f' => plain('\u{c}'),
        b'n' => plain('\n'),
        b'r' => plain('\r'),
        b't' => plain('\t'),
        b'u' => decode_unicode(escape),
        _ => None,
    }
}

fn decode_unicode(escape: &str) -> Option<(char, usize)> {
    let unit = |from: usize| {
        let digits = escape.get(from..from + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    let first = unit(0)?;
    if let Some(c) = char::from_u32(u32::from(first)) {
        return Some((c, 6));
    }
    let pair = char::decode_utf16([first, unit(6)?]).next()?.ok()?;
    Some((pair, 12))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn decoded(json: &str) -> Option<String> {
        let raw: &RawValue = serde_json::from_str(json).unwrap();
        let mut text = String::new();
        append_string(raw, &mut text).map(|()| text)
    }

    #[test]
    fn every_escape_is_decoded() {
        assert_eq!(
            decoded(r#""a\"\\\/\b\f\n\r\té\u00e9\ud83d\ude00z""#).unwrap(),
            "a\"\\/\u{8}\u{c}\n\r\téé😀z"
        );
        assert_eq!(decoded(r#""""#).unwrap(), "");
    }

    #[test]
    fn what_is_no_text_is_not_made_one() {
        assert_eq!(decoded("12"), None);
        assert_eq!(decoded("null"), None);
        assert_eq!(decoded(r#""\ud83d""#), None);
        assert_eq!(decoded(r#""\ud83d\u0041""#), None);
        assert_eq!(decoded(r#""\ude00""#), None);
    }

    proptest! {
        #[test]
        fn it_decodes_as_serde_json_does(text in "\\PC*|[\\x00-\\x7f]*") {
            let json = serde_json::to_string(&text).unwrap();
            prop_assert_eq!(decoded(&json).unwrap(), text);
        }
    }
}
