//! What `/proc` says of a process.

use std::fs;

/// One process, as it was when it was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: i32,
    /// A zombie: only its parent's `wait` is missing.
    pub(super) is_dead: bool,
    pub(super) group: i32,
    pub(super) session: i32,
    parent: i32,
    /// Clock ticks since the machine was started; with `pid` it names a process for ever.
    started: u64,
}

impl Process {
    pub(super) fn read(pid: i32) -> Option<Self> {
        Self::parse(pid, &fs::read(format!("/proc/{pid}/stat")).ok()?)
    }

    /// The program's name, in parentheses, may itself hold blanks and parentheses: read from the
    /// last one on.
    fn parse(pid: i32, stat: &[u8]) -> Option<Self> {
        let name_end = stat.iter().rposition(|byte| *byte == b')')?;
        let rest = str::from_utf8(stat.get(name_end + 1..)?).ok()?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let number = |at: usize| fields.get(at)?.parse::<i32>().ok();
        Some(Self {
            pid,
            is_dead: matches!(*fields.first()?, "Z" | "X"),
            parent: number(1)?,
            group: number(2)?,
            session: number(3)?,
            started: fields.get(19)?.parse().ok()?,
        })
    }

    /// Whether the number still means this process, and it has not died.
    pub(super) fn is_still_there(&self) -> bool {
        Self::read(self.pid).is_some_and(|now| now.started == self.started && !now.is_dead)
    }

    /// Whether it was started with this variable. A process can wipe this, so it only ever adds.
    pub(super) fn has_variable(&self, name: &str, value: &str) -> bool {
        let line = format!("{name}={value}");
        fs::read(format!("/proc/{}/environ", self.pid))
            .is_ok_and(|all| all.split(|byte| *byte == 0).any(|variable| variable == line.as_bytes()))
    }

    /// How many filters it is under. They are inherited and nothing can take one off.
    pub(super) fn seccomp_filters(&self) -> u32 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap_or_default();
        let count = status.lines().find_map(|line| line.strip_prefix("Seccomp_filters:"));
        count.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
    }
}

/// The numbers of a process's children. The kernel's own list where it has one, which costs a few
/// microseconds however many processes the machine has.
pub(super) fn children_of(pid: i32) -> Vec<i32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let lists: Vec<_> =
        threads.filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("children")).ok()).collect();
    if lists.is_empty() && Process::read(pid).is_some() {
        return children_by_scan(pid);
    }
    lists.iter().flat_map(|list| list.split_ascii_whitespace()).filter_map(|pid| pid.parse().ok()).collect()
}

/// For kernels built without `CONFIG_PROC_CHILDREN`.
fn children_by_scan(pid: i32) -> Vec<i32> {
    let Ok(all) = fs::read_dir("/proc") else { return Vec::new() };
    all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(Process::read)
        .filter(|process| process.parent == pid)
        .map(|process| process.pid)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_named_like_a_stat_line_does_not_fool_the_parser() {
        let stat = b"42 (a) R 1 (b) S 7 8 9 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 12345 0 0";
        let process = Process::parse(42, stat).unwrap();
        assert_eq!((process.parent, process.group, process.session, process.started), (7, 8, 9, 12345));
        assert!(!process.is_dead);
    }

    #[test]
    fn we_are_among_the_children_of_our_parent_both_ways() {
        let own = Process::read(std::process::id().cast_signed()).unwrap();
        assert!(children_of(own.parent).contains(&own.pid));
        assert!(children_by_scan(own.parent).contains(&own.pid));
        assert!(own.is_still_there());
    }
}
