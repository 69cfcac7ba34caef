//! The grammars of replies, each rule and each error. One binary, so that it links once.

mod edits;
mod fences;
mod habits;
mod markers;
mod properties;
mod proposals;
mod replies;
mod show;
mod wild;
