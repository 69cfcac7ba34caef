//! `docs/reference/codes.md` has every code that the source can give, each where a person looks for it.

use std::path::Path;

use crate::docs::conformance::{crates, rust_files};
use crate::docs::page::{root, text};
use crate::docs::reference::listed;

const PAGE: &str = "docs/reference/codes.md";

#[test]
fn the_codes_of_a_reply_are_listed() {
    let errors: Vec<&str> = code_commit_parser::ErrorCode::ALL
        .iter()
        .map(|code| code.as_str())
        .collect();
    assert_eq!(listed(PAGE, "Errors of a reply in fences"), errors);
    let warnings: Vec<&str> = code_commit_parser::WarningCode::ALL
        .iter()
        .map(|code| code.as_str())
        .collect();
    assert_eq!(listed(PAGE, "Warnings of a reply in fences"), warnings);
    let proposal: Vec<&str> = code_commit_parser::proposal::ProposalCode::ALL
        .iter()
        .map(|code| code.as_str())
        .collect();
    assert_eq!(listed(PAGE, "Errors of a reply in JSON"), proposal);
}

#[test]
fn the_codes_of_a_refused_path_are_listed() {
    let codes: Vec<&str> = code_commit_guard::Code::ALL
        .iter()
        .map(|code| code.as_str())
        .collect();
    assert_eq!(listed(PAGE, "Refusals of a path"), codes);
}

#[test]
fn the_ends_of_answers_calls_and_turns_are_listed() {
    assert_eq!(
        listed(PAGE, "How a reply ended"),
        arms("model/src/finish.rs", "code")
    );
    let errors: Vec<&str> = code_commit_llm::ErrorCode::ALL
        .iter()
        .map(|code| code.as_str())
        .collect();
    assert_eq!(listed(PAGE, "Why there is no reply"), errors);
    assert_eq!(
        listed(PAGE, "How an agent's turn ended"),
        arms("agent/src/outcome.rs", "code")
    );
    let limits = code_commit_llm::Limit::ALL.map(code_commit_llm::Limit::code);
    // The last one is of `spec` alone.
    let limits: Vec<&str> = limits.into_iter().chain(["limit-turns"]).collect();
    assert_eq!(listed(PAGE, "Limits"), limits);
    assert!(
        code_commit_llm::Limit::ALL
            .iter()
            .all(|limit| text(Path::new(PAGE)).contains(limit.flag()))
    );
}

#[test]
fn the_words_of_the_journal_are_listed() {
    assert_eq!(
        listed(PAGE, "Why a proposal was not written"),
        variants("engine/src/order.rs", "WhyRefused")
    );
    assert_eq!(
        listed(PAGE, "How a command ended"),
        variants("model/src/ended.rs", "Ended")
    );
    assert_eq!(
        listed(PAGE, "How a run ended"),
        variants("engine/src/outcome.rs", "Outcome")
    );
}

#[test]
fn every_code_that_stands_in_the_source_is_on_the_page() {
    let page = text(Path::new(PAGE));
    let mut found = Vec::new();
    for file in crates()
        .iter()
        .filter(|folder| !folder.ends_with("fixtures"))
        .flat_map(|one| rust_files(one))
    {
        let source = std::fs::read_to_string(&file).unwrap();
        let tested = file.components().any(|part| {
            ["tests", "tests.rs"]
                .iter()
                .any(|name| part.as_os_str() == *name)
        });
        let (source, _) = source.split_once("#[cfg(test)]").unwrap_or((&source, ""));
        found.extend(codes_in(if tested { "" } else { source }));
    }
    found.sort();
    found.dedup();
    assert!(found.len() > 10, "the sources were not found");
    let missing: Vec<&String> = found
        .iter()
        .filter(|code| !page.contains(&format!("\n| `{code}` |")))
        .collect();
    assert!(missing.is_empty(), "{PAGE} lacks {missing:?}");
}

/// What follows `code: "`, `problem("` and `give_up("`, and words with a hyphen on a line that speaks of a code.
fn codes_in(source: &str) -> Vec<String> {
    let squeezed: String = source.split_whitespace().collect();
    let behind = ["code:\"", "problem(\"", "give_up(\""];
    let named = behind
        .iter()
        .flat_map(|head| squeezed.split(head).skip(1))
        .filter_map(|rest| Some(rest.split_once('"')?.0));
    let code_lines = source
        .lines()
        .filter(|line| line.contains("code()") || line.contains("let code ="));
    let beside = code_lines
        .flat_map(|line| line.split('"').skip(1).step_by(2))
        .filter(|word| word.contains('-'));
    named
        .chain(beside)
        .filter(|word| is_code(word))
        .map(str::to_owned)
        .collect()
}

/// Words whose end is made up while the program runs, such as `reply-{}`, are on the page by hand.
fn is_code(word: &str) -> bool {
    word.starts_with(char::is_lowercase) && word.chars().all(|c| c.is_ascii_lowercase() || c == '-')
}

/// The words that a function's `match` gives, in its order.
fn arms(file: &str, function: &str) -> Vec<String> {
    let source = std::fs::read_to_string(root().join(file)).unwrap();
    let body = source
        .split_once(&format!("pub fn {function}(&self)"))
        .unwrap()
        .1
        .split_once("\n    }")
        .unwrap()
        .0;
    let words = body
        .lines()
        .filter_map(|line| Some(line.split_once("=> \"")?.1.split_once('"')?.0.to_owned()));
    words.collect()
}

/// The variants of an enum as serde's `kebab-case` has them.
fn variants(file: &str, name: &str) -> Vec<String> {
    let source = std::fs::read_to_string(root().join(file)).unwrap();
    let (before, behind) = source.split_once(&format!("pub enum {name} {{")).unwrap();
    assert!(
        before
            .lines()
            .rev()
            .take_while(|line| !line.is_empty())
            .any(|line| line.contains("kebab-case")),
        "{name} has other words"
    );
    let body = behind.split_once("\n}").unwrap().0;
    let heads = body
        .lines()
        .filter_map(|line| line.strip_prefix("    "))
        .filter(|line| line.starts_with(char::is_uppercase));
    heads
        .map(|head| kebab(head.split([' ', '(', ',']).next().unwrap_or_default()))
        .collect()
}

fn kebab(name: &str) -> String {
    let hyphened = name.chars().map(|c| {
        if c.is_uppercase() {
            format!("-{}", c.to_lowercase())
        } else {
            c.to_string()
        }
    });
    hyphened
        .collect::<String>()
        .trim_start_matches('-')
        .to_owned()
}
