//! What to do about an error, for the client and for the user.

use std::time::Duration;

use crate::{CallError, Filter, Finish, Spend};

/// Nobody waits longer than this at the terminal.
const LONG_WAIT: Duration = Duration::from_mins(2);

impl CallError {
    /// What the user can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Connect { .. } => "check the network, the proxy variables and the base URL",
            Self::Tls { help, .. } => help,
            Self::ProxyUnreachable { .. } => {
                "start the proxy, or correct HTTPS_PROXY, HTTP_PROXY or ALL_PROXY, whichever names it; \
                 NO_PROXY names hosts that are reached without one"
            }
            Self::Proxy { .. } => "check HTTPS_PROXY, its user and password, and NO_PROXY",
            Self::Timeout { .. } => {
                "try again later, or allow a longer call with `call_limit` of `[model]`"
            }
            Self::Idle { .. } => "try again later, or allow a longer silence with --timeout",
            Self::Cancelled => "resume the run to continue",
            Self::Dropped { .. } | Self::StreamCut { .. } => {
                "try again later; nothing of the reply was used"
            }
            Self::BadReply { .. } => {
                "check the base URL: this may be a proxy's page or another kind of server"
            }
            Self::BodyTooLarge { .. } => "check the base URL: no model writes that much",
            Self::Redirected { .. } => {
                "set the base URL to where the service is; redirects are not followed"
            }
            Self::BadKey { .. } => "check the key in its variable or key file",
            Self::NoPermission { .. } => "allow the key to use this model, or choose another",
            Self::Unavailable { .. } => {
                "enable billing for the account, or choose another provider"
            }
            Self::WrongAddress { base, .. } if !base.contains("/v1") => {
                "add /v1 to the base URL, as in http://127.0.0.1:8080/v1"
            }
            Self::WrongAddress { .. } => {
                "check the base URL; most servers have their API below /v1"
            }
            Self::Blocked { .. } => Finish::Blocked {
                filter: Filter::Unspecified,
            }
            .hint(),
            Self::NotFound { .. } => "check the model's name and the base URL",
            Self::RateLimited {
                retry_after: Some(wait),
                ..
            } if *wait > LONG_WAIT => {
                "the service wants a longer wait: let the run wait with --wait, or resume it later"
            }
            Self::RateLimited { .. } => "wait a minute, or ask the provider for a higher limit",
            Self::DailyQuota { .. } => {
                "wait for tomorrow's quota, or enable billing for the account"
            }
            Self::Billing { .. } => "add credit or raise the spending limit at the provider",
            Self::Overloaded { .. } | Self::Server { .. } => {
                "try again later, or choose another model"
            }
            Self::TooLarge { .. } => {
                "send less: shorten the roll-up, or choose a model with a larger context"
            }
            Self::BadRequest { .. } => "check the model's settings: this model does not take them",
            Self::NothingLeft { .. } => "add replies to the script, or record a longer run",
            Self::Setup { .. } => {
                "check the key and the base URL for characters that do not belong there"
            }
        }
    }

    /// May the same request succeed in a moment?
    pub fn is_retryable(&self) -> bool {
        self.kind().is_retryable()
    }

    /// [Whether another model could answer](crate::ErrorCode::asks_for_another_model).
    pub fn asks_for_another_model(&self) -> bool {
        self.kind().asks_for_another_model()
    }

    /// How long the service asks us to wait.
    pub fn retry_after(&self) -> Option<Duration> {
        if let Self::RateLimited { retry_after, .. }
        | Self::DailyQuota { retry_after, .. }
        | Self::Overloaded { retry_after, .. }
        | Self::Server { retry_after, .. } = self
        {
            return *retry_after;
        }
        None
    }

    /// How long until the service answers again, if it is out of quota or names a time.
    pub fn out_of_quota_for(&self) -> Option<Duration> {
        let by_the_minute =
            matches!(self, Self::RateLimited { .. }).then_some(Duration::from_mins(1));
        self.retry_after().or(by_the_minute)
    }

    /// Whether the attempt was paid for. Unknown if the request was sent but its usage was never
    /// reported: the service itself, or the one behind a gateway, may have worked until the gateway gave up.
    pub fn spend(&self) -> Spend {
        let sent = matches!(
            self,
            Self::Timeout { .. }
                | Self::Idle { .. }
                | Self::Cancelled
                | Self::Dropped { .. }
                | Self::StreamCut { .. }
                | Self::BadReply { .. }
                | Self::BodyTooLarge { .. }
                | Self::Server {
                    status: 408 | 504 | 524,
                    ..
                }
        );
        if sent { Spend::Unknown } else { Spend::Nothing }
    }
}
