//! Patterns that choose files, as opposed to those that protect them.

use gix::glob::pattern::Case;

use crate::patterns::{Kind, Patterns};

/// Gitignore patterns that choose files below a root. A pattern that matches a folder chooses everything in it.
#[derive(Debug, Default, Clone)]
pub struct Choice(Patterns);

impl Choice {
    /// One list of patterns; the last one that matches decides, and `!` takes back.
    pub fn of<S: AsRef<str>>(patterns: &[S]) -> Self {
        let lines: String = patterns.iter().map(|pattern| format!("{}\n", pattern.as_ref())).collect();
        Self(Patterns::parse(lines.as_bytes()))
    }

    /// Whether no pattern was given.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the file at this path relative to the root is chosen.
    pub fn covers(&self, path: &str) -> bool {
        self.0.covers(path, Kind::File, Case::Sensitive)
    }
}

#[cfg(test)]
mod tests {
    use super::Choice;

    #[test]
    fn patterns_are_those_of_gitignore() {
        let choice = Choice::of(&["/src/", "*.md", "!README.md"]);
        for (path, is_chosen) in
            [("src/a/b.rs", true), ("docs/a.md", true), ("README.md", false), ("x/src/a.rs", false)]
        {
            assert_eq!(choice.covers(path), is_chosen, "{path}");
        }
        assert!(Choice::of::<&str>(&[]).is_empty() && !choice.is_empty());
    }
}
