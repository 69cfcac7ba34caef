//! The merge queue: moves branches to results, one after the other.
//!
//! A result that was verified on the branch's head is a fast-forward. One that was not goes back to the queue and is carried out
//! on the new head: what lands has always been verified on exactly what it lands on. Kept answers make that free as long as the
//! order's context is unchanged.
//!
//! Idempotent: a branch that has moved already is noticed, so it may be killed between any two steps. Only one process has the
//! right to land, and no push is forced, so people may push at the same time.
//!
//! A worker says what has passed, but what it says is not taken for what git shows: a result that does not descend from the
//! commit that it was verified on has failed.

use code_commit_fleet_git::{GitError, Mirror, Mirrors};
use code_commit_fleet_store::{Fence, Landed, Landing, StoreError};
use tracing::Instrument as _;

/// Why nothing more can be landed now.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LandError {
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The right to land ended with the connection to the database.
    #[error("the right to land is gone")]
    Gone,
}

/// The outcome of one pass over the results that were ready.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Round {
    /// Their branch has moved.
    pub landed: usize,
    /// They are carried out again.
    pub moved: usize,
    /// They do not descend from what they were verified on.
    pub refused: usize,
    /// Their hub cannot be reached or refuses; the next round tries again.
    pub failed: usize,
}

impl Round {
    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            landed: self.landed + other.landed,
            moved: self.moved + other.moved,
            refused: self.refused + other.refused,
            failed: self.failed + other.failed,
        }
    }
}

/// Takes the next result for each branch.
pub async fn round(landing: &mut Landing, mirrors: &Mirrors) -> Result<Round, LandError> {
    let mut round = Round::default();
    for result in landing.ready().await? {
        if !landing.holds().await? {
            return Err(LandError::Gone);
        }
        let span = tracing::info_span!("land", order = result.order.0, branch = result.branch);
        code_commit_fleet_traces::follow(&span, result.traceparent.as_deref());
        match decide(mirrors, &result).instrument(span).await {
            Ok(Decision::Landed) => {
                let fence = landing.landed(&result).await?;
                tracing::info!(order = result.order.0, branch = result.branch, ?fence, "landed");
                round.landed += usize::from(fence == Fence::Held);
            }
            Ok(Decision::Moved(head)) => {
                let fence = landing.moved(&result, &head).await?;
                tracing::info!(
                    order = result.order.0,
                    branch = result.branch,
                    head,
                    ?fence,
                    "its branch has moved"
                );
                round.moved += usize::from(fence == Fence::Held);
            }
            Ok(Decision::Foreign) => {
                let fence = landing.refused(&result).await?;
                tracing::warn!(
                    order = result.order.0,
                    branch = result.branch,
                    commit = result.commit,
                    onto = result.onto,
                    ?fence,
                    "does not descend from what it was verified on"
                );
                round.refused += usize::from(fence == Fence::Held);
            }
            Err(error) => {
                tracing::error!(
                    order = result.order.0,
                    branch = result.branch,
                    error = &error as &dyn std::error::Error,
                    "cannot land"
                );
                round.failed += 1;
            }
        }
    }
    Ok(round)
}

enum Decision {
    /// The result is in the branch's history.
    Landed,
    /// The branch is here, and the result was not verified on it.
    Moved(String),
    /// The result does not descend from what it was verified on.
    Foreign,
}

async fn decide(mirrors: &Mirrors, result: &Landed) -> Result<Decision, GitError> {
    let Landed { repo, branch, onto, commit, .. } = result;
    let mirror = mirrors.of(repo).await?;
    mirror.refresh().await?;
    mirror.bring(commit).await?;
    if !mirror.contains(commit, onto).await {
        return Ok(Decision::Foreign);
    }
    let head = head(&mirror, result).await?;
    if mirror.contains(&head, commit).await {
        // A push that we did not live to record.
        return Ok(Decision::Landed);
    }
    if head != *onto {
        return Ok(Decision::Moved(head));
    }
    mirror.advance(branch, commit).await?;
    Ok(Decision::Landed)
}

async fn head(mirror: &Mirror, result: &Landed) -> Result<String, GitError> {
    let Landed { repo, branch, .. } = result;
    let missing = || GitError::Failed {
        command: "rev-parse".into(),
        message: format!("{repo} has no branch {branch}"),
    };
    mirror.head(branch).await.ok_or_else(missing)
}
