//! Every command that a page shows is run, and prints what the page says.

use std::cmp::Reverse;
use std::path::PathBuf;

use crate::docs::page::{Block, Step, all, blocks, root, steps, text};
use crate::docs::world::World;
use crate::scenes::size::samples;

const README: &str = "README.md";
/// All other pages begin where this one ends.
const TUTORIAL: &str = "docs/tutorial.md";

/// Stands for anything: within a line for any characters, alone on a line for any lines.
const ANYTHING: &str = "…";

/// Commands of `sh` blocks that are not run, by how they begin, and why.
const NOT_RUN: [(&str, &str); 5] = [
    (
        "cargo run -- demo",
        "builds the program; the same command of the built program is a test of its own",
    ),
    ("cargo test", "runs the tests, of which this is one"),
    ("cargo install --locked", "builds the program anew"),
    ("tools/bench/run", "takes minutes, and the network"),
    (
        "export GEMINI_API_KEY=",
        "the key is the reader's; the test has set one that opens nothing",
    ),
];

/// What a page shows behind a command that fails.
const SHOWS_CODE: &str = "echo $?";

/// Info strings of blocks that hold commands for a shell.
const SHELL: [&str; 4] = ["sh", "bash", "shell", "console"];

/// The pages show the sandbox's line and run builds behind it.
fn has_a_sandbox() -> bool {
    let probed = code_commit_runner::probe(code_commit_runner::Mode::Auto, None);
    if let Err(why) = &probed {
        eprintln!(
            "SKIPPED: the commands of the documentation, because no sandbox works here: {why}"
        );
    }
    probed.is_ok()
}

#[test]
fn every_command_of_the_readme_does_what_it_says() {
    if has_a_sandbox() {
        check(README, &World::new().with_project("my-project"));
    }
}

#[test]
fn every_command_of_the_tutorial_prints_what_it_says() {
    if has_a_sandbox() {
        check(TUTORIAL, &World::new());
    }
}

#[test]
fn every_command_of_the_other_pages_prints_what_it_says() {
    if !has_a_sandbox() {
        return;
    }
    let commands = |page: &PathBuf| {
        blocks(&text(page))
            .iter()
            .filter(|block| is_shell(block))
            .count()
    };
    let mut pages: Vec<PathBuf> = all()
        .into_iter()
        .filter(|page| ![README, TUTORIAL].contains(&page.to_str().unwrap()) && commands(page) > 0)
        .collect();
    pages.sort_by_key(|page| Reverse(commands(page)));
    for page in samples(
        "pages whose commands are run, besides the README and the tutorial",
        pages,
    ) {
        let world = World::new();
        follow(&text(TUTORIAL.as_ref()), &world);
        check(page.to_str().unwrap(), &world);
    }
}

#[test]
fn no_exception_is_left_without_a_command() {
    let pages: Vec<String> = all().iter().map(|page| text(page)).collect();
    for (start, _) in NOT_RUN {
        let found = pages
            .iter()
            .flat_map(|page| page.lines())
            .any(|line| line.starts_with(start));
        assert!(found, "no page has a command that begins with {start}");
    }
}

fn is_shell(block: &Block) -> bool {
    SHELL.contains(&block.info.as_str())
}

/// Runs a page and compares; with `DOCS_UPDATE` rewrites it instead.
fn check(page: &str, world: &World) {
    let written = text(page.as_ref());
    let real = follow(&written, world);
    if real == written {
        return;
    }
    if update(page, &real) {
        return;
    }
    let diff = similar::TextDiff::from_lines(&written, &real);
    panic!(
        "{}",
        diff.unified_diff()
            .header(&format!("{page} says"), "the program prints")
    );
}

/// Writes the page where that is asked for.
fn update(page: &str, real: &str) -> bool {
    let asked = std::env::var_os("DOCS_UPDATE").is_some();
    if asked {
        std::fs::write(root().join(page), real).unwrap();
    }
    asked
}

/// The page as it would have to be: its own words where they match.
fn follow(written: &str, world: &World) -> String {
    let mut lines: Vec<Vec<String>> = written
        .split('\n')
        .map(|line| vec![line.to_owned()])
        .collect();
    for block in blocks(written) {
        if let Some(name) = &block.save_as {
            world.save(name, &block.lines);
        } else if block.info == "console" {
            let steps = steps(&block);
            for (index, step) in steps.iter().enumerate() {
                let code = correct(step, &mut lines, world);
                let seen = step.command == SHOWS_CODE
                    || steps
                        .get(index + 1)
                        .is_some_and(|next| next.command == SHOWS_CODE);
                assert!(
                    code == 0 || seen,
                    "`{}` ends with {code} and `{SHOWS_CODE}` does not follow",
                    step.command
                );
            }
        } else if is_shell(&block) {
            run_plainly(&block, world);
        }
    }
    lines.concat().join("\n")
}

/// Runs one command and writes what it prints in the place of what the page says, where that is something else. Gives its exit code.
fn correct(step: &Step, lines: &mut [Vec<String>], world: &World) -> i32 {
    let ran = world.run(&step.command);
    let printed: Vec<&str> = ran.printed.lines().collect();
    if !matches(&step.expected, &printed) {
        lines[step.at..step.at + step.expected.len()]
            .iter_mut()
            .for_each(Vec::clear);
        lines[step.at - 1].extend(printed.into_iter().map(str::to_owned));
    }
    ran.code
}

/// Runs the commands of a block that shows no output: each has to end well.
fn run_plainly(block: &Block, world: &World) {
    for line in &block.lines {
        if NOT_RUN.iter().any(|(start, _)| line.starts_with(start)) || line.trim().is_empty() {
            continue;
        }
        let ran = world.run(line);
        assert_eq!(ran.code, 0, "{line}\n{}", ran.printed);
    }
}

/// Whether `printed` is what `expected` says.
fn matches(expected: &[String], printed: &[&str]) -> bool {
    let Some((first, rest)) = expected.split_first() else {
        return printed.is_empty();
    };
    if first == ANYTHING {
        return (0..=printed.len()).any(|skipped| matches(rest, &printed[skipped..]));
    }
    printed
        .split_first()
        .is_some_and(|(line, others)| line_matches(first, line) && matches(rest, others))
}

fn line_matches(expected: &str, line: &str) -> bool {
    let Some((before, behind)) = expected.split_once(ANYTHING) else {
        return expected == line;
    };
    let Some(rest) = line.strip_prefix(before) else {
        return false;
    };
    let mut ends = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
    ends.any(|at| line_matches(behind, rest.get(at..).unwrap_or_default()))
}
