//! The client against a scripted service: real HTTP on loopback. One binary, so that it links once.

#![expect(clippy::expect_used, reason = "helpers of tests")]

mod calls;
#[path = "../../../fixtures/tests/corpus/mod.rs"]
mod corpus;
mod network;
mod outcomes;
