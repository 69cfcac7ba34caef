//! Budgets of lines: a file has 300, a function 40, the whole what is said below. Tests, `fleet/`, `fuzz/` and `tools/`
//! do not count.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use crate::scenes::files;

const FILE: usize = 300;
const FUNCTION: usize = 40;
/// Of all sources. It is to come down to 73,000.
const ALL: usize = 89_214;

/// What is longer than its budget, by the reason. None may grow; whatever has become short enough goes from here.
const LONGER: &[(&str, &[(&str, usize)])] = &[
    (
        "what the loops have in common is in one life; these are its longest steps, and what each loop alone does",
        &[
            ("runs/src/life.rs to_the_end", 42),
            ("runs/src/order/work.rs", 321),
            ("runs/src/order/work.rs world", 43),
            ("runs/src/phase/work.rs open", 44),
            ("runs/src/check.rs with", 55),
            ("runs/src/commit/changed.rs refuse", 49),
            ("runs/src/order/folder.rs clear_up", 55),
            ("runs/src/order/folder.rs folder", 47),
            ("runs/src/order/settle.rs answered", 53),
            ("runs/src/phase/act.rs run", 43),
            ("runs/src/phase/desk/inside.rs serve_around", 50),
            ("runs/src/sandbox.rs", 319),
            ("runs/src/replay.rs answer", 41),
            ("runs/src/spec/lines.rs phase", 41),
            ("runs/src/spec/workspace.rs", 340),
            ("runs/src/spec/workspace.rs prepare", 49),
        ],
    ),
    (
        "one transaction into the tree is to take it in",
        &[
            ("apply/src/recover.rs roll_back", 41),
            ("apply/src/undo.rs undo_with", 48),
            ("cli/src/commands.rs perform", 42),
            ("guard/src/survey.rs", 357),
            ("guard/src/survey.rs look_into", 51),
            ("perform/src/account/layer.rs", 319),
            ("perform/src/account/layer/bring_in.rs entry", 42),
            ("perform/src/account/triage.rs decision", 43),
            ("perform/src/commit.rs", 304),
        ],
    ),
    (
        "a table: every line is one more case",
        &[
            ("engine/src/order.rs", 381),
            ("fixtures/src/faults.rs faults", 50),
            ("guard/src/rules.rs read_one", 41),
            ("model/src/error/advice.rs hint", 42),
            ("llm/src/price.rs", 318),
            ("loops/order/src/fields.rs deserialize", 48),
            ("runner/src/diagnosis/hint.rs about_rights", 42),
            ("runner/src/sandbox/seccomp/calls.rs", 390),
            ("settings/src/table.rs", 377),
            ("settings/src/values.rs", 312),
            ("views/report/src/summary.rs of", 58),
            ("views/report/src/terminal.rs recorded", 50),
        ],
    ),
    (
        "reads from top to bottom like the document that it follows",
        &[
            ("loops/commit/src/rounds.rs run", 68),
            ("loops/order/src/decide.rs order", 43),
            ("loops/order/src/order.rs parse", 44),
            ("loops/spec/src/run/turns.rs", 304),
        ],
    ),
    (
        "not cut yet",
        &[
            ("agent/src/home.rs own", 46),
            ("llm/src/body.rs read_stream", 43),
            ("llm/src/http/exchange.rs", 344),
            ("parser/src/proposal/read.rs", 310),
            ("perform/src/agents/turn.rs turned", 46),
            ("perform/src/agents/turn/cut_off.rs cut_off", 53),
            ("perform/src/agents/world.rs", 357),
            ("perform/src/ask.rs ask_one", 47),
            ("perform/src/intake/proposal.rs", 328),
            ("repo/src/git.rs", 308),
            ("runner/src/run.rs run_now", 45),
            ("runner/src/sandbox/bwrap.rs prepare", 62),
        ],
    ),
];

/// Lines by `path`, and by `path function`.
type Lines = BTreeMap<String, usize>;

#[test]
fn what_is_longer_than_its_budget_only_gets_shorter() {
    let (mut of_files, mut of_functions, mut tests) = (Lines::new(), Lines::new(), 0);
    for path in tracked() {
        let text = files::text(&Path::new(TOP).join(&path));
        let product = if is_test(&path) {
            Vec::new()
        } else {
            product(&text)
        };
        tests += text.lines().count() - product.len();
        if !product.is_empty() {
            of_functions
                .extend(functions(&product).map(|(name, lines)| (format!("{path} {name}"), lines)));
            of_files.insert(path, product.len());
        }
    }
    let all: usize = of_files.values().sum();
    println!(
        "{all} lines of source, {tests} of tests\n{}",
        by_crate(&of_files)
    );
    let over = |lines: &Lines, most: usize| -> Lines {
        lines
            .iter()
            .filter(|(_, count)| **count > most)
            .map(|(name, count)| (name.clone(), *count))
            .collect()
    };
    let mut longer = over(&of_files, FILE);
    longer.extend(over(&of_functions, FUNCTION));
    let listed = LONGER
        .iter()
        .flat_map(|(_, names)| *names)
        .map(|(name, most)| ((*name).to_owned(), *most));
    assert_eq!(
        longer,
        listed.collect(),
        "lines of what is longer than its budget (left), and as listed here (right)"
    );
    assert!(all <= ALL, "{all} lines of source, of {ALL}");
}

const TOP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// The Rust files of the crates that git tracks, relative to the top.
fn tracked() -> Vec<String> {
    let mut git = std::process::Command::new("git");
    let listed = git
        .args(["ls-files", "*.rs"])
        .current_dir(TOP)
        .output()
        .unwrap();
    assert!(
        listed.status.success(),
        "{}",
        String::from_utf8_lossy(&listed.stderr)
    );
    let listed = String::from_utf8(listed.stdout).unwrap();
    let apart = ["fleet/", "fuzz/", "tools/", "fixtures/projects/"];
    listed
        .lines()
        .filter(|path| !apart.iter().any(|apart| path.starts_with(apart)))
        .map(str::to_owned)
        .collect()
}

fn is_test(path: &str) -> bool {
    !path.contains("/src/") || path.contains("/tests/") || path.ends_with("/tests.rs")
}

/// The lines before the tests at the end of a file.
fn product(text: &str) -> Vec<&str> {
    let lines: Vec<&str> = text.lines().collect();
    let end = lines
        .windows(2)
        .position(|pair| pair[0] == "#[cfg(test)]" && pair[1].starts_with("mod tests {"));
    lines[..end.unwrap_or(lines.len())].to_vec()
}

/// Name and length of each function whose body has lines of its own, as rustfmt lays them out.
fn functions<'l>(lines: &'l [&'l str]) -> impl Iterator<Item = (&'l str, usize)> {
    (0..lines.len()).filter_map(|begin| {
        let text = lines[begin].trim_start();
        let indent = &lines[begin][..lines[begin].len() - text.len()];
        let (before, after) = text.split_once("fn ")?;
        let is_word = |word: &str| {
            word.starts_with("pub") || word.starts_with("in") || matches!(word, "const" | "async")
        };
        if !before.split_whitespace().all(is_word) {
            return None;
        }
        // Of one without a body, the last line has the indent, too.
        let ends = |line: &&str| {
            line.strip_prefix(indent)
                .is_some_and(|line| line == "}" || (!line.starts_with(' ') && line.ends_with(';')))
        };
        let len = lines[begin..].iter().position(ends)? + 1;
        (lines[begin + len - 1].ends_with('}')).then_some((after.split(['(', '<']).next()?, len))
    })
}

fn by_crate(of_files: &Lines) -> String {
    let mut crates = Lines::new();
    for (path, lines) in of_files {
        *crates
            .entry(path.split("/src/").next().unwrap().to_owned())
            .or_default() += lines;
    }
    crates
        .iter()
        .fold(String::new(), |mut text, (name, lines)| {
            writeln!(text, "{lines:6} {name}").unwrap();
            text
        })
}
