//! Listens to an agent: removes the markers from its text as it arrives.

use std::io;

use code_commit_agent::Event;
use code_commit_parser::marker::{self, Markers};
use code_commit_runner::Cancel;

use code_commit_engine::Marked;

use crate::agents::role::AgentWatch;

/// An opening tag that is never closed is not a marker, and the text after it is read again, at most this
/// often.
const REREADS: usize = 64;

/// Passes an agent's events on, its text without the markers that the watch listens for.
pub(super) struct Listener<'w> {
    role: &'w str,
    watch: &'w mut dyn AgentWatch,
    names: Vec<&'static str>,
    markers: Markers,
    heard: Vec<Marked>,
    failed: Option<io::Error>,
    enough: Cancel,
}

impl<'w> Listener<'w> {
    /// `enough` is raised at a marker that ends the turn.
    pub(super) fn new(role: &'w str, watch: &'w mut dyn AgentWatch, enough: Cancel) -> Self {
        let names = watch.listens_for(role).to_vec();
        let markers = Markers::new(names.iter().copied());
        Self {
            role,
            watch,
            names,
            markers,
            heard: Vec::new(),
            failed: None,
            enough,
        }
    }

    pub(super) fn hear(&mut self, event: &Event) {
        if let Event::Text(piece) = event {
            let parts = self.markers.push(piece);
            parts.into_iter().for_each(|part| self.part(part));
        } else {
            self.watch.sees(self.role, event);
        }
    }

    /// All markers of the turn. Fails if the watch could not store one.
    pub(super) fn finish(mut self) -> io::Result<Vec<Marked>> {
        for _ in 0..REREADS {
            let last =
                std::mem::replace(&mut self.markers, Markers::new(self.names.iter().copied()))
                    .finish();
            self.text(last.text);
            let Some(half) = last.half else { break };
            let parts = self.markers.push(&half.content);
            // Text only: this was a marker that was cut off.
            if parts
                .iter()
                .any(|part| matches!(part, marker::Event::Marker { .. }))
            {
                parts.into_iter().for_each(|part| self.part(part));
            }
        }
        self.failed.map_or(Ok(self.heard), Err)
    }

    fn part(&mut self, part: marker::Event) {
        match part {
            marker::Event::Text(text) => self.text(text),
            marker::Event::Marker { name, content } => {
                let marker = Marked {
                    name,
                    content: content.trim().to_owned(),
                };
                if let Err(error) = self.watch.marked(self.role, &marker) {
                    self.failed.get_or_insert(error);
                }
                if self.watch.ends_turn(&marker) {
                    self.enough.set();
                }
                self.heard.push(marker);
            }
        }
    }

    fn text(&mut self, text: String) {
        if !text.is_empty() {
            self.watch.sees(self.role, &Event::Text(text));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Watch(String);

    impl AgentWatch for Watch {
        fn begins(&mut self, _role: &str, _number: u32) {}

        fn sees(&mut self, _role: &str, event: &Event) {
            if let Event::Text(text) = event {
                self.0.push_str(text);
            }
        }

        fn listens_for(&self, _role: &str) -> &[&'static str] {
            &["NOTE", "DONE"]
        }

        fn marked(&mut self, _role: &str, marker: &Marked) -> io::Result<()> {
            self.0
                .push_str(&format!("[{}: {}]", marker.name, marker.content));
            Ok(())
        }
    }

    fn check(pieces: &[&str]) -> String {
        let mut watch = Watch::default();
        let mut ears = Listener::new("role", &mut watch, Cancel::new().unwrap());
        pieces
            .iter()
            .for_each(|piece| ears.hear(&Event::Text((*piece).to_owned())));
        let names: Vec<String> = ears
            .finish()
            .unwrap()
            .into_iter()
            .map(|marker| marker.name)
            .collect();
        format!("{} | {}", watch.0, names.join(" "))
    }

    #[test]
    fn a_marker_over_several_events_is_one_and_no_text() {
        assert_eq!(
            check(&["a <NO", "TE>\nx", "y\n</NO", "TE> b"]),
            "a [NOTE: xy] b | NOTE"
        );
    }

    #[test]
    fn a_marker_of_another_role_is_text() {
        assert_eq!(
            check(&["<APPROVED>x</APPROVED>"]),
            "<APPROVED>x</APPROVED> | "
        );
    }

    #[test]
    fn a_tag_that_is_only_mentioned_does_not_swallow_what_follows() {
        assert_eq!(
            check(&["I will write <NOTE> soon. ", "<DONE>all</DONE> ok"]),
            "I will write  soon. [DONE: all] ok | DONE"
        );
    }

    #[test]
    fn half_a_marker_at_the_end_is_dropped() {
        assert_eq!(check(&["a <NOTE>hal"]), "a  | ");
    }
}
