//! Which hosts a command asked for, and how to open them.

use super::refused::manager;
use crate::proxy::is_of_web;
use crate::{AllowedHost, RefusedHost, Rung};

/// Messages of programs without a network.
const NETWORK: [&str; 14] = [
    "Could not resolve host",
    "could not resolve",
    "Couldn't resolve host",
    "unable to resolve host",
    "Temporary failure in name resolution",
    "Name or service not known",
    "Network is unreachable",
    "network is unreachable",
    "ENOTFOUND",
    "EAI_AGAIN",
    "ENETUNREACH",
    "Could not resolve proxy",
    "failed to lookup address",
    "no such host",
];

/// What stands before the host in them, and in those of package managers; a URL may be of something else.
const BEFORE_HOST: [&str; 10] = [
    "resolve host: ",
    "host address ‘",
    "resolve '",
    "host='",
    "reach host ",
    "Unknown host ",
    "lookup ",
    "ENOTFOUND ",
    "EAI_AGAIN ",
    "://",
];
/// So many hosts are named at most.
const MOST: usize = 8;

/// Whether a program without a network wrote this line.
pub(super) fn is_of_network(line: &str) -> bool {
    NETWORK.iter().any(|words| line.contains(words)) || manager(line).is_some()
}

/// The hosts that a command without a network asked for, as `--allow-host` takes them: those in its words, or all
/// public ones of the package manager that speaks, unless a mirror takes their place.
pub(super) fn asked_for(output: &str) -> Vec<String> {
    let mut named: Vec<String> = Vec::new();
    for host in output
        .lines()
        .filter(|line| is_of_network(line))
        .filter_map(host_in)
    {
        if named.len() < MOST && !named.contains(&host) {
            named.push(host);
        }
    }
    let public: Vec<String> = output
        .lines()
        .find_map(manager)
        .iter()
        .flat_map(|one| one.hosts())
        .map(str::to_owned)
        .collect();
    if named.iter().all(|host| public.contains(host)) {
        public
    } else {
        named
    }
}

/// The host in the message of a program, which may be hostile: the user may paste it into a shell.
fn host_in(line: &str) -> Option<String> {
    BEFORE_HOST
        .iter()
        .find_map(|words| host_at_start(line.split_once(words)?.1))
}

fn host_at_start(text: &str) -> Option<String> {
    let word = text
        .split(|c: char| !c.is_ascii_alphanumeric() && !"._-:".contains(c))
        .next()?;
    let AllowedHost { name, port, .. } = AllowedHost::parse(word.trim_end_matches(['.', ':']))?;
    let is_full = name.contains('.')
        && name.len() <= 253
        && name.starts_with(|c: char| c.is_ascii_alphanumeric());
    let port = port
        .filter(|port| !is_of_web(*port))
        .map(|port| format!(":{port}"));
    is_full.then(|| name + &port.unwrap_or_default())
}

/// How to open these hosts; the whole network only where none is known, or no single one can be opened.
pub(super) fn allow(hosts: &[String], rung: Rung) -> String {
    let what = match hosts {
        [] => return "allow it with `--network` or `[sandbox] network = true`".to_owned(),
        [_] => "the host",
        _ => "the hosts",
    };
    let flags: Vec<String> = hosts
        .iter()
        .map(|host| format!("--allow-host {host}"))
        .collect();
    let elsewhere = if rung == Rung::Namespaces {
        ""
    } else {
        IN_NAMESPACES
    };
    format!(
        "allow {what} with `{}` or `[sandbox] hosts = {hosts:?}`{elsewhere}",
        flags.join(" ")
    )
}

const IN_NAMESPACES: &str =
    "; only the sandbox namespaces can open single hosts, the others all with `--network`";

/// The hosts that the proxy refused, with the reasons, and what opens them. `None` if there is none.
pub(super) fn of_log(refused: &[RefusedHost]) -> Option<(String, String)> {
    let first = refused
        .get(..refused.len().min(MOST))
        .filter(|first| !first.is_empty())?;
    let named: Vec<String> = first.iter().map(ToString::to_string).collect();
    let opens: Vec<String> = first.iter().filter_map(RefusedHost::opened_by).collect();
    let help = match opens.as_slice() {
        [] => "check the names, and whether this machine reaches them".to_owned(),
        opens => allow(opens, Rung::Namespaces),
    };
    Some((
        format!("the command did not reach {}", named.join(", ")),
        help,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Refusal;

    #[test]
    fn the_hosts_of_a_program_s_words_are_named_or_those_of_its_package_manager() {
        for (line, hosts) in [
            ("curl: (6) Could not resolve host: crates.io", "crates.io"),
            (
                "wget: unable to resolve host address ‘example.com’",
                "example.com",
            ),
            (
                "fatal: unable to access 'https://a.b/x.git/': Could not resolve host: a.b",
                "a.b",
            ),
            (
                "Error: getaddrinfo ENOTFOUND api.example.com",
                "api.example.com",
            ),
            (
                "Failed to resolve 'pypi.org' ([Errno -3] Temporary failure in name resolution)",
                "pypi.org",
            ),
            (
                "x: Get \"http://mirror.corp:8080/y\": dial tcp: lookup mirror.corp: no such host",
                "mirror.corp",
            ),
            ("npm error code EAI_AGAIN", "registry.npmjs.org"),
            (
                "  cause: Failed to fetch: https://pypi.org/simple/x/",
                "pypi.org files.pythonhosted.org",
            ),
            (
                "user error (cabal: '/usr/bin/curl' exited with an error:",
                "hackage.haskell.org",
            ),
            (
                "npm error code ENOTFOUND\nnpm error request to https://npm.corp:8443/x failed, reason: y",
                "npm.corp:8443",
            ),
            (
                "you're using offline mode (--offline)",
                "index.crates.io static.crates.io",
            ),
            (
                "Could not reach host index.rubygems.org. Check your network connection",
                "rubygems.org index.rubygems.org",
            ),
            (
                "curl error 6 while downloading https://repo.packagist.org/p: Could not resolve host: repo.packagist.org",
                "repo.packagist.org api.github.com codeload.github.com",
            ),
            (
                "error NU1301: Unable to load the service index for source https://api.nuget.org/v3/index.json.",
                "api.nuget.org",
            ),
            (
                "Got socket error trying to find package http at https://pub.dev.",
                "pub.dev",
            ),
            (
                "socket.gaierror: [Errno -3] Temporary failure in name resolution",
                "",
            ),
            // A program may say anything.
            ("Could not resolve host: -x.y", ""),
            ("Could not resolve host: a.b$(reboot)", "a.b"),
            ("Could not resolve host: `reboot`.c", ""),
            ("see https://example.com", ""),
        ] {
            assert_eq!(asked_for(line).join(" "), hosts, "{line}");
        }
    }

    #[test]
    fn refused_hosts_are_told_with_their_reasons_and_the_flags_that_open_them() {
        let refused = |host: &str, why| RefusedHost {
            host: host.to_owned(),
            why,
        };
        let log = [
            refused("static.crates.io", Refusal::NotAllowed),
            refused("[::1]:5432", Refusal::NotAllowed),
            refused("mirror.corp:8080", Refusal::Address([10, 1, 2, 3].into())),
            refused(
                "gone.example",
                Refusal::Unreachable("no such name".to_owned()),
            ),
        ];
        let (what, help) = of_log(&log).unwrap();
        insta::assert_snapshot!(format!("{what}\n{help}"), @r#"
        the command did not reach static.crates.io (not an allowed host), [::1]:5432 (not an allowed host), mirror.corp:8080 (leads to 10.1.2.3, a private or unnamed address), gone.example (no connection: no such name)
        allow the hosts with `--allow-host static.crates.io --allow-host [::1]:5432 --allow-host mirror.corp:8080=10.1.2.3` or `[sandbox] hosts = ["static.crates.io", "[::1]:5432", "mirror.corp:8080=10.1.2.3"]`
        "#);
        assert_eq!(
            of_log(&log[3..]).unwrap().1,
            "check the names, and whether this machine reaches them"
        );
        assert_eq!(of_log(&[]), None);
        for value in [
            "static.crates.io",
            "[::1]:5432",
            "mirror.corp:8080=10.1.2.3",
        ] {
            assert!(
                help.contains(&format!("--allow-host {value}"))
                    && AllowedHost::parse(value).is_some()
            );
        }
    }
}
