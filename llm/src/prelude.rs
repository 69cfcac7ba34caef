//! Everything that a program needs to build a client, ask and read the reply. The crate of each wire format re-exports it.

pub use crate::http;
pub use crate::{
    Advice, Attempt, AttemptStatus, Blind, CallError, Cause, Client, ErrorCode, Filter, Finish,
    Model, ModelId, ModelIdError, Progress, Raw, Reply, Request, Retry, Secret, Spend, ToolCall,
    Usage, Waited, Watch,
};
