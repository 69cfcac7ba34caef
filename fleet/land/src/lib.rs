//! The merge queue: moves branches to results.
//!
//! A result that was verified on the branch's head moves the branch at once. Others are put upon one another as a train, on the
//! head that the branch is going to have; a worker runs the commands of all of them on the last commit, and then the branch moves
//! there. A train that fails is bisected. A result that does not fit, or that fails alone, is carried out again on the head as it is.
//!
//! Idempotent: a branch that has moved already is noticed, so it may be killed between any two steps. Only one process has the
//! right to land, and no push is forced, so people may push at the same time; a train whose branch has moved ends at once.
//!
//! A worker says what has passed, but what it says is not taken for what git shows: a result that does not descend from the
//! commit that it was verified on has failed, and a train lands as it was put together here, whatever its worker names.
//!
//! Hubs are visited at the same time, each by one task, so that one that does not answer keeps nobody waiting.

mod branch;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use code_commit_fleet_git::{GitError, Mirrors};
use code_commit_fleet_store::{Landing, Store, StoreError};
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use crate::branch::{Branch, Progress};

/// Why nothing more can be landed now.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LandError {
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The hub.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The right to land ended with the connection to the database.
    #[error("the right to land is gone")]
    Gone,
}

/// What became of results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Round {
    /// Their branch has moved.
    pub landed: usize,
    /// They are carried out again.
    pub again: usize,
    /// They cannot land.
    pub refused: usize,
    /// Trains that a worker will verify.
    pub trains: usize,
    /// Branches that could not be visited; the next round tries again.
    pub failed: usize,
}

impl Round {
    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            landed: self.landed + other.landed,
            again: self.again + other.again,
            refused: self.refused + other.refused,
            trains: self.trains + other.trains,
            failed: self.failed + other.failed,
        }
    }

    /// Nothing has changed.
    pub fn is_idle(self) -> bool {
        Self { failed: 0, ..self } == Self::default()
    }
}

/// The right to land, at work.
#[derive(Debug)]
pub struct Lander {
    landing: Arc<Landing>,
    mirrors: Arc<Mirrors>,
    /// Of this fleet, in hubs.
    name: String,
    /// How far each branch is; lost with this process, and learned again.
    progress: BTreeMap<(String, String), Arc<Mutex<Progress>>>,
    visits: JoinSet<(String, Result<Round, LandError>)>,
    /// Hubs that are being visited.
    busy: BTreeSet<String>,
}

impl Lander {
    /// Takes the right to land; `None` if another process has it.
    pub async fn new(store: &Store, mirrors: Arc<Mirrors>) -> Result<Option<Self>, StoreError> {
        let Some(landing) = store.landing().await? else {
            return Ok(None);
        };
        Ok(Some(Self {
            landing: Arc::new(landing),
            mirrors,
            name: store.name_in_hubs().await?,
            progress: BTreeMap::new(),
            visits: JoinSet::new(),
            busy: BTreeSet::new(),
        }))
    }

    /// Visits each hub that has something to do and is not being visited. What has come of visits, these and earlier ones.
    pub async fn round(&mut self) -> Result<Round, LandError> {
        if !self.landing.holds().await? {
            return Err(LandError::Gone);
        }
        let mut hubs: BTreeMap<String, Vec<Branch>> = BTreeMap::new();
        for key in self.landing.branches().await? {
            let progress = Arc::clone(self.progress.entry(key.clone()).or_default());
            let (repo, name) = key;
            let branch = Branch {
                landing: Arc::clone(&self.landing),
                fleet: self.name.clone(),
                repo: repo.clone(),
                name,
                progress,
            };
            hubs.entry(repo).or_default().push(branch);
        }
        for (repo, branches) in hubs {
            if self.busy.insert(repo.clone()) {
                self.visits
                    .spawn(visit(Arc::clone(&self.mirrors), repo, branches));
            }
        }
        let mut round = Round::default();
        while let Some(ended) = self.visits.try_join_next() {
            round = round.and(self.ended(ended)?);
        }
        Ok(round)
    }

    /// Like [`Self::round`], but waits until all visits have ended.
    pub async fn whole_round(&mut self) -> Result<Round, LandError> {
        let mut round = self.round().await?;
        while let Some(ended) = self.visits.join_next().await {
            round = round.and(self.ended(ended)?);
        }
        Ok(round)
    }

    fn ended(
        &mut self,
        ended: Result<(String, Result<Round, LandError>), tokio::task::JoinError>,
    ) -> Result<Round, LandError> {
        // A visit that panicked leaves its hub busy: nothing is landed there until the next start.
        let Ok((repo, round)) = ended else {
            return Ok(Round {
                failed: 1,
                ..Round::default()
            });
        };
        self.busy.remove(&repo);
        round
    }
}

/// Takes each branch of a hub one step further.
async fn visit(
    mirrors: Arc<Mirrors>,
    repo: String,
    branches: Vec<Branch>,
) -> (String, Result<Round, LandError>) {
    let mut all = Round::default();
    for branch in branches {
        match branch.step(&mirrors).await {
            Ok(round) => all = all.and(round),
            Err(LandError::Git(error)) => {
                let branch = &branch.name;
                tracing::error!(
                    repo,
                    branch,
                    error = &error as &dyn std::error::Error,
                    "cannot land"
                );
                all.failed += 1;
            }
            Err(error) => return (repo, Err(error)),
        }
    }
    (repo, Ok(all))
}
