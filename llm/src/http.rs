//! The HTTP agent of a run.
//!
//! A call runs on another thread, so that the caller can check its time limits and Ctrl-C every few
//! milliseconds, whatever the socket does. Each call has a connection of its own: ending it early closes that one and no
//! other, so that the service stops writing, and billing, an answer that nobody reads.

mod call;
mod exchange;
mod network;
mod tls;

pub use exchange::{Exchange, Head, Stopwatch};
pub use network::{Network, NetworkError, PROXY_VARIABLES};

use std::sync::OnceLock;
use std::time::Duration;

use ureq::config::{AutoHeaderValue, Config};
use ureq::tls::TlsConfig;
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::transport::{
    ConnectProxyConnector, Connector as _, RustlsConnector, TcpConnector,
};

use crate::{CallError, Watch};

/// Time limits and the maximum size of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Until the connection is established.
    pub connect: Duration,
    /// How long the service may send nothing, before its answer and within it. Every byte counts as
    /// life: streamed thoughts and comments that keep a connection open do, too.
    pub silence: Duration,
    /// The maximum number of bytes of an answer.
    pub body: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            silence: Duration::from_mins(5),
            body: 256 << 20,
        }
    }
}

/// What is sent.
#[derive(Debug, Clone)]
pub struct Post {
    /// The whole address; it never contains the key.
    pub url: String,
    /// Names and values, none of them secret.
    pub headers: Vec<(&'static str, String)>,
    /// Name and value of the header that carries the key.
    pub key: Option<(&'static str, crate::Secret)>,
    /// JSON; empty for a GET.
    pub body: Vec<u8>,
}

/// Send and receive buffers of each connection. Large enough for most calls: more memory would be
/// returned to the system after every call.
const BUFFER_BYTES: usize = 32 << 10;

/// Routes and limits, reused throughout the run.
#[derive(Debug)]
pub struct Agent {
    network: Network,
    limits: Limits,
    /// For addresses without TLS.
    plain: Config,
    /// For the others. The system's certificates are read for the first of them.
    secure: OnceLock<Config>,
}

impl Agent {
    /// An agent that reaches services as `network` says. Opens nothing yet.
    pub fn new(network: Network, limits: Limits) -> Self {
        Self {
            network,
            limits,
            plain: config(limits, TlsConfig::default()),
            secure: OnceLock::new(),
        }
    }

    /// The limits of every call.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Sends `post` and waits until an answer begins. `within` limits the whole attempt.
    pub fn send(
        &self,
        post: Post,
        within: Option<Duration>,
        watch: &mut dyn Watch,
    ) -> Result<Exchange, CallError> {
        Exchange::open(self, post, within, watch)
    }

    /// A ureq agent for one call.
    fn connect(&self, url: &str) -> ureq::Agent {
        let connectors =
            ().chain(ConnectProxyConnector::default())
                .chain(TcpConnector::default())
                .chain(RustlsConnector::default());
        let secure = || config(self.limits, tls::config(self.network.trusted()));
        let config = if url.starts_with("https") {
            self.secure.get_or_init(secure)
        } else {
            &self.plain
        };
        ureq::Agent::with_parts(config.clone(), connectors, DefaultResolver::default())
    }
}

fn config(limits: Limits, tls: TlsConfig) -> Config {
    ureq::Agent::config_builder()
        .tls_config(tls)
        .http_status_as_error(false)
        // The key is in a custom header, which would be sent along on a redirect.
        .max_redirects(0)
        .max_redirects_will_error(false)
        .proxy(None)
        .timeout_resolve(Some(limits.connect))
        .timeout_connect(Some(limits.connect))
        // The exchange enforces the time limits; this only ends the thread of an abandoned
        // call. There is no limit for the whole: a call may take as long as it streams.
        .timeout_per_read(Some(limits.silence.saturating_add(limits.connect)))
        .user_agent(concat!("code-commit/", env!("CARGO_PKG_VERSION")))
        // A compressed stream arrives in bursts, and its size would not limit the content.
        .accept_encoding(AutoHeaderValue::None)
        .input_buffer_size(BUFFER_BYTES)
        .output_buffer_size(BUFFER_BYTES)
        .build()
}

/// The address of a service: `http` or `https`, a host, and a path that all requests are below.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseUrl(String);

/// Why a text is not a base URL. The text is not shown, because it may contain a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BaseUrlError {
    /// It is not an HTTP address.
    #[error("the base URL is not an http or https address")]
    NotHttp,
    /// User, password, query or fragment would travel with every request and end up in logs.
    #[error("the base URL contains a user, a query or a fragment")]
    Extra,
}

impl std::str::FromStr for BaseUrl {
    type Err = BaseUrlError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim().trim_end_matches('/');
        let rest = text
            .strip_prefix("https://")
            .or_else(|| text.strip_prefix("http://"));
        let rest = rest.ok_or(BaseUrlError::NotHttp)?;
        if rest.contains(['@', '?', '#']) {
            return Err(BaseUrlError::Extra);
        }
        let uri: ureq::http::Uri = text.parse().map_err(|_| BaseUrlError::NotHttp)?;
        uri.host()
            .filter(|host| !host.is_empty())
            .ok_or(BaseUrlError::NotHttp)?;
        Ok(Self(text.to_owned()))
    }
}

impl BaseUrl {
    /// The host, in lower case.
    pub fn host(&self) -> String {
        network::host_of(self.0.split_once("://").map_or("", |(_, rest)| rest))
    }

    /// Whether data sent there leaves this machine unencrypted.
    pub fn is_in_the_clear(&self) -> bool {
        self.0.starts_with("http://") && !network::is_this_machine(&self.host())
    }

    /// Does it name a server and nothing below it?
    pub fn is_origin(&self) -> bool {
        self.0
            .split_once("://")
            .is_some_and(|(_, rest)| !rest.contains('/'))
    }

    /// The address of `path`, which begins with a slash.
    pub fn join(&self, path: &str) -> String {
        format!("{}{path}", self.0)
    }
}

/// Scheme, host and port of an address, for messages, without user information.
pub(crate) fn origin_of(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    format!("{scheme}://{host}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn base(text: &str) -> String {
        text.parse::<BaseUrl>()
            .map_or_else(|e| e.to_string(), |base| base.join("/x"))
    }

    #[test]
    fn a_base_url_is_an_address_and_nothing_more() {
        assert_eq!(base("https://a.example/"), "https://a.example/x");
        assert_eq!(
            base(" http://127.0.0.1:80/v1// "),
            "http://127.0.0.1:80/v1/x"
        );
        assert_eq!(base("http://[::1]:8080"), "http://[::1]:8080/x");
        for bad in [
            "",
            "a.example",
            "ftp://a",
            "https://",
            "https:///x",
            "http://a b",
        ] {
            assert_eq!(
                base(bad),
                "the base URL is not an http or https address",
                "{bad:?}"
            );
        }
        for extra in ["https://u:p@a", "https://a?key=1", "https://a/#x"] {
            assert_eq!(
                base(extra),
                "the base URL contains a user, a query or a fragment",
                "{extra}"
            );
        }
    }

    #[test]
    fn only_http_to_another_machine_is_in_the_clear() {
        let is_in_the_clear = |text: &str| text.parse::<BaseUrl>().unwrap().is_in_the_clear();
        for safe in [
            "https://a.example",
            "http://localhost:1/v1",
            "http://LOCALHOST",
            "http://127.9.9.9",
            "http://[::1]:8",
        ] {
            assert!(!is_in_the_clear(safe), "{safe}");
        }
        for clear in [
            "http://a.example/v1",
            "http://192.168.0.7:8080",
            "http://localhost.example",
            "http://[fe80::1]",
        ] {
            assert!(is_in_the_clear(clear), "{clear}");
        }
    }

    #[test]
    fn an_origin_shows_neither_user_nor_path() {
        assert_eq!(origin_of("https://u:p@h:1/path?key=k"), "https://h:1");
        assert_eq!(origin_of("/login?next=/"), "://");
    }
}
