#![doc = include_str!("../README.md")]

mod attempt;
mod changed;
mod ended;
mod error;
mod finish;
mod reply;
mod request;
mod stored;
mod usage;

pub use attempt::{Attempt, AttemptStatus, Spend};
pub use changed::{Action, Changed};
pub use ended::Ended;
pub use error::{CallError, Cause, ErrorCode};
pub use finish::{Advice, Filter, Finish, ToolCall};
pub use reply::{Raw, Reply};
pub use request::Request;
pub use stored::Stored;
pub use usage::{ModelUsage, Tier, Usage};
