//! Machines and cables between them: network namespaces of a test's own.

use std::fs::{self, File};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::{Program, until};

/// A network namespace. Programs in it reach themselves, and the machines that it is linked to. It ends when this is dropped and
/// its last program has ended.
#[derive(Debug)]
pub struct Machine {
    holder: Program,
}

/// The only way between two machines.
#[derive(Debug)]
pub struct Link {
    namespace: String,
    name: String,
}

impl Machine {
    /// A new one; `None`, said aloud, where nobody may make one.
    pub fn new() -> anyhow::Result<Option<Self>> {
        let mut unshare = Command::new("unshare");
        unshare.args([
            "--net",
            "sh",
            "-c",
            "ip link set lo up && exec sleep infinity",
        ]);
        let mut holder = Program::start(unshare, Path::new("/dev/null"))?;
        let own = fs::read_link("/proc/thread-self/ns/net")?;
        until("a machine", || {
            let ready = fs::read_link(holder.namespace()).is_ok_and(|other| other != own);
            (ready || holder.has_ended()).then_some(())
        })?;
        if holder.has_ended() {
            eprintln!(
                "SKIPPED: a partition, because this user may not make network namespaces, or iproute2 is not installed"
            );
            return Ok(None);
        }
        Ok(Some(Self { holder }))
    }

    /// Moves the calling thread here; threads and programs that it starts from now on are here, too.
    pub fn enter(&self) -> anyhow::Result<()> {
        let namespace = File::open(self.holder.namespace())?;
        Ok(move_into_link_name_space(
            namespace.as_fd(),
            Some(LinkNameSpaceType::Network),
        )?)
    }
}

impl Link {
    /// Links two machines: the first gets the address `10.77.NUMBER.1`, the other one `10.77.NUMBER.2`.
    pub fn between(one: &Machine, other: &Machine, number: u8) -> anyhow::Result<Self> {
        let link = Self {
            namespace: one.holder.namespace(),
            name: format!("link{number}"),
        };
        let (name, there) = (&link.name, other.holder.namespace());
        link.ip(&format!(
            "link add name {name} type veth peer name {name} netns {}",
            other.holder.id()
        ))?;
        for (namespace, host) in [(&link.namespace, 1), (&there, 2)] {
            ip(
                namespace,
                &format!("address add 10.77.{number}.{host}/24 dev {name}"),
            )?;
            ip(namespace, &format!("link set {name} up"))?;
        }
        Ok(link)
    }

    /// From now on nothing passes, and nobody is told; or it passes again.
    pub fn cut(&self, is_cut: bool) -> anyhow::Result<()> {
        self.ip(&format!(
            "link set {} {}",
            self.name,
            if is_cut { "down" } else { "up" }
        ))
    }

    fn ip(&self, words: &str) -> anyhow::Result<()> {
        ip(&self.namespace, words)
    }
}

fn ip(namespace: &str, words: &str) -> anyhow::Result<()> {
    let mut ip = Command::new("nsenter");
    ip.arg(format!("--net={namespace}"))
        .args(["--", "ip"])
        .args(words.split(' '));
    let done = ip.stdin(Stdio::null()).output()?;
    anyhow::ensure!(
        done.status.success(),
        "ip {words}: {}",
        String::from_utf8_lossy(&done.stderr)
    );
    Ok(())
}
