//! One order, from its lease to its end.

use std::future::Future;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use code_commit_fleet_git::{CommitId, git};
use code_commit_fleet_wire::{Finish, Held, Lease, Lost, Verdict};
use serde::Deserialize;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

use crate::client::Fence;
use crate::limits::Group;
use crate::program::{GRACE, Program, Start};
use crate::{Wish, Worker};

/// The program's exit codes that are verdicts; all others are about this machine.
pub(crate) const DONE: i32 = 0;
pub(crate) const FAILED: i32 = 1;
const NO_MODEL: i32 = 4;
/// The gateway may be restarted while an order ends.
const PAUSE: Duration = Duration::from_secs(1);
/// Of a reason, for people.
const LONGEST: usize = 500;

/// An order to carry out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Job<'w> {
    pub(crate) worker: &'w Worker,
    pub(crate) lease: &'w Lease,
    /// The ends of its programs.
    pub(crate) ends: &'w TaskTracker,
}

/// How an order ended for this worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// A verdict was told.
    Verdict,
    /// The lease was lost, or the order given back because the worker stops.
    Gone,
    /// This machine could not do it.
    Trouble,
}

/// Why an order was interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Interrupted {
    Fenced,
    Stopped,
}

/// The part of the program's last line of output that matters.
#[derive(Debug, Default, Deserialize)]
struct Line {
    #[serde(default)]
    summary: Summary,
}

#[derive(Debug, Default, Deserialize)]
struct Summary {
    #[serde(default)]
    ended_stage: Option<String>,
}

impl Job<'_> {
    /// Carries it out within a span of its own.
    pub(crate) async fn traced(self) -> Ended {
        let Lease {
            order,
            epoch,
            traceparent,
            ..
        } = self.lease;
        let span = tracing::info_span!("run", order, epoch, worker = self.worker.name);
        code_commit_fleet_traces::follow(&span, traceparent.as_deref());
        self.run().instrument(span).await
    }

    /// Carries it out while it beats. If the lease is gone, or the worker is to stop, everything that was started for the order
    /// ends.
    async fn run(self) -> Ended {
        let folder = self
            .worker
            .jobs
            .join(format!("{}-{}", self.lease.order, self.lease.epoch));
        let mut wish = self.worker.wish.clone();
        let done = tokio::select! {
            done = self.carry_out(&folder) => Ok(done),
            () = self.beats() => Err(Interrupted::Fenced),
            _ = wish.wait_for(|wish| *wish == Wish::Stop) => Err(Interrupted::Stopped),
        };
        self.clear(folder);
        self.report(done).await
    }

    /// Removes its folder once its programs have ended: they put their things away there.
    fn clear(self, folder: PathBuf) {
        let ends = self.ends.clone();
        ends.close();
        self.worker.tasks.spawn(async move {
            ends.wait().await;
            remove(folder).await
        });
    }

    async fn report(self, done: Result<anyhow::Result<Fence>, Interrupted>) -> Ended {
        let Lease { order, epoch, .. } = self.lease;
        match done {
            Ok(Ok(Fence::Held)) => Ended::Verdict,
            Ok(Ok(Fence::Gone)) | Err(Interrupted::Fenced) => {
                tracing::warn!(order, epoch, "the lease is gone");
                Ended::Gone
            }
            Ok(Ok(Fence::Refused(status))) => {
                self.give_back(&format!("the gateway refused the verdict: {status}"), true)
                    .await;
                Ended::Trouble
            }
            Ok(Err(error)) => {
                tracing::error!(order, epoch, error = &*error, "given back");
                self.give_back(&format!("{error:#}"), true).await;
                Ended::Trouble
            }
            Err(Interrupted::Stopped) => {
                self.give_back("the worker stops", false).await;
                Ended::Gone
            }
        }
    }

    /// If nobody hears it, the lease lapses.
    async fn give_back(self, reason: &str, counts: bool) {
        let lost = Lost {
            token: self.lease.token,
            reason: plain(reason),
            counts,
        };
        if let Err(error) = self.worker.client.lost(&lost).await {
            tracing::warn!(
                error = &*error,
                "cannot give the order back; its lease will lapse"
            );
        }
    }

    /// Beats until the lease is gone.
    async fn beats(self) {
        let mut ticks = tokio::time::interval(Duration::from_millis(self.lease.beat_ms.max(10)));
        loop {
            ticks.tick().await;
            match self.worker.client.beat(self.held()).await {
                Ok(Fence::Held) => {}
                Ok(Fence::Gone) => return,
                Ok(Fence::Refused(status)) => tracing::warn!(%status, "the gateway refused a beat"),
                // The lease may still hold; the next beat or the end will tell.
                Err(error) => tracing::warn!(error = &*error, "cannot beat"),
            }
        }
    }

    async fn carry_out(self, folder: &Path) -> anyhow::Result<Fence> {
        let clock = clock();
        let repo = self
            .prepare(folder)
            .instrument(tracing::info_span!("prepare"))
            .await?;
        if self.lease.is_train {
            let verdict = self
                .verify_train(folder, &repo)
                .instrument(tracing::info_span!("program"))
                .await?;
            return Ok(self.finish(verdict, None, clock).await);
        }
        let code = self
            .run_program(folder, &repo)
            .instrument(tracing::info_span!("program"))
            .await?;
        let verdict = match code {
            DONE => Verdict::Passed {
                commit: self
                    .push(&repo)
                    .instrument(tracing::info_span!("push"))
                    .await?,
            },
            FAILED => Verdict::Failed {
                reason: stage(folder).await,
            },
            // An exported run that has no end is of no use to anybody.
            NO_MODEL => return Ok(self.finish(no_model(folder).await, None, clock).await),
            code => anyhow::bail!(
                "the program ended with {code}: {}",
                last_words(folder).await
            ),
        };
        // The result counts without its bundle. Giving it back would end the same way each time.
        let bundle = self.export(folder, &repo).await.unwrap_or_else(|error| {
            tracing::warn!(
                order = self.lease.order,
                error = &*error,
                "the run is not kept"
            );
            None
        });
        Ok(self.finish(verdict, bundle, clock).await)
    }

    async fn finish(self, verdict: Verdict, bundle: Option<String>, clock: Instant) -> Fence {
        let elapsed_ms = i64::try_from(clock.elapsed().as_millis()).unwrap_or(i64::MAX);
        let finish = Finish {
            token: self.lease.token,
            verdict,
            bundle,
            elapsed_ms,
        };
        patiently(|| self.worker.client.finish(&finish)).await
    }

    /// A work tree at the order's base, and the order beside it.
    async fn prepare(self, folder: &Path) -> anyhow::Result<PathBuf> {
        let repo = folder.join("repo");
        tokio::fs::create_dir_all(folder)
            .await
            .with_context(|| format!("{} cannot be made", folder.display()))?;
        tokio::fs::write(folder.join("order.json"), &self.lease.content)
            .await
            .context("the order cannot be written")?;
        let mirror = self.worker.mirrors.of(&self.lease.repo).await?;
        let base = mirror.bring(&self.lease.base).await?;
        mirror.check_out(&base, &repo).await?;
        Ok(repo)
    }

    async fn run_program(self, folder: &Path, repo: &Path) -> anyhow::Result<i32> {
        let models = format!(
            "{}/m/{}",
            self.worker.models.trim_end_matches('/'),
            self.lease.token
        );
        let (order, out) = (folder.join("order.json"), folder.join("out"));
        let args: [&std::ffi::OsStr; 14] = [
            "order".as_ref(),
            "run".as_ref(),
            order.as_ref(),
            "--repo".as_ref(),
            repo.as_ref(),
            "--out".as_ref(),
            out.as_ref(),
            "--commit".as_ref(),
            "--llm-model".as_ref(),
            self.lease.model.as_ref(),
            // Never off, whatever a configuration says.
            "--sandbox".as_ref(),
            "auto".as_ref(),
            "--json".as_ref(),
            "--quiet".as_ref(),
        ];
        let program = self.start(folder, folder);
        Program::start(
            Start {
                models: Some(&models),
                group: self.group()?,
                ..program
            },
            args,
        )?
        .wait()
        .await
    }

    /// The result's commit, in the hub under a name of this lease alone.
    async fn push(self, repo: &Path) -> anyhow::Result<String> {
        let commit: CommitId = git(repo, &["rev-parse", "HEAD"]).await?.trim().parse()?;
        let update = format!("{commit}:{}", self.lease.reference);
        git(repo, &["push", "-q", "--", &self.lease.repo, &update]).await?;
        Ok(commit.to_string())
    }

    /// The run as one file in the database; `None` if the lease is gone, which the verdict's fence will say.
    async fn export(self, folder: &Path, repo: &Path) -> anyhow::Result<Option<String>> {
        let file = folder.join("run.bundle");
        let args: [&std::ffi::OsStr; 3] = ["export".as_ref(), "-o".as_ref(), file.as_ref()];
        let scratch = folder.join("export");
        tokio::fs::create_dir_all(&scratch).await?;
        let code = Program::start(self.start(repo, &scratch), args)?
            .wait()
            .await?;
        anyhow::ensure!(
            code == 0,
            "the run cannot be exported: {}",
            last_words(&scratch).await
        );
        let content = tokio::fs::read(&file)
            .await
            .context("the exported run cannot be read")?;
        match patiently(|| self.worker.client.store(self.held(), content.clone())).await {
            Ok(sha256) => Ok(Some(sha256)),
            Err(Fence::Refused(status)) => {
                anyhow::bail!("the gateway refused its {} bytes: {status}", content.len())
            }
            Err(Fence::Held | Fence::Gone) => Ok(None),
        }
    }

    /// Where control groups are delegated to the worker.
    pub(crate) fn group(self) -> anyhow::Result<Option<Group>> {
        let name = format!("order-{}-{}", self.lease.order, self.lease.epoch);
        self.worker
            .groups
            .as_ref()
            .map(|groups| groups.make(&name))
            .transpose()
    }

    pub(crate) fn start<'s>(self, folder: &'s Path, output: &'s Path) -> Start<'s>
    where
        Self: 's,
    {
        let (program, ends) = (&self.worker.program, self.ends);
        Start {
            program,
            folder,
            output,
            models: None,
            group: None,
            ends,
        }
    }

    fn held(self) -> Held {
        Held {
            token: self.lease.token,
        }
    }
}

/// The whole of the work is ended from outside when the lease is gone, so this need not give up.
async fn patiently<T, F: Future<Output = anyhow::Result<T>>>(mut attempt: impl FnMut() -> F) -> T {
    loop {
        match attempt().await {
            Ok(done) => return done,
            Err(error) => tracing::warn!(
                error = &*error,
                "the gateway cannot be reached; trying again"
            ),
        }
        tokio::time::sleep(PAUSE).await;
    }
}

#[expect(clippy::disallowed_methods, reason = "measures only")]
fn clock() -> Instant {
    Instant::now()
}

async fn no_model(folder: &Path) -> Verdict {
    Verdict::NoModel {
        reason: last_words(folder).await,
    }
}

/// A program of a worker that was killed may still write, so there are a few tries; the worker's next start removes the rest.
pub(crate) async fn remove(folder: PathBuf) -> std::io::Result<()> {
    for _ in 0..3 {
        match tokio::fs::remove_dir_all(&folder).await {
            Err(error) if error.kind() != ErrorKind::NotFound => tokio::time::sleep(GRACE).await,
            _ => return Ok(()),
        }
    }
    tokio::fs::remove_dir_all(&folder).await
}

/// At which stage the order failed.
async fn stage(folder: &Path) -> String {
    let printed = tokio::fs::read_to_string(folder.join("stdout"))
        .await
        .unwrap_or_default();
    let lines = printed
        .lines()
        .rev()
        .filter_map(|line| serde_json::from_str::<Line>(line).ok());
    lines
        .into_iter()
        .find_map(|line| line.summary.ended_stage)
        .map_or_else(|| "FAIL".to_owned(), |stage| plain(&stage))
}

/// The last line that the program printed for people.
pub(crate) async fn last_words(folder: &Path) -> String {
    let printed = tokio::fs::read(folder.join("stderr"))
        .await
        .unwrap_or_default();
    let printed = String::from_utf8_lossy(&printed);
    let last = printed
        .lines()
        .rfind(|line| !line.trim().is_empty())
        .unwrap_or("it said nothing");
    plain(last)
}

/// Text of other programs, for one line of a terminal; the database takes no NUL.
fn plain(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_control())
        .take(LONGEST)
        .collect()
}
