//! How a model is taught to edit lines instead of giving whole files (`edits = true`).

use parser::edit::{EDIT, PLAIN, REPLACE, SEARCH};

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
    let [opens, divides, closes] = ["<", "=", ">"].map(|sign| sign.repeat(PLAIN));
    let words = [
        ("{EDIT}", EDIT),
        ("{SEARCH}", SEARCH),
        ("{REPLACE}", REPLACE),
        ("{OPENS}", &opens),
        ("{DIVIDES}", &divides),
        ("{CLOSES}", &closes),
    ];
    words.iter().fold(TEXT.to_owned(), |text, (place, word)| text.replace(place, word))
}

#[cfg(test)]
mod tests {
    use parser::{FileAction, edit};

    use super::*;

    #[test]
    fn the_example_of_the_lesson_is_read_as_the_edit_that_it_shows() {
        let lesson = lesson();
        assert!(!lesson.contains('{') || lesson.contains("println"), "{lesson}");
        let reply = parser::parse(&lesson).unwrap();
        let file = reply.files().next().unwrap();
        let FileAction::Edit(hunks) = file.action else { panic!("{lesson}") };
        let old = "fn main() {\n    println!(\"example program\");\n}\n";
        let new = edit::apply(old, hunks.iter()).unwrap();
        assert_eq!(
            (file.path, new.as_str()),
            ("src/main.rs", "fn main() {\n    println!(\"another program\");\n}\n")
        );
    }
}
