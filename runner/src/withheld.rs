//! Names what the sandbox withheld from a failed command, one line each, with the flag that allows it.
//!
//! No tool's wording decides: the proxy lists the hosts that were asked for, and a program counts only if it exists outside.

use std::path::PathBuf;

use crate::program::programs_in;
use crate::sandbox::visible;
use crate::{Confinement, Ended, Env, Output, Refusal, RefusedHost};

/// The maximum number of hosts that are named.
const MOST_HOSTS: usize = 8;
/// The exit code by which a shell reports that it did not find a program.
const NOT_FOUND: i32 = 127;

/// The hosts that `what` asked for in vain, and the program that the sandbox hides, for a person: a command chose the names.
pub fn withheld(what: &str, output: &Output, confinement: &Confinement, env: &Env) -> Vec<String> {
    if output.success() {
        return Vec::new();
    }
    hosts(what, &output.refused)
        .into_iter()
        .chain(program(output, confinement, env))
        .collect()
}

fn hosts(what: &str, refused: &[RefusedHost]) -> Option<String> {
    let first = || refused.iter().take(MOST_HOSTS);
    let named: Vec<String> = first()
        .map(|one| match one.why {
            // The flag says it.
            Refusal::NotAllowed => one.host.clone(),
            Refusal::Address(_) | Refusal::Unreachable(_) | Refusal::Tls => one.to_string(),
        })
        .collect();
    let flags: Vec<String> = first()
        .filter_map(RefusedHost::opened_by)
        .map(|host| format!("--allow-host {host}"))
        .collect();
    let advice = match flags.as_slice() {
        _ if named.is_empty() => return None,
        [] => "check the names, and whether this machine reaches them".to_owned(),
        [one] => format!("allow it with {one}"),
        all => format!("allow them with {}", all.join(" ")),
    };
    Some(format!(
        "the {what} asked for {}; {advice}",
        named.join(", ")
    ))
}

/// A shell names the program that it did not find in its last line, in the user's language.
fn program(output: &Output, confinement: &Confinement, env: &Env) -> Option<String> {
    if output.ended != Ended::Exited(NOT_FOUND) {
        return None;
    }
    let text = output.text();
    let last = text.lines().rev().find(|line| !line.trim().is_empty())?;
    let is_edge = |letter: char| !letter.is_ascii_alphanumeric() && !"._+-".contains(letter);
    let sees = visible(confinement);
    last.split(is_edge).find_map(|name| {
        let places = programs_in(env.get("PATH"), &confinement.access.tree, name);
        let places: Vec<PathBuf> = places
            .iter()
            .filter_map(|place| place.canonicalize().ok())
            .collect();
        let place = places.first()?;
        let folder = place.parent()?.display();
        let is_hidden = !places.iter().any(|place| sees(place));
        is_hidden.then(|| {
            format!(
                "the sandbox hides {}: show it with `--readable {folder}` or `[sandbox] readable = [\"{folder}\"]`",
                place.display()
            )
        })
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{Access, AllowedHost, Backend, Captured};

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
        let told = hosts("build", &log).unwrap();
        insta::assert_snapshot!(told, @"the build asked for static.crates.io, [::1]:5432, mirror.corp:8080 (leads to 10.1.2.3, a private or unnamed address), gone.example (no connection: no such name); allow them with --allow-host static.crates.io --allow-host [::1]:5432 --allow-host mirror.corp:8080=10.1.2.3");
        insta::assert_snapshot!(hosts("build", &log[..1]).unwrap(), @"the build asked for static.crates.io; allow it with --allow-host static.crates.io");
        insta::assert_snapshot!(hosts("build", &log[3..]).unwrap(), @"the build asked for gone.example (no connection: no such name); check the names, and whether this machine reaches them");
        assert_eq!(hosts("build", &[]), None);
        for value in [
            "static.crates.io",
            "[::1]:5432",
            "mirror.corp:8080=10.1.2.3",
        ] {
            assert!(
                told.contains(&format!("--allow-host {value}"))
                    && AllowedHost::parse(value).is_some()
            );
        }
    }

    #[test]
    fn a_program_that_a_shell_did_not_find_is_told_if_the_sandbox_hides_it() {
        let home = tempfile::tempdir_in("/var/tmp").unwrap();
        let tree = tempfile::tempdir_in("/var/tmp").unwrap();
        let place = home.path().join("frobnicate");
        std::os::unix::fs::symlink("/bin/sh", home.path().join("sh")).unwrap();
        std::fs::copy("/bin/true", &place).unwrap();
        let path = (
            "PATH".into(),
            format!("{}:/usr/bin", home.path().display()).into(),
        );
        let env = Env::allowed([path], &[]);
        let told = |ended, last: &str, more: &[PathBuf]| {
            let output = Output {
                ended,
                captured: Captured {
                    head: format!("{last}\n\n").into(),
                    ..Captured::default()
                },
                apart: None,
                elapsed: Duration::ZERO,
                survivors_killed: 0,
                survivors_left: 0,
                refused: Vec::new(),
            };
            let access = Access {
                readable: more.to_vec(),
                ..Access::new(tree.path(), &Env::default())
            };
            let confinement = Confinement {
                backend: Backend::Namespaces,
                access,
            };
            withheld("build", &output, &confinement, &env).concat()
        };
        let not_found = Ended::Exited(NOT_FOUND);
        for last in [
            "./build.sh: line 3: frobnicate: command not found",
            "sh: 3: frobnicate: not found",
            "zsh: command not found: frobnicate",
            "./build.sh: Zeile 3: »frobnicate«: Kommando nicht gefunden.",
        ] {
            let folder = home.path().display();
            let expected = format!(
                "the sandbox hides {}: show it with `--readable {folder}` or",
                place.display()
            );
            let told = told(not_found, last, &[]);
            assert!(told.starts_with(&expected), "{told}");
        }
        for (ended, last, more) in [
            (Ended::Exited(1), "frobnicate: not found", Vec::new()),
            (not_found, "sh: 3: none-such: not found", Vec::new()),
            (not_found, "frobnicate: not found", vec![home.path().into()]),
        ] {
            assert_eq!(told(ended, last, &more), "", "{last}");
        }
    }
}
