//! Tokens of well-known services, and private keys, which are recognized by their shape alone.
//!
//! Only what commands print is searched for them: a build may print a token that it found on the machine, which the harness does
//! not know. Files and replies may contain invented ones.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::bytes::{Captures, Regex};

/// Each begins with what no ordinary word begins with, and is as long as the service makes it.
const SHAPES: [&str; 15] = [
    // GitHub, GitLab.
    "gh[pousr]_[A-Za-z0-9]{36,}",
    "github_pat_[A-Za-z0-9_]{60,}",
    "gl(?:agent|cbt|dt|ft|imt|oas|pat|ptt|rt|soat)-[A-Za-z0-9_.-]{20,}",
    // AWS.
    "(?:AKIA|ASIA)[A-Z0-9]{16}",
    // Anthropic, OpenAI, OpenRouter; older ones of OpenAI.
    "sk-(?:ant|proj|svcacct|admin|or)-[A-Za-z0-9_-]{20,}",
    "sk-[A-Za-z0-9]{32,}",
    // Google.
    "AIza[A-Za-z0-9_-]{35}",
    "GOCSPX-[A-Za-z0-9_-]{20,}",
    r"ya29\.[A-Za-z0-9_-]{20,}",
    // Slack.
    "xox[abeoprs]-[A-Za-z0-9-]{10,}",
    "xapp-[A-Za-z0-9-]{10,}",
    // npm, PyPI, crates.io, Hugging Face.
    "npm_[A-Za-z0-9]{36}",
    "pypi-[A-Za-z0-9_-]{50,}",
    "cio[A-Za-z0-9]{32}",
    "hf_[A-Za-z0-9]{34}",
];
/// What the shapes begin with: a stream that ends with one of these is not over yet.
const BEGINNINGS: [&[u8]; 16] = [
    b"gh",
    b"gl",
    b"AKIA",
    b"ASIA",
    b"sk-",
    b"AIza",
    b"GOCSPX-",
    b"ya29.",
    b"xox",
    b"xapp-",
    b"npm_",
    b"pypi-",
    b"cio",
    b"hf_",
    b"github_pat_",
    BLOCK,
];
const BLOCK: &[u8] = b"-----BEGIN ";
/// A longer row of letters is no token; a longer block is no key.
const LONGEST: usize = 16 << 10;

static TOKENS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let block = r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----[\s\S]*?(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\z)";
    let all = format!(
        r"(?P<block>{block})|(?P<before>^|[^A-Za-z0-9_.-])(?:{})",
        SHAPES.join("|")
    );
    Regex::new(&all).ok()
});

/// Replaces them; at most their last two characters stay.
pub(super) fn replace(text: &[u8]) -> Cow<'_, [u8]> {
    let Some(tokens) = &*TOKENS else {
        return Cow::Borrowed(text);
    };
    tokens.replace_all(text, |found: &Captures<'_>| {
        if found.name("block").is_some() {
            return b"[private key]".to_vec();
        }
        let whole = found.get(0).map_or(&b""[..], |found| found.as_bytes());
        let before = found
            .name("before")
            .map_or(&b""[..], |before| before.as_bytes());
        let last = whole
            .get(whole.len().saturating_sub(2)..)
            .unwrap_or_default();
        [before, "[token …".as_bytes(), last, b"]"].concat()
    })
}

/// How much of a text is over: what follows cannot make it part of a token.
pub(super) fn settled(text: &[u8]) -> usize {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.-".contains(byte);
    let recent = text.len().saturating_sub(LONGEST);
    let start = text
        .iter()
        .rposition(|byte| !is_part(byte))
        .map_or(0, |at| at + 1)
        .max(recent);
    let last = text.get(start..).unwrap_or_default();
    let begins = |beginning: &&[u8]| last.starts_with(beginning) || beginning.starts_with(last);
    let token = if !last.is_empty() && BEGINNINGS.iter().any(begins) {
        start
    } else {
        text.len()
    };
    let tail = text.get(recent..).unwrap_or_default();
    let open = tail
        .windows(BLOCK.len())
        .rposition(|part| part == BLOCK)
        .filter(|at| {
            let block = tail.get(*at..).unwrap_or_default();
            let end = block
                .windows(END.len())
                .position(|part| part == END)
                .map(|end| end + END.len());
            !end.and_then(|end| block.get(end..))
                .is_some_and(|rest| rest.windows(5).any(|part| part == b"-----"))
        });
    open.map_or(token, |at| token.min(recent + at))
}

const END: &[u8] = b"-----END ";

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use crate::Redactor;

    /// Put together here, so that no scanner takes this file for a leak.
    fn tokens() -> Vec<String> {
        let row = |length: usize| {
            "aB3dE5gH1jK7mN9pQ2sT4vW6yZ8x"
                .chars()
                .cycle()
                .take(length)
                .collect::<String>()
        };
        let with = |beginning: &str, length| format!("{beginning}{}", row(length));
        let key = |kind: &str| {
            format!(
                "-----BEGIN {kind}PRIVATE KEY-----\n{}\n-----END {kind}PRIVATE KEY-----",
                row(200)
            )
        };
        vec![
            with("ghp_", 36),
            with("github_pat_", 82),
            with("glpat-", 20),
            format!("AKIA{}", row(16).to_uppercase()),
            with("sk-ant-api03-", 95),
            with("sk-proj-", 100),
            with("sk-", 48),
            with("AIza", 35),
            with("ya29.", 60),
            with("xoxb-", 50),
            with("npm_", 36),
            with("pypi-", 120),
            with("cio", 32),
            key("RSA "),
            key(""),
        ]
    }

    #[test]
    fn tokens_and_private_keys_are_redacted_in_what_commands_print() {
        let redactor = Redactor::default().with_tokens();
        for token in tokens() {
            for (before, after) in [
                ("", ""),
                ("token=", "\n"),
                ("https://x:", "@host/path"),
                ("{\"a\":\"", "\"}"),
            ] {
                let text = format!("{before}{token}{after}");
                let redacted = redactor.redact(&text);
                let shown = if token.starts_with('-') {
                    "[private key]".to_owned()
                } else {
                    format!("[token …{}]", token.get(token.len() - 2..).unwrap())
                };
                assert_eq!(redacted, format!("{before}{shown}{after}"));
                assert_eq!(Redactor::default().redact(&text), text, "only there");
            }
        }
    }

    #[test]
    fn a_token_that_arrives_in_pieces_is_redacted() {
        for redactor in [
            Redactor::default().with_tokens(),
            Redactor::new(["another-key-42"]).with_tokens(),
        ] {
            for token in tokens() {
                let text =
                    format!("a line\nthe token: {token}, and more ...\nanother-key-42 {token}\n");
                let mut writer = redactor.writer(Vec::new());
                text.as_bytes()
                    .chunks(1)
                    .for_each(|byte| writer.write_all(byte).unwrap());
                let written = String::from_utf8(writer.finish().unwrap()).unwrap();
                assert_eq!(written, redactor.redact(&text));
            }
        }
    }

    #[test]
    fn ordinary_words_of_builds_stay_and_are_not_held_back() {
        let lines = "sk-fading-circle sk-cube-grid-animation-delay task-running-for-a-long-time-0123456789\n\
            ghp_short github_pat_ AKIA glpat-x npm_config_cache pypi-server cio hf_hub xoxo\n\
            cargo 1.90.0 sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU= -----BEGIN CERTIFICATE-----\n";
        let redactor = Redactor::default().with_tokens();
        assert_eq!(redactor.redact(lines), lines);
        let mut writer = redactor.writer(Vec::new());
        writer.write_all(b"test a ... ok\ntest b ... ").unwrap();
        assert_eq!(writer.inner(), b"test a ... ok\ntest b ... ");
    }
}
