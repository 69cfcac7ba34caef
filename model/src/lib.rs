#![doc = include_str!("../README.md")]

mod attempt;
mod error;
mod finish;
mod reply;
mod request;
mod usage;

pub use attempt::{Attempt, AttemptStatus, Spend};
pub use error::{CallError, Cause, ErrorCode, Unread};
pub use finish::{Advice, Filter, Finish, ToolCall};
pub use reply::{Raw, Reply};
pub use request::Request;
pub use usage::Usage;
