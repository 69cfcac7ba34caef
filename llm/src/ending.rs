//! What proves that a reply is whole: one rule for all dialects.

use std::time::Duration;

use serde_json::Value;

use crate::Finish;

/// How long to wait for more after the reason: usage, or the mark of the stream's end, may follow it.
const LINGER: Duration = Duration::from_secs(5);
/// Only the end of the body follows the mark; a connection that is kept open takes a moment to deliver it.
const LINGER_AFTER_MARK: Duration = Duration::from_millis(100);

/// What a reply has said about its end so far.
///
/// The last reason counts. Text after a reason shows only that this service states its reason early. From then on the
/// reason proves nothing, so the stream has to end by its own mark or by the framing of its body.
#[derive(Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own about the events"
)]
pub(crate) struct Ending {
    reason: Option<String>,
    /// The ids of the first and of the last event that had text or a reason.
    first: Option<String>,
    last: Option<String>,
    id_changed: bool,
    id_repeated: bool,
    is_contradicted: bool,
    is_early: bool,
    has_text: bool,
    is_marked: bool,
}

impl Ending {
    /// Takes the id and the reason of one event, and whether it had text.
    pub(crate) fn take(&mut self, id: &Value, reason: &Value, has_text: bool) {
        let reason = stated(reason);
        if !has_text && reason.is_none() {
            return;
        }
        self.is_contradicted |= has_text && self.is_marked;
        if let Some(id) = crate::json::word(Some(id)) {
            let is_last = self.last.as_ref() == Some(&id);
            let changed = self.last.is_some() && !is_last;
            self.id_repeated |= is_last || self.first.as_ref() == Some(&id);
            self.id_changed |= changed;
            self.is_contradicted |= changed && has_text && self.reason.is_some();
            self.first.get_or_insert_with(|| id.clone());
            self.last = Some(id);
        }
        self.is_early |= has_text && self.reason.is_some();
        self.has_text |= has_text;
        self.reason = reason.or(self.reason.take());
    }

    /// The stream has its own end mark.
    pub(crate) fn mark(&mut self) {
        self.is_marked = true;
    }

    /// The service's last word for how the reply ended.
    pub(crate) fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// Whether a faulty gateway has mixed two replies into one: no part of it can be trusted. Others give each event an id of
    /// its own, which never comes again.
    pub(crate) fn is_mixed(&self) -> bool {
        self.is_contradicted || (self.id_changed && self.id_repeated)
    }

    /// Whether the reply is whole wherever its connection breaks, and how long it is worth waiting for more.
    pub(crate) fn over(&self) -> Option<Duration> {
        let reason = self.reason.as_deref()?;
        let is_last =
            !self.is_early && (self.has_text || Finish::of_word(reason) != Finish::Complete);
        if self.is_marked {
            Some(LINGER_AFTER_MARK)
        } else {
            is_last.then_some(LINGER)
        }
    }

    /// Whether the reply is whole because its body has ended. Without framing, a broken connection looks like the end.
    pub(crate) fn is_whole_at_end(&self, is_framed: bool) -> bool {
        self.reason.is_some() && (is_framed || !self.is_early)
    }
}

/// A reason, unless it is one of the words by which gateways say that there is none.
fn stated(reason: &Value) -> Option<String> {
    let word = reason.as_str()?.trim();
    let is_none = ["", "null", "none"]
        .iter()
        .any(|none| word.eq_ignore_ascii_case(none));
    (!is_none).then(|| word.to_owned())
}
