//! JSON tokens with their positions, strictly by RFC 8259.

use std::borrow::Cow;

use memchr::memchr2;

use super::ProposalCode;
use crate::Span;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Token<'t> {
    pub(super) is: Is<'t>,
    pub(super) span: Span,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Is<'t> {
    /// One of `{ } [ ] : ,`.
    Sign(char),
    Text(Cow<'t, str>),
    /// A number, `true`, `false` or `null`.
    Scalar,
    End,
}

pub(super) const BLANKS: [char; 4] = [' ', '\t', '\n', '\r'];

/// The error that ends reading.
pub(super) type Fault = (ProposalCode, Span);

#[derive(Debug)]
pub(super) struct Tokens<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Tokens<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, at: 0 }
    }

    pub(super) fn next(&mut self) -> Result<Token<'t>, Fault> {
        let rest = self.rest().trim_start_matches(BLANKS);
        let start = self.text.len() - rest.len();
        self.at = start;
        let is = match rest.chars().next() {
            None => Is::End,
            Some(sign @ ('{' | '}' | '[' | ']' | ':' | ',')) => {
                self.at += 1;
                Is::Sign(sign)
            }
            Some('"') => Is::Text(self.string()?),
            Some(_) => self.scalar(rest)?,
        };
        Ok(Token {
            is,
            span: start..self.at,
        })
    }

    /// The text that has not been read yet.
    pub(super) fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn scalar(&mut self, rest: &str) -> Result<Is<'t>, Fault> {
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '+' | '-' | '.' | '_');
        let word = rest.split(|c| !is_part(c)).next().unwrap_or_default();
        let start = self.at;
        self.at += word.len();
        match word {
            "true" | "false" | "null" => Ok(Is::Scalar),
            "NaN" | "Infinity" | "-Infinity" => Err((ProposalCode::NotANumber, start..self.at)),
            _ if is_number(word) => Ok(Is::Scalar),
            "" => Err((
                ProposalCode::Syntax,
                start..start + rest.chars().next().map_or(0, char::len_utf8),
            )),
            _ => Err((ProposalCode::Syntax, start..self.at)),
        }
    }

    /// Reads a string after its opening quote; borrows it if it has no escapes.
    fn string(&mut self) -> Result<Cow<'t, str>, Fault> {
        let opening = self.at;
        self.at += 1;
        let mut decoded: Option<String> = None;
        loop {
            let rest = self.rest();
            let Some(length) = memchr2(b'"', b'\\', rest.as_bytes()) else {
                return Err((ProposalCode::CutOff, opening..self.text.len()));
            };
            let plain = rest.get(..length).unwrap_or_default();
            if let Some(bad) = plain.bytes().position(|byte| byte < 0x20) {
                return Err((ProposalCode::BadString, self.at + bad..self.at + bad + 1));
            }
            self.at += length + 1;
            if rest.as_bytes().get(length) == Some(&b'"') {
                return Ok(decoded.map_or(Cow::Borrowed(plain), |text| Cow::Owned(text + plain)));
            }
            let text = decoded.get_or_insert_default();
            text.push_str(plain);
            text.push(self.escape()?);
        }
    }

    /// Reads the rest of an escape, after the backslash.
    fn escape(&mut self) -> Result<char, Fault> {
        let start = self.at - 1;
        let Some(letter) = self.rest().chars().next() else {
            return Err((ProposalCode::CutOff, start..self.text.len()));
        };
        self.at += letter.len_utf8();
        match letter {
            '"' | '\\' | '/' => Ok(letter),
            'b' => Ok('\u{8}'),
            'f' => Ok('\u{c}'),
            'n' => Ok('\n'),
            'r' => Ok('\r'),
            't' => Ok('\t'),
            'u' => self
                .code_point()
                .ok_or((ProposalCode::BadString, start..self.at)),
            _ => Err((ProposalCode::BadString, start..self.at)),
        }
    }

    /// Reads four digits after `\u`, and the second half of a surrogate pair if needed.
    fn code_point(&mut self) -> Option<char> {
        let high = self.hex()?;
        if !(0xD800..0xDC00).contains(&high) {
            return char::from_u32(high);
        }
        self.rest().starts_with("\\u").then_some(())?;
        self.at += 2;
        let low = self.hex().filter(|low| (0xDC00..0xE000).contains(low))?;
        char::from_u32(0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00))
    }

    fn hex(&mut self) -> Option<u32> {
        let digits = self
            .rest()
            .get(..4)
            .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))?;
        self.at += digits.len();
        u32::from_str_radix(digits, 16).ok()
    }
}

/// number = `-`? (`0` / digit1-9 digit*) (`.` digit+)? ((`e` / `E`) (`+` / `-`)? digit+)?
fn is_number(word: &str) -> bool {
    let (mantissa, exponent) = match word.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (
            mantissa,
            Some(exponent.strip_prefix(['+', '-']).unwrap_or(exponent)),
        ),
        None => (word, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let whole = whole.strip_prefix('-').unwrap_or(whole);
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    is_digits(whole)
        && (whole == "0" || !whole.starts_with('0'))
        && fraction.is_none_or(is_digits)
        && exponent.is_none_or(is_digits)
}
