//! Everything that can be wrong with a reply: error codes, messages, and advice for the model.

use crate::edit::mark::{self, EDIT};
use crate::fence::kind::{DELETE, END, Kind};
use crate::fence::name::{Operation, operation, without_remark};

/// Declares an enum of codes together with their spelling, so that there is only one list.
macro_rules! codes {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $spelling:literal,)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum $name { $($(#[$doc])* $variant,)* }

        impl $name {
            /// Every code, in the order of the reference documentation.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The stable spelling, in kebab-case.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $spelling,)* }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}
pub(crate) use codes;

codes! {
    /// A reason why a reply cannot be used.
    ErrorCode {
        /// The text ends inside a block.
        Unterminated = "unterminated",
        /// A marker of another block inside a block.
        Nested = "nested",
        /// An end marker without a matching opening.
        StrayEnd = "stray-end",
        /// `^^^delete` without `^^^PATH` before it.
        StrayDelete = "stray-delete",
        /// `^^^end` after `^^^delete`, which has already ended the block.
        EndAfterDelete = "end-after-delete",
        /// `^^^` without a name, although a later `^^^end` shows that a block was meant.
        MissingName = "missing-name",
        /// A control character in a file's name.
        ControlInName = "control-in-name",
        /// A name in backquotes, quotes or brackets.
        QuotedName = "quoted-name",
        /// `end` or `delete` with additional characters or in upper case.
        ReservedName = "reserved-name",
        /// `^^^start`: the word belongs to the other fences.
        NamedStart = "named-start",
        /// A remark such as `(new file)` after a file name, or a word for an operation beside it.
        RemarkInName = "remark-in-name",
        /// Another fence after the `start` of a thought, on the same line, or text after an `end`
        /// that closes nothing.
        TextAfterMarker = "text-after-marker",
        /// The end marker follows text on the same line, where it counts as content.
        GluedEnd = "glued-end",
        /// The end marker has a different number of fence characters than the opening.
        EndLength = "end-length",
        /// A bare `^^^` where an end marker was expected.
        BareEnd = "bare-end",
        /// Text between `^^^PATH` and `^^^delete`.
        ContentBeforeDelete = "content-before-delete",
        /// An edit block without a hunk, for example with the whole content of the file.
        NoHunks = "no-hunks",
        /// Text in an edit block that belongs to no hunk.
        TextOutsideHunk = "text-outside-hunk",
        /// A mark of a hunk where another one has to come, or of another length.
        HunkMark = "hunk-mark",
        /// A hunk that does not end before its block does.
        UnterminatedHunk = "unterminated-hunk",
        /// A hunk without old lines: it could be anywhere.
        EmptySearch = "empty-search",
        /// The same file in two blocks.
        DuplicateFile = "duplicate-file",
        /// `$$$` together with files.
        NoChangeWithFiles = "no-change-with-files",
        /// A change in the form of another tool, with no block around it or in place of a whole file.
        OtherForm = "other-form",
        /// Neither a file nor `$$$`.
        NothingActionable = "nothing-actionable",
        /// A fence in a thought such as `<think>` that is never closed, or that holds all fences.
        InThought = "in-thought",
        /// Bytes that are not UTF-8.
        InvalidUtf8 = "invalid-utf8",
    }
}

codes! {
    /// Allowed, but probably a mistake.
    WarningCode {
        /// The whole content is wrapped in a Markdown fence, which would become part of the file.
        MarkdownFence = "markdown-fence",
        /// Inside a longer fence, a line that opens a block of the same length elsewhere in the
        /// reply. It counts as content, but an end marker may be missing before it.
        OpeningInside = "opening-inside",
        /// A fence in a thought such as `<think>`, or an end marker behind text outside blocks: it
        /// means nothing there.
        IgnoredFence = "ignored-fence",
    }
}

/// The wording of a code. `subject` is the marker as the model wrote it, shortened.
pub trait Wording: Copy {
    /// What is wrong: a lower-case fragment, for any reader.
    fn message(self, subject: &str) -> String;
    /// What to write instead: a lower-case imperative, for the model.
    fn advice(self, subject: &str) -> String;
}

impl Wording for ErrorCode {
    fn message(self, subject: &str) -> String {
        match self {
            Self::Unterminated => format!("the block of `{subject}` is never closed"),
            Self::Nested => format!("`{subject}` is inside another block"),
            Self::StrayEnd => format!("`{subject}` closes nothing"),
            Self::StrayDelete => format!("`{subject}` has no file name before it"),
            Self::EndAfterDelete => {
                format!("`{subject}` after a `delete` that has already closed the block")
            }
            Self::MissingName => format!("`{subject}` has no file name"),
            Self::ControlInName => {
                format!("the file name in `{subject}` has a control character in it")
            }
            Self::QuotedName => format!("the file name in `{subject}` is in quotes or brackets"),
            Self::ReservedName => format!("`{subject}` is neither an end marker nor a file name"),
            Self::NamedStart => {
                format!("`{subject}` has no file name: `start` belongs to the other fences")
            }
            Self::RemarkInName => format!("`{subject}` has more than a file name on its line"),
            Self::TextAfterMarker => format!("`{subject}` has text on the line of a marker"),
            Self::GluedEnd => format!("`{subject}` is at the end of a line of content"),
            Self::EndLength => {
                format!("`{subject}` does not have the length of the fence that it should close")
            }
            Self::BareEnd => format!("`{subject}` alone does not close the block"),
            Self::ContentBeforeDelete => "the file to delete has content, too".to_owned(),
            Self::NoHunks => format!("`{subject}` has no hunk"),
            Self::TextOutsideHunk => {
                format!("`{subject}` is in an edit block and belongs to no hunk")
            }
            Self::HunkMark => format!("`{subject}` is not the mark that is expected here"),
            Self::UnterminatedHunk => {
                format!("the hunk of `{subject}` does not end before its block does")
            }
            Self::EmptySearch => format!("`{subject}` has no lines to search for"),
            Self::DuplicateFile => format!("`{subject}` already has a block"),
            Self::NoChangeWithFiles => {
                format!("`{subject}` says that nothing needs to change, but the reply has files")
            }
            Self::OtherForm => format!("`{subject}` begins a change in the form of another tool"),
            Self::NothingActionable => "the reply has neither a file nor `$$$start`".to_owned(),
            Self::InThought => {
                format!("`{subject}` is in a thought between tags, where no fence counts")
            }
            Self::InvalidUtf8 => "the reply is not valid UTF-8".to_owned(),
        }
    }

    fn advice(self, subject: &str) -> String {
        match self {
            Self::Unterminated | Self::BareEnd => {
                format!("write `{}` on a line of its own after the last line of the content", closing(subject))
            }
            Self::Nested => NESTED_ADVICE.to_owned(),
            Self::StrayEnd => "remove it, or open its block before it, at the beginning of a line".to_owned(),
            Self::StrayDelete => "write `^^^PATH` at the beginning of the line before it".to_owned(),
            Self::EndAfterDelete => "remove it".to_owned(),
            Self::MissingName => "write the path after the fence, as in `^^^src/main.rs`".to_owned(),
            Self::ControlInName | Self::QuotedName => "write the bare path and nothing else on that line".to_owned(),
            Self::ReservedName => {
                "write `^^^end` or `^^^delete` and nothing else on that line; a path goes before it, after its own `^^^`"
                    .to_owned()
            }
            Self::NamedStart => "write the path of the file in place of `start`".to_owned(),
            Self::RemarkInName => opening_without_words(subject),
            Self::TextAfterMarker => {
                let fence = fence_of(subject);
                format!(
                    "write `{fence}start` and `{fence}end` each alone on a line, with the text between them; if this line is content, \
                     give the block around it a longer fence"
                )
            }
            Self::GluedEnd => "write it on its own line".to_owned(),
            Self::EndLength => "close a block with exactly as many characters as opened it".to_owned(),
            Self::ContentBeforeDelete => {
                "write `^^^delete` right after `^^^PATH`, or `^^^end` to replace the file".to_owned()
            }
            Self::NoHunks => {
                format!("write one or more hunks: {}; or give the whole content without the word `{EDIT}`", hunk())
            }
            Self::TextOutsideHunk | Self::UnterminatedHunk => format!("write each hunk as {}", hunk()),
            Self::HunkMark => {
                format!("write each hunk as {}; if this line is content, use longer marks in the whole block", hunk())
            }
            Self::EmptySearch => "repeat the lines that the new ones go next to, or give the whole file".to_owned(),
            Self::DuplicateFile => "give each file once, with its final content".to_owned(),
            Self::NoChangeWithFiles => "leave out either the `$$$` block or the files".to_owned(),
            Self::OtherForm => format!(
                "give each changed file as `^^^PATH`, its whole content, `^^^end`; or its changed lines as \
                 `^^^{EDIT} PATH`, hunks, `^^^end`, each hunk being {}",
                hunk()
            ),
            Self::NothingActionable => {
                "give each changed file as `^^^PATH`, its whole content, `^^^end`; if nothing needs to change, say why \
                 between `$$$start` and `$$$end`"
                    .to_owned()
            }
            Self::InThought => "end the thought with its tag, and write all blocks after it".to_owned(),
            Self::InvalidUtf8 => "write plain UTF-8 text".to_owned(),
        }
    }
}

fn hunk() -> String {
    let [search, divider, replace] = mark::marks();
    format!(
        "`{search}`, the old lines, `{divider}`, the new lines, `{replace}`, each mark alone on a line"
    )
}

const NESTED_ADVICE: &str = "close the other block before it; if this line is content, give the other block a longer \
                             fence: `^^^^PATH` before and `^^^^end` after it";

impl Wording for WarningCode {
    fn message(self, subject: &str) -> String {
        match self {
            Self::MarkdownFence => {
                format!("the whole content of `{subject}` is wrapped in a Markdown fence")
            }
            Self::OpeningInside => format!("`{subject}` is content of the block around it"),
            Self::IgnoredFence => {
                format!("`{subject}` is in a thought or behind text, where no fence counts")
            }
        }
    }

    fn advice(self, _: &str) -> String {
        let advice = match self {
            Self::MarkdownFence => {
                "leave out the lines of backquotes: they become part of the file"
            }
            Self::OpeningInside => "if it should open a block, close the other one before it",
            Self::IgnoredFence => {
                "write the fences of a block on lines of their own, outside thoughts"
            }
        };
        advice.to_owned()
    }
}

/// The end marker that matches the opening (or bare fence) `subject`.
fn closing(subject: &str) -> String {
    fence_of(subject).to_owned() + END
}

/// How to write what was probably meant. Falls back to general words if too little of a long marker
/// is quoted to tell.
fn opening_without_words(subject: &str) -> String {
    let fence = fence_of(subject);
    let said = subject.get(fence.len()..).unwrap_or_default().trim();
    match operation(said) {
        Some((Operation::Write, name)) => {
            format!("write `{fence}{name}`, the whole content, `{fence}{END}`")
        }
        Some((Operation::Edit, name)) => format!("write `{fence}{EDIT} {name}`"),
        Some((Operation::Delete, name)) => {
            format!("write `{fence}{name}`, and `{fence}{DELETE}` on the next line")
        }
        Some((Operation::Move, _)) => format!(
            "write the new file with its whole content as `{fence}PATH` to `{fence}{END}`; to delete the old one, \
             write `{fence}PATH`, and `{fence}{DELETE}` on the next line"
        ),
        None => match without_remark(said) {
            Some(name) => format!("write `{fence}{name}` and nothing else on that line"),
            None => "write the bare path and nothing else on that line".to_owned(),
        },
    }
}

fn fence_of(subject: &str) -> &str {
    let sigil = subject.chars().next().unwrap_or(Kind::File.sigil());
    let behind = subject.trim_start_matches(sigil);
    subject.strip_suffix(behind).unwrap_or_default()
}
