//! What was refused: downloads, for want of a network, and writes to the caches of tools or by a script's last command.

use code_commit_names::{MANAGERS, Manager};

use super::hosts::{allow, asked_for};
use super::lack::{Failed, Kind, Lack, Machine, as_npm_writes, last_line};
use crate::Rung;

/// Package managers with the words of one line that only a failed download causes.
const DOWNLOADERS: [(&str, &[&str]); 27] = [
    ("cargo", &["you're using offline mode (--offline)"]),
    ("cargo", &["--offline was specified"]),
    ("npm", &["npm error code EAI_AGAIN"]),
    ("npm", &["npm error code ENOTFOUND"]),
    ("npm", &["npm error code ENOTCACHED"]),
    ("npm", &["npm error request to http", " failed, reason:"]),
    ("pnpm", &["ERR_PNPM_NO_OFFLINE_TARBALL"]),
    ("pnpm", &["ERR_PNPM_META_FETCH_FAIL"]),
    (
        "yarn",
        &["error An unexpected error occurred: \"http", "getaddrinfo"],
    ),
    (
        "pip",
        &[
            "WARNING: Retrying (Retry(total=0",
            "after connection broken by",
        ],
    ),
    ("uv", &[" Failed to fetch: ", "http"]),
    (
        "uv",
        &["Network connectivity is disabled, but the requested data"],
    ),
    ("poetry", &["All attempts to connect to ", " failed."]),
    ("go", &[": Get \"http", "dial tcp"]),
    ("go", &[": Get \"http", "lookup "]),
    ("Maven", &["[ERROR]", ": Unknown host "]),
    ("Maven", &["[ERROR]", "in offline mode and the artifact"]),
    (
        "Gradle",
        &["No cached version of ", "available for offline mode"],
    ),
    ("Gradle", &["> Could not GET 'http"]),
    (
        "Gradle",
        &["Exception in thread \"main\" java.net.UnknownHostException"],
    ),
    (
        "Bundler",
        &["Could not reach host ", "Check your network connection"],
    ),
    ("Mix", &["httpc request failed with: {:failed_connect"]),
    ("Composer", &["curl error 6 while downloading http"]),
    (
        "NuGet",
        &["error NU1301: Unable to load the service index for source"],
    ),
    (
        "cabal",
        &[
            "The package list for '",
            "does not exist. Run 'cabal update'",
        ],
    ),
    (
        "cabal",
        &["user error (cabal: ", "curl' exited with an error"],
    ),
    ("pub", &["Got socket error trying to find package "]),
];

/// The package manager that could not download anything, by a line of its output.
pub(super) fn manager(line: &str) -> Option<&'static Manager> {
    let line = as_npm_writes(line);
    let (name, _) = DOWNLOADERS
        .iter()
        .find(|(_, says)| says.iter().all(|words| line.contains(words)))?;
    MANAGERS.iter().find(|manager| manager.name == *name)
}

/// Programs that are their script's last word, with the exit code for it.
const LAST_WORDS: [(&str, i32, &str); 4] = [
    ("curl", 6, "curl: (6) Could not resolve host: "),
    ("curl", 7, "curl: (7) "),
    ("wget", 4, "wget: unable to resolve host address"),
    ("git", 128, "fatal: unable to access 'http"),
];

pub(super) fn download(failed: &Failed<'_>, machine: &impl Machine) -> Option<Lack> {
    if machine.has_network() {
        return None;
    }
    let open = || allow(&asked_for(failed.output), machine.rung());
    let without = |name: &str, help: String| {
        let what = format!("{name} has to download something, and the sandbox has no network");
        Some(Lack::new(Kind::Network, what, help))
    };
    if let Some(Manager { name, fetch, .. }) = failed.output.lines().find_map(manager) {
        let once = match (*fetch, machine.rung()) {
            ("", _) => String::new(),
            (_, Rung::Namespaces) => "run `code-commit check --fetch` once, or ".to_owned(),
            (line, _) => format!("run `{line}` once outside of the sandbox, or "),
        };
        return without(name, once + &open());
    }
    let last = last_line(failed.output)?;
    let is_last = |(_, code, words): &&(&str, i32, &str)| {
        failed.exit_code == *code && last.starts_with(words)
    };
    LAST_WORDS
        .iter()
        .find(is_last)
        .and_then(|(name, ..)| without(name, open()))
}

/// What tools say about a cache that they cannot write.
const CACHES: [(&str, &str); 9] = [
    ("Maven", "Could not create local repository at "),
    ("Gradle", "> Failed to create parent directory '"),
    ("Gradle", "Could not create service of type "),
    ("go", "failed to initialize build cache at "),
    ("npm", "npm error code EROFS"),
    ("npm", "npm error code EACCES"),
    ("uv", "error: Failed to initialize cache at "),
    ("pnpm", "ERR_PNPM_EROFS"),
    ("ccache", "ccache: error: Failed to create "),
];

/// Commands that only write, as they begin their messages.
const WRITERS: [&str; 10] = [
    "mkdir: ",
    "touch: ",
    "cp: ",
    "mv: ",
    "rm: ",
    "ln: ",
    "install: ",
    "tee: ",
    "chmod: ",
    "dd: ",
];
const REFUSED: [&str; 3] = [
    "Read-only file system",
    "Permission denied",
    "Operation not permitted",
];

pub(super) fn write(output: &str, machine: &impl Machine) -> Option<Lack> {
    let of_line = |line: &str| {
        let line = as_npm_writes(line);
        CACHES
            .iter()
            .find(|(_, words)| line.contains(words))
            .map(|(tool, _)| *tool)
    };
    let cache = output.lines().find_map(of_line);
    if let Some(tool) = cache {
        return Some(Lack::new(
            Kind::Cache,
            format!("{tool} cannot write its cache in the sandbox"),
            machine.blocked()?,
        ));
    }
    let line = last_line(output).filter(|line| is_refused_write(line))?;
    Some(Lack::new(
        Kind::Permission,
        format!("the sandbox refused a write ({})", line.trim()),
        machine.blocked()?,
    ))
}

/// `cp: cannot create regular file '/opt/x': Read-only file system`, `sh: 1: cannot create /opt/x: …`.
fn is_refused_write(line: &str) -> bool {
    let is_writer =
        WRITERS.iter().any(|writer| line.starts_with(writer)) || line.contains(": cannot create ");
    is_writer && REFUSED.iter().any(|words| line.ends_with(words))
}
