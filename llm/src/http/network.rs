//! How a request is routed: through a proxy or not, and which certificates to trust.

use std::net::IpAddr;
use std::path::PathBuf;

use ureq::Proxy;

/// The variables that name a proxy, or hosts to reach without one.
pub const PROXY_VARIABLES: [&str; 8] = [
    "HTTPS_PROXY",
    "https_proxy",
    "HTTP_PROXY",
    "http_proxy",
    "ALL_PROXY",
    "all_proxy",
    "NO_PROXY",
    "no_proxy",
];

/// Proxies and certificates, as the usual variables name them.
#[derive(Debug, Clone, Default)]
pub struct Network {
    https: Option<Proxy>,
    http: Option<Proxy>,
    no_proxy: String,
    /// PEM, parsed when a certificate has to be checked.
    trusted: Option<Vec<u8>>,
}

/// Why the variables cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "what the texts say is not repeated")]
pub enum NetworkError {
    /// A proxy variable does not contain the address of a proxy. Its value is not shown, because it
    /// may contain a password.
    #[error("{variable} is not the address of an http proxy")]
    BadProxy { variable: &'static str },
    /// The file of `SSL_CERT_FILE` cannot be read.
    #[error("cannot read {}", .path.display())]
    Read {
        path: PathBuf,
        source: std::io::Error,
    },
    /// The file of `SSL_CERT_FILE` holds no certificate.
    #[error("{} contains no PEM certificate", .path.display())]
    NoCertificate { path: PathBuf },
}

impl Network {
    /// Reads the [`PROXY_VARIABLES`] (lower case wins, as with curl) and `SSL_CERT_FILE`, whose
    /// certificates replace the system's. `env` returns the value of a variable: nothing here
    /// reads the environment.
    pub fn from_env<'e>(env: impl Fn(&str) -> Option<&'e str>) -> Result<Self, NetworkError> {
        let env: Env<'_, 'e> = &env;
        let all = proxy(env, "all_proxy", "ALL_PROXY")?;
        Ok(Self {
            https: proxy(env, "https_proxy", "HTTPS_PROXY")?.or_else(|| all.clone()),
            http: proxy(env, "http_proxy", "HTTP_PROXY")?.or(all),
            no_proxy: value(env, "no_proxy", "NO_PROXY")
                .unwrap_or_default()
                .to_ascii_lowercase(),
            trusted: value(env, "SSL_CERT_FILE", "SSL_CERT_FILE")
                .map(read_certificates)
                .transpose()?,
        })
    }

    /// The proxy through which `url` is reached. This machine is never reached through one.
    pub(super) fn proxy(&self, url: &str) -> Option<&Proxy> {
        let (scheme, rest) = url.split_once("://").unwrap_or(("https", url));
        let proxy = if scheme.eq_ignore_ascii_case("http") {
            &self.http
        } else {
            &self.https
        };
        proxy.as_ref().filter(|_| !self.is_direct(&host_of(rest)))
    }

    /// The certificates to trust instead of the system's, as PEM.
    pub(super) fn trusted(&self) -> Option<&[u8]> {
        self.trusted.as_deref()
    }

    /// Matches as curl does: a single `*` covers all hosts, a name itself and all names below it, an address itself
    /// or, as `10.0.0.0/8`, its network. Ports and other uses of `*` match nothing.
    fn is_direct(&self, host: &str) -> bool {
        let mut entries = self
            .no_proxy
            .split([',', ' ', '\t'])
            .filter(|entry| !entry.is_empty());
        is_this_machine(host)
            || self.no_proxy == "*"
            || match host.parse() {
                Ok(address) => entries.any(|entry| covers_address(entry, address).is_some()),
                Err(_) => entries.any(|entry| covers(entry, host)),
            }
    }
}

/// Whether a host, in lower case, is this machine.
pub(super) fn is_this_machine(host: &str) -> bool {
    host == "localhost"
        || host
            .parse()
            .is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
}

/// `example.com`, like `.example.com` and `example.com.`, covers itself and all its subdomains.
fn covers(entry: &str, host: &str) -> bool {
    let entry = entry.strip_suffix('.').unwrap_or(entry);
    let name = entry.strip_prefix('.').unwrap_or(entry);
    let before = host.strip_suffix(name).filter(|_| !name.is_empty());
    before.is_some_and(|before| before.is_empty() || before.ends_with('.'))
}

/// `Some` if `entry` is the address or a network that contains it. Without a number of bits, or with zero, only the address counts.
fn covers_address(entry: &str, address: IpAddr) -> Option<()> {
    let (network, bits) = entry.split_once('/').unwrap_or((entry, "0"));
    let (differing, width) = match (network.trim_matches(['[', ']']).parse().ok()?, address) {
        (IpAddr::V4(network), IpAddr::V4(address)) => {
            ((network.to_bits() ^ address.to_bits()).into(), 32)
        }
        (IpAddr::V6(network), IpAddr::V6(address)) => (network.to_bits() ^ address.to_bits(), 128),
        (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => return None,
    };
    let host_bits = match bits.parse().unwrap_or_default() {
        0 => 0,
        bits => u32::checked_sub(width, bits)?,
    };
    (differing >> host_bits == 0_u128).then_some(())
}

/// The host of `authority/…`, in lower case, without port, brackets and user.
pub(super) fn host_of(rest: &str) -> String {
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    let bare = match host.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or_default(),
        None if host.matches(':').count() == 1 => host.split(':').next().unwrap_or_default(),
        None => host,
    };
    bare.trim_end_matches('.').to_ascii_lowercase()
}

type Env<'f, 'e> = &'f dyn Fn(&str) -> Option<&'e str>;

/// A variable that is set and not empty.
fn value<'e>(env: Env<'_, 'e>, lower: &str, upper: &str) -> Option<&'e str> {
    let set = |name: &str| env(name).map(str::trim).filter(|v| !v.is_empty());
    set(lower).or_else(|| set(upper))
}

fn proxy(
    env: Env<'_, '_>,
    lower: &'static str,
    upper: &'static str,
) -> Result<Option<Proxy>, NetworkError> {
    let bad = |_| NetworkError::BadProxy { variable: upper };
    let Some(address) = value(env, lower, upper) else {
        return Ok(None);
    };
    let proxy = Proxy::new(address).map_err(bad)?;
    let speaks_http = matches!(
        proxy.protocol(),
        ureq::ProxyProtocol::Http | ureq::ProxyProtocol::Https
    );
    if speaks_http {
        Ok(Some(proxy))
    } else {
        Err(NetworkError::BadProxy { variable: upper })
    }
}

fn read_certificates(path: &str) -> Result<Vec<u8>, NetworkError> {
    let path = PathBuf::from(path);
    let pem = std::fs::read(&path).map_err(|source| NetworkError::Read {
        path: path.clone(),
        source,
    })?;
    if String::from_utf8_lossy(&pem).contains("-----BEGIN CERTIFICATE-----") {
        Ok(pem)
    } else {
        Err(NetworkError::NoCertificate { path })
    }
}

#[cfg(test)]
mod tests;
