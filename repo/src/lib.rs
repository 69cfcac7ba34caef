//! The git work tree as the harness sees it: where it is, what is dirty, what is tracked
