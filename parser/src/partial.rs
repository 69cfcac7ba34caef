//! Which files a reply names while it is still arriving, so that a stream that asks for something forbidden can be
//! stopped early. The verdict on the reply is [`parse`](crate::parse)'s alone.

use memchr::memrchr;

use crate::fence::{Kind, PLAIN, check_name};
use crate::line::{MarkerLine, MarkerLines, Role};

/// Reads the `^^^PATH` lines of a growing text, each byte once.
///
/// ```
/// use parser::partial::Openers;
///
/// let mut openers = Openers::default();
/// assert!(openers.read("Here it is:\n^^^src/ma").is_empty());
/// assert_eq!(openers.read("Here it is:\n^^^src/main.rs\nfn main"), ["src/main.rs"]);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Openers {
    /// Whole lines that have been read, in bytes.
    read: usize,
    /// Bytes that have been looked at for a line's end.
    seen: usize,
    open: Option<(Kind, usize)>,
}

impl Openers {
    /// The paths of the openings that have become whole since the last call. `text` is all that has arrived, so it
    /// begins with the text of the call before.
    pub fn read<'t>(&mut self, text: &'t str) -> Vec<&'t str> {
        let unseen = text.as_bytes().get(self.seen..).unwrap_or_default();
        let last_newline = memrchr(b'\n', unseen).map(|newline| self.seen + newline + 1);
        self.seen = self.seen.max(text.len());
        let Some(end) = last_newline else { return Vec::new() };
        let lines = MarkerLines::starting(text.get(..end).unwrap_or_default(), self.read);
        self.read = end;
        lines.filter(|line| !line.glued).filter_map(|line| self.step(&line)).collect()
    }

    /// The rules of a block's begin and end, as `parse` has them, errors left aside.
    fn step<'t>(&mut self, line: &MarkerLine<'t>) -> Option<&'t str> {
        let this = (line.marker.kind, line.marker.length);
        match line.marker.role {
            Role::Open(name) if self.may_open(line) => {
                self.open = Some(this);
                return (this.0 == Kind::File && check_name(name).is_ok()).then_some(name);
            }
            Role::End | Role::Delete if self.open == Some(this) => self.open = None,
            Role::Open(_) | Role::End | Role::Delete | Role::Bare | Role::Crowded { .. } => {}
        }
        None
    }

    fn may_open(&self, line: &MarkerLine<'_>) -> bool {
        match self.open {
            None => !line.is_underline(),
            // Between thought markers lines of carets are content.
            Some((kind, length)) => {
                (length, line.marker.length) == (PLAIN, PLAIN)
                    && (kind == Kind::File || line.marker.kind != Kind::File)
            }
        }
    }
}
