//! The characters and words of the fences.

/// The word that opens a thought.
pub const START: &str = "start";
/// The word that closes any block.
pub const END: &str = "end";
/// The word that ends a file's block by deleting the file (S1).
pub const DELETE: &str = "delete";
/// The word before the path of a file that a reply asks for.
pub const NEED: &str = "need";
/// The length of a plain fence. Longer fences are for content that itself contains fence lines.
pub const PLAIN: usize = 3;

/// A reminder of the required form, for a model that replied without it.
pub const FORM: &str = "\
Answer in this form, each fence on a line of its own:

^^^path/of/the/file
the whole new content of the file
^^^end

If no file needs to change, answer in this one instead:

$$$start
the reason
$$$end
";

/// The four kinds of blocks in S0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `^^^PATH` … `^^^end` replaces a file, `^^^PATH` then `^^^delete` deletes it.
    File,
    /// `&&&start` … `&&&end` is shown to the user.
    User,
    /// `%%%start` … `%%%end` is kept for the next prompt.
    Debug,
    /// `$$$start` … `$$$end` says why nothing needs to change.
    NoChange,
}

impl Kind {
    /// All four, in the order of S0.
    pub const ALL: [Self; 4] = [Self::User, Self::Debug, Self::File, Self::NoChange];

    /// The character that this kind's fences consist of.
    pub(crate) const fn sigil(self) -> char {
        match self {
            Self::File => '^',
            Self::User => '&',
            Self::Debug => '%',
            Self::NoChange => '$',
        }
    }

    /// The fence of this kind with its plain length, such as `^^^`.
    pub fn fence(self) -> String {
        self.sigil().to_string().repeat(PLAIN)
    }
}
