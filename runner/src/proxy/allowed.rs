//! The hosts that a command may reach, and those that it did not.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::request::{Request, authority};

/// A host that a command may reach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllowedHost {
    /// A name in lower case, or an address.
    pub name: String,
    /// `None` means those of HTTPS and HTTP.
    pub port: Option<u16>,
    /// The only addresses to which the name may lead, also private ones. `None` means all public ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<AddressRange>,
}

impl AllowedHost {
    /// `HOST`, `HOST:PORT`, or the same with an IPv6 address in brackets; a name also with `=ADDRESS` or
    /// `=ADDRESS/BITS`.
    pub fn parse(text: &str) -> Option<Self> {
        let (place, range) = match text.split_once('=') {
            Some((place, range)) => (place, Some(AddressRange::parse(range)?)),
            None => (text, None),
        };
        let (name, port) = authority(place)?;
        let is_plain = range.is_none() || name.parse::<IpAddr>().is_err();
        is_plain.then_some(Self { name, port, range })
    }

    pub(super) fn is(&self, name: &str, port: u16) -> bool {
        self.port.map_or(is_of_web(port), |own| own == port) && self.name == name
    }
}

/// The ports of HTTPS and HTTP.
fn is_of_web(port: u16) -> bool {
    matches!(port, 443 | 80)
}

/// The addresses that share their first bits with this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddressRange {
    /// One of them.
    pub address: IpAddr,
    /// How many bits.
    pub bits: u32,
}

impl AddressRange {
    fn parse(text: &str) -> Option<Self> {
        let (address, bits) = text.split_once('/').unwrap_or((text, ""));
        let address = address.parse().ok()?;
        let (width, _) = number(address);
        let bits = if text.contains('/') {
            bits.parse().ok()?
        } else {
            width
        };
        (bits <= width).then_some(Self { address, bits })
    }

    pub(super) fn has(&self, address: IpAddr) -> bool {
        let ((width, own), (its_width, its)) =
            (number(self.address), number(address.to_canonical()));
        let first = |bits: u128| {
            bits.checked_shr(width.saturating_sub(self.bits))
                .unwrap_or(0)
        };
        width == its_width && first(own) == first(its)
    }
}

/// How many bits an address has, and these.
fn number(address: IpAddr) -> (u32, u128) {
    match address {
        IpAddr::V4(address) => (32, address.to_bits().into()),
        IpAddr::V6(address) => (128, address.to_bits()),
    }
}

/// A host that a command looked up or asked the proxy for, and did not reach.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[error("{host} ({why})")]
pub struct RefusedHost {
    /// As `--allow-host` takes it.
    pub host: String,
    /// Why it was not reached.
    pub why: Refusal,
}

/// Why a host was not reached.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "what the texts say is not repeated")]
pub enum Refusal {
    #[error("not an allowed host")]
    NotAllowed,
    #[error("leads to {0}, a private or unnamed address")]
    Address(IpAddr),
    /// With the system's message.
    #[error("no connection: {0}")]
    Unreachable(String),
    #[error("a tunnel to it may carry only TLS")]
    Tls,
}

impl RefusedHost {
    /// `None` if the name is no plain one: a command chose it, and the user may paste it into a shell.
    pub(super) fn new(Request { host, port, .. }: &Request, why: Refusal) -> Option<Self> {
        let is_address = host.parse::<IpAddr>().is_ok();
        let is_name = host.len() <= 253 && host.starts_with(|c: char| c.is_ascii_alphanumeric());
        let port = if is_of_web(*port) {
            String::new()
        } else {
            format!(":{port}")
        };
        let host = if host.contains(':') {
            is_address.then(|| format!("[{host}]{port}"))
        } else {
            is_name.then(|| format!("{host}{port}"))
        };
        host.map(|host| Self { host, why })
    }

    /// What `--allow-host` takes to open it; `None` if that would not help.
    pub(crate) fn opened_by(&self) -> Option<String> {
        match self.why {
            Refusal::NotAllowed => Some(self.host.clone()),
            Refusal::Address(address) => Some(format!("{}={address}", self.host)),
            Refusal::Unreachable(_) | Refusal::Tls => None,
        }
    }
}
