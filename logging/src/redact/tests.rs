use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE};

use proptest::prelude::*;

use super::*;

const KEY: &str = "AIzaSy-not-a-real-key-42";

#[test]
fn only_the_last_two_characters_stay() {
    let redactor = Redactor::new([KEY]);
    assert_eq!(
        redactor.redact(&format!("x-goog-api-key: {KEY}\n")),
        "x-goog-api-key: [key …42]\n"
    );
    assert!(redactor.finds_key(KEY));
    assert!(!redactor.finds_key("AIzaSy-not-a-real-key-4"));
}

#[test]
fn json_percent_and_base64_spellings_are_found() {
    let key = "se\"cret/key+with=all";
    let redactor = Redactor::new([key]);
    let in_json = serde_json::json!({ "k": key }).to_string();
    assert!(redactor.finds_key(&in_json));
    assert!(redactor.finds_key(&serde_json::json!({ "text": in_json }).to_string()));
    assert!(redactor.finds_key("?key=se%22cret%2Fkey%2Bwith%3Dall"));
    for before in ["", "a", "ab", "abc"] {
        let encoded = STANDARD_NO_PAD.encode(format!("{before}{key}, and more"));
        assert!(redactor.finds_key(&encoded), "{encoded}");
    }
}

#[test]
fn the_longer_of_two_keys_leaves_no_tail() {
    let redactor = Redactor::new(["sk-abc-12345", "sk-abc-12345-def99"]);
    assert_eq!(redactor.redact("sk-abc-12345-def99"), "[key …99]");
}

#[test]
fn a_word_that_is_too_short_for_a_key_is_left_alone() {
    assert_eq!(
        Redactor::new(["ollama"]).redact("ollama is up"),
        "ollama is up"
    );
}

#[test]
fn debug_does_not_show_the_key() {
    assert!(!format!("{:?}", Redactor::new([KEY])).contains("AIza"));
}

#[test]
fn other_keys_take_the_place_of_those_before() {
    let first = Redactor::new([KEY]);
    let other = first.with_only(["another-key-43"]);
    assert_eq!(
        (other.finds_key(KEY), other.finds_key("another-key-43")),
        (false, true)
    );
    assert!(Arc::ptr_eq(&first.known, &first.with_only([KEY]).known));
}

proptest! {
    #[test]
    fn a_stream_split_anywhere_is_redacted_like_the_whole(
        before in "[a-zA-Z-]{0,40}", between in "[A-Iz-]{0,30}", cuts in prop::collection::vec(0usize..200, 0..8),
    ) {
        let redactor = Redactor::new([KEY, "AIzaSy-not-a-real-key-42-longer"]);
        let whole = format!("{before}{KEY}{between}{KEY}-longer{before}{KEY}");
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut % (whole.len() + 1)).collect();
        cuts.extend([0, whole.len()]);
        cuts.sort_unstable();
        let mut writer = redactor.writer(Vec::new());
        for pair in cuts.windows(2) {
            writer.write_all(&whole.as_bytes()[pair[0]..pair[1]]).unwrap();
        }
        let streamed = String::from_utf8(writer.finish().unwrap()).unwrap();
        prop_assert_eq!(streamed, redactor.redact(&whole).into_owned());
    }
}

/// As long as real keys, with characters that JSON, URLs and HTML escape and in which the base64
/// alphabets differ.
const SIGNS: &str = "sk-pr/oj+Ab\"c&d<e>f'g=h~ijklmnopqrstuvwxyz-0123456789_ABCDEFGHIJKLM?>>~~??42";

fn each(key: &str, spelled: impl Fn(u8) -> String) -> String {
    key.bytes().map(spelled).collect()
}

/// `text` with `with` inserted after every `every` characters.
fn broken(text: &str, every: usize, with: &str) -> String {
    let pieces: Vec<String> = text
        .as_bytes()
        .chunks(every)
        .map(|piece| String::from_utf8_lossy(piece).into_owned())
        .collect();
    pieces.join(with)
}

fn json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn html(key: &str) -> String {
    key.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}

/// As `encodeURIComponent` writes it, with lower-case or upper-case digits.
fn percent(key: &str, upper: bool) -> String {
    each(key, |byte| match byte {
        letter if letter.is_ascii_alphanumeric() || b"-._~".contains(&letter) => {
            char::from(letter).to_string()
        }
        sign if upper => format!("%{sign:02X}"),
        sign => format!("%{sign:02x}"),
    })
}

/// How services, tools and models write a key, by name.
fn disguises(key: &str) -> Vec<(&'static str, String)> {
    let hex = crate::hex(key.as_bytes());
    let base64 = STANDARD.encode(key);
    let basic = STANDARD.encode(format!("user:{key}\n"));
    let unicode = each(key, |byte| format!("\\u{byte:04x}"));
    let percent_whole = each(key, |byte| format!("%{byte:02X}"));
    vec![
        ("plain", key.to_owned()),
        ("a string of JSON", json(key)),
        ("JSON in JSON", json(&json(key))),
        ("JSON in JSON in JSON", json(&json(&json(key)))),
        ("JSON with escaped slashes", json(key).replace('/', "\\/")),
        ("every letter as \\u0041", unicode.clone()),
        (
            "every letter as \\u0041, upper case",
            each(key, |byte| format!("\\u{byte:04X}")),
        ),
        ("\\u0041 in JSON", json(&unicode)),
        (
            "some letters as \\u0041",
            key.replace('-', "\\u002d").replace('k', "\\u006B"),
        ),
        (
            "every letter as \\u{41}",
            each(key, |byte| format!("\\u{{{byte:x}}}")),
        ),
        (
            "every letter as \\x41",
            each(key, |byte| format!("\\x{byte:02x}")),
        ),
        (
            "every letter in octal",
            each(key, |byte| format!("\\{byte:03o}")),
        ),
        (
            "signs behind a backslash, as for a shell",
            each(key, |byte| {
                if byte.is_ascii_punctuation() {
                    format!("\\{}", char::from(byte))
                } else {
                    char::from(byte).to_string()
                }
            }),
        ),
        ("in hex", hex.clone()),
        ("in hex, upper case", hex.to_uppercase()),
        ("in hex, wrapped", broken(&hex, 60, "\n")),
        (
            "in hex with blanks, as od writes it",
            format!(" {}", broken(&broken(&hex, 2, " "), 48, "\n ")),
        ),
        ("in hex with colons", broken(&hex.to_uppercase(), 2, ":")),
        (
            "in hex as a list in C",
            each(key, |byte| format!("0x{byte:02x}, ")),
        ),
        ("in base64", base64.clone()),
        ("in base64 behind other bytes", basic.clone()),
        (
            "in base64 for addresses",
            URL_SAFE.encode(format!("u:{key}")),
        ),
        ("in base64, wrapped", broken(&basic, 16, "\n")),
        (
            "in base64, wrapped with line ends of Windows",
            broken(&basic, 64, "\r\n"),
        ),
        (
            "in base64, wrapped and indented, as in YAML",
            broken(&basic, 20, "\n      "),
        ),
        (
            "in base64, wrapped, in JSON",
            json(&broken(&basic, 16, "\n")),
        ),
        ("in base64 with escaped slashes", base64.replace('/', "\\/")),
        (
            "in base64 in an address",
            base64
                .replace('/', "%2F")
                .replace('+', "%2b")
                .replace('=', "%3D"),
        ),
        ("in base64 twice", STANDARD.encode(&base64)),
        (
            "in base64 twice behind other bytes",
            STANDARD.encode(format!("auth: {basic}")),
        ),
        (
            "in base64 twice for addresses",
            URL_SAFE.encode(URL_SAFE.encode(format!("ab{key}"))),
        ),
        (
            "in base64 twice, each wrapped",
            broken(&STANDARD.encode(broken(&base64, 76, "\n") + "\n"), 76, "\n"),
        ),
        ("in percent signs, upper case", percent(key, true)),
        ("in percent signs, lower case", percent(key, false)),
        ("every letter in percent signs", percent_whole.clone()),
        (
            "every letter in percent signs, lower case",
            percent_whole.to_lowercase(),
        ),
        ("in percent signs twice", percent_whole.replace('%', "%25")),
        (
            "in percent signs in JSON with escapes",
            json(&percent(key, true)).replace('%', "\\u0025"),
        ),
        ("in HTML", html(key)),
        (
            "in HTML, every letter by number",
            each(key, |byte| format!("&#{byte};")),
        ),
        (
            "in HTML, every letter by number in hex",
            each(key, |byte| format!("&#x{byte:X};")),
        ),
        (
            "in HTML by numbers without semicolons",
            each(key, |byte| format!("&#{byte:07}")),
        ),
        ("in HTML in JSON", json(&html(key))),
        ("in HTML twice", html(key).replace('&', "&amp;")),
        ("with a line break", broken(key, 11, "\n")),
        (
            "with a line break and an indentation",
            broken(key, 11, "\r\n\t    "),
        ),
        ("with a line break in JSON", json(&broken(key, 11, "\n  "))),
        (
            "with lines that go on behind a backslash",
            broken(key, 11, "\\\n"),
        ),
        ("with a colour", broken(key, 7, "\u{1b}[1;31m")),
        ("with a colour in JSON", json(&broken(key, 7, "\u{1b}[0m"))),
        (
            "with a link of a terminal",
            broken(key, 30, "\u{1b}]8;;https://example.org\u{1b}\\"),
        ),
        (
            "with a title of a terminal",
            broken(key, 30, "\u{1b}]0;title\u{7}"),
        ),
        ("with characters without width", broken(key, 3, "\u{200b}")),
        ("with tag characters", broken(key, 3, "\u{e0041}")),
        ("with a soft hyphen in HTML", broken(key, 9, "&#173;")),
        ("in UTF-16", broken(key, 1, "\u{0}")),
    ]
}

/// The longest piece of the key, of at least four letters, that is still in the text.
fn rest_of(key: &str, text: &str) -> Option<String> {
    let pieces = key
        .as_bytes()
        .windows(4)
        .map(|piece| String::from_utf8_lossy(piece).into_owned());
    let parts: Vec<String> = pieces.filter(|piece| text.contains(piece)).collect();
    parts.first().cloned()
}

#[test]
fn no_disguise_of_a_key_leaves_more_than_its_last_two_characters() {
    for key in [KEY, SIGNS] {
        let redactor = Redactor::new([key, "another-key-of-nobody"]);
        let mut left = Vec::new();
        for (name, spelled) in disguises(key) {
            for (before, behind) in [
                ("", ""),
                ("key=", "&x=1"),
                ("\"", "\"\n"),
                ("{\"k\": \"", "\"}"),
            ] {
                let text = format!("{before}{spelled}{behind}");
                let redacted = redactor.redact(&text).into_owned();
                // In base64, the letters next to the key also encode bits of its neighbours.
                let neighbours = if name.contains("base64") { 32 } else { 14 };
                let room = before.len() + behind.len() + "[key in base64]".len() + neighbours;
                if redacted.len() > room
                    || !redacted.contains("[key")
                    || rest_of(key, &redacted).is_some()
                {
                    left.push(format!("{name}: {redacted}"));
                    break;
                }
            }
        }
        assert!(
            left.is_empty(),
            "{} of {} are found:\n{}",
            disguises(key).len() - left.len(),
            disguises(key).len(),
            left.join("\n")
        );
    }
}

#[test]
fn a_disguised_key_in_a_stream_is_struck_out_as_in_the_whole_text() {
    let redactor = Redactor::new([SIGNS]);
    for (name, spelled) in disguises(SIGNS) {
        let text = format!("{{\"k\": \"{spelled}\"}}\n");
        let whole = redactor.redact(&text);
        for size in [1, 50] {
            let mut writer = redactor.writer(Vec::new());
            text.as_bytes()
                .chunks(size)
                .for_each(|piece| writer.write_all(piece).unwrap());
            let streamed = String::from_utf8(writer.finish().unwrap()).unwrap();
            assert_eq!(streamed, whole, "{name}, {size} bytes at a time");
        }
    }
}

#[test]
fn a_stream_holds_back_nothing_but_the_beginning_of_a_key() {
    let redactor = Redactor::new([KEY]);
    let mut writer = redactor.writer(Vec::new());
    let mut seen = |text: &str| {
        writer.write_all(text.as_bytes()).unwrap();
        String::from_utf8_lossy(writer.inner()).into_owned()
    };
    assert_eq!(seen("compiling\n"), "compiling\n");
    assert_eq!(seen("the key: AIza\n  Sy-not"), "compiling\nthe key: ");
    assert_eq!(seen("hing\n"), "compiling\nthe key: AIza\n  Sy-nothing\n");
}

#[test]
fn text_around_a_key_and_text_without_one_stay_as_they_are() {
    let redactor = Redactor::new([KEY, SIGNS]);
    let text = "a\\n\u{1b}[31m%41&amp;\r\n\0\u{200b}é 0x41 = \\u0041\\";
    assert_eq!(redactor.redact(text), text);
    assert_eq!(
        redactor.redact(&format!("{text}{KEY}{text}")),
        format!("{text}[key …42]{text}")
    );
    assert_eq!(
        redactor.redact(&format!("%4{KEY}\\u00{KEY}")),
        "%4[key …42]\\u00[key …42]"
    );
}

#[test]
fn a_long_text_is_searched_piece_by_piece() {
    let redactor = Redactor::new([KEY, "aaaaaaaa"]);
    for before in [PIECE - 30, 2 * PIECE - 1] {
        let spelled = disguises(KEY).into_iter().map(|(_, spelled)| spelled);
        for spelled in spelled.take(8) {
            let text = format!("{}{spelled}\n", ".".repeat(before));
            assert_eq!(
                rest_of(KEY, &redactor.redact(&text)),
                None,
                "{before} {spelled}"
            );
        }
    }
    let endless = "a\0aa".repeat(PIECE / 2);
    assert!(!redactor.redact(&endless).contains("aaa"));
}
