//! Orders, leases, budgets and kept answers in PostgreSQL.
//!
//! Takes facts from gateways and people, gives orders to one worker at a time. This is the only crate that knows SQL. Each
//! transition is one function and one transaction, and each one that a worker causes is fenced by the token of its lease: whoever
//! has an old token changes nothing. All times are the database's, so that the clocks of other machines do not matter.
//!
//! It never calls a model, starts no process and reads no files.
//!
//! Limits: an order is text of at most 1 MiB (the product's own bound); a bundle is one row, so artifacts end at 1 GB.

mod artifacts;
mod budget;
mod calls;
mod land;
mod perform;
mod queue;
mod schema;
mod state;
mod steer;
mod submit;
mod sweep;
mod tls;
mod tokens;
mod views;

pub use budget::{Budget, Scope};
pub use calls::{CallId, Kept, Need, Outcome, Reserved};
pub use land::{Arrived, Landing, Ready, Train};
pub use perform::{PAGE, Refusal, Request, Rights};
pub use queue::{Fence, Leased, Terms};
pub use state::State;
pub use steer::{Pause, PauseKind, WorkerRow};
pub use submit::{NewOrder, Submitted};
pub use tokens::{Role, Token};
pub use views::{Cost, Event, Filter, OrderRow, Snapshot};

use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod};
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{AsyncMessage, NoTls, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

/// Connections of one process; a request beyond that waits for one.
const CONNECTIONS: usize = 16;
/// A peer that is cut off for this long is gone, for both ends of a connection. TCP alone would wait for hours.
const CUT_OFF: Duration = Duration::from_secs(20);
/// Settings of each session. A process that stops in the middle of a transaction must not hold rows that others wait for, nor may
/// one that is cut off hold the right to land.
const SESSION: &str = "-c idle_in_transaction_session_timeout=5s -c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 \
    -c tcp_keepalives_count=2 -c tcp_user_timeout=20s";
/// The channel that tells of queued orders and settled calls; the schema's functions name it, too.
const QUEUED: &str = "fleet_queued";

/// An order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OrderId(pub i64);

/// A running gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GatewayId(i64);

/// Billionths of a US dollar.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Nanodollars(pub i64);

impl Nanodollars {
    /// Rounded up, so that a sum of reservations is never too small; `None` if it is not an amount of money.
    pub fn from_usd(usd: f64) -> Option<Self> {
        const MOST: f64 = 1e6;
        #[expect(clippy::cast_possible_truncation, reason = "0 to 10¹⁵")]
        (0.0..=MOST)
            .contains(&usd)
            .then(|| Self((usd * 1e9).ceil() as i64))
    }

    /// For people.
    #[expect(
        clippy::cast_precision_loss,
        reason = "exact enough for any sum that is shown"
    )]
    pub fn as_usd(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

/// The database cannot do it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// It cannot be reached.
    #[error("the database cannot be reached")]
    Connect(#[from] PoolError),
    /// It refused a statement, or went away in the middle of one.
    #[error("the database failed")]
    Query(#[from] tokio_postgres::Error),
    /// Its address cannot be read.
    #[error("the address of the database cannot be read")]
    Address(#[source] tokio_postgres::Error),
    /// The file of its authority cannot be used.
    #[error("{file} cannot be used: {why}")]
    Authority {
        /// As `PGSSLROOTCERT` names it.
        file: String,
        /// What is wrong with it.
        why: String,
    },
    /// A migration failed.
    #[error("the migration failed")]
    Migration(#[from] refinery::Error),
    /// A newer version of the fleet has migrated it.
    #[error(
        "the database has schema {found}, and this version knows {known}; install the newer version"
    )]
    Newer {
        /// In the database.
        found: i32,
        /// The newest that this version knows.
        known: i32,
    },
    /// It was not migrated yet.
    #[error(
        "the database has schema {found}, and this version needs {known}; run `code-commit-fleet migrate`"
    )]
    Older {
        /// In the database; 0 if it is empty.
        found: i32,
        /// The newest that this version knows.
        known: i32,
    },
    /// The schema has a word that this version does not know.
    #[error("the database says `{0}`, which this version does not know")]
    Word(String),
    /// The results of a train cannot be read or written.
    #[error("a train holds no results")]
    Train(#[source] serde_json::Error),
    /// There is no such order.
    #[error("there is no order {0}")]
    NoOrder(i64),
    /// Nobody's order may begin on what another tenant left, or in another repository.
    #[error(
        "order {0} belongs to another tenant or repository; --after needs an order of the same ones"
    )]
    Elsewhere(i64),
    /// Workers are not a tenant's.
    #[error("a worker carries out the orders of all tenants; drop --tenant")]
    WorkerOfTenant,
}

/// The database of a fleet.
#[derive(Clone)]
pub struct Store {
    pool: Pool,
    config: tokio_postgres::Config,
    tls: Option<MakeRustlsConnect>,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store")
            .field("is_encrypted", &self.tls.is_some())
            .finish_non_exhaustive()
    }
}

impl Store {
    /// A store with the right schema.
    pub async fn open(address: &str) -> Result<Self, StoreError> {
        let store = Self::connect(address)?;
        schema::check(&store).await?;
        Ok(store)
    }

    /// Brings the schema up to date and opens the store. Several processes may do this at the same time.
    pub async fn migrate(address: &str) -> Result<Self, StoreError> {
        let store = Self::connect(address)?;
        schema::migrate(&store).await?;
        Ok(store)
    }

    fn connect(address: &str) -> Result<Self, StoreError> {
        let mut config: tokio_postgres::Config = address.parse().map_err(StoreError::Address)?;
        config
            .application_name("code-commit-fleet")
            .connect_timeout(Duration::from_secs(10));
        config
            .tcp_user_timeout(CUT_OFF)
            .keepalives_idle(CUT_OFF / 2)
            .keepalives_interval(CUT_OFF / 4);
        config.keepalives_retries(2);
        // The address may bring settings of its own, which come last and count.
        let settings = config
            .get_options()
            .map_or_else(|| SESSION.to_owned(), |own| format!("{SESSION} {own}"));
        config.options(settings);
        let tested = ManagerConfig {
            recycling_method: RecyclingMethod::Fast,
        };
        let tls = tls::from_environment()?;
        let manager = match tls.clone() {
            Some(tls) => Manager::from_config(config.clone(), tls, tested),
            None => Manager::from_config(config.clone(), NoTls, tested),
        };
        let pool = Pool::builder(manager).max_size(CONNECTIONS).build();
        // Only a missing runtime can prevent this, and none is asked for timeouts here.
        let pool = pool.map_err(|_| PoolError::NoRuntimeSpecified)?;
        Ok(Self { pool, config, tls })
    }

    async fn client(&self) -> Result<Object, StoreError> {
        Ok(self.pool.get().await?)
    }

    /// Wakes all who wait on `queued` when orders may have arrived, and whenever the connection is new: what was told before
    /// is lost. Returns when the connection ends; call it again.
    pub async fn listen(&self, queued: Arc<Notify>) -> Result<(), StoreError> {
        match self.tls.clone() {
            Some(tls) => self.listen_over(tls, queued).await,
            None => self.listen_over(NoTls, queued).await,
        }
    }

    async fn listen_over<T>(&self, tls: T, queued: Arc<Notify>) -> Result<(), StoreError>
    where
        T: MakeTlsConnect<Socket>,
        T::Stream: Send,
    {
        let (client, mut connection) = self.config.connect(tls).await?;
        let told = Arc::clone(&queued);
        let mut messages = Box::pin(async move {
            while let Some(message) =
                std::future::poll_fn(|context| connection.poll_message(context)).await
            {
                if let AsyncMessage::Notification(_) = message? {
                    told.notify_waiters();
                }
            }
            Ok::<(), tokio_postgres::Error>(())
        });
        let listen = format!("LISTEN {QUEUED}");
        tokio::select! {
            // The statement is sent by the connection, so both have to be polled.
            ended = &mut messages => return Ok(ended?),
            listening = client.batch_execute(&listen) => listening?,
        }
        queued.notify_waiters();
        messages.await?;
        drop(client);
        Ok(())
    }
}

/// For `make_interval(secs => …)`.
fn seconds(duration: Duration) -> f64 {
    duration.as_secs_f64()
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
