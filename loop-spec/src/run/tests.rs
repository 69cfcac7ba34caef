//! Facts in, steps out.
