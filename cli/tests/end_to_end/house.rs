//! Who knows whom, and what is not in the house.

use std::process::Command;

fn cargo_tree(args: &[&str]) -> String {
    let done = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--offline", "--no-dedupe", "--prefix", "depth", "-e", "normal"])
        .args(args)
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
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
    for (is_crate, name) in cargo_tree(&["--workspace", "--depth", "1"]).lines().filter_map(own) {
        let (start, end) = if is_crate { ("\n", ":") } else { (" ", "") };
        text.push_str(&format!("{start}{name}{end}"));
    }
    let mut crates: Vec<&str> = text.trim().lines().collect();
    crates.sort_unstable();
    insta::assert_snapshot!(crates.join("\n"), @"
    agent: runner
    apply: dir guard names
    bundle: dir
    cli: agent apply dir engine fixtures guard llm llm-anthropic llm-gemini llm-openai logging loop-commit loop-order loop-phase loop-spec names page parser perform prompt repo report runner runs settings timeline trace
    dir:
    engine:
    fitness:
    fixtures: llm
    guard: dir names
    llm-anthropic: llm
    llm-gemini: llm
    llm-openai: llm
    llm:
    logging:
    loop-commit: engine parser prompt
    loop-order: engine parser prompt words
    loop-phase: engine prompt
    loop-spec: engine prompt
    names:
    page: engine names report timeline
    parser:
    perform: agent apply dir engine fitness guard llm logging names parser repo runner timeline trace
    prompt: names parser
    repo: names
    report: engine llm logging names parser
    runner: dir names
    runs: agent apply bundle dir engine guard llm logging loop-commit loop-order loop-phase loop-spec names parser perform prompt repo report runner settings timeline
    settings: dir llm names words
    timeline: engine
    trace: engine timeline
    words:
    ");
}

#[test]
fn the_program_holds_one_http_stack_and_no_async_runtime() {
    let tree = cargo_tree(&["-p", "code-commit-cli"]);
    for unwanted in ["tokio", "async-std", "smol", "futures-executor", "hyper", "reqwest", "curl", "openssl"]
    {
        let found = tree
            .lines()
            .find(|line| line.trim_start_matches(char::is_numeric).starts_with(&format!("{unwanted} ")));
        assert_eq!(found, None);
    }
}
