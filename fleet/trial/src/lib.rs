//! For tests: a real PostgreSQL in a temporary folder, a hub, a scripted vendor, and programs that can be killed.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "tests start programs, write scratch files and say what they skip"
)]

mod cable;
mod disk;
mod hub;
mod machine;
mod postgres;
mod program;

pub use cable::Cable;
pub use code_commit_fixtures::server::Server;
pub use hub::{Hub, collector, content, rival, vendor};
pub use machine::{Link, Machine};
pub use postgres::{Database, Postgres};
pub use program::{Program, product, sibling};

use std::time::Duration;

/// Repeats `attempt` until it gives something; an error after two minutes. For states that other processes bring about.
pub fn until<T>(what: &str, mut attempt: impl FnMut() -> Option<T>) -> anyhow::Result<T> {
    const PAUSE: Duration = Duration::from_millis(50);
    for _ in 0..2400 {
        if let Some(found) = attempt() {
            return Ok(found);
        }
        std::thread::sleep(PAUSE);
    }
    anyhow::bail!("waited two minutes for {what}")
}

/// The same for a future.
pub async fn until_async<T, F: Future<Output = Option<T>>>(
    what: &str,
    mut attempt: impl FnMut() -> F,
) -> anyhow::Result<T> {
    const PAUSE: Duration = Duration::from_millis(50);
    for _ in 0..2400 {
        if let Some(found) = attempt().await {
            return Ok(found);
        }
        tokio::time::sleep(PAUSE).await;
    }
    anyhow::bail!("waited two minutes for {what}")
}
