//! Finds the file names in a reply that is still arriving, so that a stream that asks for something
//! forbidden can be stopped early. Only [`parse`](crate::parse) decides whether the reply is valid.

use memchr::memrchr;

use crate::edit::mark;
use crate::fence::kind::{Kind, PLAIN};
use crate::fence::name::check_name;
use crate::line::{MarkerLine, MarkerLines, Role};

/// Reads the `^^^PATH` lines of a growing text, each byte once.
///
/// ```
/// use code_commit_parser::partial::Openers;
///
/// let mut openers = Openers::default();
/// assert!(openers.read("Here it is:\n^^^src/ma").is_empty());
/// assert_eq!(openers.read("Here it is:\n^^^src/main.rs\nfn main"), ["src/main.rs"]);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Openers {
    /// Bytes of complete lines that have been read.
    read: usize,
    /// Bytes that have been searched for the end of a line.
    seen: usize,
    open: Option<(Kind, usize)>,
}

impl Openers {
    /// The paths of openings that have become complete since the last call. `text` is everything
    /// that has arrived, so it begins with the text of the previous call.
    pub fn read<'t>(&mut self, text: &'t str) -> Vec<&'t str> {
        let unseen = text.as_bytes().get(self.seen..).unwrap_or_default();
        let last_newline = memrchr(b'\n', unseen).map(|newline| self.seen + newline + 1);
        self.seen = self.seen.max(text.len());
        let Some(end) = last_newline else {
            return Vec::new();
        };
        let text = text.get(..end).unwrap_or_default();
        let lines = MarkerLines::starting(text, self.read);
        self.read = end;
        let mut found = Vec::new();
        for line in lines {
            if line.has_turn_end(text) {
                // It counts only at the end of a reply, so the line is read again when more has arrived.
                self.read = line.line.start;
                break;
            }
            found.extend(self.step(&line));
        }
        found
    }

    /// Where blocks begin and end, by the same rules as `parse`, without error handling, and without
    /// thoughts between tags: only their ends tell them from prose.
    fn step<'t>(&mut self, line: &MarkerLine<'t>) -> Option<&'t str> {
        let this = line.fence();
        if let Role::Open(name) = line.marker.role
            && self.may_open(line)
        {
            self.open = Some(this);
            let name = mark::path(name).unwrap_or(name);
            return (this.0 == Kind::File && check_name(name).is_ok()).then_some(name);
        }
        let is_end = matches!(line.marker.role, Role::End | Role::Delete);
        if is_end && self.open == Some(this) && (!line.glued || this.0 != Kind::File) {
            self.open = None;
        }
        None
    }

    fn may_open(&self, line: &MarkerLine<'_>) -> bool {
        match self.open {
            None => !line.is_underline(),
            // Between thought markers, lines of carets are content.
            Some((kind, length)) => {
                (length, line.marker.length) == (PLAIN, PLAIN)
                    && line.marker.exact
                    && (kind == Kind::File || line.marker.kind != Kind::File)
            }
        }
    }
}
