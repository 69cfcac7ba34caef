//! One branch, one step further.

use std::sync::Arc;

use code_commit_fleet_git::{GitError, Mirror, Mirrors};
use code_commit_fleet_store::{Arrived, Fence, Landing, OrderId, Ready, State, Train};
use code_commit_fleet_wire::of_failing;
use tokio::sync::Mutex;
use tracing::{Instrument as _, Span};

use crate::{LandError, Round};

/// The most results of a train.
const LONGEST: usize = 16;
/// Results that are looked at for a train.
const LOOKED_AT: i64 = 64;
/// A hub that can be reached and refuses a push this often refuses the result.
const PATIENCE: u32 = 3;

/// How far a branch is.
#[derive(Debug)]
pub(crate) struct Progress {
    /// The most results of the next train: half of one that failed, twice one that arrived.
    size: usize,
    /// What is left of a train that failed: the next one takes nothing else, so that it arrives whatever comes meanwhile.
    rest: Vec<OrderId>,
    /// How often the hub has refused a push in a row.
    refusals: u32,
}

impl Default for Progress {
    fn default() -> Self {
        Self {
            size: LONGEST,
            rest: Vec::new(),
            refusals: 0,
        }
    }
}

/// A branch that results wait for.
#[derive(Debug)]
pub(crate) struct Branch {
    pub(crate) landing: Arc<Landing>,
    pub(crate) fleet: String,
    pub(crate) repo: String,
    pub(crate) name: String,
    pub(crate) progress: Arc<Mutex<Progress>>,
}

/// What a push of ours came to.
enum Pushed {
    Moved,
    /// Somebody else has just moved the branch, or the hub refused the push: try again in the next round.
    NotNow,
    /// The hub has refused it too often; with its last error.
    Never(String),
}

impl Branch {
    /// Ends, moves or couples a train, and lands what was verified on the head as it is.
    pub(crate) async fn step(&self, mirrors: &Mirrors) -> Result<Round, LandError> {
        let mirror = mirrors.of(&self.repo).await?;
        let mut progress = self.progress.lock().await;
        mirror.refresh().await?;
        let mut head = self.head(&mirror).await?;
        let mut round = Round::default();
        if let Some(train) = self.landing.train(&self.repo, &self.name).await? {
            match self.ride(&mirror, &mut progress, &train, &head).await? {
                None => return Ok(round),
                Some(ridden) => round = round.and(ridden),
            }
            head = self.head(&mirror).await?;
        }
        Ok(round.and(self.couple(&mirror, &mut progress, head).await?))
    }

    /// Lands or ends the train; `None` while a worker verifies it, or while its push has to be tried again.
    async fn ride(
        &self,
        mirror: &Mirror,
        progress: &mut Progress,
        train: &Train,
        head: &str,
    ) -> Result<Option<Round>, LandError> {
        if mirror.contains(head, &train.tip).await {
            // We were killed between the push and its record.
            return Ok(Some(self.arrived(mirror, progress, train).await?));
        }
        if head != train.base || !train.is_whole {
            self.dissolve(
                mirror,
                train,
                "its branch has moved, or one of its results was cancelled",
            )
            .await?;
            return Ok(Some(Round::default()));
        }
        match train.state {
            State::Passed => match self.push(mirror, progress, &train.tip, head).await? {
                Pushed::Moved => Ok(Some(self.arrived(mirror, progress, train).await?)),
                Pushed::NotNow => Ok(None),
                Pushed::Never(words) => Ok(Some(
                    self.fails(mirror, progress, train, head, &words).await?,
                )),
            },
            State::Queued | State::Leased => Ok(None),
            State::Dead => {
                let words = "the workers that verified it were lost too often";
                Ok(Some(
                    self.fails(mirror, progress, train, head, words).await?,
                ))
            }
            State::Failed | State::Stopped | State::Cancelled | State::Waiting | State::Landed => {
                let words = "its commands fail on the branch as it is now";
                Ok(Some(
                    self.fails(mirror, progress, train, head, words).await?,
                ))
            }
        }
    }

    async fn arrived(
        &self,
        mirror: &Mirror,
        progress: &mut Progress,
        train: &Train,
    ) -> Result<Round, LandError> {
        self.withdraw(mirror, train).await;
        let mut round = Round::default();
        for member in &train.members {
            let span = self.span(member.order, member.traceparent.as_deref());
            round = round.and(
                self.landed(member.order, &member.commit)
                    .instrument(span)
                    .await?,
            );
        }
        self.landing.arrived(train.id).await?;
        progress.size = (train.members.len() * 2).clamp(progress.size, LONGEST);
        let results = train.members.len();
        tracing::info!(
            branch = self.name,
            results,
            commit = train.tip,
            "a train has landed"
        );
        Ok(round)
    }

    /// Ends a train that failed. The results whose commands fail are carried out again, and the others go next. If most of them
    /// fail, or it is not known which, the next train is half as long instead: one bad result may break all the others.
    async fn fails(
        &self,
        mirror: &Mirror,
        progress: &mut Progress,
        train: &Train,
        head: &str,
        words: &str,
    ) -> Result<Round, LandError> {
        self.dissolve(mirror, train, words).await?;
        let mut bad = of_failing(train.reason.as_deref().unwrap_or_default());
        if let [only] = train.members.as_slice() {
            bad = vec![only.order.0];
        } else if bad.is_empty() || bad.len() * 2 > train.members.len() {
            progress.size = (train.members.len() / 2).max(1);
            return Ok(Round::default());
        }
        progress.rest = train
            .members
            .iter()
            .map(|member| member.order)
            .filter(|order| !bad.contains(&order.0))
            .collect();
        let mut round = Round::default();
        for ready in self
            .waiting()
            .await?
            .iter()
            .filter(|ready| bad.contains(&ready.order.0))
        {
            round = round.and(self.again(ready, head, words).await?);
        }
        progress.size = LONGEST;
        Ok(round)
    }

    /// The first results that wait for the branch.
    async fn waiting(&self) -> Result<Vec<Ready>, LandError> {
        Ok(self
            .landing
            .ready(&self.repo, &self.name, LOOKED_AT)
            .await?)
    }

    async fn dissolve(
        &self,
        mirror: &Mirror,
        train: &Train,
        reason: &str,
    ) -> Result<(), LandError> {
        tracing::info!(
            branch = self.name,
            train = train.id.0,
            reason,
            "a train ends"
        );
        self.withdraw(mirror, train).await;
        Ok(self.landing.dissolve(train.id, reason).await?)
    }

    /// Removes the ref under which workers fetch the train. After a crash it may be gone already.
    async fn withdraw(&self, mirror: &Mirror, train: &Train) {
        if let Err(error) = mirror.remove(&[self.offer(&train.tip)]).await {
            tracing::warn!(
                branch = self.name,
                error = &error as &dyn std::error::Error,
                "cannot remove the ref of a train"
            );
        }
    }

    /// Lands what was verified on the head, and makes a train of what was not.
    async fn couple(
        &self,
        mirror: &Mirror,
        progress: &mut Progress,
        mut head: String,
    ) -> Result<Round, LandError> {
        let mut round = Round::default();
        let mut members: Vec<Arrived> = Vec::new();
        let rest = std::mem::take(&mut progress.rest);
        let is_next = |ready: &Ready| rest.is_empty() || rest.contains(&ready.order);
        for ready in self.waiting().await?.into_iter().filter(is_next) {
            if members.len() == progress.size {
                break;
            }
            let span = self.span(ready.order, ready.traceparent.as_deref());
            let tip = members
                .last()
                .map_or(head.as_str(), |last| last.commit.as_str())
                .to_owned();
            match self.fit(mirror, progress, &ready, &head, &tip).await? {
                Fit::Never(words) => round = round.and(self.refuse(&ready, &words).await?),
                Fit::Landed => {
                    round = round.and(
                        self.landed(ready.order, &ready.commit)
                            .instrument(span)
                            .await?,
                    );
                }
                Fit::Not if tip == head => {
                    round = round.and(self.again(&ready, &head, "its branch has moved").await?);
                }
                // It may fit once those before it have landed.
                Fit::Not => {}
                Fit::Upon(commit) if commit == ready.commit && members.is_empty() => {
                    match self.push(mirror, progress, &commit, &head).await? {
                        Pushed::Moved => {
                            round = round
                                .and(self.landed(ready.order, &commit).instrument(span).await?);
                            head = commit;
                        }
                        Pushed::NotNow => return Ok(round),
                        Pushed::Never(words) => {
                            round = round.and(self.refuse(&ready, &words).await?)
                        }
                    }
                }
                Fit::Upon(commit) => {
                    let Ready {
                        order,
                        content,
                        traceparent,
                        ..
                    } = ready;
                    members.push(Arrived {
                        order,
                        commit,
                        content,
                        traceparent,
                    });
                }
            }
        }
        Ok(round.and(self.depart(mirror, &head, &members).await?))
    }

    /// Lets workers fetch the last commit of a train, and queues its verification.
    async fn depart(
        &self,
        mirror: &Mirror,
        head: &str,
        members: &[Arrived],
    ) -> Result<Round, LandError> {
        let Some(last) = members.last() else {
            return Ok(Round::default());
        };
        mirror
            .offer(&last.commit, &self.offer(&last.commit))
            .await?;
        self.landing.couple(head, members).await?;
        tracing::info!(
            branch = self.name,
            results = members.len(),
            commit = last.commit,
            "a train"
        );
        Ok(Round {
            trains: 1,
            ..Round::default()
        })
    }

    async fn fit(
        &self,
        mirror: &Mirror,
        progress: &mut Progress,
        ready: &Ready,
        head: &str,
        tip: &str,
    ) -> Result<Fit, GitError> {
        let Ready { commit, onto, .. } = ready;
        if let Err(error) = mirror.bring(commit).await {
            // The hub could be reached a moment ago.
            progress.refusals += 1;
            if progress.refusals < PATIENCE {
                return Err(error);
            }
            progress.refusals = 0;
            return Ok(Fit::Never(format!("its result is not there: {error}")));
        }
        if commit == onto || !mirror.contains(commit, onto).await {
            return Ok(Fit::Never(format!(
                "its result does not descend from {onto}"
            )));
        }
        if mirror.contains(head, commit).await {
            return Ok(Fit::Landed);
        }
        Ok(mirror
            .put_upon(tip, onto, commit)
            .await?
            .map_or(Fit::Not, Fit::Upon))
    }

    /// Moves the branch from `head` to a commit upon it.
    async fn push(
        &self,
        mirror: &Mirror,
        progress: &mut Progress,
        commit: &str,
        head: &str,
    ) -> Result<Pushed, LandError> {
        if !self.landing.holds().await? {
            return Err(LandError::Gone);
        }
        let Err(error) = mirror.advance(&self.name, commit).await else {
            progress.refusals = 0;
            return Ok(Pushed::Moved);
        };
        mirror.refresh().await?;
        if self.head(mirror).await? != head {
            return Ok(Pushed::NotNow);
        }
        progress.refusals += 1;
        if progress.refusals < PATIENCE {
            tracing::warn!(
                branch = self.name,
                error = &error as &dyn std::error::Error,
                "the hub refuses"
            );
            return Ok(Pushed::NotNow);
        }
        progress.refusals = 0;
        Ok(Pushed::Never(format!("the hub refuses it: {error}")))
    }

    /// A span below that of the order's submission.
    fn span(&self, order: OrderId, traceparent: Option<&str>) -> Span {
        let span = tracing::info_span!("land", order = order.0, branch = self.name);
        code_commit_fleet_traces::follow(&span, traceparent);
        span
    }

    async fn landed(&self, order: OrderId, commit: &str) -> Result<Round, LandError> {
        let fence = self.landing.landed(order, commit).await?;
        tracing::info!(
            order = order.0,
            branch = self.name,
            commit,
            ?fence,
            "landed"
        );
        Ok(Round {
            landed: usize::from(fence == Fence::Held),
            ..Round::default()
        })
    }

    async fn again(&self, ready: &Ready, head: &str, reason: &str) -> Result<Round, LandError> {
        let fence = self.landing.again(ready, head, reason).await?;
        tracing::info!(
            order = ready.order.0,
            branch = self.name,
            head,
            reason,
            ?fence,
            "carried out again"
        );
        Ok(Round {
            again: usize::from(fence == Fence::Held),
            ..Round::default()
        })
    }

    async fn refuse(&self, ready: &Ready, reason: &str) -> Result<Round, LandError> {
        let fence = self.landing.refused(ready, reason).await?;
        tracing::warn!(
            order = ready.order.0,
            branch = self.name,
            reason,
            ?fence,
            "cannot land"
        );
        Ok(Round {
            refused: usize::from(fence == Fence::Held),
            ..Round::default()
        })
    }

    /// The ref under which workers fetch a train.
    fn offer(&self, tip: &str) -> String {
        format!("refs/fleet/{}/trains/{tip}", self.fleet)
    }

    async fn head(&self, mirror: &Mirror) -> Result<String, GitError> {
        let missing = || GitError::Failed {
            command: "rev-parse".into(),
            message: format!("{} has no branch {}", self.repo, self.name),
        };
        mirror.head(&self.name).await.ok_or_else(missing)
    }
}

/// How a result and its branch fit together.
enum Fit {
    /// It can never land, for this reason.
    Never(String),
    /// The branch has it.
    Landed,
    /// It fits as this commit.
    Upon(String),
    /// It conflicts with what is there.
    Not,
}
