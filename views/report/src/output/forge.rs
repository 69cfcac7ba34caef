//! What the log of a job obeys: GitHub's workflow commands, GitLab's sections.

use std::borrow::Cow;

/// Whose job the program is part of: its log obeys some of the lines that are printed.
#[derive(Debug, Clone, Copy)]
pub enum Forge {
    /// A line that begins with `::`, or holds `##[`, is a command.
    GitHub,
    /// Sections of the log fold. Their markers need the time, in seconds since 1970.
    GitLab(fn() -> u64),
}

/// How much an annotation of GitHub weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// The run failed for it.
    Error,
    /// The run went on.
    Warning,
}

/// A message of GitHub at a file of the change, or at none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Annotation {
    /// How much it weighs.
    pub level: Level,
    /// Relative to the top of the repository.
    pub path: Option<String>,
    /// From 1.
    pub line: Option<usize>,
    /// May have several lines.
    pub message: String,
}

impl Annotation {
    /// As a workflow command. Other texts stand in it as data, whatever they hold.
    pub(super) fn command(&self) -> String {
        let name = match self.level {
            Level::Error => "error",
            Level::Warning => "warning",
        };
        let file = self
            .path
            .iter()
            .map(|path| format!("file={}", property(path)));
        let line = self.line.iter().map(|line| format!("line={line}"));
        let properties: Vec<String> = file
            .chain(line)
            .chain(["title=code-commit".to_owned()])
            .collect();
        format!("::{name} {}::{}", properties.join(","), data(&self.message))
    }
}

fn data(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

/// Lines that GitHub only shows: a build, a model or a file name may hold commands, which would set the environment
/// of later steps or mask words of their logs.
pub(super) fn inert(text: &str) -> Cow<'_, str> {
    if !text.contains("::") && !text.contains("##[") {
        return Cow::Borrowed(text);
    }
    let lines: Vec<String> = text.split('\n').map(inert_line).collect();
    Cow::Owned(lines.join("\n"))
}

fn inert_line(line: &str) -> String {
    let text = line.trim_start();
    let sign = if text.starts_with("::") { "> " } else { "" };
    let blanks = line.strip_suffix(text).unwrap_or_default();
    // In JSON, which holds this only in strings, the escape means the same.
    let bracket = if text.starts_with('{') {
        "##\\u005b"
    } else {
        "## ["
    };
    format!("{blanks}{sign}{}", text.replace("##[", bracket))
}

/// `title` becomes a line that folds everything up to [`section_end`].
pub(super) fn section_start(name: &str, title: &str, now: u64) -> String {
    format!(
        "\x1b[0Ksection_start:{now}:{}\r\x1b[0K{title}\n",
        section_name(name)
    )
}

/// The end of the section of this name.
pub(super) fn section_end(name: &str, now: u64) -> String {
    format!("\x1b[0Ksection_end:{now}:{}\r\x1b[0K\n", section_name(name))
}

fn section_name(name: &str) -> String {
    name.chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || matches!(c, '-' | '.') {
                c
            } else {
                '_'
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_annotation_holds_cannot_end_it_or_begin_another() {
        let hostile = Annotation {
            level: Level::Error,
            path: Some("a,line=9::b%0A.rs".to_owned()),
            line: Some(3),
            message: "100%: see\r\n::set-env name=A::b".to_owned(),
        };
        insta::assert_snapshot!(hostile.command(), @"::error file=a%2Cline=9%3A%3Ab%250A.rs,line=3,title=code-commit::100%25: see%0D%0A::set-env name=A::b");
        let bare = Annotation {
            level: Level::Warning,
            path: None,
            line: None,
            message: "x".to_owned(),
        };
        assert_eq!(bare.command(), "::warning title=code-commit::x");
    }

    #[test]
    fn no_line_from_outside_is_a_command() {
        let text =
            "a::b\n::error::x\n \u{a0}\t::add-mask::e\nsee ##[add-matcher]m.json\n:: ##[error]";
        insta::assert_snapshot!(inert(text).replace('\t', "<tab>").replace('\u{a0}', "<nbsp>"), @"
        a::b
        > ::error::x
         <nbsp><tab>> ::add-mask::e
        see ## [add-matcher]m.json
        > :: ## [error]
        ");
        let json = inert(r#"{"text":"::x ##[error]"}"#);
        let back: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert!(
            !json.contains("##[") && back["text"] == "::x ##[error]",
            "{json}"
        );
    }

    #[test]
    fn a_section_has_a_name_of_the_letters_that_gitlab_takes() {
        assert_eq!(
            section_start("a run:1", "round 1", 7),
            "\x1b[0Ksection_start:7:a_run_1\r\x1b[0Kround 1\n"
        );
        assert_eq!(
            section_end("a run:1", 9),
            "\x1b[0Ksection_end:9:a_run_1\r\x1b[0K\n"
        );
    }
}
