//! Judges whether a model may write a path, and hands out the capability to do so
