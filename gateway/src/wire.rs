//! What workers and the gateway say to each other.

use serde::{Deserialize, Serialize};

/// Of a bundle.
pub(crate) const LARGEST_BUNDLE: usize = 64 << 20;
/// The header with the token of an order's attempt, where the worker's own token is in `authorization`.
pub(crate) const ORDER_TOKEN: &str = "x-code-commit-order-token";

/// The header by which the gateway says that it is its own database that is away, not the vendor.
pub(crate) const AWAY: &str = "x-code-commit-gateway-away";

/// Asks for an attempt of an order.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Begin {
    /// The batch that the worker believes to be in.
    pub(crate) batch: Option<String>,
    pub(crate) order: String,
    /// Of the order's file.
    pub(crate) content_sha256: String,
    /// The commit to begin at, unless an earlier attempt began elsewhere.
    pub(crate) base: String,
}

/// The answer to [`Begin`].
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Begun {
    /// This attempt is the order's newest; every earlier one is void.
    Attempt(Attempt),
    /// The order has its result.
    Finished,
}

/// An attempt of an order.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Attempt {
    pub(crate) token: String,
    /// Where the result goes in the remote. No other attempt has it.
    pub(crate) reference: String,
    pub(crate) base: String,
    /// Why the attempt before had no verdict, if it said so.
    pub(crate) earlier: String,
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Verdict {
    Passed,
    Failed,
}

/// Ends an attempt.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Finish {
    /// `None`: there is no verdict, and a later attempt may bring one.
    pub(crate) verdict: Option<Verdict>,
    pub(crate) reason: String,
    /// Of an order that passed.
    pub(crate) commit: Option<String>,
    /// The SHA-256 of the bundle that was sent before.
    pub(crate) bundle: Option<String>,
}

/// Whether a text can name an order or a batch: also as a part of a ref, and of a scope.
pub(crate) fn is_name(name: &str) -> bool {
    let is_sign = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    (1..=100).contains(&name.len())
        && name.bytes().all(is_sign)
        && !name.starts_with(['.', '-'])
        && !name.ends_with('.')
        && name.strip_suffix(".lock").is_none()
        && !name.contains("..")
}

/// Whether a text is an object's whole name in git, or a SHA-256.
pub(crate) fn is_hash(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_also_one_in_git() {
        for good in ["a", "order-00001", "A_b.c", "1"] {
            assert!(is_name(good), "{good}");
        }
        for bad in ". .. a..b a/b -a .a a. a.lock ü a:b a\0".split(' ') {
            assert!(!is_name(bad), "{bad}");
        }
        assert!(!is_name("") && !is_name("a b"));
        assert!(!is_name(&"a".repeat(101)));
    }
}
