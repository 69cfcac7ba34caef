//! Makes text safe for a terminal: of everything that a terminal would obey, only our own colours
//! remain.

/// Text from outside (a model, a build, a file name), safe for a terminal: without escape
/// sequences, control characters except newlines and tabs, changes of writing direction, and
/// invisible characters.
pub fn printable(text: &str) -> String {
    visible(&anstream::adapter::strip_str(text).to_string())
}

/// Shows as escapes what nobody would see: control characters, invisible ones, and those that turn the direction of
/// writing, with which a file name could pass for another.
pub fn visible(text: &str) -> String {
    escaped(text, |c| c.escape_unicode().to_string(), is_harmless)
}

/// A file name, or a message of one line that may hold names, safe for a line of a terminal: a build chooses names, and
/// a line break in one would begin a line of ours. Characters are escaped, not left out: that would be another name.
pub fn printable_name(name: &str) -> String {
    escaped(name, |c| c.escape_unicode().to_string(), is_seen)
}

/// JSON, safe for a terminal: escapes what serde does not, but a terminal would obey or hide. Such
/// characters occur only in strings, where an escape means the same character.
pub(super) fn json(value: &serde_json::Value) -> String {
    escaped(&value.to_string(), utf16, is_seen)
}

/// `\u202e`; two of them for a character outside the basic plane.
fn utf16(c: char) -> String {
    c.encode_utf16(&mut [0; 2])
        .iter()
        .map(|unit| format!("\\u{unit:04x}"))
        .collect()
}

fn escaped(text: &str, escape: impl Fn(char) -> String, harmless: impl Fn(char) -> bool) -> String {
    let mut before = '\0';
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        // This character selects the coloured form of the one before it; a row of them could carry
        // invisible text.
        let is_form = c == '\u{fe0f}' && !before.is_ascii() && harmless(before);
        if harmless(c) || is_form {
            shown.push(c);
        } else {
            shown.push_str(&escape(c));
        }
        before = c;
    }
    shown
}

/// Escapes everything but our colours. The authors of `text` pass everything from outside through
/// [`printable`] first; what they miss can change colours, but cannot move the cursor or hide
/// anything.
pub(super) fn tame(text: &str, colour: bool) -> String {
    let mut tamed = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, sequence, behind)) = next_colour(rest) {
        tamed.push_str(&lines(before));
        if colour {
            tamed.push_str(sequence);
        }
        rest = behind;
    }
    tamed.push_str(&lines(rest));
    tamed
}

/// Some reports quote texts with CRLF line endings.
fn lines(text: &str) -> String {
    printable(&text.replace("\r\n", "\n"))
}

/// The first sequence that only sets a colour or a weight, with the text before and after it.
fn next_colour(text: &str) -> Option<(&str, &str, &str)> {
    text.match_indices("\u{1b}[").find_map(|(at, start)| {
        let (before, rest) = text.split_at_checked(at)?;
        let length = rest
            .bytes()
            .skip(start.len())
            .take_while(|byte| byte.is_ascii_digit() || *byte == b';')
            .count();
        let codes = rest.get(start.len()..start.len() + length)?;
        let (sequence, behind) = rest.split_at_checked(start.len() + length + 1)?;
        (sequence.ends_with('m') && codes.split(';').all(is_visible))
            .then_some((before, sequence, behind))
    })
}

/// Normal, bold, dim, and colours that are visible on light and dark backgrounds; neither concealed
/// nor inverse.
fn is_visible(code: &str) -> bool {
    matches!(
        code,
        "0" | "1" | "2" | "31" | "32" | "33" | "34" | "35" | "36"
    ) || matches!(code, "91" | "92" | "93" | "94" | "95" | "96")
}

fn is_harmless(c: char) -> bool {
    matches!(c, '\n' | '\t') || is_seen(c)
}

fn is_seen(c: char) -> bool {
    !(c.is_control() || code_commit_names::is_bidi(c) || code_commit_names::is_invisible(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_gets_no_escape_sequence_from_outside() {
        assert_eq!(printable("\u{1b}[31mred\u{1b}[0m\ttext\n"), "red\ttext\n");
        assert_eq!(printable("a\u{7}b\u{202e}c"), "ab\\u{202e}c");
        assert_eq!(printable("\u{1b}]0;title\u{7}x"), "x");
    }

    #[test]
    fn characters_that_nobody_sees_are_shown_by_their_numbers() {
        let hidden = "a\u{200b}b\u{e0041}c\u{3164}d\u{2060}e\u{ad}f\u{fe0f}";
        assert_eq!(
            printable(hidden),
            "a\\u{200b}b\\u{e0041}c\\u{3164}d\\u{2060}e\\u{ad}f\\u{fe0f}"
        );
        assert_eq!(printable_name("a\u{200b}.rs"), "a\\u{200b}.rs");
        let visible = "né 日本\u{3000}語 \u{2714}\u{fe0f} \u{fffd}";
        assert_eq!(printable(visible), visible);
        assert_eq!(
            printable("\u{2714}\u{fe0f}\u{fe0f}"),
            "\u{2714}\u{fe0f}\\u{fe0f}"
        );
    }

    #[test]
    fn json_holds_no_character_that_a_terminal_obeys_or_hides() {
        let text = "\u{9b}31m\u{7f}\u{202e}\u{200b}\u{e0041}né\n";
        let printed = json(&serde_json::json!({ "k\u{85}": text }));
        assert_eq!(
            printed,
            r#"{"k\u0085":"\u009b31m\u007f\u202e\u200b\udb40\udc41né\n"}"#
        );
        let back: serde_json::Value = serde_json::from_str(&printed).unwrap();
        assert_eq!(back["k\u{85}"], text);
    }

    #[test]
    fn colours_pass_and_nothing_else_that_a_terminal_obeys() {
        let coloured = "\u{1b}[1m\u{1b}[31merror:\u{1b}[0m text\n";
        assert_eq!(tame(coloured, true), coloured);
        assert_eq!(tame(coloured, false), "error: text\n");
        let hostile = "\u{1b}[2Ka\u{1b}[8mb\u{1b}[1Ac\u{1b}]0;t\u{7}d\u{202e}e\rf\r\ng\u{1b}[m";
        assert_eq!(tame(hostile, true), "abcd\\u{202e}e\\u{d}f\ng");
        assert_eq!(tame("\u{1b}", true), "");
    }

    #[test]
    fn a_name_with_an_escape_sequence_stays_that_name() {
        assert_eq!(
            printable_name("evil\u{1b}[31m/x\ny"),
            "evil\\u{1b}[31m/x\\u{a}y"
        );
    }
}
