//! Hosts, as `--allow-host` takes them.

use std::net::{IpAddr, Ipv6Addr};

pub(super) fn host(text: &str) -> Result<String, String> {
    let (place, range) = text
        .split_once('=')
        .map_or((text, None), |(place, range)| (place, Some(range)));
    let (name, port) = match place.rsplit_once(':') {
        Some((name, port)) if !place.ends_with(']') => (name, port),
        Some(_) | None => (place, "443"),
    };
    let address = name
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    let is_name = match address {
        Some(address) => address.parse::<Ipv6Addr>().is_ok(),
        None => !name.is_empty() && name.chars().all(is_letter),
    };
    let is_host = is_name && number::<u16>(port).is_some_and(|port| port > 0);
    // An address leads nowhere else.
    let leads = |range| address.is_none() && name.parse::<IpAddr>().is_err() && is_range(range);
    let escaped = || {
        format!(
            "`{}` is not a valid host; write it like example.org, example.org:443 or mirror.example=10.0.0.0/8",
            text.escape_debug()
        )
    };
    (is_host && range.is_none_or(leads))
        .then(|| text.to_owned())
        .ok_or_else(escaped)
}

/// An address, or the addresses that share its first bits.
fn is_range(text: &str) -> bool {
    let (address, bits) = text.split_once('/').unwrap_or((text, "0"));
    let most = address
        .parse()
        .map(|address: IpAddr| if address.is_ipv4() { 32 } else { 128 });
    number(bits).is_some_and(|bits: u8| most.is_ok_and(|most| bits <= most))
}

fn number<N: std::str::FromStr>(text: &str) -> Option<N> {
    text.parse().ok().filter(|_| !text.starts_with('+'))
}
