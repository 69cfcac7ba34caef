//! Why a call has no reply.

mod advice;
mod code;

pub use code::ErrorCode;

use std::time::Duration;

/// The cause of a transport error.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Why a call has no reply. `message` is the service's own text: sanitized, shortened, and without
/// the key.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(
    missing_docs,
    reason = "what the texts say is not repeated; `message` is that of the service"
)]
pub enum CallError {
    /// Nothing answers at this address.
    #[error("cannot connect to {origin}")]
    Connect {
        /// Scheme, host and port.
        origin: String,
        source: Cause,
    },
    /// The certificate is not trusted, or no secure connection came about.
    #[error("no secure connection to {origin}")]
    Tls {
        /// Scheme, host and port.
        origin: String,
        /// What the user can do about it.
        help: &'static str,
        source: Cause,
    },
    /// The proxy does not answer; whether the service would is unknown.
    #[error("cannot connect to the proxy {proxy}")]
    ProxyUnreachable {
        /// Host and port of the proxy.
        proxy: String,
        source: Cause,
    },
    #[error("the proxy refused to connect to {origin}")]
    Proxy {
        /// Scheme, host and port of the service.
        origin: String,
        message: String,
    },
    /// The call took longer than its limit, whether or not the reply was still arriving.
    #[error("no complete reply after {} s", .after.as_secs_f32())]
    Timeout { after: Duration },
    /// Nothing arrived for too long, before the reply or within it.
    #[error("the service sent nothing for {} s", .after.as_secs_f32())]
    Idle { after: Duration },
    #[error("cancelled")]
    Cancelled,
    /// The connection broke after the request was sent, before a reply began.
    #[error("the connection to {origin} broke before a reply began")]
    Dropped {
        /// Scheme, host and port.
        origin: String,
        source: Cause,
    },
    /// The reply broke off, or ended without its end mark.
    #[error("the reply broke off after {received} bytes")]
    StreamCut {
        /// The number of bytes that had arrived; none of them is used.
        received: u64,
    },
    /// The response is not in the service's format.
    #[error("the reply cannot be read: {detail}")]
    BadReply { detail: String },
    #[error("the reply is larger than {limit} bytes")]
    BodyTooLarge { limit: u64 },
    /// The service redirects us; the key is not sent there.
    #[error("the service redirects (HTTP {status}) to {location}")]
    Redirected { status: u16, location: String },
    #[error("the key is not valid: {message}")]
    BadKey { message: String },
    #[error("permission denied: {message}")]
    NoPermission { message: String },
    /// The service does not serve this account from this location.
    #[error("not available to this account here: {message}")]
    Unavailable { message: String },
    /// A server answers at the address, but it is not the service's API.
    #[error("the base URL {base} does not lead to the API: {message}")]
    WrongAddress { base: String, message: String },
    /// The service refuses to pass the prompt to the model.
    #[error("the service blocked the prompt: {message}")]
    Blocked { message: String },
    #[error("{model} not found: {message}")]
    NotFound { model: String, message: String },
    /// Too many requests or tokens in a short time.
    #[error("rate limit: {message}")]
    RateLimited {
        message: String,
        /// How long the service asks us to wait.
        retry_after: Option<Duration>,
    },
    /// The daily quota is used up until tomorrow.
    #[error("daily quota used up: {message}")]
    DailyQuota {
        message: String,
        /// How long until the next day of the service begins, if that is known.
        retry_after: Option<Duration>,
    },
    /// The credit is used up, or a spending limit reached.
    #[error("no credit left: {message}")]
    Billing { message: String },
    #[error("the service is overloaded (HTTP {status}): {message}")]
    Overloaded {
        status: u16,
        message: String,
        /// How long the service asks us to wait.
        retry_after: Option<Duration>,
    },
    #[error("the service failed (HTTP {status}): {message}")]
    Server {
        status: u16,
        message: String,
        /// How long the service asks us to wait.
        retry_after: Option<Duration>,
    },
    #[error("the prompt is too large for the model: {message}")]
    TooLarge { message: String },
    #[error("the service rejects the request (HTTP {status}): {message}")]
    BadRequest { status: u16, message: String },
    /// A scripted or recorded model has no further reply.
    #[error("the script has no reply left ({given} given)")]
    NothingLeft {
        /// The number of replies returned so far.
        given: usize,
    },
    /// The client could not be set up.
    #[error("cannot start the call")]
    Setup { source: Cause },
}
