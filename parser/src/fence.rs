//! The fences: their characters and words, and [`print()`], the inverse of [`parse`](crate::parse).

pub(crate) mod kind;
pub(crate) mod name;
pub(crate) mod tag;

pub use kind::{DELETE, END, FORM, Kind, PLAIN, START};
pub use name::{NameFault, check_name};

use crate::edit::{self, EDIT, Hunk};
use crate::line::{MarkerLine, MarkerLines, Role};

/// A block to be printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "`path` is the file's")]
pub enum Draft<'a> {
    /// Replace the file at `path`.
    Write {
        path: &'a str,
        /// Its new content: empty, or ending in a newline.
        content: &'a str,
    },
    /// Replace lines of the file at `path`.
    Edit {
        path: &'a str,
        /// At least one.
        hunks: &'a [Hunk<'a>],
    },
    /// Delete the file at `path`.
    Delete { path: &'a str },
    /// Show this to the user. This and the next two get a newline at the end if they have none.
    User(&'a str),
    /// Keep this for the next prompt.
    Debug(&'a str),
    /// Say why nothing needs to change.
    NoChange(&'a str),
}

/// Why a [`Draft`] cannot be printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unprintable {
    /// End markers are on lines of their own, so the content of a file must be empty or end in a
    /// newline.
    #[error("the content does not end in a newline")]
    NoFinalNewline,
    /// An edit needs a hunk, and each hunk old lines.
    #[error("the edit has no hunk, or one without old lines")]
    NoHunk,
    /// The name would not be read back as itself.
    #[error("the name is {0}")]
    Name(#[from] NameFault),
}

/// Prints `blocks` so that [`parse`](crate::parse) reads back the same names and contents.
pub fn print<'a>(blocks: impl IntoIterator<Item = Draft<'a>>) -> Result<String, Unprintable> {
    let mut out = String::new();
    for block in blocks {
        print_block(&mut out, block)?;
    }
    Ok(out)
}

fn print_block(out: &mut String, block: Draft<'_>) -> Result<(), Unprintable> {
    let edited;
    let (kind, name, content, close) = match block {
        Draft::Edit { path, hunks } => {
            edited = edit::print(hunks)?;
            (Kind::File, path, edited.as_str(), END)
        }
        Draft::Write { path, content } => (Kind::File, path, content, END),
        Draft::Delete { path } => (Kind::File, path, "", DELETE),
        Draft::User(content) => (Kind::User, START, content, END),
        Draft::Debug(content) => (Kind::Debug, START, content, END),
        Draft::NoChange(content) => (Kind::NoChange, START, content, END),
    };
    if kind == Kind::File {
        check_name(name)?;
    }
    let newline = if content.is_empty() || content.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    if kind == Kind::File && !newline.is_empty() {
        return Err(Unprintable::NoFinalNewline);
    }
    let fence = kind.sigil().to_string().repeat(length_for(kind, content));
    let word = if matches!(block, Draft::Edit { .. }) {
        [EDIT, " "]
    } else {
        ["", ""]
    };
    out.push_str(&fence);
    out.extend(word);
    out.extend([name, "\n", content, newline, fence.as_str(), close, "\n"]);
    Ok(())
}

/// The shortest fence of `kind` that cannot be confused with a line of `content`.
pub fn length_for(kind: Kind, content: &str) -> usize {
    let mut plain = true;
    let mut taken = Vec::new();
    let is_own = |line: &MarkerLine<'_>| line.marker.kind == kind;
    // A thought also ends where its end follows text.
    let counts = |line: &MarkerLine<'_>| !line.glued || (is_own(line) && kind != Kind::File);
    for line in MarkerLines::new(content).filter(counts) {
        let (is_content, closes) = match line.marker.role {
            Role::End | Role::Delete => (!line.marker.exact && !is_own(&line), true),
            Role::Open(name) if line.marker.kind == Kind::File => {
                (false, check_name(name) == Err(NameFault::Reserved))
            }
            Role::Open(_) | Role::Whole(_) | Role::Crowded { .. } => (!line.marker.exact, false),
            Role::Bare | Role::Tag(_) => (true, false),
        };
        plain &= is_content || line.marker.length != PLAIN;
        if closes && is_own(&line) {
            taken.push(line.marker.length);
        }
    }
    if plain {
        return PLAIN;
    }
    taken.sort_unstable();
    taken.iter().fold(
        PLAIN + 1,
        |free, &length| if length == free { free + 1 } else { free },
    )
}
