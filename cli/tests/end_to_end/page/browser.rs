//! Debian's Chromium, driven by Playwright, with axe: all three are installed by `.ci/run`. `CODE_COMMIT_TEST_SCREENSHOTS` names
//! a folder for what it shows first; some of that is in `screenshots/`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;
use serde_json::Value;

/// What happened when a page was opened.
#[derive(Debug, Deserialize)]
pub(super) struct Seen {
    pub(super) file: String,
    /// Of the console.
    pub(super) messages: Vec<String>,
    pub(super) requests: Vec<String>,
    pub(super) dialogs: u32,
    /// Serious findings of axe.
    pub(super) findings: Vec<String>,
    /// What is wider than the window, for each way to look at the page.
    pub(super) too_wide: BTreeMap<String, Vec<String>>,
    /// Folds that stay shut on paper.
    pub(super) folded: Vec<String>,
    pub(super) text: String,
    pub(super) keyboard: Value,
    pub(super) without_script: Value,
    pub(super) cpu_seconds: f64,
}

/// Opens these pages; `None` without a browser, and a loud line.
pub(super) fn look(pages: &[PathBuf]) -> Option<Vec<Seen>> {
    let skipped = |why: &str| eprintln!("SKIPPED: pages in a browser, because {why}");
    let Some(tools) = std::env::var_os("CODE_COMMIT_TEST_PAGE_TOOLS") else {
        skipped(
            "CODE_COMMIT_TEST_PAGE_TOOLS does not name the node modules with playwright-core and axe-core",
        );
        return None;
    };
    let Some(browser) = ["/usr/bin/chromium", "/usr/bin/google-chrome"]
        .map(Path::new)
        .into_iter()
        .find(|path| path.exists())
    else {
        skipped("there is no /usr/bin/chromium");
        return None;
    };
    let shots = std::env::var_os("CODE_COMMIT_TEST_SCREENSHOTS").unwrap_or_else(|| "-".into());
    let script = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/end_to_end/page/look.mjs"
    );
    let done = Command::new("node")
        .arg(script)
        .args([tools.as_os_str(), browser.as_os_str(), &shots])
        .args(pages)
        .output();
    let done = done.unwrap_or_else(|error| panic!("node: {error}"));
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    Some(serde_json::from_slice(&done.stdout).unwrap())
}
