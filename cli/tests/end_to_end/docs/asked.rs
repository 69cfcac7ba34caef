//! `docs/explanation/asked.md` says of every flag, setting and crate who asked for it.

use std::collections::BTreeSet;
use std::path::Path;

use crate::docs::page::text;

const PAGE: &str = "docs/explanation/asked.md";

/// The words in backticks of the page, without what goes with them.
fn answered() -> BTreeSet<String> {
    let page = text(Path::new(PAGE));
    let spans = page
        .lines()
        .flat_map(|line| line.split('`').skip(1).step_by(2))
        .map(str::to_owned);
    let words = |span: String| {
        span.split([' ', ',', '=', '[', ']', '|', '.'])
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    spans
        .flat_map(words)
        .filter(|word| !word.is_empty())
        .collect()
}

#[test]
fn of_every_flag_it_is_said_who_asked_for_it() {
    let commands = text(Path::new("docs/reference/commands.md"));
    let lines = commands
        .lines()
        .map(str::trim_start)
        .filter(|line| line.starts_with('-'));
    let flags = lines
        .flat_map(|line| line.split([' ', ',', '=', '[']))
        .filter(|word| word.starts_with("--"));
    let flags: BTreeSet<String> = flags.map(str::to_owned).collect();
    assert!(flags.len() > 80, "{flags:?}");
    let answered = answered();
    assert_eq!(flags.difference(&answered).collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn of_every_setting_it_is_said_who_asked_for_it() {
    let answered = answered();
    let keys = code_commit_settings::KEYS
        .iter()
        .map(|key| key.name.rsplit('.').next().unwrap());
    assert_eq!(
        keys.filter(|key| !answered.contains(*key))
            .collect::<Vec<_>>(),
        [""; 0]
    );
}

#[test]
fn of_every_crate_it_is_said_who_asked_for_it() {
    let answered = answered();
    let manifest = text(Path::new("Cargo.toml"));
    let members = manifest
        .lines()
        .skip_while(|line| *line != "members = [")
        .skip(1)
        .take_while(|line| *line != "]");
    let members: Vec<&str> = members
        .map(|line| line.trim().trim_matches(['"', ',']))
        .collect();
    assert!(members.len() > 20, "{members:?}");
    assert_eq!(
        members
            .into_iter()
            .filter(|folder| !answered.contains(*folder))
            .collect::<Vec<_>>(),
        [""; 0]
    );
}
