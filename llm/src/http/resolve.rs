//! Resolves the host of an address.

use std::net::SocketAddr;

use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;

/// Resolves names within a time limit. The default resolver starts a thread for that, even for an
/// IP address, which needs none.
#[derive(Debug, Default)]
pub(super) struct Hosts(DefaultResolver);

impl Resolver for Hosts {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let timeout = if is_ip(uri) { NextTimeout::default() } else { timeout };
        self.0.resolve(uri, config, timeout)
    }
}

/// Whether the host is an IP address. Parsed in the same way as by the standard library before it
/// resolves a name.
fn is_ip(uri: &Uri) -> bool {
    let (Some(scheme), Some(authority)) = (uri.scheme(), uri.authority()) else { return false };
    let address = DefaultResolver::host_and_port(scheme, authority);
    address.is_some_and(|address| address.parse::<SocketAddr>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(url: &str) -> bool {
        is_ip(&url.parse().unwrap())
    }

    #[test]
    fn what_has_no_name_is_not_looked_up() {
        for url in
            ["http://127.0.0.1:80/v1", "https://192.0.2.1", "http://[::1]:8080", "https://[2001:db8::1]/x"]
        {
            assert!(check(url), "{url}");
        }
    }

    #[test]
    fn a_name_is_looked_up_however_it_resembles_an_address() {
        for url in ["http://localhost:80", "https://a.example", "http://127.1", "http://127.0.0.1.:80", "/v1"]
        {
            assert!(!check(url), "{url}");
        }
    }

    #[test]
    fn an_address_takes_no_time_to_resolve() {
        let none = NextTimeout { after: std::time::Duration::ZERO.into(), ..NextTimeout::default() };
        let resolve = |url: &str| Hosts::default().resolve(&url.parse().unwrap(), &Config::default(), none);
        let address: SocketAddr = "[::1]:8080".parse().unwrap();
        assert_eq!(&resolve("http://[::1]:8080/v1").unwrap()[..], [address]);
    }
}
