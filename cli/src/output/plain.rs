//! What a terminal may have of a text: our own colours, and nothing else that it would obey.

use std::borrow::Cow;

/// Text from outside (a model, a build, a file name) as a terminal may have it: no escape sequence, no control character but line ends
/// and tabs, nothing that turns the direction of writing.
pub fn printable(text: &str) -> String {
    let plain = anstream::adapter::strip_str(text).to_string();
    if plain.chars().all(is_harmless) {
        return plain;
    }
    escaped(&plain, is_harmless)
}

/// The name of a file as a terminal may have it. Nothing is left out: it would be another name.
pub fn printable_name(name: &str) -> String {
    escaped(name, |c| !(c.is_control() || is_bidi(c)))
}

fn escaped(text: &str, harmless: impl Fn(char) -> bool) -> String {
    text.chars().map(|c| if harmless(c) { c.to_string() } else { c.escape_unicode().to_string() }).collect()
}

/// The same for a text with colours of ours in it. Whoever writes such a text makes what came from outside [`printable`] first; what was
/// forgotten can colour, but move no cursor and hide nothing.
pub(super) fn tame(text: &str, colour: bool) -> Cow<'_, str> {
    if text.chars().all(is_harmless) {
        return Cow::Borrowed(text);
    }
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
    Cow::Owned(tamed)
}

/// Some reports quote texts with line ends of Windows.
fn lines(text: &str) -> String {
    printable(&text.replace("\r\n", "\n"))
}

/// The first sequence that sets nothing but a colour or a weight, and what stands around it.
fn next_colour(text: &str) -> Option<(&str, &str, &str)> {
    text.match_indices("\u{1b}[").find_map(|(at, start)| {
        let (before, rest) = text.split_at_checked(at)?;
        let length =
            rest.bytes().skip(start.len()).take_while(|byte| byte.is_ascii_digit() || *byte == b';').count();
        let codes = rest.get(start.len()..start.len() + length)?;
        let (sequence, behind) = rest.split_at_checked(start.len() + length + 1)?;
        (sequence.ends_with('m') && codes.split(';').all(is_visible)).then_some((before, sequence, behind))
    })
}

/// Normal, bold, dim, and the colours that are seen on light and on dark ground; neither concealed nor inverse.
fn is_visible(code: &str) -> bool {
    matches!(code, "0" | "1" | "2" | "31" | "32" | "33" | "34" | "35" | "36")
        || matches!(code, "91" | "92" | "93" | "94" | "95" | "96")
}

fn is_harmless(c: char) -> bool {
    matches!(c, '\n' | '\t') || !(c.is_control() || is_bidi(c))
}

/// Characters that change the order in which others are shown (UAX #9).
fn is_bidi(c: char) -> bool {
    matches!(c, '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
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
        assert_eq!(printable_name("evil\u{1b}[31m/x\ny"), "evil\\u{1b}[31m/x\\u{a}y");
    }
}
