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
            /// Every code, in the order of the checks: characters, names, the reply as a whole,
            /// git, the disk.
            pub const ALL: &'static [Code] = &[$(Code::$variant,)*];

            /// The stable kebab-case spelling, as `guard --json` prints it.
            pub const fn as_str(self) -> &'static str {
                match self { $(Code::$variant => $text,)* }
            }

            /// The text after the path in a message: why, and what to do. `{}` is replaced by
            /// details of the case.
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
    /// The path is empty.
    EmptyPath, "empty-path",
        "is empty; name a file.";
    /// The path begins with `/`.
    Absolute, "absolute-path",
        "is an absolute path; write it relative to the project's root, without a leading slash.";
    /// Longer than common systems allow: 255 bytes per name, 4,095 per path, 64 names.
    TooLong, "too-long",
        "is too long (at most 255 bytes per name, 4,095 bytes and 64 names per path); use shorter names.";
    /// Two slashes in a row, or a trailing slash.
    EmptyComponent, "empty-component",
        "has an empty component (`//` or a trailing slash); separate names with single slashes.";
    /// A `.` or `..` component.
    RelativeComponent, "relative-component",
        "has a `.` or `..` component; write the path relative to the project's root.";
    /// A backslash, which other systems treat as a slash.
    Backslash, "backslash",
        "has a backslash; separate names with `/`.";
    /// A C0 or C1 control character or DEL.
    ControlCharacter, "control-character",
        "has a control character; use a plain name.";
    /// A character that changes the writing direction.
    BidiCharacter, "bidi-character",
        "has a character that changes the writing direction; use a plain name.";
    /// A character that is invisible on the screen.
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
    /// A Windows device name, with any extension.
    DeviceName, "device-name",
        "has a component that is a device name on Windows; use another name.";
    /// `.git`, at any level and in any spelling that some file system treats as `.git`.
    DotGit, "dot-git",
        "is or looks like git's own folder; leave it unchanged.";
    /// A built-in protected name, a name on the configuration's `protect` list, an input of the
    /// run, or the program of the build.
    Protected, "protected",
        "is protected ({}); leave it unchanged.";
    /// Not one of the files that this task may write.
    OutOfScope, "out-of-scope",
        "is not one of the files that this task may change; change only those.";
    /// Some program runs it later without being asked, and nobody asked for it: a command left it.
    RunsLater, "runs-later",
        "is run later without being asked ({}); leave it unchanged.";
    /// Two paths of one reply that are equal, or equal after folding.
    Duplicate, "duplicate",
        "names the same file as `{}` in this reply; name each file only once.";
    /// One path of the reply is a parent folder of another.
    FileAndFolder, "file-and-folder",
        "conflicts with `{}` in this reply, because one of them would be a folder; name only files.";
    /// Git ignores it, by the rules at the start of the run or by the current ones.
    Ignored, "ignored",
        "is ignored by git; leave it unchanged.";
    /// Git tracks it without checking it out, or it is outside of a sparse checkout.
    NotCheckedOut, "not-checked-out",
        "is kept out of the work tree by git (sparse checkout or skip-worktree); leave it unchanged.";
    /// A symlink, as the last component or on the way.
    Symlink, "symlink",
        "is a symlink or passes through one; leave it unchanged.";
    /// A folder exists at that path.
    IsAFolder, "is-a-folder",
        "is a folder; use another name.";
    /// One of the parent folders is a file.
    NotAFolder, "not-a-folder",
        "passes through a file; use another name.";
    /// A device, a FIFO or a socket.
    NotARegularFile, "not-a-regular-file",
        "is a device, a FIFO or a socket, or passes through one; leave it unchanged.";
    /// Another file system is mounted there.
    OtherFileSystem, "other-file-system",
        "is on another file system; leave it unchanged.";
    /// Inside a submodule or a nested repository, or the path would create one.
    NestedRepository, "nested-repository",
        "is in a submodule or a nested repository; leave it unchanged.";
    /// A name that differs from an existing one only in case or Unicode form.
    SpelledDifferently, "spelled-differently",
        "differs from `{}` on disk only in spelling; use that exact name.";
    /// A hard link to a protected file.
    ProtectedInode, "protected-inode",
        "is a hard link to a protected file; leave it unchanged.";
    /// The file is not the version that the change was made for.
    StaleBase, "stale-base",
        "has changed since this change was made for it (base_sha256 differs); read it again.";
    /// The guard cannot read what it needs in order to decide.
    CannotJudge, "cannot-judge",
        "cannot be judged ({}); leave it unchanged.";
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a path may not be written. Its `Display` is one sentence for the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    code: Code,
    path: String,
    detail: String,
}

impl Refusal {
    pub(crate) fn new(code: Code, path: &[u8]) -> Self {
        Refusal {
            code,
            path: escape(path),
            detail: String::new(),
        }
    }

    pub(crate) fn with(code: Code, path: &[u8], detail: &str) -> Self {
        Refusal {
            code,
            path: escape(path),
            detail: escape(detail.as_bytes()),
        }
    }

    /// The rule that refused the path.
    pub fn code(&self) -> Code {
        self.code
    }

    /// The path for display: unprintable characters are escaped, and very long paths are cut.
    pub fn path(&self) -> &str {
        &self.path
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` {}",
            self.path,
            self.code.sentence().replace("{}", &self.detail)
        )
    }
}

/// A path for display: unprintable characters are escaped, and very long paths are cut.
pub fn shown_path(path: &str) -> String {
    escape(path.as_bytes())
}

/// At most 200 characters of a path, without anything that moves the cursor or is invisible.
pub(crate) fn escape(path: &[u8]) -> String {
    let mut shown = String::new();
    // A path may be as long as a reply. A character is at most four bytes long and takes at least
    // one column.
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

/// How many characters of a hostile path are shown.
const SHOWN: usize = 200;

#[cfg(test)]
mod tests {
    use super::{SHOWN, escape};

    #[test]
    fn as_much_is_shown_of_a_long_path_whatever_it_is_made_of() {
        for (unit, escaped) in [
            ("a", "a"),
            ("\n", "\\u{a}"),
            ("é", "é"),
            ("\u{1f600}", "\u{1f600}"),
        ] {
            let whole = escaped.repeat(SHOWN);
            let cut: String = whole.chars().take(SHOWN).chain(['…']).collect();
            let fits = SHOWN / escaped.chars().count();
            assert_eq!(
                escape(unit.repeat(fits).as_bytes()),
                escaped.repeat(fits),
                "{unit:?}"
            );
            assert_eq!(escape(unit.repeat(fits + 1).as_bytes()), cut, "{unit:?}");
            assert_eq!(escape(unit.repeat(1 << 20).as_bytes()), cut, "{unit:?}");
        }
        assert_eq!(
            escape(&vec![0xff; 1 << 20]),
            format!("{}…", "\\xff".repeat(SHOWN / 4))
        );
    }
}
