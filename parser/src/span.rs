//! Positions in a text.

/// A byte range in a text.
pub type Span = std::ops::Range<usize>;

/// The text at a position that was found in it.
pub(crate) fn slice<'t>(text: &'t str, span: &Span) -> &'t str {
    text.get(span.clone()).unwrap_or_default()
}
