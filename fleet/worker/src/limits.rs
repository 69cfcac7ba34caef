//! Control groups: what an order may use of this machine.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// Far more than a build needs, and far less than a fork bomb makes.
const PROCESSES: u32 = 4096;

/// The worker's own part of the hierarchy, which its service manager has delegated to it.
#[derive(Debug)]
pub(crate) struct Groups {
    top: PathBuf,
    memory: u64,
}

/// The group of one order; dropping it kills what is left in it.
#[derive(Debug)]
pub(crate) struct Group(PathBuf);

impl Groups {
    /// The group that this process is in, with limits for orders below it.
    pub(crate) fn delegated(memory: u64) -> anyhow::Result<Self> {
        let own = std::fs::read_to_string("/proc/self/cgroup")
            .context("/proc/self/cgroup cannot be read")?;
        let own = own
            .lines()
            .find_map(|line| line.strip_prefix("0::"))
            .context("this machine has no cgroup v2")?;
        Self::at(
            Path::new("/sys/fs/cgroup").join(own.trim_start_matches('/')),
            memory,
        )
    }

    /// Moves this process into a group of its own, because a group with limits for others may hold none itself.
    fn at(top: PathBuf, memory: u64) -> anyhow::Result<Self> {
        let help = || {
            format!(
                "{} is not delegated to this worker (systemd: Delegate=memory pids); or drop --memory",
                top.display()
            )
        };
        // Where version 1 has the controllers, these files could be made, and would limit nothing.
        let controllers =
            std::fs::read_to_string(top.join("cgroup.controllers")).with_context(help)?;
        let has = |name: &str| {
            controllers
                .split_whitespace()
                .any(|controller| controller == name)
        };
        anyhow::ensure!(has("memory") && has("pids"), help());
        let main = top.join("worker");
        let enter = || -> std::io::Result<()> {
            std::fs::create_dir_all(&main)?;
            write(&main.join("cgroup.procs"), "0")?;
            write(&top.join("cgroup.subtree_control"), "+memory +pids")
        };
        enter().with_context(help)?;
        Ok(Self { top, memory })
    }

    /// A group for an order.
    pub(crate) fn make(&self, name: &str) -> anyhow::Result<Group> {
        let group = Group(self.top.join(name));
        let make = || -> std::io::Result<()> {
            std::fs::create_dir_all(&group.0)?;
            write(&group.0.join("memory.max"), &self.memory.to_string())?;
            write(&group.0.join("memory.oom.group"), "1")?;
            write(&group.0.join("pids.max"), &PROCESSES.to_string())
        };
        make().with_context(|| format!("{} cannot be made", group.0.display()))?;
        Ok(group)
    }
}

impl Group {
    /// A process that writes 0 here enters the group.
    pub(crate) fn entrance(&self) -> PathBuf {
        self.0.join("cgroup.procs")
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Nothing is left in most, and a group that stays is empty and used again.
        let _ = write(&self.0.join("cgroup.kill"), "1");
        let _ = std::fs::remove_dir(&self.0);
    }
}

fn write(file: &Path, value: &str) -> std::io::Result<()> {
    std::fs::write(file, value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder that looks like a delegated group; its files keep what was written last.
    fn group(controllers: &str) -> tempfile::TempDir {
        let top = tempfile::tempdir().unwrap();
        write(&top.path().join("cgroup.controllers"), controllers).unwrap();
        top
    }

    #[test]
    fn an_order_gets_a_group_with_limits_below_that_of_the_worker() {
        let top = group("cpu memory pids\n");
        let groups = Groups::at(top.path().to_owned(), 1 << 30).unwrap();
        let read = |name: &str| std::fs::read_to_string(top.path().join(name)).unwrap();
        assert_eq!(
            (read("worker/cgroup.procs"), read("cgroup.subtree_control")),
            ("0".into(), "+memory +pids".into())
        );
        let order = groups.make("order-7-1").unwrap();
        assert_eq!(order.entrance(), top.path().join("order-7-1/cgroup.procs"));
        assert_eq!(
            (read("order-7-1/memory.max"), read("order-7-1/pids.max")),
            ("1073741824".into(), "4096".into())
        );
        drop(order);
        assert_eq!(read("order-7-1/cgroup.kill"), "1");
    }

    #[test]
    fn a_group_without_controllers_is_refused_with_the_setting_that_helps() {
        for controllers in ["", "cpu memory"] {
            let top = group(controllers);
            let error = Groups::at(top.path().to_owned(), 1)
                .unwrap_err()
                .to_string();
            assert!(error.contains("Delegate=memory pids"), "{error}");
        }
        assert!(Groups::at("/nowhere".into(), 1).is_err());
    }
}
