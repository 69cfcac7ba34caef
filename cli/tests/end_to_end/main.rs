//! The built program against real git and a scripted model on loopback. One binary, so that it links once.

#![expect(clippy::unwrap_used, clippy::panic, unreachable_pub, reason = "tests")]

mod clean;
mod commit;
mod config;
mod costs;
mod disk_errors;
mod doctor;
mod elsewhere;
mod harness;
mod hostile;
mod house;
mod implement;
mod interrupt;
mod limits;
mod models;
mod record;
mod resume;
mod tools;
mod typed;
mod unlucky;
