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
    /// Moves this process into a group of its own, because a group with limits for others may hold none itself.
    pub(crate) fn delegated(memory: u64) -> anyhow::Result<Self> {
        let own = std::fs::read_to_string("/proc/self/cgroup").context("/proc/self/cgroup cannot be read")?;
        let own =
            own.lines().find_map(|line| line.strip_prefix("0::")).context("this machine has no cgroup v2")?;
        let top = Path::new("/sys/fs/cgroup").join(own.trim_start_matches('/'));
        let enter = || -> std::io::Result<()> {
            let main = top.join("worker");
            std::fs::create_dir_all(&main)?;
            write(&main.join("cgroup.procs"), "0")?;
            write(&top.join("cgroup.subtree_control"), "+memory +pids")
        };
        enter().with_context(|| {
            format!(
                "{} is not delegated to this worker (systemd: Delegate=yes); or drop --memory",
                top.display()
            )
        })?;
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
    /// Whoever writes 0 here is in it.
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
