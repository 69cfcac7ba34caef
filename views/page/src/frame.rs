//! What all pages share: the policy, the style, and how times are written.

use askama::Template;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use code_commit_report::visible;
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

/// The page. What nobody would see is escaped in all of it: no text from outside can miss that.
pub(crate) fn rendered(page: &impl Template) -> String {
    // Rendering into a string fails only if a template's own expression does, and none of ours can.
    visible(&page.render().unwrap_or_default())
}

/// `2026-11-21 09:30:05`; UTC, as in the names of runs.
pub(crate) fn moment(ms: i64) -> String {
    Timestamp::from_millisecond(ms).map_or_else(
        |_| String::new(),
        |at| at.strftime("%Y-%m-%d %H:%M:%S").to_string(),
    )
}
