//! A text as its reader decodes it, without line breaks, escape sequences and escapes, and where
//! each letter comes from.

use std::ops::{Range, RangeInclusive};

/// Whether the text ends here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rest {
    /// It does.
    None,
    /// More may follow, and complete an escape that is cut off at the end.
    MayFollow,
}

/// The decoded letters of a text, and where in the text each one is.
#[derive(Debug, Default)]
pub(super) struct View {
    pub(super) letters: Vec<u8>,
    /// In order. Most letters directly follow the one before them, so there are few runs.
    runs: Vec<Run>,
    /// Where the last letter ends in the text.
    end: usize,
    /// Where the text ends with an escape that following text may complete.
    pub(super) open: Option<usize>,
}

/// Letters that directly follow each other in the text.
#[derive(Debug)]
struct Run {
    /// The number of the first letter, and its offset in the text.
    letter: usize,
    at: usize,
    /// How many bytes the first letter takes; each of the others takes one.
    length: usize,
}

/// What a text begins with, and how many bytes that takes.
#[derive(Debug, Clone, Copy)]
enum Unit {
    Letter(u8, usize),
    /// Not part of a key: a line break, an escape sequence, a character that is not ASCII.
    Nothing(usize),
    /// The text ends too early to tell.
    Cut,
}

/// Longer escapes and sequences are not recognized: one that never ends must not hide the rest.
const LONGEST_UNIT: usize = 256;

impl View {
    /// Decodes one layer of escapes, and drops everything that only separates letters.
    pub(super) fn decoded(text: &[u8], rest: Rest) -> View {
        let mut view = View::default();
        let mut at = 0;
        while let Some(left) = text.get(at..).filter(|left| !left.is_empty()) {
            // Nearly all text needs no decoding: this makes it fast.
            let plain = left
                .iter()
                .take_while(|byte| stands_for_itself(**byte))
                .count();
            view.push(left.get(..plain).unwrap_or_default(), at, 1);
            at += plain;
            if plain < left.len()
                && !view.take(left.get(plain..).unwrap_or_default(), &mut at, rest, unit)
            {
                break;
            }
        }
        view
    }

    /// The hex digits only, however they are separated: `41 49`, `41:49`, `0x41, 0x49`.
    pub(super) fn hex_digits(text: &[u8], rest: Rest) -> View {
        let mut view = View::default();
        let mut at = 0;
        while let Some(left) = text.get(at..).filter(|left| !left.is_empty()) {
            let other = left
                .iter()
                .take_while(|byte| !stands_in_hex(**byte))
                .count();
            if other > 0 {
                view.push(&[NO_DIGIT], at, other);
                at += other;
            } else if !view.take(left, &mut at, rest, hex_unit) {
                break;
            }
        }
        view
    }

    /// Whether escapes may be left, or may have appeared by decoding.
    pub(super) fn may_hold_escapes(&self) -> bool {
        self.letters
            .iter()
            .any(|letter| !stands_for_itself(*letter))
    }

    /// The bytes of the text that these letters were decoded from.
    pub(super) fn source(&self, letters: &Range<usize>) -> Option<Range<usize>> {
        let start = self.place(letters.start)?.start;
        Some(start..self.place(letters.end.checked_sub(1)?)?.end)
    }

    fn place(&self, letter: usize) -> Option<Range<usize>> {
        let after = self.runs.partition_point(|run| run.letter <= letter);
        let run = self.runs.get(after.checked_sub(1)?)?;
        Some(match letter - run.letter {
            0 => run.at..run.at + run.length,
            beyond => run.at + run.length + beyond - 1..run.at + run.length + beyond,
        })
    }

    /// Takes one unit; false if the text ends within it.
    fn take(
        &mut self,
        left: &[u8],
        at: &mut usize,
        rest: Rest,
        unit: impl Fn(&[u8]) -> Unit,
    ) -> bool {
        match unit(left) {
            Unit::Letter(letter, length) => {
                self.push(&[letter], *at, length);
                *at += length;
            }
            Unit::Nothing(length) => *at += length,
            Unit::Cut if rest == Rest::MayFollow => {
                self.open = Some(*at);
                return false;
            }
            Unit::Cut => {
                self.push(left.get(..1).unwrap_or_default(), *at, 1);
                *at += 1;
            }
        }
        true
    }

    /// Adds letters that are at `at`, the first of which takes `length` bytes.
    fn push(&mut self, letters: &[u8], at: usize, length: usize) {
        if letters.is_empty() {
            return;
        }
        if length != 1 || self.end != at || self.runs.is_empty() {
            self.runs.push(Run {
                letter: self.letters.len(),
                at,
                length,
            });
        }
        self.letters.extend_from_slice(letters);
        self.end = at + length + letters.len() - 1;
    }
}

fn stands_for_itself(byte: u8) -> bool {
    matches!(byte, b' '..=b'~') && !matches!(byte, b'\\' | b'%' | b'&' | b'-' | b'_')
}

fn stands_in_hex(byte: u8) -> bool {
    let parts = matches!(
        byte,
        b' ' | b'\t' | b'\r' | b'\n' | b':' | b',' | b';' | b'-' | b'"' | b'\''
    );
    byte.is_ascii_hexdigit() || parts || byte == b'\\'
}

fn unit(text: &[u8]) -> Unit {
    match text {
        [b'\\', escaped @ ..] => backslash(escaped),
        [b'%', digits @ ..] => coded(b'%', 1, digits, 16, 2..=2),
        [b'&', entity @ ..] => self::entity(entity),
        [b'\n' | b'\r', rest @ ..] => line_break(1, rest),
        [0x1b, rest @ ..] => sequence(rest),
        [letter, ..] => value(u32::from(*letter), 1),
        [] => Unit::Cut,
    }
}

/// A letter in its compared form: the two characters in which the base64 alphabets differ count as
/// equal.
fn value(value: u32, length: usize) -> Unit {
    match u8::try_from(value) {
        Ok(b'-') => Unit::Letter(b'+', length),
        Ok(b'_') => Unit::Letter(b'/', length),
        // An escape sequence may itself be escaped: the next layer decodes it.
        Ok(letter @ (b' '..=b'~' | 0x1b)) => Unit::Letter(letter, length),
        _ => Unit::Nothing(length),
    }
}

/// Includes the indentation of the next line.
fn line_break(length: usize, rest: &[u8]) -> Unit {
    let indent = rest
        .iter()
        .take(LONGEST_UNIT)
        .take_while(|byte| matches!(byte, b' ' | b'\t'))
        .count();
    Unit::Nothing(length + indent)
}

/// What follows a backslash in JSON, C, Rust, shells and Markdown.
fn backslash(escaped: &[u8]) -> Unit {
    match escaped {
        [] | [b'u'] => Unit::Cut,
        [b'n' | b'r' | b'\n' | b'\r', rest @ ..] => line_break(2, rest),
        [b't' | b'b' | b'f' | b'v' | b'a', ..] => Unit::Nothing(2),
        [b'e', ..] => value(0x1b, 2),
        [b'u', b'{', digits @ ..] => {
            let (code, count) = number(digits, 16, 6);
            match digits.get(count) {
                None => Unit::Cut,
                Some(b'}') if count > 0 => value(code, count + 4),
                Some(_) => Unit::Letter(b'\\', 1),
            }
        }
        [b'u', digits @ ..] => coded(b'\\', 2, digits, 16, 4..=4),
        [b'x', digits @ ..] => coded(b'\\', 2, digits, 16, 2..=2),
        [b'0'..=b'7', ..] => coded(b'\\', 1, escaped, 8, 1..=3),
        [sign, ..] if sign.is_ascii_punctuation() => value(u32::from(*sign), 2),
        [..] => Unit::Letter(b'\\', 1),
    }
}

/// A letter written as a number, after a prefix of `lead` bytes that begins with `sign`; otherwise
/// `sign` itself.
fn coded(sign: u8, lead: usize, digits: &[u8], radix: u32, wanted: RangeInclusive<usize>) -> Unit {
    let (code, count) = number(digits, radix, *wanted.end());
    if wanted.contains(&count) && (count == *wanted.end() || count < digits.len()) {
        value(code, lead + count)
    } else if count == digits.len() {
        Unit::Cut
    } else {
        Unit::Letter(sign, 1)
    }
}

/// The number at the beginning, of at most `most` digits, and how many digits it has.
fn number(digits: &[u8], radix: u32, most: usize) -> (u32, usize) {
    let values = digits
        .iter()
        .take(most)
        .map_while(|digit| char::from(*digit).to_digit(radix));
    values.fold((0, 0), |(number, count), digit| {
        (number * radix + digit, count + 1)
    })
}

/// HTML: a number, or the name of a character that occurs in keys and in base64. The semicolon may
/// be missing after a number.
fn entity(entity: &[u8]) -> Unit {
    const NAMED: [(&[u8], u8); 13] = [
        (b"amp;", b'&'),
        (b"lt;", b'<'),
        (b"gt;", b'>'),
        (b"quot;", b'"'),
        (b"apos;", b'\''),
        (b"sol;", b'/'),
        (b"plus;", b'+'),
        (b"equals;", b'='),
        (b"lowbar;", b'_'),
        (b"hyphen;", b'-'),
        (b"period;", b'.'),
        (b"colon;", b':'),
        (b"num;", b'#'),
    ];
    let (lead, digits, radix) = match entity {
        [b'#', b'x' | b'X', digits @ ..] => (3, digits, 16),
        [b'#', digits @ ..] => (2, digits, 10),
        name => {
            let is_cut = NAMED
                .iter()
                .any(|(known, _)| known.len() > name.len() && known.starts_with(name));
            let known = NAMED.iter().find(|(known, _)| name.starts_with(known));
            let otherwise = if is_cut {
                Unit::Cut
            } else {
                Unit::Letter(b'&', 1)
            };
            return known.map_or(otherwise, |(known, sign)| {
                value(u32::from(*sign), 1 + known.len())
            });
        }
    };
    let number = coded(b'&', lead, digits, radix, 1..=7);
    let ends = |length: usize| length > 1 && entity.get(length - 1) == Some(&b';');
    match number {
        Unit::Letter(letter, length) if ends(length) => Unit::Letter(letter, length + 1),
        Unit::Nothing(length) if ends(length) => Unit::Nothing(length + 1),
        Unit::Letter(..) | Unit::Nothing(_) | Unit::Cut => number,
    }
}

/// What follows an escape character: a colour or cursor sequence, a string for the terminal
/// (ECMA-48 §5.4 and §5.6), or two bytes.
fn sequence(rest: &[u8]) -> Unit {
    let ends_at = |end: Option<usize>| match end {
        Some(end) => Unit::Nothing(end + 2),
        None if rest.len() < LONGEST_UNIT => Unit::Cut,
        None => Unit::Nothing(1),
    };
    let mut bytes = rest.iter().take(LONGEST_UNIT);
    match rest.first() {
        Some(b'[') => ends_at(
            bytes
                .skip(1)
                .position(|byte| !(b' '..=b'?').contains(byte))
                .map(|at| at + 1),
        ),
        Some(b']' | b'P' | b'X' | b'^' | b'_') => {
            let bell = bytes.position(|byte| *byte == 0x07);
            let string = rest
                .windows(2)
                .take(LONGEST_UNIT)
                .position(|pair| pair == b"\x1b\\");
            ends_at([bell, string.map(|at| at + 1)].into_iter().flatten().min())
        }
        Some(b' '..=b'/') => ends_at(bytes.position(|byte| !(b' '..=b'/').contains(byte))),
        Some(_) => Unit::Nothing(2),
        None => Unit::Cut,
    }
}

/// A digit in lower case, a separator of digits, or the end of a row of them.
fn hex_unit(text: &[u8]) -> Unit {
    match text {
        [b'0', b'x' | b'X', ..] | [b'\\', b'x' | b'n' | b'r' | b't', ..] => Unit::Nothing(2),
        [b'0' | b'\\'] => Unit::Cut,
        [digit, ..] if digit.is_ascii_hexdigit() => Unit::Letter(digit.to_ascii_lowercase(), 1),
        [b'\\', ..] | [] => Unit::Letter(NO_DIGIT, 1),
        [..] => Unit::Nothing(1),
    }
}

/// Occurs in no key.
const NO_DIGIT: u8 = 0;
