#![doc = include_str!("../README.md")]

mod budget;
mod client;
mod error;
mod failure;
mod finish;
pub mod http;
pub mod json;
mod list;
mod model;
pub mod price;
pub mod provider;
pub mod recorded;
mod reply;
mod retry;
pub mod scripted;
mod secret;
pub mod sse;
mod usage;
mod watch;

pub use budget::{Allowance, Budget, BudgetError, Forecast, Limit, Spent};
pub use client::{Client, Dialect, Stream, in_one_piece};
pub use error::{CallError, Cause, ErrorCode, Unread};
pub use failure::{ErrorBody, clean_message, retry_after, until_hour};
pub use finish::{Advice, Filter, Finish, ToolCall};
pub use list::{List, all_of, choices};
pub use model::{Model, ModelId, ModelIdError, Request};
pub use price::{Day, Money, Price, Prices};
pub use provider::Provider;
pub use recorded::Recorded;
pub use reply::{Raw, Reply};
pub use retry::{Answer, Retry, Tried, Try, with_retry};
pub use scripted::Scripted;
pub use secret::Secret;
pub use usage::Usage;
pub use watch::{Attempt, AttemptStatus, Blind, Progress, Spend, Waited, Watch};
