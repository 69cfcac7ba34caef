#![doc = include_str!("../README.md")]

mod agent_trace;
mod id;
mod lines;
mod otlp;

pub use agent_trace::agent_trace;
pub use otlp::otlp;

#[cfg(test)]
mod tests;
