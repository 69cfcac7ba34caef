//! How a model is taught to edit lines instead of giving whole files (`edits = true`).

use code_commit_parser::edit::{EDIT, marks};

const TEXT: &str = include_str!("../text/edits.md");

/// The form in which a model may give its changes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Form {
    /// Whole files only.
    #[default]
    Files,
    /// Whole files, and hunks of files that exist.
    Edits,
}

/// The lesson, with the parser's own words and marks.
#[must_use]
pub fn lesson() -> String {
    let [search, divider, replace] = &marks();
    let words = [
        ("{EDIT}", EDIT),
        ("{SEARCH}", search),
        ("{DIVIDER}", divider),
        ("{REPLACE}", replace),
    ];
    words.iter().fold(TEXT.to_owned(), |text, (place, word)| {
        text.replace(place, word)
    })
}

#[cfg(test)]
mod tests {
    use code_commit_parser::{FileAction, edit};

    use super::*;

    #[test]
    fn the_example_of_the_lesson_is_read_as_the_edit_that_it_shows() {
        let lesson = lesson();
        let is_place = |behind: &str| behind.starts_with(|c: char| c.is_ascii_uppercase());
        assert!(!lesson.split('{').skip(1).any(is_place), "{lesson}");
        let reply = code_commit_parser::parse(&lesson).unwrap();
        let file = reply.files().next().unwrap();
        let FileAction::Edit(hunks) = file.action else {
            panic!("{lesson}")
        };
        let old = "fn main() {\n    println!(\"example program\");\n}\n";
        let new = edit::apply(old, hunks.iter()).unwrap();
        assert_eq!(
            (file.path, new.as_str()),
            (
                "src/main.rs",
                "fn main() {\n    println!(\"another program\");\n}\n"
            )
        );
    }
}
