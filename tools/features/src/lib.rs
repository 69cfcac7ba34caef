//! No code: only the dependencies of this crate matter.
