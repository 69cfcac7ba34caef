//! Why a path may not be written: a stable code for programs, one sentence for the model.

use std::fmt;

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $text:literal,)*) => {
        /// The kinds of refusal. The kebab-case spelling is stable: tools match on it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Code { $($(#[$doc])* $variant,)* }

        impl Code {
            /// Every code, in the order in which the rules are asked.
            pub const ALL: &'static [Code] = &[$(Code::$variant,)*];

            /// The stable kebab-case spelling, as `guard --json` prints it.
            pub const fn as_str(self) -> &'static str {
                match self { $(Code::$variant => $text,)* }
            }
        }
    };
}

codes! {
    /// The bytes are not valid UTF-8.
    NotUtf8 = "not-utf8",
    /// The path has no characters at all.
    EmptyPath = "empty-path",
    /// The path begins with `/`.
    Absolute = "absolute-path",
    /// Longer than the system takes: 255 bytes a name, 4,095 a path, 64 names.
    TooLong = "too-long",
    /// Two slashes in a row, or one at the end.
    EmptyComponent = "empty-component",
    /// A `.` or `..` component.
    RelativeComponent = "relative-component",
    /// A backslash, which other systems take for a slash.
    Backslash = "backslash",
    /// A C0 or C1 control character or DEL.
    ControlCharacter = "control-character",
    /// A character that changes the direction of writing.
    BidiCharacter = "bidi-character",
    /// A character that leaves no mark on the screen.
    InvisibleCharacter = "invisible-character",
    /// A character that looks like a slash, a backslash or the dots of `..`.
    ConfusableCharacter = "confusable-character",
    /// One of `: * ? < > | "`, which not every file system can store.
    ReservedCharacter = "reserved-character",
    /// A component that ends in a dot or a blank.
    TrailingDotOrBlank = "trailing-dot-or-blank",
    /// A device name of Windows, whatever its extension.
    DeviceName = "device-name",
    /// `.git`, at any level and in any spelling that some file system takes for it.
    DotGit = "dot-git",
    /// A name of the protected table or of the configuration's `protect` list.
    Protected = "protected",
    /// Not among the files that this task may write.
    OutOfScope = "out-of-scope",
    /// Two paths of one reply that are, or fold to, the same.
    Duplicate = "duplicate",
    /// One path of the reply is a folder on the way to another.
    FileAndFolder = "file-and-folder",
    /// Git ignores it, by the rules at the start of the run or by those of now.
    Ignored = "ignored",
    /// A symbolic link, at the end or on the way.
    Symlink = "symlink",
    /// A folder stands where the file would be.
    IsAFolder = "is-a-folder",
    /// A file stands where a folder would be.
    NotAFolder = "not-a-folder",
    /// A device, a FIFO or a socket.
    NotARegularFile = "not-a-regular-file",
    /// Another file system is mounted there.
    OtherFileSystem = "other-file-system",
    /// Inside a submodule, a nested repository, or what would become one.
    NestedRepository = "nested-repository",
    /// A name that differs from one on disk only in case or in its Unicode form.
    SpelledDifferently = "spelled-differently",
    /// A hard link to a protected file.
    ProtectedInode = "protected-inode",
    /// The file is not the one that the change was made for.
    StaleBase = "stale-base",
    /// The guard may not look at it, so it cannot judge.
    CannotJudge = "cannot-judge",
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
        write!(f, "`{}` ", self.path)?;
        let detail = &self.detail;
        match self.code {
            Code::Protected => write!(f, "is protected ({detail}); leave it as it is."),
            Code::Duplicate => {
                write!(f, "names the same file as `{detail}` of this reply; name each file once.")
            }
            Code::FileAndFolder => {
                write!(
                    f,
                    "and `{detail}` of this reply cannot both be: one would be a folder; name files only."
                )
            }
            Code::SpelledDifferently => {
                write!(f, "differs from `{detail}` only in its spelling; write exactly `{detail}`.")
            }
            Code::CannotJudge => write!(f, "cannot be judged ({detail}); leave it as it is."),
            code => write!(f, "{}; {}.", why(code), advice(code)),
        }
    }
}

fn why(code: Code) -> &'static str {
    match code {
        Code::NotUtf8 => "is not valid UTF-8",
        Code::EmptyPath => "is empty",
        Code::Absolute => "is an absolute path",
        Code::TooLong => "is too long (255 bytes a name, 4,095 bytes and 64 names a path)",
        Code::EmptyComponent => "has an empty component (`//`, or a slash at its end)",
        Code::RelativeComponent => "has a `.` or `..` component",
        Code::Backslash => "has a backslash",
        Code::ControlCharacter => "has a control character",
        Code::BidiCharacter => "has a character that changes the direction of writing",
        Code::InvisibleCharacter => "has an invisible character",
        Code::ConfusableCharacter => "has a character that looks like a slash, a backslash or a dot",
        Code::ReservedCharacter => "has one of the characters : * ? < > | \"",
        Code::TrailingDotOrBlank => "has a component that ends in a dot or a blank",
        Code::DeviceName => "has a component that is a device name on Windows",
        Code::DotGit => "is or looks like git's own folder",
        Code::Protected => "is protected",
        Code::OutOfScope => "is not among the files that this task may change",
        Code::Duplicate => "names the same file as another path of this reply",
        Code::FileAndFolder => "is a file and a folder in one reply",
        Code::Ignored => "is ignored by git",
        Code::Symlink => "is a symbolic link or leads through one",
        Code::IsAFolder => "is a folder",
        Code::NotAFolder => "leads through a file",
        Code::NotARegularFile => "is not a regular file or leads through one that is not",
        Code::OtherFileSystem => "lies on another file system",
        Code::NestedRepository => "lies in a nested repository or a submodule",
        Code::SpelledDifferently => "differs from a name on disk only in its spelling",
        Code::ProtectedInode => "is a hard link to a protected file",
        Code::StaleBase => "is not the file that this change was made for (base_sha256 differs)",
        Code::CannotJudge => "cannot be judged",
    }
}

fn advice(code: Code) -> &'static str {
    match code {
        Code::EmptyPath
        | Code::Absolute
        | Code::EmptyComponent
        | Code::RelativeComponent
        | Code::Backslash => "write the path from the project's root, with single slashes",
        Code::NotUtf8
        | Code::TooLong
        | Code::ControlCharacter
        | Code::BidiCharacter
        | Code::InvisibleCharacter
        | Code::ConfusableCharacter
        | Code::ReservedCharacter
        | Code::TrailingDotOrBlank
        | Code::DeviceName => "use a plain name",
        Code::Duplicate | Code::FileAndFolder => "name each file once",
        Code::OutOfScope => "change only the files that the task names",
        Code::StaleBase => "read the file as it is now and make the change again",
        Code::IsAFolder | Code::NotAFolder => "use another name",
        Code::SpelledDifferently => "use the spelling on disk",
        Code::DotGit
        | Code::Protected
        | Code::Ignored
        | Code::Symlink
        | Code::NotARegularFile
        | Code::OtherFileSystem
        | Code::NestedRepository
        | Code::ProtectedInode
        | Code::CannotJudge => "leave it as it is",
    }
}

/// What is shown of a path: at most 200 characters, nothing that moves a cursor or hides.
pub(crate) fn escape(path: &[u8]) -> String {
    let mut shown = String::new();
    for chunk in path.utf8_chunks() {
        for c in chunk.valid().chars() {
            if c == '\'' || c == '"' { shown.push(c) } else { shown.extend(escape_char(c)) }
        }
        for byte in chunk.invalid() {
            shown.push_str(&format!("\\x{byte:02x}"));
        }
        if shown.len() > 4 * SHOWN {
            break;
        }
    }
    if shown.chars().count() > SHOWN {
        shown = shown.chars().take(SHOWN).chain(['…']).collect();
    }
    shown
}

/// How many characters of a hostile path are worth showing.
const SHOWN: usize = 200;

fn escape_char(c: char) -> Box<dyn Iterator<Item = char>> {
    if crate::lexical::misleads(c) { Box::new(c.escape_unicode()) } else { Box::new(c.escape_debug()) }
}
