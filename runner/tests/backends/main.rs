//! What ordinary programs and hostile ones find in each sandbox.

#![expect(
    clippy::disallowed_methods,
    reason = "the tests set up files and processes of their own"
)]
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails")]
#![expect(clippy::print_stdout, reason = "the tables are what one looks at")]

mod caches;
mod calls;
mod limits;
mod probes;
mod sandbox;
#[path = "../support/mod.rs"]
mod support;
