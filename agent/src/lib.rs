#![doc = include_str!("../README.md")]

mod claude;
mod codex;
mod collected;
mod dialect;
mod event;
mod find;
mod gemini;
mod home;
mod judge;
mod lines;
mod outcome;
mod run;
mod spawn;
mod start;

pub use event::Event;
pub use find::{Installed, Kind, NotInstalled, find};
pub use outcome::{Denial, End, Outcome};
pub use run::{AgentError, interactive, run, session_in};
pub use spawn::{Home, Key, Permissions, Session, Spawn};
