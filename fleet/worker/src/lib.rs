//! Takes orders from a gateway, carries them out with the ordinary program, and brings their results to the hub.
//!
//! A worker has no database password and no vendor's key: its program reaches models only through the gateway, with the token
//! of a lease. It decides nothing: a verdict is the program's, whether it counts is the database's. Kill it at any moment;
//! what it had is leased to another one.
//!
//! Limits: one order a slot; the program's sandbox is required.

mod client;
mod job;
mod limits;
mod program;
mod train;

pub use client::{Client, Endpoint};

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use code_commit_fleet_git::Mirrors;
use code_commit_fleet_wire::{Ask, Lease, RECORD};
use tokio::sync::watch;
use tokio_util::task::TaskTracker;

use crate::job::{Ended, Job};
use crate::program::Ordinary;

/// How long a request for an order may take; a worker that is asked to end does not wait longer.
const WAIT: Duration = Duration::from_secs(10);
/// The longest pause of a slot whose machine seems to be broken.
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// How a worker is set up.
#[derive(Debug)]
pub struct Setup {
    /// Its name, for people.
    pub name: String,
    /// Where the gateway is.
    pub endpoint: Endpoint,
    /// The authority of the gateway's certificate, in PEM. With it a [`Endpoint::Tcp`] is reached by TLS, and the program trusts
    /// it instead of the system's authorities.
    pub authority: Option<PathBuf>,
    /// Where the gateway's models are, as an origin.
    pub models: String,
    /// A folder of its own, for mirrors and work trees.
    pub folder: PathBuf,
    /// The ordinary program.
    pub program: PathBuf,
    /// How many orders at a time.
    pub slots: usize,
    /// The most memory that an order may use, where control groups are delegated to the worker.
    pub memory: Option<u64>,
}

/// A request to the worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wish {
    /// Take orders.
    Work,
    /// Finish those that it has and take no more.
    Drain,
    /// Give back those that it has.
    Stop,
}

/// State that all slots share.
#[derive(Debug)]
struct Worker {
    name: String,
    version: String,
    client: Client,
    models: String,
    program: Ordinary,
    jobs: PathBuf,
    mirrors: Mirrors,
    groups: Option<limits::Groups>,
    wish: watch::Receiver<Wish>,
    /// What goes on when an order is over.
    tasks: TaskTracker,
}

/// Works until `wish` says otherwise.
pub async fn run(setup: Setup, wish: watch::Receiver<Wish>) -> anyhow::Result<()> {
    let Setup {
        name,
        endpoint,
        authority,
        models,
        folder,
        program,
        slots,
        memory,
    } = setup;
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("{} cannot be made", folder.display()))?;
    let _alone = alone(&folder)?;
    let jobs = folder.join("jobs");
    // Left by a worker that was killed, whose programs may be about to end.
    job::remove(jobs.clone())
        .await
        .with_context(|| format!("{} cannot be removed", jobs.display()))?;
    let client = Client::new(endpoint, authority.as_deref())?;
    let program = Ordinary {
        path: program,
        authority,
    };
    let version = program::version(&program).await?;
    let groups = memory.map(limits::Groups::delegated).transpose()?;
    let (mirrors, tasks) = (Mirrors::new(folder.join("mirrors")), TaskTracker::new());
    let worker = Arc::new(Worker {
        name,
        version,
        client,
        models,
        program,
        jobs,
        mirrors,
        groups,
        wish,
        tasks,
    });
    tracing::info!(
        worker = worker.name,
        version = worker.version,
        slots,
        "working"
    );
    let slots: Vec<_> = (0..slots)
        .map(|_| tokio::spawn(slot(Arc::clone(&worker))))
        .collect();
    for slot in slots {
        slot.await.context("a slot broke")?;
    }
    // Programs that were ended have their time; the end of this process would end it.
    worker.tasks.close();
    worker.tasks.wait().await;
    Ok(())
}

/// Two workers in one folder would remove each other's work trees.
fn alone(folder: &std::path::Path) -> anyhow::Result<File> {
    let path = folder.join("lock");
    let lock = File::create(&path).with_context(|| format!("{} cannot be made", path.display()))?;
    lock.try_lock()
        .with_context(|| format!("another worker uses {}", folder.display()))?;
    Ok(lock)
}

/// Takes one order after another.
async fn slot(worker: Arc<Worker>) {
    let mut trouble = 0;
    let mut wish = worker.wish.clone();
    while *wish.borrow() == Wish::Work {
        let pause = match worker.client.lease(&worker.ask()).await {
            Ok(None) => continue,
            Ok(Some(lease)) => match worker.carry_out(&lease).await {
                Ended::Verdict | Ended::Gone => {
                    trouble = 0;
                    continue;
                }
                // Another machine may be well, so this one should not empty the queue.
                Ended::Trouble => backoff(&mut trouble),
            },
            Err(error) => {
                tracing::warn!(error = &*error, "the gateway cannot be reached");
                backoff(&mut trouble)
            }
        };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            _ = wish.changed() => {}
        }
    }
}

fn backoff(trouble: &mut u32) -> Duration {
    let pause = Duration::from_millis(250)
        .saturating_mul(1 << (*trouble).min(16))
        .min(LONGEST_PAUSE);
    *trouble += 1;
    pause
}

impl Worker {
    async fn carry_out(&self, lease: &Lease) -> Ended {
        Job {
            worker: self,
            lease,
            ends: &TaskTracker::new(),
        }
        .traced()
        .await
    }

    fn ask(&self) -> Ask {
        let wait_ms = u64::try_from(WAIT.as_millis()).unwrap_or(u64::MAX);
        Ask {
            worker: self.name.clone(),
            version: self.version.clone(),
            record: RECORD,
            wait_ms,
        }
    }
}
