use std::io::Read as _;

use rustls::pki_types::ServerName;

use super::*;

/// The first message of TLS to this host.
pub(super) fn client_hello(host: &str) -> Vec<u8> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap();
    let config = config
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    let name = ServerName::try_from(host.to_owned()).unwrap();
    let mut client = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
    let mut hello = Vec::new();
    client.write_tls(&mut hello).unwrap();
    hello
}

/// A proxy for these hosts, and its address.
fn proxy(hosts: &[(&str, Option<u16>)]) -> (Proxy, SocketAddr) {
    let hosts = hosts.iter().map(|(name, port)| AllowedHost {
        name: (*name).to_owned(),
        port: *port,
        range: None,
    });
    started(hosts.collect())
}

fn started(hosts: Vec<AllowedHost>) -> (Proxy, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let names = UdpSocket::bind("127.0.0.1:0").unwrap();
    let sockets = vec![names.into(), listener.into()];
    (Proxy::start(hosts, |_| Some(sockets)).unwrap(), address)
}

/// A server that answers one connection with what it was sent before an empty line.
fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let (bytes, _) = head(&mut client).unwrap();
        client.write_all(&bytes).unwrap();
    });
    address
}

fn asked(proxy: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(proxy).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn an_allowed_host_is_reached_through_a_tunnel_and_by_plain_http() {
    let server = echo();
    let (_proxy, address) = proxy(&[("127.0.0.1", Some(server.port()))]);
    let answer = asked(
        address,
        &format!("CONNECT {server} HTTP/1.1\r\n\r\nhello\r\n\r\n"),
    );
    assert_eq!(
        answer,
        "HTTP/1.1 200 Connection established\r\n\r\nhello\r\n\r\n"
    );
    let server = echo();
    let (_proxy, address) = proxy(&[("127.0.0.1", Some(server.port()))]);
    let answer = asked(
        address,
        &format!("GET http://{server}/a HTTP/1.1\r\nHost: other\r\n\r\n"),
    );
    assert_eq!(
        answer,
        format!("GET /a HTTP/1.1\r\nHost: {server}\r\nConnection: close\r\n\r\n")
    );
}

#[test]
fn a_tunnel_carries_no_tls_for_another_host() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = listener.local_addr().unwrap();
    let (proxy, address) = proxy(&[("127.0.0.1", Some(server.port()))]);
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "CONNECT {server} HTTP/1.1\r\n\r\n").unwrap();
    stream.write_all(&client_hello("other.example")).unwrap();
    let (mut answer, mut reached) = (Vec::new(), Vec::new());
    stream.read_to_end(&mut answer).unwrap();
    assert!(
        answer.ends_with(&WRONG_NAME),
        "{}",
        String::from_utf8_lossy(&answer)
    );
    listener
        .accept()
        .unwrap()
        .0
        .read_to_end(&mut reached)
        .unwrap();
    assert_eq!(reached, b"");
    assert!(matches!(
        proxy.refused()[..],
        [RefusedHost {
            why: Refusal::Tls,
            ..
        }]
    ));
}

#[test]
fn no_other_host_no_other_port_and_no_name_of_this_machine_is_reached() {
    let server = echo();
    let (proxy, address) = proxy(&[
        ("127.0.0.1", Some(1)),
        ("example.org", None),
        ("localhost", Some(server.port())),
    ]);
    for host in [
        server.to_string(),
        format!("localhost:{}", server.port()),
        "example.org:22".to_owned(),
    ] {
        let answer = asked(address, &format!("CONNECT {host} HTTP/1.1\r\n\r\n"));
        assert!(
            answer.starts_with("HTTP/1.1 403 ") && answer.contains(&host),
            "{host}: {answer}"
        );
    }
    // Each is listed once, in order.
    asked(address, &format!("CONNECT {server} HTTP/1.1\r\n\r\n"));
    let port = server.port();
    let refused: Vec<String> = proxy.refused().iter().map(ToString::to_string).collect();
    let [one, two, three] = refused.as_slice() else {
        panic!("{refused:?}")
    };
    assert_eq!(*one, format!("127.0.0.1:{port} (not an allowed host)"));
    assert!(
        two.starts_with(&format!("localhost:{port} (leads to ")),
        "{two}"
    );
    assert_eq!(three, "example.org:22 (not an allowed host)");
}

#[test]
fn a_name_leads_into_the_range_that_the_user_named_and_nowhere_else() {
    let server = echo();
    let port = server.port();
    let named = |range: &str| AllowedHost::parse(&format!("localhost:{port}={range}")).unwrap();
    let request = format!("CONNECT localhost:{port} HTTP/1.1\r\n\r\nhello\r\n\r\n");
    let (other, address) = started(vec![named("10.0.0.0/8")]);
    assert!(asked(address, &request).starts_with("HTTP/1.1 403 "));
    assert!(matches!(
        other.refused()[..],
        [RefusedHost {
            why: Refusal::Address(_),
            ..
        }]
    ));
    let (_proxy, address) = started(vec![
        named("10.0.0.0/8"),
        named("127.0.0.0/8"),
        named("::1"),
    ]);
    assert!(asked(address, &request).ends_with("hello\r\n\r\n"));
}

#[test]
fn a_range_is_an_address_and_the_bits_that_all_of_it_share() {
    let range = |text: &str| AllowedHost::parse(&format!("a.b={text}")).and_then(|host| host.range);
    let has = |text: &str, address: &str| range(text).unwrap().has(address.parse().unwrap());
    for (text, inside, outside) in [
        ("10.0.0.0/8", "10.255.0.1", "11.0.0.1"),
        ("10.1.2.3", "10.1.2.3", "10.1.2.2"),
        ("192.168.4.0/22", "::ffff:192.168.7.1", "192.168.8.1"),
        ("0.0.0.0/0", "1.2.3.4", "::1"),
        ("fd00::/8", "fd12::1", "fe80::1"),
        ("::/0", "2001:db8::1", "10.0.0.1"),
    ] {
        assert!(has(text, inside) && !has(text, outside), "{text}");
    }
    for text in [
        "",
        "10.0.0.0/33",
        "10.0.0.0/",
        "10.0.0/8",
        "::/129",
        "corp",
        "10.0.0.0/-1",
        "10.0.0.1:80",
    ] {
        assert_eq!(range(text), None, "{text}");
    }
    // An address leads nowhere else.
    assert_eq!(AllowedHost::parse("10.1.2.3=10.0.0.0/8"), None);
}

#[test]
fn what_a_recorded_run_allowed_is_read_without_a_range() {
    let host: AllowedHost = serde_json::from_str(r#"{"name":"a.b","port":null}"#).unwrap();
    assert_eq!(host, AllowedHost::parse("a.b").unwrap());
    assert_eq!(
        serde_json::to_string(&host).unwrap(),
        r#"{"name":"a.b","port":null}"#
    );
    let ranged = AllowedHost::parse("a.b:81=10.0.0.0/8").unwrap();
    assert_eq!(
        serde_json::from_str::<AllowedHost>(&serde_json::to_string(&ranged).unwrap()).unwrap(),
        ranged
    );
}

#[test]
fn a_command_can_list_neither_many_hosts_nor_what_is_no_name() {
    let (proxy, address) = proxy(&[]);
    for host in ["-x", "a:b", &"a".repeat(254)] {
        asked(address, &format!("CONNECT [{host}]:443 HTTP/1.1\r\n\r\n"));
    }
    assert_eq!(proxy.refused(), []);
    for number in 0..40 {
        asked(
            address,
            &format!("CONNECT {number}.example:443 HTTP/1.1\r\n\r\n"),
        );
    }
    assert_eq!(proxy.refused().len(), MOST_REFUSED);
}

#[test]
fn addresses_of_networks_that_only_the_host_reaches_are_not_public() {
    let special = [
        "0.0.0.0",
        "10.1.2.3",
        "100.64.0.1",
        "127.0.0.1",
        "169.254.169.254",
        "172.16.0.1",
        "192.168.1.1",
        "192.0.0.8",
        "198.18.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::ffff:127.0.0.1",
        "fe80::1",
        "fc00::1",
        "ff02::1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "2001::1",
        "2001:db8::1",
    ];
    for address in special {
        assert!(!is_public(address.parse().unwrap()), "{address}");
    }
    for address in [
        "1.1.1.1",
        "100.128.0.1",
        "172.32.0.1",
        "2606:4700::1111",
        "2001:4860::8888",
    ] {
        assert!(is_public(address.parse().unwrap()), "{address}");
    }
}

#[test]
fn a_proxy_that_is_dropped_accepts_nothing_more() {
    let (one, address) = proxy(&[]);
    let waiting = TcpStream::connect(address).unwrap();
    drop(one);
    // Until its thread is gone, the system may accept, but nobody answers.
    while TcpStream::connect(address).is_ok() {
        thread::yield_now();
    }
    drop(waiting);
}
