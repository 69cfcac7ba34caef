use std::collections::HashSet;

use super::*;

const SECTIONS: [&[Name]; 7] = [
    PROTECTED, INPUTS, RUNS_LATER, LOCK_FILES, LEFT_OUT, SECRETS, AT_HOME,
];

#[test]
fn every_change_of_the_table_is_a_visible_diff() {
    let rows = SECTIONS.concat();
    let lines = rows
        .iter()
        .map(|row| format!("{:<26}{:?}: {}\n", row.pattern, row.kind, row.why));
    insta::assert_snapshot!(lines.collect::<String>());
}

#[test]
fn no_section_says_a_name_twice() {
    for section in SECTIONS {
        let patterns: HashSet<String> = section
            .iter()
            .map(|row| row.pattern.to_lowercase())
            .collect();
        assert_eq!(patterns.len(), section.len());
    }
}

#[test]
fn what_is_looked_up_in_lower_case_stands_so_in_the_table() {
    let protected = PROTECTED
        .iter()
        .filter(|row| matches!(row.kind, Kind::Starts(_)));
    for row in [RUNS_LATER, LOCK_FILES, SECRETS]
        .concat()
        .iter()
        .chain(protected)
    {
        assert_eq!(row.pattern, row.pattern.to_lowercase());
    }
}

#[test]
fn our_own_names_are_protected_or_flagged() {
    let is_known = |name: &str| {
        PROTECTED.iter().any(|row| row.at_root() == name)
            || runs_later(&format!("{name}/x")).is_some()
    };
    for name in [
        ours::STATE,
        ours::PROJECT_FILE,
        ours::AGENT_CONFIG,
        ours::BUILD,
        ours::LOGS,
        ours::USER_OUTPUT,
        ours::ABL,
        ours::PHASE_CONFIG,
        ours::SPEC_CONFIG,
    ] {
        assert!(is_known(name), "{name}");
    }
}

#[test]
fn what_runs_later_counts_at_every_level_and_by_whole_names() {
    for path in [
        ".gitattributes",
        "a/b/.gitattributes",
        ".husky",
        ".husky/x",
        "a/.husky/b/x",
        "lib/evil.pth",
        ".github/workflows/ci.yml",
        "x/.cargo/config.toml",
        // Also runs later, if a person's own list admits it.
        ".cuggino.json",
        "a/.abl/abl.config.yaml",
        "agents.md",
        "packages/a/claude.md",
        "gemini.md",
        ".cursorrules",
        ".github/copilot-instructions.md",
    ] {
        assert!(runs_later(path).is_some(), "{path}");
    }
    for path in [
        "",
        "husky/x",
        "rebuild.rs",
        ".github/codeowners",
        "a.envrc",
        ".envrc/x",
        "cargo/config.toml",
    ] {
        assert_eq!(runs_later(path), None, "{path}");
    }
}

#[test]
fn an_example_is_no_secret() {
    for name in [
        ".env",
        ".env.local",
        ".envrc",
        "gemini-key.txt",
        "id_rsa",
        "credentials",
        "server.pem",
    ] {
        assert!(is_secret(name), "{name}");
    }
    for name in [
        ".env.example",
        ".envrc.sample",
        "environment",
        "key.txt",
        "pem",
        "credentials.md",
        "a.pem.dist",
    ] {
        assert!(!is_secret(name), "{name}");
    }
}

#[test]
fn of_cargo_all_is_shown_or_a_cache_but_its_token() {
    let hidden: Vec<&str> = at_home(".cargo", Kind::Hidden).collect();
    assert_eq!(hidden, ["credentials.toml", "credentials"]);
    assert!(at_home(".cargo", Kind::Shown).all(|name| !hidden.contains(&name)));
    let caches: Vec<&str> = at_home(".cargo", Kind::Cache).collect();
    assert_eq!(caches, ["git", "registry"]);
    assert_eq!(at_home(".car", Kind::Shown).next(), None);
}
