//! Who knows whom, and what is not in the house.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::scenes::files;

mod budgets;
mod circles;
mod strings;

fn cargo_tree(args: &[&str]) -> String {
    let done = Command::new(env!("CARGO"))
        .args([
            "tree",
            "--locked",
            "--offline",
            "--no-dedupe",
            "--prefix",
            "depth",
            "-e",
            "normal",
        ])
        .args(args)
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .output()
        .unwrap();
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    String::from_utf8(done.stdout).unwrap()
}

/// `parser` for `0code-commit-parser v0.1.0 (…)`, and its depth.
fn own(line: &str) -> Option<(bool, &str)> {
    let (depth, rest) = line.split_at_checked(1)?;
    let name = rest.strip_prefix("code-commit-")?.split(' ').next()?;
    Some((depth == "0", name))
}

#[test]
fn every_arrow_between_our_crates_is_a_visible_diff() {
    let mut text = String::new();
    for (is_crate, name) in cargo_tree(&["--workspace", "--depth", "1"])
        .lines()
        .filter_map(own)
    {
        let (start, end) = if is_crate { ("\n", ":") } else { (" ", "") };
        text.push_str(&format!("{start}{name}{end}"));
    }
    let mut crates: Vec<&str> = text.trim().lines().collect();
    crates.sort_unstable();
    insta::assert_snapshot!(crates.join("\n"), @"
    acp: apply engine llm logging perform report rpc runs settings timeline
    agent: dir model runner
    apply: dir guard model names
    changes: apply dir engine guard logging names repo
    cli: acp agent apply changes dir engine fixtures guard llm llm-anthropic llm-gemini llm-openai logging loop-commit loop-order loop-phase loop-spec mcp names page parser perform prompt repo report runner runs settings timeline
    dir:
    engine: model
    features: model
    fixtures: llm
    guard: dir names repo
    llm-anthropic: llm
    llm-gemini: llm
    llm-openai: llm
    llm: model
    logging: model
    loop-commit: engine parser prompt
    loop-order: engine parser prompt
    loop-phase: engine prompt
    loop-spec: engine prompt
    mcp: apply engine guard logging perform prompt repo report rpc runs settings
    model:
    names:
    page: engine report timeline
    parser:
    perform: agent apply changes dir engine guard llm logging names parser prompt repo runner timeline
    prompt: names parser
    repo: dir names
    report: engine logging names timeline
    rpc: report runner
    runner: dir model names
    runs: agent apply changes dir engine guard llm logging loop-commit loop-order loop-phase loop-spec names parser perform prompt repo report runner settings timeline
    settings: dir llm names parser
    timeline: engine
    ");
}

#[test]
fn the_program_holds_one_http_stack_and_no_async_runtime() {
    let tree = cargo_tree(&["-p", "code-commit-cli"]);
    for unwanted in [
        "tokio",
        "async-std",
        "smol",
        "futures-executor",
        "hyper",
        "reqwest",
        "curl",
        "openssl",
    ] {
        let found = tree.lines().find(|line| {
            line.trim_start_matches(char::is_numeric)
                .starts_with(&format!("{unwanted} "))
        });
        assert_eq!(found, None);
    }
}

/// The sources of the product, without their tests, relative to the top.
fn sources() -> Vec<(String, String)> {
    let top = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let members = cargo_tree(&["--workspace", "--depth", "0"]);
    let folders = members
        .lines()
        .filter_map(|line| Some(line.split_once('(')?.1.trim_end_matches(')')));
    let mut todo: Vec<PathBuf> = folders
        .map(|folder| Path::new(folder).join("src"))
        .collect();
    let mut found = Vec::new();
    while let Some(folder) = todo.pop() {
        for path in files::entries(folder) {
            if path.is_dir() && !path.ends_with("tests") {
                todo.push(path);
            } else if path.extension().is_some_and(|kind| kind == "rs")
                && !path.ends_with("tests.rs")
            {
                let text = files::text(&path);
                let product = text.split("\n#[cfg(test)]\n").next().unwrap().to_owned();
                let name = path
                    .strip_prefix(top.canonicalize().unwrap())
                    .unwrap()
                    .display()
                    .to_string();
                found.push((name, product));
            }
        }
    }
    found.sort();
    found
}

/// The standard library panics if a folder that it lists or removes cannot be closed; `code_commit_dir::list` and `code_commit_dir::remove` do not.
#[test]
fn no_product_code_lists_or_removes_folders_with_the_standard_library() {
    let is_of_std = |line: &str| line.contains("read_dir") || line.contains("remove_dir_all");
    let does = |text: &str| {
        text.lines()
            .any(|line| !line.trim().starts_with("//") && is_of_std(line))
    };
    let product = sources()
        .into_iter()
        .filter(|(name, _)| !name.starts_with("fixtures/"));
    let found: Vec<String> = product
        .filter_map(|(name, text)| does(&text).then_some(name))
        .collect();
    assert_eq!(found, [""; 0]);
}

/// Whatever starts a program outside of a sandbox starts a file that no command of the project can change (`code_commit_runner::Programs`), or
/// itself. clippy.toml forbids `Command::new` everywhere else.
#[test]
fn every_place_that_starts_a_program_outside_of_a_sandbox_is_a_visible_diff() {
    let mut table = String::new();
    for (name, text) in sources() {
        let is_std = text.contains("process::Command") || text.contains("process::{Command");
        let lines = text
            .lines()
            .map(str::trim)
            .filter(|line| !line.starts_with("//"));
        let starts = |line: &&str| {
            line.contains("Confinement::off()")
                || line.contains("process::Command::new(")
                || (is_std && line.contains(" Command::new("))
        };
        lines
            .filter(starts)
            .for_each(|line| table.push_str(&format!("{name}: {line}\n")));
    }
    insta::assert_snapshot!(table, @r#"
    cli/src/commands/page.rs: let mut command = Command::new(&opener);
    fixtures/src/project.rs: let done = Command::new(&self.git)
    perform/src/trial.rs: confinement: Confinement::off(),
    repo/src/git/program.rs: let mut command = Command::new(&self.program);
    runner/src/program.rs: std::process::Command::new(path)
    runs/src/phase/commands/inside.rs: match run(&command, &Confinement::off(), cancel, &mut |_, _| {}) {
    runs/src/phase/roles.rs: Confinement::off()
    runs/src/phase/run.rs: confinement: Confinement::off(),
    runs/src/sandbox/choose.rs: return Ok(Ok(Confinement::off()));
    "#);
}
