//! What can be wrong with a reply: the codes, and what to say about each.

use crate::fence::{END, Kind, without_remark};

/// Declares an enum of codes with their spelling, so that there is one list of them.
macro_rules! codes {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $spelling:literal,)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum $name { $($(#[$doc])* $variant,)* }

        impl $name {
            /// Every code, in the order of the reference.
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
    /// What makes a reply unusable.
    ErrorCode {
        /// The text ends inside a block.
        Unterminated = "unterminated",
        /// A marker of another block inside a block.
        Nested = "nested",
        /// An end without its opening.
        StrayEnd = "stray-end",
        /// `^^^delete` without `^^^PATH` before it.
        StrayDelete = "stray-delete",
        /// `^^^end` after `^^^delete`, which already ended the block.
        EndAfterDelete = "end-after-delete",
        /// `^^^` with nothing behind it where a later `^^^end` shows that a block was meant.
        MissingName = "missing-name",
        /// A control character in a file's name.
        ControlInName = "control-in-name",
        /// A name in backquotes, quotes or brackets.
        QuotedName = "quoted-name",
        /// `end` or `delete` with something around it, or in capitals.
        ReservedName = "reserved-name",
        /// `^^^start`: the word belongs to the other fences.
        NamedStart = "named-start",
        /// A remark such as `(new file)` behind a file's name, or a word such as `edit` in front of it.
        RemarkInName = "remark-in-name",
        /// Text behind the `start` or `end` of a thought, on the same line.
        TextAfterMarker = "text-after-marker",
        /// The block's end stands behind text, where it is content.
        GluedEnd = "glued-end",
        /// The block's end has another number of fence characters than its opening.
        EndLength = "end-length",
        /// A bare `^^^` where an end was due.
        BareEnd = "bare-end",
        /// Text between `^^^PATH` and `^^^delete`.
        ContentBeforeDelete = "content-before-delete",
        /// The same file in two blocks.
        DuplicateFile = "duplicate-file",
        /// `$$$` together with files.
        NoChangeWithFiles = "no-change-with-files",
        /// Neither a file nor `$$$`.
        NothingActionable = "nothing-actionable",
        /// Bytes that are not UTF-8.
        InvalidUtf8 = "invalid-utf8",
    }
}

codes! {
    /// What is allowed but looks like a mistake.
    WarningCode {
        /// The whole content stands in a Markdown fence, which would become part of the file.
        MarkdownFence = "markdown-fence",
        /// A line in a longer fence that opens a block of the same length elsewhere: it is content, and perhaps an end
        /// was forgotten before it.
        OpeningInside = "opening-inside",
    }
}

/// How a code is put into words. `subject` is the marker as it was written, shortened.
pub trait Wording: Copy {
    /// What is wrong, for anybody: a lower-case fragment.
    fn message(self, subject: &str) -> String;
    /// What to write instead, for the model: a lower-case imperative.
    fn advice(self, subject: &str) -> String;
}

impl Wording for ErrorCode {
    fn message(self, subject: &str) -> String {
        match self {
            Self::Unterminated => format!("the block of `{subject}` is never closed"),
            Self::Nested => format!("`{subject}` stands inside another block"),
            Self::StrayEnd => format!("`{subject}` closes nothing"),
            Self::StrayDelete => format!("`{subject}` has no file name before it"),
            Self::EndAfterDelete => format!("`{subject}` after a `delete` that has already closed the block"),
            Self::MissingName => format!("`{subject}` has no file name"),
            Self::ControlInName => format!("the file name in `{subject}` has a control character in it"),
            Self::QuotedName => format!("the file name in `{subject}` is in quotes or brackets"),
            Self::ReservedName => format!("`{subject}` is neither an end nor a file's name"),
            Self::NamedStart => format!("`{subject}` has no file name: `start` belongs to the other fences"),
            Self::RemarkInName => format!("`{subject}` has more than a file name on its line"),
            Self::TextAfterMarker => format!("`{subject}` has text on the line of a marker"),
            Self::GluedEnd => format!("`{subject}` stands at the end of a line of content"),
            Self::EndLength => format!("`{subject}` has not the length of the fence it should close"),
            Self::BareEnd => format!("`{subject}` alone does not close the block"),
            Self::ContentBeforeDelete => "the file that is to be deleted has content too".to_owned(),
            Self::DuplicateFile => format!("`{subject}` already has a block"),
            Self::NoChangeWithFiles => {
                format!("`{subject}` says that nothing needs to change, yet files are given")
            }
            Self::NothingActionable => "the reply has no file and no `$$$start`".to_owned(),
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
            Self::MissingName => "write the path behind the fence, as in `^^^src/main.rs`".to_owned(),
            Self::ControlInName | Self::QuotedName => "write the bare path and nothing else on that line".to_owned(),
            Self::ReservedName => {
                "write `^^^end` or `^^^delete` and nothing else on that line; a path goes before it, behind its own `^^^`"
                    .to_owned()
            }
            Self::NamedStart => "write the path of the file in place of `start`".to_owned(),
            Self::RemarkInName => format!("write {} and nothing else on that line", bare_opening(subject)),
            Self::TextAfterMarker => {
                let fence = fence_of(subject);
                format!(
                    "write `{fence}start` and `{fence}end` each alone on a line, the text between them; if this line is content, \
                     give the block around it a longer fence"
                )
            }
            Self::GluedEnd => "write it on a line of its own".to_owned(),
            Self::EndLength => "close a block with exactly as many characters as opened it".to_owned(),
            Self::ContentBeforeDelete => {
                "write `^^^delete` right after `^^^PATH`, or `^^^end` to replace the file".to_owned()
            }
            Self::DuplicateFile => "give each file once, with its final content".to_owned(),
            Self::NoChangeWithFiles => "leave out either the `$$$` block or the files".to_owned(),
            Self::NothingActionable => {
                "give each changed file as `^^^PATH`, its whole content, `^^^end`; if nothing needs to change, say why \
                 between `$$$start` and `$$$end`"
                    .to_owned()
            }
            Self::InvalidUtf8 => "write plain UTF-8 text".to_owned(),
        }
    }
}

const NESTED_ADVICE: &str = "close the other block before it; if this line is content, give the other block a longer \
                             fence: `^^^^PATH` before and `^^^^end` after it";

impl Wording for WarningCode {
    fn message(self, subject: &str) -> String {
        match self {
            Self::MarkdownFence => format!("the whole content of `{subject}` stands in a Markdown fence"),
            Self::OpeningInside => format!("`{subject}` is content of the block around it"),
        }
    }

    fn advice(self, _: &str) -> String {
        let advice = match self {
            Self::MarkdownFence => "leave out the lines of backquotes: they become part of the file",
            Self::OpeningInside => "if it is to open a block, close the other one before it",
        };
        advice.to_owned()
    }
}

/// The end that belongs to the opening (or the bare fence) `subject`.
fn closing(subject: &str) -> String {
    fence_of(subject).to_owned() + END
}

/// The opening that was probably meant; in general terms where so little of a long one is quoted that it cannot be told.
fn bare_opening(subject: &str) -> String {
    let fence = fence_of(subject);
    let said = subject.get(fence.len()..).unwrap_or_default().trim();
    without_remark(said).map_or_else(|| "the bare path".to_owned(), |name| format!("`{fence}{name}`"))
}

fn fence_of(subject: &str) -> &str {
    let sigil = subject.chars().next().unwrap_or(Kind::File.sigil());
    let behind = subject.trim_start_matches(sigil);
    subject.strip_suffix(behind).unwrap_or_default()
}
