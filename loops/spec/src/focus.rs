//! Whether a focus asks for a change of the specs (S4: "specs only where the focus asks for it").

const CHANGING: [&str; 14] = [
    "change", "edit", "update", "write", "rewrite", "revise", "extend", "amend", "correct", "fix",
    "add", "create", "remove", "delete",
];
/// Words that rule one out, in addition to those that end in `n't`.
const REFUSING: [&str; 5] = ["not", "never", "without", "no", "dont"];

/// Whether a clause of the focus has a word that requests a change before the folder's path, and
/// none that rules it out. Naming a spec is not a request to change it.
pub fn asks_to_change(focus: &str, folder: &str) -> bool {
    clauses(focus).iter().any(|clause| {
        let asks = |at: usize| {
            words(clause.get(..at).unwrap_or_default())
                .any(|word| CHANGING.contains(&word.as_str()))
        };
        paths(clause, folder).any(asks) && !words(clause).any(|word| is_refusal(&word))
    })
}

/// Splits at line ends, semicolons and the ends of sentences; a dot inside a path ends nothing.
fn clauses(focus: &str) -> Vec<&str> {
    let mut clauses = Vec::new();
    for part in focus.split(['\n', ';']) {
        let mut from = 0;
        for (at, _) in part.match_indices(['.', '!', '?']) {
            let behind = part.get(at + 1..).unwrap_or_default();
            if behind.chars().next().is_none_or(char::is_whitespace) {
                clauses.extend(part.get(from..at));
                from = at + 1;
            }
        }
        clauses.extend(part.get(from..));
    }
    clauses
}

/// The positions of the folder's path, or of something in it.
fn paths<'c>(clause: &'c str, folder: &'c str) -> impl Iterator<Item = usize> + 'c {
    let is_of_name = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    clause
        .match_indices(folder)
        .map(|(at, _)| at)
        .filter(move |&at| {
            let before = clause.get(..at).unwrap_or_default();
            let behind = clause.get(at + folder.len()..).unwrap_or_default();
            let starts = !before
                .strip_suffix("./")
                .unwrap_or(before)
                .ends_with(is_of_name);
            starts && (behind.starts_with('/') || !behind.starts_with(is_of_name))
        })
}

/// In lower case, with only one kind of apostrophe.
fn words(clause: &str) -> impl Iterator<Item = String> + '_ {
    let plain = |word: &str| word.replace('’', "'").to_lowercase();
    clause
        .split(|c: char| !c.is_alphanumeric() && !matches!(c, '\'' | '’'))
        .map(plain)
}

fn is_refusal(word: &str) -> bool {
    REFUSING.contains(&word) || word.ends_with("n't") || word == "cannot"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_focus_asks_by_a_word_of_changing_before_the_path() {
        let table = [
            ("Implement @.specs/x.md", false),
            (
                "Implement what .specs/a.md says; do not change the specs",
                false,
            ),
            ("do not edit .specs/a.md", false),
            ("don't edit .specs/a.md", false),
            ("Don’t edit .specs/a.md", false),
            ("Add X without a change of .specs/a.md", false),
            ("You mustn't update .specs", false),
            ("From `.specs/x.md`:\n\nWrite a parser.", false),
            ("Write a parser.\nIt is described in .specs/x.md", false),
            (".specs/x.md wants a change", false),
            ("Update .specs-old/a.md", false),
            ("Update old/.specs/a.md", false),
            ("Update my.specs/a.md", false),
            ("Update the specs", false),
            ("Updated .specs/a.md is to be met", false),
            ("", false),
            ("Update .specs/a.md to match", true),
            ("Implement A. Then extend .specs/b.md.", true),
            ("Do not touch the tests; update `.specs/a.md`", true),
            ("Write ./.specs/b.md", true),
            ("Please EDIT (.specs), then stop", true),
            ("Implement v1.2 and correct .specs.", true),
            ("create @.specs/new.md", true),
        ];
        for (focus, wanted) in table {
            assert_eq!(asks_to_change(focus, ".specs"), wanted, "{focus}");
        }
    }
}
