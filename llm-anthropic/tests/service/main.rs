//! The client against a scripted service: real HTTP on loopback. One binary, so that it links once.

#![expect(clippy::expect_used, reason = "helpers of tests")]

mod calls;
mod outcomes;
