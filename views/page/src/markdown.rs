//! A run in Markdown: for a job's summary, or a comment on a pull request.

use code_commit_report::{phrases, printable_name, visible};
use code_commit_timeline::{FileEdit, Run};
use similar::TextDiff;

use crate::diff::texts;
use crate::run::verdict;

/// Bytes of all diffs together: forges take comments of at most 65,536.
const MOST: usize = 48 << 10;

/// The run: what was asked, how it ended, what it changed. Whatever it brings stays text.
pub fn markdown(run: &Run) -> String {
    let steps = &run.steps;
    let mut text = format!(
        "### {}\n\n**{}**\n\n{} ({}), {}, {}\n",
        escaped(run.headline()),
        escaped(&verdict(run)),
        code(&run.name),
        escaped(&run.kind),
        phrases::cost(steps.cost_usd()),
        phrases::took(steps.elapsed_ms()),
    );
    let edits = run.edits();
    if !edits.is_empty() {
        text.push_str("\n| | file |\n|---|---|\n");
    }
    for edit in &edits {
        text.push_str(&format!("| {} | {} |\n", edit.letter(), code(edit.path)));
    }
    let mut room = MOST;
    for edit in &edits {
        let Some(diff) = unified(edit, run).filter(|diff| diff.len() <= room) else {
            continue;
        };
        room -= diff.len();
        let fence = "`".repeat(longest_run(&diff).max(2) + 1);
        text.push_str(&format!(
            "\n<details><summary>{}</summary>\n\n{fence}diff\n{diff}{fence}\n\n</details>\n",
            html(edit.path)
        ));
    }
    text
}

fn unified(edit: &FileEdit<'_>, run: &Run) -> Option<String> {
    let (before, after) = texts(edit, &run.contents).ok()?;
    let diff = TextDiff::from_lines(before, after)
        .unified_diff()
        .to_string();
    let lines = diff.lines().map(|line| format!("{}\n", visible(line)));
    Some(lines.collect())
}

/// As plain text: punctuation means nothing, and no line begins anything.
fn escaped(text: &str) -> String {
    let mut safe = String::new();
    for c in visible(&text.replace(['\n', '\r'], " ")).chars() {
        if c.is_ascii_punctuation() && !matches!(c, ',' | '\'' | ':' | ';' | '/' | '%') {
            safe.push('\\');
        }
        safe.push(c);
    }
    safe
}

/// In a code span, in a table as well.
fn code(text: &str) -> String {
    let text = printable_name(text).replace('|', "\\|");
    let ticks = "`".repeat(longest_run(&text) + 1);
    let pad = if text.contains('`') { " " } else { "" };
    format!("{ticks}{pad}{text}{pad}{ticks}")
}

fn html(text: &str) -> String {
    askama::filters::escape(printable_name(text), askama::filters::Html)
        .map_or_else(|_| String::new(), |safe| safe.to_string())
}

/// The most backticks in a row.
fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`')
        .map(str::len)
        .max()
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_break_in_a_name_begins_no_line() {
        let name = "a\n\n### forged\r- `x`|";
        for shown in [code(name), html(name), escaped(name)] {
            assert!(!shown.contains(['\n', '\r']), "{shown}");
        }
        assert_eq!(code(name), "`` a\\u{a}\\u{a}### forged\\u{d}- `x`\\| ``");
    }
}
