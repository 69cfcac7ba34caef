//! Content that only secrets have: private keys, and the tokens of services that give theirs a
//! recognizable prefix.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};

/// How a secret begins, and what must follow to distinguish it from text about such secrets.
struct Form {
    begins: &'static str,
    /// Which characters follow, and how many at least.
    letters: fn(u8) -> bool,
    least: usize,
    what: &'static str,
}

const FORMS: &[Form] = &[
    form(
        "PRIVATE KEY-----",
        in_key_block,
        40,
        "holds what looks like a private key",
    ),
    form(
        "PRIVATE KEY BLOCK-----",
        in_key_block,
        40,
        "holds what looks like a private key",
    ),
    form(
        "AGE-SECRET-KEY-1",
        upper,
        58,
        "holds what looks like a private key",
    ),
    form("AKIA", upper, 16, "holds what looks like an AWS key"),
    form("ASIA", upper, 16, "holds what looks like an AWS key"),
    form("AIza", word, 35, "holds what looks like a Google API key"),
    form(
        "GOCSPX-",
        word,
        28,
        "holds what looks like a Google client secret",
    ),
    form(
        "ghp_",
        alphanumeric,
        36,
        "holds what looks like a GitHub token",
    ),
    form(
        "gho_",
        alphanumeric,
        36,
        "holds what looks like a GitHub token",
    ),
    form(
        "ghu_",
        alphanumeric,
        36,
        "holds what looks like a GitHub token",
    ),
    form(
        "ghs_",
        alphanumeric,
        36,
        "holds what looks like a GitHub token",
    ),
    form(
        "ghr_",
        alphanumeric,
        36,
        "holds what looks like a GitHub token",
    ),
    form(
        "github_pat_",
        word,
        60,
        "holds what looks like a GitHub token",
    ),
    form("glpat-", word, 20, "holds what looks like a GitLab token"),
    form(
        "sk-",
        word,
        40,
        "holds what looks like an API key of OpenAI or Anthropic",
    ),
    form("xoxb-", word, 24, "holds what looks like a Slack token"),
    form("xoxp-", word, 24, "holds what looks like a Slack token"),
    form("xoxa-", word, 24, "holds what looks like a Slack token"),
    form(
        "sk_live_",
        alphanumeric,
        24,
        "holds what looks like a Stripe key",
    ),
    form(
        "rk_live_",
        alphanumeric,
        24,
        "holds what looks like a Stripe key",
    ),
    form(
        "npm_",
        alphanumeric,
        36,
        "holds what looks like an npm token",
    ),
    form(
        "pypi-AgEIcHlwaS5vcmc",
        word,
        50,
        "holds what looks like a PyPI token",
    ),
    form(
        "hf_",
        alphanumeric,
        34,
        "holds what looks like a Hugging Face token",
    ),
    form(
        "dop_v1_",
        alphanumeric,
        64,
        "holds what looks like a DigitalOcean token",
    ),
    form("SG.", word, 22, "holds what looks like a SendGrid key"),
];

const fn form(
    begins: &'static str,
    letters: fn(u8) -> bool,
    least: usize,
    what: &'static str,
) -> Form {
    Form {
        begins,
        letters,
        least,
        what,
    }
}

/// The header of a key may be followed by others, for example about its encryption.
const HEADERS: usize = 200;
/// Examples repeat characters or count; a real key of this length has more different characters
/// than this.
const LEAST_LETTERS: usize = 10;

/// Describes what looks like a secret in the content, if anything.
pub(super) fn held(content: &[u8]) -> Option<&'static str> {
    static BEGINNINGS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
        let begins = FORMS.iter().map(|form| form.begins);
        AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostFirst)
            .build(begins)
            .ok()
    });
    // Overlapping matches are not needed: one inside another does not begin at a word boundary.
    let mut found = BEGINNINGS.as_ref()?.find_iter(content);
    found.find_map(|begun| {
        let form = FORMS.get(begun.pattern().as_usize())?;
        let before = begun.start().checked_sub(1).and_then(|at| content.get(at));
        // Inside a word nothing begins; only the header of a private key has its name before it.
        let is_header = form.begins.ends_with('-') && form.begins.contains(' ');
        let is_own = is_header
            || before.is_none_or(|letter| !alphanumeric(*letter) && !b"_-".contains(letter));
        (is_own && form.holds(content.get(begun.end()..)?)).then_some(form.what)
    })
}

impl Form {
    fn holds(&self, behind: &[u8]) -> bool {
        let is_header = self.begins.contains(' ');
        let reach = if is_header {
            HEADERS + self.least
        } else {
            behind.len()
        };
        let rows = behind
            .get(..reach)
            .unwrap_or(behind)
            .split(|letter| !(self.letters)(*letter));
        let mut rows = rows.take(if is_header { usize::MAX } else { 1 });
        rows.any(|row| row.len() >= self.least && is_random(row))
    }
}

fn is_random(row: &[u8]) -> bool {
    let mut seen = [false; 256];
    row.iter().for_each(|letter| {
        seen.iter_mut()
            .skip(usize::from(*letter))
            .take(1)
            .for_each(|seen| *seen = true);
    });
    let different = seen.iter().filter(|seen| **seen).count();
    different > LEAST_LETTERS && row.iter().any(u8::is_ascii_digit) && !row.ends_with(b"EXAMPLE")
}

fn in_key_block(letter: u8) -> bool {
    alphanumeric(letter) || matches!(letter, b'+' | b'/' | b'=')
}

fn upper(letter: u8) -> bool {
    letter.is_ascii_uppercase() || letter.is_ascii_digit()
}

fn alphanumeric(letter: u8) -> bool {
    letter.is_ascii_alphanumeric()
}

fn word(letter: u8) -> bool {
    alphanumeric(letter) || matches!(letter, b'_' | b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Assembled at run time: otherwise this file would be left out of every roll-up.
    const RANDOM: &str = "9fQ2xLm7TzR4vK8cWb3NhJ6pYd5GsA1eUo0XiEtCqZyBwVnMkPrDgHjFlSa7";

    #[test]
    fn keys_and_tokens_are_told_by_their_form() {
        let upper = RANDOM.to_ascii_uppercase();
        let cut = |text: &str, length: usize| text.chars().take(length).collect::<String>();
        for form in FORMS {
            let random = cut(&format!("{}{}", upper, &upper), form.least);
            let random = if (form.letters)(b'a') {
                cut(&RANDOM.repeat(2), form.least)
            } else {
                random
            };
            let header = if form.begins.contains(' ') {
                "-----BEGIN RSA "
            } else {
                "key = \""
            };
            let text = format!("line\n{header}{}", form.begins);
            let behind = if form.begins.contains(' ') {
                "\nProc-Type: 4,ENCRYPTED\n\n"
            } else {
                ""
            };
            assert_eq!(
                held(format!("{text}{behind}{random}\"\n").as_bytes()),
                Some(form.what),
                "{}",
                form.begins
            );
            assert_eq!(
                held(format!("{text}\"\nand more\n").as_bytes()),
                None,
                "{}",
                form.begins
            );
            assert_eq!(
                held(format!("{text}{}\"\n", "x".repeat(80)).as_bytes()),
                None,
                "{}",
                form.begins
            );
        }
        let in_json = format!(
            "{{\"private_key\": \"-----BEGIN PRIVATE {}\\n{RANDOM}\\n\"}}",
            "KEY-----"
        );
        assert!(held(in_json.as_bytes()).is_some());
    }

    #[test]
    fn text_about_keys_and_words_that_end_like_them_are_not_taken_for_some() {
        for text in [
            "if line.contains(\"-----BEGIN PRIVATE KEY-----\") { return None }",
            "AKIAIOSFODNN7EXAMPLE",
            "task-runner-with-a-very-long-name-and-2-numbers-0123456789-abcdef",
            "sk-... is where your key goes",
            "let ghp_token = read(\"ghp_\")?;",
        ] {
            assert_eq!(held(text.as_bytes()), None, "{text}");
        }
    }
}
