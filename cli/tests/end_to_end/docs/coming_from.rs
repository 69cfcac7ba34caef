//! Pages for people who know another tool name commands and flags that exist, also where no test can run them.

use crate::docs::helps::{Help, helps};
use crate::docs::page::{all, text};

/// A page is read at one sitting.
const LINES: usize = 55;

/// The help of the command that `words` begin with, the longest one.
fn help<'a>(helps: &'a [Help], words: &[&str]) -> Option<&'a Help> {
    let is_it = |end: usize| words.get(..end).unwrap_or_default().join(" ");
    (1..=words.len())
        .rev()
        .find_map(|end| helps.iter().find(|help| help.command == is_it(end)))
}

/// The flags of a command line that the help of its command does not list.
fn unknown(helps: &[Help], command: &str) -> Vec<String> {
    let words: Vec<&str> = command.split_whitespace().collect();
    let Some(help) = help(helps, &words) else {
        return vec![command.to_owned()];
    };
    let is_listed = |flag: &str| {
        let mut lines = help
            .lines
            .iter()
            .map(|line| line.trim_start())
            .filter(|line| line.starts_with('-'));
        lines.any(|line| line.split([' ', ',', '=', '[']).any(|word| word == flag))
    };
    let flags = words
        .iter()
        .map(|word| word.split('=').next().unwrap_or_default());
    let flags = flags.filter(|word| word.starts_with('-') && word.len() > 1);
    let after_command = help.command.split_whitespace().count();
    let is_command = |word: &&str| word.chars().all(|c| c.is_ascii_lowercase());
    let subcommand = words
        .get(after_command)
        .filter(|word| after_command == 1 && is_command(word));
    let missing = flags
        .filter(|flag| !is_listed(flag))
        .map(|flag| format!("{command}: {flag}"));
    missing
        .chain(subcommand.map(|word| format!("{command}: {word}")))
        .collect()
}

#[test]
fn every_command_for_people_from_other_tools_exists() {
    let helps = helps();
    let pages: Vec<_> = all()
        .into_iter()
        .filter(|page| page.starts_with("docs/coming-from"))
        .collect();
    assert_eq!(pages.len(), 5, "{pages:?}");
    for page in pages {
        let text = text(&page);
        let name = page.display();
        assert!(text.lines().count() <= LINES, "{name} is too long");
        let prose = text.lines().filter(|line| !line.starts_with('$'));
        let spans = prose.flat_map(|line| line.split('`').skip(1).step_by(2));
        let commands: Vec<&str> = spans
            .filter(|span| span.starts_with("code-commit "))
            .collect();
        assert!(commands.len() > 3, "{name}: {commands:?}");
        let wrong: Vec<String> = commands
            .into_iter()
            .flat_map(|command| unknown(helps, command))
            .collect();
        assert!(wrong.is_empty(), "{name}: {wrong:?}");
    }
}
