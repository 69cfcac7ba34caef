//! What was refused: downloads, for want of a network, and writes to the caches of tools or by a script's last command.

use super::lack::{Failed, Kind, Lack, Machine, as_npm_writes, last_line};

/// What helps every tool.
const ALLOW: &str = "allow the network with `--network` or `[sandbox] network = true`";

struct Downloader {
    /// The name for messages.
    name: &'static str,
    /// Words of one line, all of them.
    says: &'static [&'static str],
    /// What fills its cache once, outside of the sandbox.
    once: Option<&'static str>,
}

/// Each row is a message that only a failed download causes.
const DOWNLOADERS: [Downloader; 19] = [
    Downloader { name: "cargo", says: &["you're using offline mode (--offline)"], once: Some("cargo fetch") },
    Downloader { name: "cargo", says: &["but --offline was specified"], once: Some("cargo fetch") },
    Downloader { name: "npm", says: &["npm error code EAI_AGAIN"], once: Some("npm ci") },
    Downloader { name: "npm", says: &["npm error code ENOTFOUND"], once: Some("npm ci") },
    Downloader { name: "npm", says: &["npm error code ENOTCACHED"], once: Some("npm ci") },
    Downloader {
        name: "npm",
        says: &["npm error request to https://", " failed, reason:"],
        once: Some("npm ci"),
    },
    Downloader { name: "pnpm", says: &["ERR_PNPM_NO_OFFLINE_TARBALL"], once: Some("pnpm install") },
    Downloader { name: "pnpm", says: &["ERR_PNPM_META_FETCH_FAIL"], once: Some("pnpm install") },
    Downloader {
        name: "pip",
        says: &["WARNING: Retrying (Retry(total=0", "after connection broken by"],
        once: None,
    },
    Downloader { name: "uv", says: &["error: Failed to fetch: `http"], once: Some("uv sync") },
    Downloader { name: "uv", says: &["× Failed to fetch: `http"], once: Some("uv sync") },
    Downloader {
        name: "uv",
        says: &["Network connectivity is disabled, but the requested data"],
        once: Some("uv sync"),
    },
    Downloader { name: "go", says: &[": Get \"https://", "dial tcp"], once: Some("go mod download") },
    Downloader { name: "go", says: &[": Get \"https://", "lookup "], once: Some("go mod download") },
    Downloader { name: "Maven", says: &["[ERROR]", ": Unknown host "], once: None },
    Downloader { name: "Maven", says: &["[ERROR]", "in offline mode and the artifact"], once: None },
    Downloader { name: "Gradle", says: &["No cached version of ", "available for offline mode"], once: None },
    Downloader { name: "Gradle", says: &["> Could not GET 'http"], once: None },
    Downloader {
        name: "Gradle",
        says: &["Exception in thread \"main\" java.net.UnknownHostException"],
        once: None,
    },
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
        DOWNLOADERS.iter().find(|tool| tool.says.iter().all(|words| line.contains(words)))
    };
    if let Some(tool) = failed.output.lines().find_map(of_line) {
        let once = tool
            .once
            .map(|once| format!("run `{once}` once outside of the sandbox, or "))
            .unwrap_or_default();
        return Some(without(tool.name, &format!("{once}{ALLOW}")));
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
