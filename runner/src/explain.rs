//! Says when the walls are the likely reason for a failure, and how to open them.

use std::path::{Path, PathBuf};

use crate::sandbox::is_visible;
use crate::{Confinement, Output, Rung, Walls};

/// What programs say when they miss the network.
const NETWORK: [&str; 16] = [
    "Could not resolve host",
    "could not resolve",
    "Couldn't resolve host",
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
    "--offline was specified",
    "you're using offline mode",
    "without --offline",
];

/// The same, but also said where the walls have no part in it.
const REFUSED: [&str; 4] =
    ["Connection refused", "connection refused", "ECONNREFUSED", "socket: Operation not permitted"];

const NO_NETWORK: &str =
    "the sandbox has no network: allow it with `--network` or `[sandbox] network = true`";

/// What the system says when something may not be written.
const READ_ONLY: [&str; 3] = ["Read-only file system", "EROFS", "os error 30"];
/// What Landlock makes of the same, and also of what may not be read.
const DENIED: [&str; 4] = ["Permission denied", "EACCES", "permission denied", "os error 13"];
/// What the system says of a file that is not there.
const MISSING: [&str; 4] = ["No such file or directory", "ENOENT", "not found", "cannot open"];

/// For a command that failed: the one sentence that names the likely cause, if it is the walls, and
/// the flag or configuration line that opens them. A guess by what the command wrote.
pub fn explain(output: &Output, confinement: &Confinement) -> Option<String> {
    if output.success() || confinement.rung == Rung::Off {
        return None;
    }
    let text = output.text();
    let perhaps = || !confinement.walls.network && REFUSED.iter().any(|phrase| text.contains(phrase));
    text.lines()
        .find_map(|line| of_line(line, confinement))
        .or_else(|| perhaps().then(|| NO_NETWORK.to_owned()))
}

fn of_line(line: &str, confinement: &Confinement) -> Option<String> {
    let says = |phrases: &[&str]| phrases.iter().any(|phrase| line.contains(phrase));
    let walls = &confinement.walls;
    if !walls.network && says(&NETWORK) {
        return Some(
            "the sandbox has no network: allow it with `--network` or `[sandbox] network = true`".into(),
        );
    }
    // The last one: the first is often the program that speaks.
    let path = paths(line, walls).last();
    if says(&READ_ONLY) || (confinement.rung == Rung::Landlock && says(&DENIED)) {
        return Some(about_rights(path.as_deref(), confinement));
    }
    let path = path.filter(|path| says(&MISSING) && !is_visible(walls, path))?;
    if path.exists() {
        return Some(about_hiding(&path));
    }
    is_hidden_folder(path.parent()?, walls).then(|| about_rights(Some(&path), confinement))
}

/// Whether a folder of the host is missing inside, rather than being another one there.
fn is_hidden_folder(folder: &Path, walls: &Walls) -> bool {
    let replaced = [Some(Path::new("/tmp")), Some(Path::new("/var/tmp")), walls.home.as_deref()];
    folder.is_dir()
        && !replaced.contains(&Some(folder))
        && !walls.tree.starts_with(folder)
        && !is_visible(walls, folder)
}

fn about_rights(path: Option<&Path>, confinement: &Confinement) -> String {
    let walls = &confinement.walls;
    match path {
        Some(path) if walls.read_only.iter().any(|held| path.starts_with(held)) => {
            format!(
                "the sandbox protects {}: no build may change it (`--sandbox off` lets it)",
                path.display()
            )
        }
        Some(path) if walls.masked.iter().any(|hidden| path.starts_with(hidden)) => {
            format!("the sandbox hides {} from every build (`--sandbox off` shows it)", path.display())
        }
        Some(path) if path.starts_with(&walls.tree) => format!(
            "the sandbox (Landlock) lets a build make nothing new at the top of the tree: \
             make the folder first, or name it in `[sandbox] writable = [\"{}\"]`",
            path.display()
        ),
        Some(path) if confinement.rung == Rung::Landlock && path.exists() && !is_visible(walls, path) => {
            about_hiding(path)
        }
        Some(path) => format!(
            "the sandbox lets a build write in the work tree only: allow more with \
             `[sandbox] writable = [\"{}\"]`",
            path.parent().unwrap_or(path).display()
        ),
        None => "the sandbox lets a build write in the work tree only: allow more with \
                 `[sandbox] writable = [\"FOLDER\"]`"
            .to_owned(),
    }
}

fn about_hiding(path: &Path) -> String {
    format!("the sandbox hides {0}: show it with `[sandbox] readable = [\"{0}\"]`", path.display())
}

/// What looks like a path in a line of output, without quotes and colons: words with a `/`, and the
/// bare names of protected files. Relative ones are taken to lie in the tree.
fn paths(line: &str, walls: &Walls) -> impl Iterator<Item = PathBuf> {
    let is_edge = |letter: char| letter.is_whitespace() || "'\"`‘’()[]:,;".contains(letter);
    line.split(is_edge).filter(|word| !word.is_empty()).filter_map(|word| {
        let path = walls.tree.join(word.trim_start_matches("./"));
        let is_path = word.contains('/') || walls.read_only.contains(&path) || walls.masked.contains(&path);
        is_path.then_some(path)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ended;
    use std::time::Duration;

    fn check(rung: Rung, line: &str) -> String {
        let walls = Walls {
            tree: "/work tree".into(),
            read_only: vec!["/work tree/.git".into()],
            masked: vec!["/work tree/agent-config".into()],
            ..Walls::default()
        };
        let output = Output {
            ended: Ended::Exited(1),
            head: format!("compiling\n{line}\nmake: *** [all] Error 1\n").into_bytes(),
            tail: Vec::new(),
            total_bytes: 0,
            apart: None,
            elapsed: Duration::ZERO,
            survivors_killed: 0,
            survivors_left: 0,
        };
        explain(&output, &Confinement { rung, walls }).unwrap_or_else(|| "nothing".into())
    }

    #[test]
    fn each_cause_gets_its_sentence() {
        let lines = [
            (Rung::Bwrap, "curl: (6) Could not resolve host: crates.io"),
            (Rung::Bwrap, "error: no matching package named `rand` found, --offline was specified"),
            (Rung::Bwrap, "touch: cannot touch '/var/lib/x/y': Read-only file system"),
            (Rung::Bwrap, "sh: 1: cannot create ./.git/hooks/pre-commit: Read-only file system"),
            (Rung::Bwrap, "/usr/bin/rm: cannot remove '.git': Read-only file system"),
            (Rung::Bwrap, "Error: EROFS"),
            (Rung::Bwrap, "cat: /var/log: No such file or directory"),
            (Rung::Landlock, "mkdir: cannot create directory './target': Permission denied"),
            (Rung::Landlock, "cat: ./agent-config/gemini-key.txt: Permission denied"),
            (Rung::Landlock, "cat: /var/log: Permission denied"),
            (Rung::Bwrap, "connect ECONNREFUSED 127.0.0.1:5432"),
            (Rung::Bwrap, "src/main.rs: Permission denied"),
            (Rung::Bwrap, "error[E0425]: cannot find value `x` in this scope"),
            (Rung::Off, "curl: (6) Could not resolve host: crates.io"),
        ];
        let table: String = lines.map(|(rung, line)| format!("{}\n  {}\n", line, check(rung, line))).concat();
        insta::assert_snapshot!(table, @r#"
        curl: (6) Could not resolve host: crates.io
          the sandbox has no network: allow it with `--network` or `[sandbox] network = true`
        error: no matching package named `rand` found, --offline was specified
          the sandbox has no network: allow it with `--network` or `[sandbox] network = true`
        touch: cannot touch '/var/lib/x/y': Read-only file system
          the sandbox lets a build write in the work tree only: allow more with `[sandbox] writable = ["/var/lib/x"]`
        sh: 1: cannot create ./.git/hooks/pre-commit: Read-only file system
          the sandbox protects /work tree/.git/hooks/pre-commit: no build may change it (`--sandbox off` lets it)
        /usr/bin/rm: cannot remove '.git': Read-only file system
          the sandbox protects /work tree/.git: no build may change it (`--sandbox off` lets it)
        Error: EROFS
          the sandbox lets a build write in the work tree only: allow more with `[sandbox] writable = ["FOLDER"]`
        cat: /var/log: No such file or directory
          the sandbox hides /var/log: show it with `[sandbox] readable = ["/var/log"]`
        mkdir: cannot create directory './target': Permission denied
          the sandbox (Landlock) lets a build make nothing new at the top of the tree: make the folder first, or name it in `[sandbox] writable = ["/work tree/target"]`
        cat: ./agent-config/gemini-key.txt: Permission denied
          the sandbox hides /work tree/agent-config/gemini-key.txt from every build (`--sandbox off` shows it)
        cat: /var/log: Permission denied
          the sandbox hides /var/log: show it with `[sandbox] readable = ["/var/log"]`
        connect ECONNREFUSED 127.0.0.1:5432
          the sandbox has no network: allow it with `--network` or `[sandbox] network = true`
        src/main.rs: Permission denied
          nothing
        error[E0425]: cannot find value `x` in this scope
          nothing
        curl: (6) Could not resolve host: crates.io
          nothing
        "#);
    }

    #[test]
    fn a_success_is_not_explained() {
        let output = Output {
            ended: Ended::Exited(0),
            head: b"warning: Could not resolve host".to_vec(),
            tail: Vec::new(),
            total_bytes: 31,
            apart: None,
            elapsed: Duration::ZERO,
            survivors_killed: 0,
            survivors_left: 0,
        };
        let confinement = Confinement { rung: Rung::Bwrap, walls: Walls::default() };
        assert_eq!(explain(&output, &confinement), None);
    }
}
