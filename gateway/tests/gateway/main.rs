//! The gateway with a real PostgreSQL, a real git remote and a scripted vendor.
#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "tests"
)]

mod calls;
mod docs;
mod engines;
mod orders;
mod scene;
mod slurm;
mod tls;
mod work;
