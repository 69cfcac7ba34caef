//! Information about processes from `/proc`.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// A snapshot of one process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    /// A zombie: it only waits for its parent to reap it.
    pub(crate) is_dead: bool,
    pub(crate) group: i32,
    pub(crate) session: i32,
    pub(crate) parent: i32,
    /// Clock ticks since boot. Together with `pid` it identifies a process uniquely.
    pub(crate) started: u64,
}

impl Process {
    pub(crate) fn read(pid: i32) -> Option<Self> {
        Self::parse(pid, &slurp(format!("/proc/{pid}/stat")).ok()?)
    }

    /// The parent of this process, as the mounted `/proc` numbers it.
    pub(crate) fn parent_of_self() -> Option<i32> {
        Self::parse(0, &slurp("/proc/self/stat").ok()?).map(|own| own.parent)
    }

    /// The program's name, in parentheses, may itself contain blanks and parentheses, so we search
    /// for the last one.
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

    /// Whether the process ID still refers to this process, and it is alive.
    pub(crate) fn is_still_there(&self) -> bool {
        Self::read(self.pid).is_some_and(|now| now.started == self.started && !now.is_dead)
    }

    /// Whether it runs as our own user.
    pub(crate) fn is_ours(&self) -> bool {
        let owner = fs::metadata(format!("/proc/{}", self.pid)).map(|process| process.uid());
        owner.is_ok_and(|owner| owner == rustix::process::geteuid().as_raw())
    }

    /// Memory that is not that of files, in bytes. A process shares much of it with those that it forked.
    pub(crate) fn own_bytes(&self) -> u64 {
        let sizes = slurp(format!("/proc/{}/statm", self.pid)).unwrap_or_default();
        let mut pages = sizes.split(u8::is_ascii_whitespace).skip(1).map(number);
        let (resident, shared) = (pages.next().unwrap_or(0), pages.next().unwrap_or(0));
        resident.saturating_sub(shared) * rustix::param::page_size() as u64
    }

    /// Memory of its own, plus its part of what it shares. Takes much longer, and not every user may read it.
    pub(crate) fn proportional_bytes(&self) -> u64 {
        let sums = slurp(format!("/proc/{}/smaps_rollup", self.pid)).unwrap_or_default();
        let mut lines = sums
            .split(|byte| *byte == b'\n')
            .filter_map(|line| line.strip_prefix(b"Pss_Anon:"));
        let kilobytes = lines
            .next()
            .map(|rest| number(rest.trim_ascii().strip_suffix(b" kB").unwrap_or(rest)));
        kilobytes.map_or_else(|| self.own_bytes(), |kilobytes| kilobytes << 10)
    }

    /// A variable of its initial environment. A process can clear it.
    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        let all = slurp(format!("/proc/{}/environ", self.pid)).ok()?;
        let mut values = all.split(|byte| *byte == 0).filter_map(|variable| {
            variable
                .strip_prefix(name.as_bytes())
                .and_then(|rest| rest.strip_prefix(b"="))
        });
        values
            .next()
            .map(|value| String::from_utf8_lossy(value).into_owned())
    }

    /// The number of seccomp filters on it. They are inherited and cannot be removed.
    pub(crate) fn seccomp_filters(&self) -> u32 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap_or_default();
        let count = status
            .lines()
            .find_map(|line| line.strip_prefix("Seccomp_filters:"));
        count
            .and_then(|count| count.trim().parse().ok())
            .unwrap_or(0)
    }
}

fn number(digits: &[u8]) -> u64 {
    str::from_utf8(digits)
        .ok()
        .and_then(|digits| digits.parse().ok())
        .unwrap_or(0)
}

/// Reads a file of `/proc`, which does not report its size: usually one read is enough.
fn slurp(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(1024);
    File::open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The process IDs of a process's children. Uses the kernel's own list if available, which takes a
/// few microseconds however many processes there are.
pub(crate) fn children_of(pid: i32) -> Vec<i32> {
    let Ok(threads) = code_commit_dir::list(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    let lists: Vec<_> = threads
        .filter_map(|thread| slurp(thread.ok()?.path().join("children")).ok())
        .collect();
    if lists.is_empty() && Process::read(pid).is_some() {
        return children_by_scan(pid);
    }
    let words = lists
        .iter()
        .flat_map(|list| list.split(u8::is_ascii_whitespace));
    words
        .filter_map(|word| str::from_utf8(word).ok()?.parse().ok())
        .collect()
}

/// For kernels built without `CONFIG_PROC_CHILDREN`.
fn children_by_scan(pid: i32) -> Vec<i32> {
    all()
        .into_iter()
        .filter(|process| process.parent == pid)
        .map(|process| process.pid)
        .collect()
}

pub(crate) fn all() -> Vec<Process> {
    numbers().filter_map(Process::read).collect()
}

/// The process IDs of all of them.
pub(crate) fn numbers() -> impl Iterator<Item = i32> {
    let all = code_commit_dir::list("/proc").into_iter().flatten();
    all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

pub(crate) fn own_pid() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_named_like_a_stat_line_does_not_fool_the_parser() {
        let stat = b"42 (a) R 1 (b) S 7 8 9 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 12345 0 0";
        let process = Process::parse(42, stat).unwrap();
        assert_eq!(
            (
                process.parent,
                process.group,
                process.session,
                process.started
            ),
            (7, 8, 9, 12345)
        );
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
