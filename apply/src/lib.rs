//! Applies a set of admitted changes to a work tree: all of it or none of it, with undo and crash recovery
