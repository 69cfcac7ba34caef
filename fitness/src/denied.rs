//! Writes that were refused: to the caches of tools, and by a script's last command.

use crate::{Kind, Lack, Machine, as_npm_writes, last_line};

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

pub(crate) fn refused(output: &str, machine: &impl Machine) -> Option<Lack> {
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
