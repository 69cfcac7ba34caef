//! What was refused: downloads, for want of a network, and writes to the caches of tools or by a script's last command.

use super::lack::{Failed, Kind, Lack, Machine, as_npm_writes, last_line};

/// What helps every tool.
const ALLOW: &str = "allow the network with `--network` or `[sandbox] network = true`";

/// Tools with the words of one line that only a failed download causes, and what fills the cache once, outside of the
/// sandbox.
const DOWNLOADERS: [(&str, &[&str], Option<&str>); 19] = [
    ("cargo", &["you're using offline mode (--offline)"], Some("cargo fetch")),
    ("cargo", &["but --offline was specified"], Some("cargo fetch")),
    ("npm", &["npm error code EAI_AGAIN"], Some("npm ci")),
    ("npm", &["npm error code ENOTFOUND"], Some("npm ci")),
    ("npm", &["npm error code ENOTCACHED"], Some("npm ci")),
    ("npm", &["npm error request to https://", " failed, reason:"], Some("npm ci")),
    ("pnpm", &["ERR_PNPM_NO_OFFLINE_TARBALL"], Some("pnpm install")),
    ("pnpm", &["ERR_PNPM_META_FETCH_FAIL"], Some("pnpm install")),
    ("pip", &["WARNING: Retrying (Retry(total=0", "after connection broken by"], None),
    ("uv", &["error: Failed to fetch: `http"], Some("uv sync")),
    ("uv", &["× Failed to fetch: `http"], Some("uv sync")),
    ("uv", &["Network connectivity is disabled, but the requested data"], Some("uv sync")),
    ("go", &[": Get \"https://", "dial tcp"], Some("go mod download")),
    ("go", &[": Get \"https://", "lookup "], Some("go mod download")),
    ("Maven", &["[ERROR]", ": Unknown host "], None),
    ("Maven", &["[ERROR]", "in offline mode and the artifact"], None),
    ("Gradle", &["No cached version of ", "available for offline mode"], None),
    ("Gradle", &["> Could not GET 'http"], None),
    ("Gradle", &["Exception in thread \"main\" java.net.UnknownHostException"], None),
];

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
    let of_line = |line: &str| {
        let line = as_npm_writes(line);
        DOWNLOADERS.iter().find(|(_, says, _)| says.iter().all(|words| line.contains(words)))
    };
    if let Some((name, _, once)) = failed.output.lines().find_map(of_line) {
        let once =
            once.map_or_else(String::new, |once| format!("run `{once}` once outside of the sandbox, or "));
        return Some(without(name, &format!("{once}{ALLOW}")));
    }
    let last = last_line(failed.output)?;
    let is_last =
        |(_, code, words): &&(&str, i32, &str)| failed.exit_code == *code && last.starts_with(words);
    LAST_WORDS.iter().find(is_last).map(|(name, ..)| without(name, ALLOW))
}

fn without(name: &str, help: &str) -> Lack {
    Lack::new(
        Kind::Network,
        format!("{name} has to download something, and the sandbox has no network"),
        help,
    )
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
const WRITERS: [&str; 10] =
    ["mkdir: ", "touch: ", "cp: ", "mv: ", "rm: ", "ln: ", "install: ", "tee: ", "chmod: ", "dd: "];
const REFUSED: [&str; 3] = ["Read-only file system", "Permission denied", "Operation not permitted"];

pub(super) fn write(output: &str, machine: &impl Machine) -> Option<Lack> {
    let of_line = |line: &str| {
        let line = as_npm_writes(line);
        CACHES.iter().find(|(_, words)| line.contains(words)).map(|(tool, _)| *tool)
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
