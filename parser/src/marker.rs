//! The markers that a coding agent puts into its text, such as `<NOTE>…</NOTE>` (S4 §Marker System), read while the
//! text still arrives.
//!
//! ```
//! use code_commit_parser::marker::{Event, Markers};
//!
//! let mut markers = Markers::new(["DONE"]);
//! assert_eq!(markers.push("Ready. <DO"), [Event::Text("Ready. ".into())]);
//! assert_eq!(markers.push("NE>all</DONE>"), [Event::Marker { name: "DONE".into(), content: "all".into() }]);
//! assert_eq!(markers.finish().half, None);
//! ```

use memchr::{memchr, memmem};

/// A piece of an agent's output, in the order of the output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Text between markers. It may be split into several pieces.
    Text(String),
    /// A complete marker.
    Marker {
        /// One of the allowed names.
        name: String,
        /// Everything between the two tags, including white space and line endings.
        content: String,
    },
}

/// What remains when the output ends.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct End {
    /// Text that could still have become a tag; usually empty.
    pub text: String,
    /// A marker that was opened but never closed. It is dropped, and should be reported.
    pub half: Option<HalfMarker>,
}

/// A marker without its closing tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HalfMarker {
    /// Its name.
    pub name: String,
    /// The content that had arrived.
    pub content: String,
}

/// Reads markers from a text that arrives in pieces.
///
/// Only the given names are markers. Every other tag, a closing tag without its opening, and tags
/// inside a marker's content are text. A tag is exactly `<NAME>` or `</NAME>`, without white space.
#[derive(Debug, Clone)]
pub struct Markers {
    names: Vec<String>,
    /// Text that has arrived but is not reported yet: the content of an open marker, or the
    /// possible beginning of a tag.
    pending: String,
    /// The name of the open marker, and the length of the part of `pending` in which its closing
    /// tag cannot begin.
    open: Option<(String, usize)>,
}

impl Markers {
    /// A reader for markers of these names.
    pub fn new(names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let names = names.into_iter().map(Into::into).collect();
        Self {
            names,
            pending: String::new(),
            open: None,
        }
    }

    /// Takes the next piece and returns everything that is certain by now.
    pub fn push(&mut self, piece: &str) -> Vec<Event> {
        self.pending.push_str(piece);
        let mut events = Vec::new();
        let mut told = 0;
        loop {
            let step = match self.open.take() {
                Some((name, searched)) => self.read_content(name, told, searched, &mut events),
                None => self.read_text(told, &mut events),
            };
            match step {
                Step::Went(to) => told = to,
                Step::Wait(to) => {
                    self.pending.drain(..to);
                    return events;
                }
            }
        }
    }

    /// Ends the output.
    pub fn finish(self) -> End {
        match self.open {
            Some((name, _)) => End {
                text: String::new(),
                half: Some(HalfMarker {
                    name,
                    content: self.pending,
                }),
            },
            None => End {
                text: self.pending,
                half: None,
            },
        }
    }

    /// No marker is open from `told` on: looks for the next opening tag.
    fn read_text(&mut self, told: usize, events: &mut Vec<Event>) -> Step {
        let mut at = told;
        loop {
            let rest = self.pending.get(at..).unwrap_or_default();
            let Some(angle) = memchr(b'<', rest.as_bytes()) else {
                at = self.pending.len();
                break;
            };
            at += angle;
            match self.tag_at(at) {
                Tag::Opening(name) => {
                    self.tell_text(told, at, events);
                    let content = at + name.len() + "<>".len();
                    self.open = Some((name, content));
                    return Step::Went(content);
                }
                Tag::Perhaps => break,
                Tag::No => at += 1,
            }
        }
        self.tell_text(told, at, events);
        Step::Wait(at)
    }

    fn tell_text(&self, from: usize, to: usize, events: &mut Vec<Event>) {
        let text = self.pending.get(from..to).unwrap_or_default();
        if !text.is_empty() {
            events.push(Event::Text(text.to_owned()));
        }
    }

    fn tag_at(&self, at: usize) -> Tag {
        let rest = self.pending.get(at + 1..).unwrap_or_default();
        for name in &self.names {
            match rest.strip_prefix(name.as_str()) {
                Some(after) if after.starts_with('>') => return Tag::Opening(name.clone()),
                Some("") => return Tag::Perhaps,
                None if name.starts_with(rest) => return Tag::Perhaps,
                Some(_) | None => {}
            }
        }
        Tag::No
    }

    /// The content begins at `start`; its closing tag does not begin before `searched`.
    fn read_content(
        &mut self,
        name: String,
        start: usize,
        searched: usize,
        events: &mut Vec<Event>,
    ) -> Step {
        let closing = format!("</{name}>");
        let unsearched = self.pending.as_bytes().get(searched..).unwrap_or_default();
        let Some(found) = memmem::find(unsearched, closing.as_bytes()) else {
            let searched = (self.pending.len() + 1)
                .saturating_sub(closing.len())
                .max(searched);
            self.open = Some((name, searched - start));
            return Step::Wait(start);
        };
        let content = self
            .pending
            .get(start..searched + found)
            .unwrap_or_default()
            .to_owned();
        events.push(Event::Marker { name, content });
        Step::Went(searched + found + closing.len())
    }
}

/// How far reading got.
enum Step {
    /// Up to here; there may be more to report.
    Went(usize),
    /// Up to here; the next piece is needed.
    Wait(usize),
}

/// What a `<` begins.
enum Tag {
    Opening(String),
    /// It could become a tag once more text arrives.
    Perhaps,
    No,
}
