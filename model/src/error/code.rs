//! The names of the errors. There is no other list of them.

use crate::CallError;

macro_rules! codes {
    ($($variant:ident = $spelling:literal,)*) => {
        /// The kind of a [`CallError`], without its data. Whoever makes errors by their code has to know all of them.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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
            /// The stable, kebab-case name.
            pub fn code(&self) -> &'static str {
                match self { $(Self::$variant { .. } => $spelling,)* }
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
