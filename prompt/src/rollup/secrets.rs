//! Content that only secrets have: private keys, and the tokens of services that give theirs a
//! recognizable prefix.

use std::collections::HashSet;
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use regex::bytes::{Regex, RegexBuilder};

/// What looks like a secret, and its form. The group holds what has to look random, to distinguish a secret from text
/// about such secrets. Headers may stand between that of a private key and the key.
const FORMS: [(&str, &str); 16] = [
    (
        PRIVATE_KEY,
        r"PRIVATE KEY(?: BLOCK)?-----[\s\S]{0,200}?([A-Za-z0-9+/=]{40,})",
    ),
    (PRIVATE_KEY, "AGE-SECRET-KEY-1([A-Z0-9]{58,})"),
    (
        "contains what looks like an AWS key",
        "A[KS]IA([A-Z0-9]{16,})",
    ),
    (
        "contains what looks like a Google API key",
        r"AIza([\w-]{35,})",
    ),
    (
        "contains what looks like a Google client secret",
        r"GOCSPX-([\w-]{28,})",
    ),
    (GITHUB_TOKEN, "gh[oprsu]_([A-Za-z0-9]{36,})"),
    (GITHUB_TOKEN, r"github_pat_([\w-]{60,})"),
    (
        "contains what looks like a GitLab token",
        r"glpat-([\w-]{20,})",
    ),
    (
        "contains what looks like an API key of OpenAI or Anthropic",
        r"sk-([\w-]{40,})",
    ),
    (
        "contains what looks like a Slack token",
        r"xox[abp]-([\w-]{24,})",
    ),
    (
        "contains what looks like a Stripe key",
        "[rs]k_live_([A-Za-z0-9]{24,})",
    ),
    (
        "contains what looks like an npm token",
        "npm_([A-Za-z0-9]{36,})",
    ),
    (
        "contains what looks like a PyPI token",
        r"pypi-AgEIcHlwaS5vcmc([\w-]{50,})",
    ),
    (
        "contains what looks like a Hugging Face token",
        "hf_([A-Za-z0-9]{34,})",
    ),
    (
        "contains what looks like a DigitalOcean token",
        "dop_v1_([A-Za-z0-9]{64,})",
    ),
    (
        "contains what looks like a SendGrid key",
        r"SG\.([\w-]{22,})",
    ),
];
const PRIVATE_KEY: &str = "contains what looks like a private key";
const GITHUB_TOKEN: &str = "contains what looks like a GitHub token";

/// Examples repeat characters or count; a real key of this length has more different characters
/// than this.
const LEAST_LETTERS: usize = 10;

/// How these forms begin. Few files have one of these, and the others need no expression.
const BEGINNINGS: [&str; 24] = [
    "PRIVATE KEY",
    "AGE-SECRET-KEY-1",
    "AKIA",
    "ASIA",
    "AIza",
    "GOCSPX-",
    "gho_",
    "ghp_",
    "ghr_",
    "ghs_",
    "ghu_",
    "github_pat_",
    "glpat-",
    "sk-",
    "xoxa-",
    "xoxb-",
    "xoxp-",
    "rk_live_",
    "sk_live_",
    "npm_",
    "pypi-",
    "hf_",
    "dop_v1_",
    "SG.",
];

/// Describes what looks like a secret in the content, if anything.
pub(super) fn held(content: &[u8]) -> Option<&'static str> {
    static BEGINS: LazyLock<Option<AhoCorasick>> =
        LazyLock::new(|| AhoCorasick::new(BEGINNINGS).ok());
    static ANY: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let all = FORMS.map(|(_, form)| form).join("|");
        RegexBuilder::new(&all).unicode(false).build().ok()
    });
    if !BEGINS.as_ref()?.is_match(content) {
        return None;
    }
    ANY.as_ref()?.captures_iter(content).find_map(|found| {
        let (form, secret) = found
            .iter()
            .skip(1)
            .enumerate()
            .find_map(|(at, group)| Some((at, group?)))?;
        let (what, pattern) = FORMS.get(form)?;
        // Inside a word nothing begins; only the header of a private key has its name before it.
        let before = found
            .get(0)?
            .start()
            .checked_sub(1)
            .and_then(|at| content.get(at));
        let is_inside =
            before.is_some_and(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(byte));
        let is_header = pattern.starts_with("PRIVATE KEY");
        ((is_header || !is_inside) && is_random(secret.as_bytes())).then_some(*what)
    })
}

fn is_random(row: &[u8]) -> bool {
    let different: HashSet<&u8> = row.iter().collect();
    different.len() > LEAST_LETTERS
        && row.iter().any(u8::is_ascii_digit)
        && !row.ends_with(b"EXAMPLE")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Assembled at run time: otherwise this file would be left out of every roll-up.
    const RANDOM: &str = "9fQ2xLm7TzR4vK8cWb3NhJ6pYd5GsA1eUo0XiEtCqZyBwVnMkPrDgHjFlSa7";

    #[test]
    fn keys_and_tokens_are_told_by_their_form() {
        for (begins, least, what) in [
            ("-----BEGIN RSA PRIVATE KEY-----", 40, "a private key"),
            ("-----BEGIN PGP PRIVATE KEY BLOCK-----", 40, "a private key"),
            ("AGE-SECRET-KEY-1", 58, "a private key"),
            ("AKIA", 16, "an AWS key"),
            ("ASIA", 16, "an AWS key"),
            ("AIza", 35, "a Google API key"),
            ("GOCSPX-", 28, "a Google client secret"),
            ("ghp_", 36, "a GitHub token"),
            ("gho_", 36, "a GitHub token"),
            ("ghu_", 36, "a GitHub token"),
            ("ghs_", 36, "a GitHub token"),
            ("ghr_", 36, "a GitHub token"),
            ("github_pat_", 60, "a GitHub token"),
            ("glpat-", 20, "a GitLab token"),
            ("sk-", 40, "an API key of OpenAI or Anthropic"),
            ("xoxa-", 24, "a Slack token"),
            ("xoxb-", 24, "a Slack token"),
            ("xoxp-", 24, "a Slack token"),
            ("sk_live_", 24, "a Stripe key"),
            ("rk_live_", 24, "a Stripe key"),
            ("npm_", 36, "an npm token"),
            ("pypi-AgEIcHlwaS5vcmc", 50, "a PyPI token"),
            ("hf_", 34, "a Hugging Face token"),
            ("dop_v1_", 64, "a DigitalOcean token"),
            ("SG.", 22, "a SendGrid key"),
        ] {
            let is_upper = ["AGE-SECRET-KEY-1", "AKIA", "ASIA"].contains(&begins);
            let random: String = RANDOM.repeat(2).chars().take(least).collect();
            let random = if is_upper {
                random.to_ascii_uppercase()
            } else {
                random
            };
            let headers = if begins.ends_with("-----") {
                "\nProc-Type: 4,ENCRYPTED\n\n"
            } else {
                ""
            };
            let holds =
                |behind: &str| held(format!("line\nkey = \"{begins}{behind}\"\n").as_bytes());
            let expected = format!("contains what looks like {what}");
            assert_eq!(
                holds(&format!("{headers}{random}")),
                Some(&*expected),
                "{begins}"
            );
            assert_eq!(holds(""), None, "{begins}");
            assert_eq!(holds(&"x".repeat(80)), None, "{begins}");
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
