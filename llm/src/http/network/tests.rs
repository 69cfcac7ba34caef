#![expect(clippy::disallowed_methods, reason = "tests write their certificates")]

use std::collections::BTreeMap;

use super::*;

/// The route to `url` with these environment variables.
#[track_caller]
fn way(env: &[(&str, &str)], url: &str) -> String {
    let map: BTreeMap<_, _> = env.iter().copied().collect();
    match Network::from_env(|name| map.get(name).copied()) {
        Err(error) => format!("error: {error}"),
        Ok(network) => network.proxy(url).map_or("direct".into(), |proxy| {
            format!("{}:{}", proxy.host(), proxy.port())
        }),
    }
}

const HTTPS: &str = "https://api.example.com/v1";

#[test]
fn each_scheme_has_its_proxy() {
    let env = [
        ("HTTPS_PROXY", "http://secure:3128"),
        ("HTTP_PROXY", "http://plain:8080"),
    ];
    assert_eq!(way(&env, HTTPS), "secure:3128");
    assert_eq!(way(&env, "http://api.example.com"), "plain:8080");
    assert_eq!(way(&[], HTTPS), "direct");
    assert_eq!(way(&[("ALL_PROXY", "any:1")], HTTPS), "any:1");
    assert_eq!(
        way(
            &[
                ("HTTPS_PROXY", "http://upper:1"),
                ("https_proxy", "http://lower:2")
            ],
            HTTPS
        ),
        "lower:2"
    );
    assert_eq!(way(&[("HTTPS_PROXY", "  ")], HTTPS), "direct");
}

#[test]
fn the_variables_that_are_asked_for_are_those_of_the_list() {
    let asked = std::cell::RefCell::new(std::collections::BTreeSet::new());
    let note = |name: &str| {
        asked.borrow_mut().insert(name.to_owned());
        None
    };
    Network::from_env(note).unwrap();
    let listed = PROXY_VARIABLES
        .iter()
        .chain(&["SSL_CERT_FILE"])
        .map(|name| (*name).to_owned());
    assert_eq!(asked.into_inner(), listed.collect());
}

/// What curl 7.88 makes of the same lists, apart from networks of IPv6, which it matches from 8 on.
#[test]
fn no_proxy_is_matched_as_curl_matches_it() {
    let to = |list: &str, host: &str| {
        way(
            &[("HTTPS_PROXY", "http://p:1"), ("NO_PROXY", list)],
            &format!("https://{host}:8443/v1"),
        )
    };
    for (host, lists) in [
        (
            "api.example.com",
            &[
                "example.com",
                ".example.com",
                "example.com.",
                "a.b,EXAMPLE.com",
                "a, example.com",
            ][..],
        ),
        (
            "api.example.com",
            &["*", "api.example.com", ",,example.com"],
        ),
        ("example.com.", &["example.com"]),
        ("user@example.com", &["example.com"]),
        (
            "10.0.0.7",
            &[
                "10.0.0.7",
                "10.0.0.0/8",
                "10.0.0.6/31",
                "a,10.0.0.7/32",
                "10.0.0.7/x",
            ],
        ),
        ("[fd00::7]", &["fd00::7", "fd00::/8", "fd00:0::7/128"]),
    ] {
        for list in lists {
            assert_eq!(to(list, host), "direct", "{host}: {list}");
        }
    }
    for (host, lists) in [
        (
            "api.example.com",
            &[
                "",
                "ample.com",
                "example.com.evil",
                "*.example.com",
                "a,*",
                "..example.com",
            ][..],
        ),
        ("api.example.com", &["api.example.com:8443", ".", "/"]),
        (
            "10.0.0.7",
            &[
                "0.0.7",
                "10.0.0.0/31",
                "10.0.0.0/33",
                "0.0.0.0/0",
                "10.0.0.7:8443",
                "10.0.0.0/x",
            ],
        ),
        ("[fd00::7]", &["fe00::/8", "10.0.0.0/8", "fd00::/129"]),
    ] {
        for list in lists {
            assert_eq!(to(list, host), "p:1", "{host}: {list}");
        }
    }
}

#[test]
fn this_machine_is_never_reached_through_a_proxy() {
    let env = [("ALL_PROXY", "http://p:1")];
    for host in [
        "localhost",
        "LOCALHOST",
        "127.0.0.1",
        "127.8.9.1",
        "[::1]",
        "localhost:11434",
        "[::1]:8080",
    ] {
        assert_eq!(way(&env, &format!("http://{host}/v1")), "direct", "{host}");
    }
    assert_eq!(way(&env, "http://localhost.evil.example/"), "p:1");
    assert_eq!(way(&env, "http://127.0.0.1.evil.example/"), "p:1");
}

#[test]
fn a_proxy_that_is_none_is_an_error_that_shows_no_password() {
    let error = way(&[("HTTPS_PROXY", "ftp://user:secret@p")], HTTPS);
    assert_eq!(
        error,
        "error: HTTPS_PROXY is not the address of an http proxy"
    );
    assert!(way(&[("ALL_PROXY", "socks5://p:1")], HTTPS).starts_with("error: ALL_PROXY"));
}

#[test]
fn certificates_come_from_the_file_that_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ca.pem");
    let read = |text: &str| {
        std::fs::write(&path, text).unwrap();
        let network =
            Network::from_env(|name| (name == "SSL_CERT_FILE").then(|| path.to_str().unwrap()));
        network.map(|network| network.trusted().is_some())
    };
    let pem = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    assert!(read(&format!("# ours\n{pem}{pem}")).unwrap());
    assert!(matches!(
        read("nothing"),
        Err(NetworkError::NoCertificate { .. })
    ));
    let missing = Network::from_env(|name| (name == "SSL_CERT_FILE").then_some("/nowhere/ca.pem"));
    assert_eq!(
        missing.unwrap_err().to_string(),
        "cannot read /nowhere/ca.pem"
    );
    assert!(Network::from_env(|_| None).unwrap().trusted().is_none());
}
