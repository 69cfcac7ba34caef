#![doc = include_str!("../README.md")]

mod body;
mod budget;
mod client;
mod collect;
mod dialect;
mod ending;
mod failure;
pub mod http;
pub mod json;
mod model;
mod model_id;
pub mod prelude;
pub mod price;
pub mod provider;
mod retry;
pub mod scripted;
mod secret;
pub mod sse;
mod text;
mod watch;

pub use body::{in_one_piece, read as read_answer};
pub use budget::{Allowance, Budget, BudgetError, Forecast, Limit, Spent};
pub use client::Client;
pub use code_commit_model::{
    Advice, Attempt, AttemptStatus, CallError, Cause, ErrorCode, Filter, Finish, Raw, Reply,
    Request, Spend, Tier, ToolCall, Usage,
};
pub use collect::{Collect, Event, Names, Span};
pub use dialect::{Dialect, Service};
use failure::ErrorBody;
pub use failure::{clean_message, of as read_failure};
pub use model::{List, Model, all_of, choices};
pub use model_id::{ModelId, ModelIdError};
pub use price::{Day, Money, Price, Prices};
pub use provider::Provider;
pub use retry::{Answer, Retry, Tried, Try, with_retry};
pub use scripted::Scripted;
pub use secret::Secret;
pub use text::Fragment;
pub use watch::{Blind, Progress, Waited, Watch};
