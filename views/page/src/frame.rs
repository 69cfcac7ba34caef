//! What all pages share: the policy, the style, bars, and how times are written.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};

/// The style of all pages.
pub const STYLE: &str = include_str!("../templates/page.css");
/// Sorts and filters a table `list`, whose second column has the loops and whose third one has the verdicts.
pub const SCRIPT: &str = include_str!("../templates/all.js");

/// The policy of a page: nothing is loaded from anywhere, and only the page's own style and script count, by their
/// hash. So markup that got past the escapes could neither run nor send anything.
pub fn policy(script: Option<&str>) -> String {
    let script = script.map_or_else(|| "'none'".to_owned(), hash);
    let style = hash(STYLE);
    format!(
        "default-src 'none'; style-src {style}; script-src {script}; base-uri 'none'; form-action 'none'"
    )
}

fn hash(text: &str) -> String {
    format!(
        "'sha256-{}'",
        STANDARD.encode(Sha256::digest(text.as_bytes()))
    )
}

/// `2026-11-21 09:30:05`; UTC, as in the names of runs.
pub(crate) fn moment(ms: i64) -> String {
    Timestamp::from_millisecond(ms).map_or_else(
        |_| String::new(),
        |at| at.strftime("%Y-%m-%d %H:%M:%S").to_string(),
    )
}

/// A part of a bar that is 1,000 units wide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bar {
    pub(crate) x: u64,
    pub(crate) width: u64,
    /// `call`, `good` or `bad`.
    pub(crate) class: &'static str,
}

const UNITS: u64 = 1_000;
/// Narrower parts could not be seen.
const NARROWEST: u64 = 4;

impl Bar {
    /// From `from` to `to` of `all`.
    pub(crate) fn new(from: u64, to: u64, all: u64, class: &'static str) -> Self {
        let units = |part: u64| part.saturating_mul(UNITS) / all.max(1);
        let width = units(to.saturating_sub(from)).clamp(NARROWEST, UNITS);
        Self {
            x: units(from).min(UNITS - width),
            width,
            class,
        }
    }
}
