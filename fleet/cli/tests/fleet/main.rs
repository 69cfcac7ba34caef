//! The whole fleet: real PostgreSQL, real programs, a scripted vendor.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may panic"
)]
#![expect(clippy::print_stderr, reason = "tests say what they skip")]
#![expect(
    clippy::disallowed_methods,
    reason = "tests start programs and read settings of their own"
)]

mod apart;
mod attacks;
mod clocks;
mod elsewhere;
mod encrypted;
mod faults;
mod landing;
mod operations;
mod orders;
mod packaging;
mod pages;
mod refused;
mod scene;
mod throughput;
mod traces;
