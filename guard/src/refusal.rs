//! Why a path may not be written: a stable code for programs, one sentence for the model.

use std::fmt;

use crate::lexical::misleads;

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident, $text:literal, $sentence:literal;)*) => {
        /// The kinds of refusal. The kebab-case spelling is stable: tools match on it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Code { $($(#[$doc])* $variant,)* }

        impl Code {
            /// Every code: of the characters, of the names, of the reply as a whole, of git, of the disk.
            pub const ALL: &'static [Code] = &[$(Code::$variant,)*];

            /// The stable kebab-case spelling, as `guard --json` prints it.
            pub const fn as_str(self) -> &'static str {
                match self { $(Code::$variant => $text,)* }
            }

            /// What follows the path in a message: why, and what to do. `{}` stands for the detail of the case.
            const fn sentence(self) -> &'static str {
                match self { $(Code::$variant => $sentence,)* }
            }
        }
    };
}

codes! {
    /// The bytes are not valid UTF-8.
    NotUtf8, "not-utf8",
        "is not valid UTF-8; use a plain name.";
    /// The path has no characters at all.
    EmptyPath, "empty-path",
        "is empty; name a file.";
    /// The path begins with `/`.
    Absolute, "absolute-path",
        "is an absolute path; write it from the project's root, without a slash before it.";
    /// Longer than systems take: 255 bytes a name, 4,095 a path, 64 names.
    TooLong, "too-long",
        "is too long (255 bytes a name, 4,095 bytes and 64 names a path); use shorter names.";
    /// Two slashes in a row, or one at the end.
    EmptyComponent, "empty-component",
        "has an empty component (`//`, or a slash at its end); separate the names by single slashes.";
    /// A `.` or `..` component.
    RelativeComponent, "relative-component",
        "has a `.` or `..` component; write the path from the project's root.";
    /// A backslash, which other systems take for a slash.
    Backslash, "backslash",
        "has a backslash; separate the names by `/`.";
    /// A C0 or C1 control character or DEL.
    ControlCharacter, "control-character",
        "has a control character; use a plain name.";
    /// A character that changes the direction of writing.
    BidiCharacter, "bidi-character",
        "has a character that changes the direction of writing; use a plain name.";
    /// A character that leaves no mark on the screen.
    InvisibleCharacter, "invisible-character",
        "has an invisible character; use a plain name.";
    /// A character that looks like a slash, a backslash or the dots of `..`.
    ConfusableCharacter, "confusable-character",
        "has a character that looks like a slash, a backslash or a dot; use a plain name.";
    /// One of `: * ? < > | "`, which not every file system can store.
    ReservedCharacter, "reserved-character",
        "has one of the characters : * ? < > | \"; use a plain name.";
    /// A component that ends in a dot or a blank.
    TrailingDotOrBlank, "trailing-dot-or-blank",
        "has a component that ends in a dot or a blank; use a plain name.";
    /// A device name of Windows, whatever its extension.
    DeviceName, "device-name",
        "has a component that is a device name on Windows; use another name.";
    /// `.git`, at any level and in any spelling that some file system takes for it.
    DotGit, "dot-git",
        "is or looks like git's own folder; leave it as it is.";
    /// A name of the protected table or of the configuration's `protect` list, an input of the run, or the program of the build.
    Protected, "protected",
        "is protected ({}); leave it as it is.";
    /// Not among the files that this task may write.
    OutOfScope, "out-of-scope",
        "is not among the files that this task may change; change only those.";
    /// Two paths of one reply that are, or fold to, the same.
    Duplicate, "duplicate",
        "names the same as `{}` of this reply; name each file once, in one spelling.";
    /// One path of the reply is a folder on the way to another.
    FileAndFolder, "file-and-folder",
        "and `{}` of this reply cannot both be: one would be a folder; name files only.";
    /// Git ignores it, by the rules at the start of the run or by those of now.
    Ignored, "ignored",
        "is ignored by git; leave it as it is.";
    /// A symbolic link, at the end or on the way.
    Symlink, "symlink",
        "is a symbolic link or leads through one; leave it as it is.";
    /// A folder stands where the file would be.
    IsAFolder, "is-a-folder",
        "is a folder; use another name.";
    /// A file stands where a folder would be.
    NotAFolder, "not-a-folder",
        "leads through a file; use another name.";
    /// A device, a FIFO or a socket.
    NotARegularFile, "not-a-regular-file",
        "is not a regular file or leads through one that is not; leave it as it is.";
    /// Another file system is mounted there.
    OtherFileSystem, "other-file-system",
        "lies on another file system; leave it as it is.";
    /// Inside a submodule, a nested repository, or what would become one.
    NestedRepository, "nested-repository",
        "lies in a submodule or a nested repository; leave it as it is.";
    /// A name that differs from one on disk only in case or in its Unicode form.
    SpelledDifferently, "spelled-differently",
        "differs from `{}` on disk only in its spelling; use exactly that one.";
    /// A hard link to a protected file.
    ProtectedInode, "protected-inode",
        "is a hard link to a protected file; leave it as it is.";
    /// The file is not the one that the change was made for.
    StaleBase, "stale-base",
        "is not the file that this change was made for (base_sha256 differs); read it again.";
    /// The guard may not look at it.
    CannotJudge, "cannot-judge",
        "cannot be judged ({}); leave it as it is.";
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A path that may not be written, and why. Its `Display` is one sentence for the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    code: Code,
    path: String,
    detail: String,
}

impl Refusal {
    pub(crate) fn new(code: Code, path: &[u8]) -> Self {
        Refusal { code, path: escape(path), detail: String::new() }
    }

    pub(crate) fn with(code: Code, path: &[u8], detail: &str) -> Self {
        Refusal { code, path: escape(path), detail: escape(detail.as_bytes()) }
    }

    /// Which rule refused it.
    pub fn code(&self) -> Code {
        self.code
    }

    /// The path as it may be shown: what does not print is escaped, what is very long is cut.
    pub fn path(&self) -> &str {
        &self.path
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` {}", self.path, self.code.sentence().replace("{}", &self.detail))
    }
}

/// A path as it may be shown: what does not print is escaped, what is very long is cut.
pub fn shown_path(path: &str) -> String {
    escape(path.as_bytes())
}

/// What is shown of a path: at most 200 characters, nothing that moves a cursor or hides.
pub(crate) fn escape(path: &[u8]) -> String {
    let mut shown = String::new();
    // A path may be as long as a reply. A character takes four bytes at most and shows as one at least.
    let begin = path.get(..4 * (SHOWN + 1)).unwrap_or(path);
    for chunk in begin.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\'' | '"' => shown.push(c),
                c if misleads(c) => shown.extend(c.escape_unicode()),
                c => shown.extend(c.escape_debug()),
            }
        }
        for byte in chunk.invalid() {
            shown.push_str(&format!("\\x{byte:02x}"));
        }
    }
    if shown.chars().count() > SHOWN {
        shown = shown.chars().take(SHOWN).chain(['…']).collect();
    }
    shown
}

/// How many characters of a hostile path are worth showing.
const SHOWN: usize = 200;

#[cfg(test)]
mod tests {
    use super::{SHOWN, escape};

    #[test]
    fn as_much_is_shown_of_a_long_path_whatever_it_is_made_of() {
        for (unit, escaped) in [("a", "a"), ("\n", "\\u{a}"), ("é", "é"), ("\u{1f600}", "\u{1f600}")] {
            let whole = escaped.repeat(SHOWN);
            let cut: String = whole.chars().take(SHOWN).chain(['…']).collect();
            let fits = SHOWN / escaped.chars().count();
            assert_eq!(escape(unit.repeat(fits).as_bytes()), escaped.repeat(fits), "{unit:?}");
            assert_eq!(escape(unit.repeat(fits + 1).as_bytes()), cut, "{unit:?}");
            assert_eq!(escape(unit.repeat(1 << 20).as_bytes()), cut, "{unit:?}");
        }
        assert_eq!(escape(&vec![0xff; 1 << 20]), format!("{}…", "\\xff".repeat(SHOWN / 4)));
    }
}
