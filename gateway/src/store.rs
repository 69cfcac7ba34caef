//! The database: the only state that there is.

use std::time::Duration;

use anyhow::Context as _;
use deadpool_postgres::{Manager, ManagerConfig, Object, Pool, RecyclingMethod, Runtime, Timeouts};
use sha2::{Digest as _, Sha256};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Config, NoTls, Row};

use crate::money::Nanodollars;
use crate::relay::{Kept, Outcome};

/// The schema, as it grew. Number `n` makes version `n + 1` of version `n`.
const MIGRATIONS: [&str; 1] = [include_str!("../migrations/1.sql")];
const VERSION: &str = "CREATE TABLE IF NOT EXISTS schema_version (version integer NOT NULL)";
/// Any number: migrations of one database wait for each other.
const MIGRATING: &str = "SELECT pg_advisory_xact_lock(7310438)";
/// Any other number: one `serve` at a time.
pub(crate) const SERVING: &str = "SELECT pg_try_advisory_lock(7310439)";
/// A database that does not answer for this long is lost.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_secs(3);
const KEEPALIVES: &str = "-c tcp_user_timeout=10000 -c tcp_keepalives_idle=10 -c tcp_keepalives_interval=3 -c tcp_keepalives_count=3";
const CONNECTIONS: usize = 32;

/// A secret as the database knows it. It compares hashes, so the time that this takes says nothing of the secret.
pub(crate) type Hash = [u8; 32];

/// The hash of a secret.
pub(crate) fn hash(secret: &str) -> Hash {
    Sha256::digest(secret).into()
}

/// In hex.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A secret of 256 random bits.
pub(crate) fn secret() -> anyhow::Result<String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).context("the system has no random numbers")?;
    Ok(hex(&bytes))
}

/// Connections to the database.
#[derive(Debug, Clone)]
pub(crate) struct Store(Pool);

/// Whether a call may be made.
#[derive(Debug)]
pub(crate) enum Reserved {
    /// Make it, then [settle](Store::settle) it.
    Open(i64),
    /// It was made before.
    Kept(Kept),
    /// Not enough is left of the cap of this scope while other calls hold money.
    Held(Left),
    /// The cap of this scope would be passed.
    OverCap(Left),
    /// The token is not the order's newest one.
    Void,
}

/// A scope, and what is left of its cap.
#[derive(Debug)]
pub(crate) struct Left {
    pub(crate) scope: String,
    pub(crate) rest: Nanodollars,
}

impl Store {
    /// Connects when it is asked. The address is as in libpq, a URL or `host=… dbname=…`.
    pub(crate) fn open(address: &str) -> anyhow::Result<Self> {
        let mut config: Config = address
            .parse()
            .context("the database's address cannot be read")?;
        config.connect_timeout(PATIENCE).tcp_user_timeout(PATIENCE);
        config.keepalives_idle(PATIENCE).keepalives_interval(PAUSE);
        // The same on its side: a machine that is gone must not keep the lock of `serve` for hours.
        let options = config.get_options().unwrap_or_default();
        let options = format!("{options} {KEEPALIVES}");
        config.options(options);
        config.application_name("code-commit-gateway");
        let recycling_method = RecyclingMethod::Fast;
        let manager = Manager::from_config(config, NoTls, ManagerConfig { recycling_method });
        let pool = Pool::builder(manager)
            .max_size(CONNECTIONS)
            .runtime(Runtime::Tokio1)
            .timeouts(Timeouts {
                wait: Some(PATIENCE),
                create: Some(PATIENCE),
                recycle: Some(PATIENCE),
            })
            .build()?;
        Ok(Self(pool))
    }

    pub(crate) async fn client(&self) -> anyhow::Result<Object> {
        self.0.get().await.context("the database cannot be reached")
    }

    /// Runs one statement.
    pub(crate) async fn rows(
        &self,
        statement: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> anyhow::Result<Vec<Row>> {
        let client = self.client().await?;
        let statement = client.prepare_cached(statement).await?;
        Ok(client.query(&statement, values).await?)
    }

    /// Runs one statement that gives exactly one row.
    pub(crate) async fn row(
        &self,
        statement: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> anyhow::Result<Row> {
        let rows = self.rows(statement, values).await?;
        rows.into_iter().next().context("the database gave no row")
    }

    /// Applies what is missing of the schema. A newer one is refused: its rows have rules that this version does not know.
    pub(crate) async fn migrate(&self) -> anyhow::Result<()> {
        let mut client = self.client().await?;
        let all = client.transaction().await?;
        all.batch_execute(MIGRATING).await?;
        all.batch_execute(VERSION).await?;
        let found: i32 = all
            .query_one("SELECT coalesce(max(version), 0) FROM schema_version", &[])
            .await?
            .get(0);
        let known = i32::try_from(MIGRATIONS.len())?;
        anyhow::ensure!(
            found <= known,
            "the database has schema {found}, and this version knows schemas up to {known}; run a newer code-commit-gateway"
        );
        for migration in MIGRATIONS.iter().skip(usize::try_from(found)?) {
            all.batch_execute(migration).await?;
        }
        all.batch_execute("DELETE FROM schema_version").await?;
        all.execute("INSERT INTO schema_version VALUES ($1)", &[&known])
            .await?;
        Ok(all.commit().await?)
    }

    /// Whether the account lacks what was spent since a backup.
    pub(crate) async fn is_restored(&self) -> anyhow::Result<bool> {
        Ok(self.row("SELECT is_restored()", &[]).await?.get(0))
    }

    /// Gives up all calls that an earlier `serve` left open; how many there were.
    pub(crate) async fn give_up_calls(&self) -> anyhow::Result<i64> {
        Ok(self
            .row("SELECT give_up_calls(NULL, NULL)", &[])
            .await?
            .get(0))
    }

    /// The order whose newest token this is.
    pub(crate) async fn holder(&self, token: &Hash) -> anyhow::Result<Option<i64>> {
        let rows = self
            .rows("SELECT id FROM holder($1)", &[&&token[..]])
            .await?;
        Ok(rows.first().map(|row| row.get(0)))
    }

    /// The answer to a request that the order of this token has asked before.
    pub(crate) async fn kept(&self, token: &Hash, request: &Hash) -> anyhow::Result<Option<Kept>> {
        let found = "SELECT content_type, answer FROM calls WHERE order_id = (SELECT id FROM holder($1)) \
                     AND request_sha256 = $2 AND answer IS NOT NULL";
        let rows = self.rows(found, &[&&token[..], &&request[..]]).await?;
        Ok(rows.first().map(|row| Kept {
            content_type: row.get(0),
            body: row.get(1),
        }))
    }

    /// Asks whether a call may be made, and reserves the most that it can cost.
    pub(crate) async fn reserve(
        &self,
        token: &Hash,
        request: &Hash,
        model: &str,
        most: Option<Nanodollars>,
    ) -> anyhow::Result<Reserved> {
        let most = most.map(|Nanodollars(most)| most);
        let values: [&(dyn ToSql + Sync); 4] = [&&token[..], &&request[..], &model, &most];
        let row = self
            .row("SELECT * FROM reserve($1, $2, $3, $4)", &values)
            .await?;
        let left = || Left {
            scope: row.get("short"),
            rest: Nanodollars(row.get("rest")),
        };
        Ok(match row.get("word") {
            "open" => Reserved::Open(row.get("call")),
            "kept" => Reserved::Kept(Kept {
                content_type: row.get("kept_type"),
                body: row.get("kept"),
            }),
            "held" => Reserved::Held(left()),
            "over-cap" => Reserved::OverCap(left()),
            _ => Reserved::Void,
        })
    }

    /// Gives back what is reserved for a call that is not made.
    pub(crate) async fn release(&self, order: i64, request: &Hash) -> anyhow::Result<()> {
        self.row("SELECT release($1, $2)", &[&order, &&request[..]])
            .await
            .map(drop)
    }

    /// Records how a call ended: answer and cost in one transaction.
    pub(crate) async fn settle(&self, call: i64, outcome: &Outcome) -> anyhow::Result<()> {
        let count = |tokens: Option<u64>| tokens.and_then(|tokens| i64::try_from(tokens).ok());
        let (mut state, mut money, mut tokens, mut answer) = ("unknown", None, (None, None), None);
        match outcome {
            Outcome::Unknown => {}
            Outcome::Failed => state = "failed",
            Outcome::Answered {
                kept,
                cost,
                input_tokens,
                output_tokens,
            } => {
                state = if kept.is_some() { "answered" } else { "wasted" };
                money = cost.map(|Nanodollars(cost)| cost);
                tokens = (count(*input_tokens), count(*output_tokens));
                answer = kept.as_ref();
            }
        }
        let content_type = answer.map(|kept| &kept.content_type);
        let body = answer.map(|kept| &kept.body);
        let values: [&(dyn ToSql + Sync); 7] = [
            &call,
            &state,
            &money,
            &tokens.0,
            &tokens.1,
            &content_type,
            &body,
        ];
        self.row("SELECT settle($1, $2, $3, $4, $5, $6, $7)", &values)
            .await
            .map(drop)
    }
}
