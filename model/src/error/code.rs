//! The names of the errors. There is no other list of them.

use serde::{Deserialize, Serialize};

use crate::CallError;

macro_rules! codes {
    ($($variant:ident = $spelling:literal,)*) => {
        /// The kind of a [`CallError`], without its data. Whoever makes errors by their code has to know all of them.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        #[expect(missing_docs, reason = "they are those of the errors")]
        pub enum ErrorCode { $($variant,)* }

        impl ErrorCode {
            /// Every code, in the order of the reference.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The stable spelling, in kebab-case.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $spelling,)* }
            }
        }

        impl CallError {
            /// Its kind.
            pub fn kind(&self) -> ErrorCode {
                match self { $(Self::$variant { .. } => ErrorCode::$variant,)* }
            }

            /// The stable, kebab-case name.
            pub fn code(&self) -> &'static str {
                self.kind().as_str()
            }
        }
    };
}

codes! {
    Connect = "connect",
    Tls = "tls",
    ProxyUnreachable = "proxy-unreachable",
    Proxy = "proxy",
    Timeout = "timeout",
    Idle = "idle",
    Cancelled = "cancelled",
    Dropped = "dropped",
    StreamCut = "stream-cut",
    BadReply = "bad-reply",
    BodyTooLarge = "body-too-large",
    Redirected = "redirected",
    BadKey = "bad-key",
    NoPermission = "no-permission",
    Unavailable = "unavailable",
    WrongAddress = "wrong-address",
    Blocked = "blocked",
    NotFound = "not-found",
    RateLimited = "rate-limited",
    DailyQuota = "daily-quota",
    Billing = "billing",
    Overloaded = "overloaded",
    Server = "server",
    TooLarge = "too-large",
    BadRequest = "bad-request",
    NothingLeft = "nothing-left",
    Setup = "setup",
}

/// What to do about an error, as far as its kind alone decides. It applies to our own calls and to agents' turns: of a failed call
/// inside a turn, only the kind is known.
impl ErrorCode {
    /// May the same request succeed in a moment?
    pub fn is_retryable(self) -> bool {
        matches!(
            self,
            Self::Connect
                | Self::ProxyUnreachable
                | Self::Timeout
                | Self::Idle
                | Self::Dropped
                | Self::StreamCut
                | Self::RateLimited
                | Self::Overloaded
                | Self::Server
        )
    }

    /// Could another model answer the same prompt: is this one out of quota, out of service, or too small? A mistake in the
    /// key, the address or the request is not passed over, because nobody would notice it.
    pub fn asks_for_another_model(self) -> bool {
        let is_its_own = matches!(
            self,
            Self::DailyQuota
                | Self::Billing
                | Self::TooLarge
                | Self::Unavailable
                | Self::NothingLeft
                | Self::Blocked
        );
        is_its_own || self.is_retryable()
    }

    /// What an HTTP status alone says.
    pub fn of_status(status: u16) -> Self {
        match status {
            401 => Self::BadKey,
            402 => Self::Billing,
            403 => Self::NoPermission,
            404 => Self::NotFound,
            413 => Self::TooLarge,
            429 => Self::RateLimited,
            503 | 529 => Self::Overloaded,
            408 | 500.. => Self::Server,
            _ => Self::BadRequest,
        }
    }
}
