//! The operator's commands. They ask the database, so they run where `serve` runs.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Subcommand;
use serde_json::{Map, Value};
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use crate::money::Nanodollars;
use crate::store::{Store, hash, secret};
use crate::wire::is_name;

/// A command of an operator.
#[derive(Debug, Subcommand)]
pub(crate) enum Admin {
    /// Make a batch of orders
    Batch {
        name: String,
        /// Whose money it spends
        #[arg(long, default_value = "default")]
        tenant: String,
    },
    /// Make a worker's token for one batch, which is printed once, or revoke one
    Token {
        /// A name for it
        name: String,
        /// The batch whose orders it may carry out
        #[arg(long, required_unless_present = "revoke")]
        batch: Option<String>,
        /// How many days it holds
        #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(i32).range(1..=3650))]
        days: i32,
        /// Make it void at once
        #[arg(long, conflicts_with = "batch")]
        revoke: bool,
    },
    /// Set the most that a scope may spend: all, tenant:NAME or batch:NAME
    Cap {
        scope: String,
        /// Dollars, or `none`
        usd: String,
    },
    /// Say what a scope has spent by the vendors' own lists, after a backup was restored
    Recount { scope: String, usd: Nanodollars },
    /// Show batches: orders by state, and money
    Status {
        #[command(flatten)]
        form: Form,
    },
    /// Show each order with its result, or write the bundle of its run folder
    Results {
        #[arg(long)]
        batch: Option<String>,
        /// Write the run folder of this order of the batch as a tar.zst file
        #[arg(long, value_name = "ORDER", requires = "batch", requires = "output")]
        bundle: Option<String>,
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
        #[command(flatten)]
        form: Form,
    },
    /// Show calls and their cost, by batch and model
    Costs {
        /// Show each call that was paid twice, or whose cost is not known and counts in full
        #[arg(long)]
        doubtful: bool,
        #[command(flatten)]
        form: Form,
    },
    /// Remove answers and bundles of orders that finished long ago; results and account stay
    Purge {
        /// How many days ago
        #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(i32).range(0..))]
        older_than: i32,
    },
}

/// How a table is printed.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Form {
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

const BATCH: &str = "
    WITH made AS (INSERT INTO batches (name, tenant) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING 1),
        scopes AS (INSERT INTO budgets (scope) SELECT s FROM made, unnest(ARRAY['batch:' || $1, 'tenant:' || $2]) s
            ON CONFLICT DO NOTHING)
    SELECT count(*) FROM made";
const TOKEN: &str = "
    INSERT INTO workers (name, sha256, batch, expires_at)
    SELECT $1::text, $2::bytea, name, now() + make_interval(days => $4) FROM batches WHERE name = $3 ON CONFLICT DO NOTHING RETURNING 1";
const REVOKE: &str =
    "UPDATE workers SET revoked_at = coalesce(revoked_at, now()) WHERE name = $1 RETURNING 1";
const CAP: &str = "UPDATE budgets SET cap = $2 WHERE scope = $1 RETURNING 1";
const RECOUNT: &str = "SELECT 1 WHERE recount($1, $2)";
const STATUS: &str = "
    SELECT b.name AS batch, b.tenant, o.passed, o.failed, o.begun, o.given_up, o.attempts,
        (SELECT count(*) FROM calls c JOIN orders o ON o.id = c.order_id WHERE o.batch = b.name AND c.state = 'open') AS open_calls,
        m.held AS held_usd, m.spent AS spent_usd, m.cap AS cap_usd, t.cap AS tenant_cap_usd, a.cap AS all_cap_usd
    FROM batches b JOIN budgets m ON m.scope = 'batch:' || b.name JOIN budgets t ON t.scope = 'tenant:' || b.tenant
        JOIN budgets a ON a.scope = 'all'
        CROSS JOIN LATERAL (SELECT count(*) FILTER (WHERE verdict = 'passed') AS passed,
            count(*) FILTER (WHERE verdict = 'failed') AS failed,
            count(*) FILTER (WHERE verdict IS NULL AND token_sha256 IS NOT NULL) AS begun,
            count(*) FILTER (WHERE verdict IS NULL AND token_sha256 IS NULL) AS given_up,
            coalesce(sum(attempts), 0)::bigint AS attempts FROM orders WHERE batch = b.name) o
    ORDER BY b.made_at, b.name";
const RESULTS: &str = "
    SELECT o.batch, o.name AS order, coalesce(o.verdict, '-') AS verdict, coalesce(o.reason, o.note) AS reason, o.commit, o.reference,
        o.attempts, c.calls, c.cost AS cost_usd, o.bundle
    FROM orders o CROSS JOIN LATERAL (SELECT count(*) AS calls,
        coalesce(sum(CASE WHEN state <> 'failed' THEN coalesce(cost, reserved) ELSE 0 END), 0)::bigint AS cost
        FROM calls WHERE order_id = o.id) c
    WHERE $1::text IS NULL OR o.batch = $1 ORDER BY o.id";
const BUNDLE: &str = "
    SELECT b.content FROM bundles b JOIN orders o ON o.id = b.order_id AND o.bundle = b.sha256 WHERE o.batch = $1 AND o.name = $2";
const COSTS: &str = "
    SELECT o.batch, c.model, count(*) AS calls, count(*) FILTER (WHERE c.state IN ('unknown', 'open')) AS unknown,
        count(*) FILTER (WHERE c.state = 'again') AS again,
        coalesce(sum(c.input_tokens), 0)::bigint AS input_tokens, coalesce(sum(c.output_tokens), 0)::bigint AS output_tokens,
        coalesce(sum(c.cost), 0)::bigint AS known_usd,
        coalesce(sum(c.reserved) FILTER (WHERE c.cost IS NULL AND c.state <> 'failed'), 0)::bigint AS assumed_usd
    FROM calls c JOIN orders o ON o.id = c.order_id GROUP BY 1, 2 ORDER BY 1, 2";
const DOUBTFUL: &str = "
    SELECT c.id AS call, o.batch, o.name AS order, c.token_number AS attempt, c.model, c.state, c.reserved AS reserved_usd,
        c.cost AS cost_usd, to_char(c.began_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') AS began_at
    FROM calls c JOIN orders o ON o.id = c.order_id WHERE c.state IN ('unknown', 'again') ORDER BY c.id";
const PURGE: &str = "
    WITH old AS (SELECT id FROM orders WHERE finished_at <= now() - make_interval(days => $1)),
        answers AS (UPDATE calls SET answer = NULL
            WHERE answer IS NOT NULL AND order_id IN (SELECT id FROM old) RETURNING 1),
        files AS (DELETE FROM bundles WHERE order_id IN (SELECT id FROM old) RETURNING 1)
    SELECT (SELECT count(*) FROM answers) AS answers, (SELECT count(*) FROM files) AS bundles";

impl Admin {
    /// Carries the command out.
    pub(crate) async fn run(self, store: &Store) -> anyhow::Result<()> {
        store.migrate().await?;
        match self {
            Self::Batch { name, tenant } => make_batch(store, &name, &tenant).await,
            Self::Token {
                name, revoke: true, ..
            } => {
                one(store, REVOKE, &[&name], || {
                    format!("there is no token `{name}`")
                })
                .await
            }
            Self::Token {
                name, batch, days, ..
            } => {
                let token = make_token(store, &name, &batch.unwrap_or_default(), days).await?;
                print(&token)
            }
            Self::Cap { scope, usd } => {
                set_cap(
                    store,
                    &scope,
                    if usd == "none" {
                        None
                    } else {
                        Some(usd.parse()?)
                    },
                )
                .await
            }
            Self::Recount { scope, usd } => {
                one(store, RECOUNT, &[&scope, &usd.0], || no_scope(&scope)).await
            }
            Self::Status { form } => table(&store.rows(STATUS, &[]).await?, &form),
            Self::Results {
                batch,
                bundle: Some(order),
                output,
                ..
            } => {
                let rows = store.rows(BUNDLE, &[&batch, &order]).await?;
                let row = rows.first().context("there is no bundle of this order")?;
                let output = output.context("a bundle needs --output")?;
                std::fs::write(&output, row.get::<_, &[u8]>(0))
                    .with_context(|| format!("{} cannot be written", output.display()))
            }
            Self::Results { batch, form, .. } => {
                table(&store.rows(RESULTS, &[&batch]).await?, &form)
            }
            Self::Costs {
                doubtful: true,
                form,
            } => table(&store.rows(DOUBTFUL, &[]).await?, &form),
            Self::Costs { form, .. } => table(&store.rows(COSTS, &[]).await?, &form),
            Self::Purge { older_than } => {
                let row = store.row(PURGE, &[&older_than]).await?;
                print(&format!(
                    "removed {} answers and {} bundles",
                    row.get::<_, i64>(0),
                    row.get::<_, i64>(1)
                ))
            }
        }
    }
}

fn no_scope(scope: &str) -> String {
    format!(
        "there is no scope `{scope}`: write all, tenant:NAME or batch:NAME; a batch comes before its cap"
    )
}

/// Each order of a batch, for people.
pub(crate) async fn show_results(store: &Store, batch: &str) -> anyhow::Result<()> {
    table(
        &store.rows(RESULTS, &[&Some(batch)]).await?,
        &Form::default(),
    )
}

/// What a scope may spend; `None`: whatever it likes.
pub(crate) async fn set_cap(
    store: &Store,
    scope: &str,
    cap: Option<Nanodollars>,
) -> anyhow::Result<()> {
    one(store, CAP, &[&scope, &cap.map(|cap| cap.0)], || {
        no_scope(scope)
    })
    .await
}

/// A batch that exists stays as it is, unless it is another tenant's.
pub(crate) async fn make_batch(store: &Store, name: &str, tenant: &str) -> anyhow::Result<()> {
    anyhow::ensure!(
        is_name(name) && is_name(tenant),
        "a name has up to 100 letters, digits, dots, dashes and underscores"
    );
    store.row(BATCH, &[&name, &tenant]).await?;
    let of = store
        .row("SELECT tenant FROM batches WHERE name = $1", &[&name])
        .await?;
    let of: String = of.get(0);
    anyhow::ensure!(of == tenant, "batch `{name}` belongs to tenant `{of}`");
    Ok(())
}

/// A new worker's token.
pub(crate) async fn make_token(
    store: &Store,
    name: &str,
    batch: &str,
    days: i32,
) -> anyhow::Result<String> {
    let token = secret()?;
    let made = store
        .rows(TOKEN, &[&name, &&hash(&token)[..], &batch, &days])
        .await?;
    anyhow::ensure!(
        made.len() == 1,
        "there is no batch `{batch}`, or there is a token `{name}` already"
    );
    Ok(token)
}

/// Changes one row, or says why there is none.
async fn one(
    store: &Store,
    statement: &str,
    values: &[&(dyn ToSql + Sync)],
    none: impl Fn() -> String,
) -> anyhow::Result<()> {
    anyhow::ensure!(store.rows(statement, values).await?.len() == 1, none());
    Ok(())
}

fn print(line: &str) -> anyhow::Result<()> {
    Ok(writeln!(std::io::stdout(), "{line}")?)
}

/// Prints rows as a table for people, or as objects for programs. Amounts are columns with `_usd` at the end.
fn table(rows: &[Row], form: &Form) -> anyhow::Result<()> {
    let Some(first) = rows.first() else {
        return if form.json {
            Ok(())
        } else {
            print("nothing yet")
        };
    };
    let names: Vec<&str> = first
        .columns()
        .iter()
        .map(tokio_postgres::Column::name)
        .collect();
    if form.json {
        return rows.iter().try_for_each(|row| {
            let cells = names
                .iter()
                .enumerate()
                .map(|(at, name)| ((*name).to_owned(), cell(row, at)));
            print(&Value::from(cells.collect::<Map<_, _>>()).to_string())
        });
    }
    let shown = |row| -> Vec<String> { (0..names.len()).map(|at| text(&cell(row, at))).collect() };
    let mut lines: Vec<Vec<String>> = vec![names.iter().map(|name| (*name).to_owned()).collect()];
    lines.extend(rows.iter().map(shown));
    let width = |at: usize| {
        lines
            .iter()
            .filter_map(|line| line.get(at))
            .map(|cell| cell.chars().count())
            .max()
    };
    let widths: Vec<usize> = (0..names.len()).map(|at| width(at).unwrap_or(0)).collect();
    lines.iter().try_for_each(|line| {
        let cells = line
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:width$}"));
        print(cells.collect::<Vec<_>>().join("  ").trim_end())
    })
}

fn cell(row: &Row, at: usize) -> Value {
    let column = row.columns().get(at);
    let is_number = column.is_some_and(|column| matches!(*column.type_(), Type::INT8 | Type::INT4));
    if !is_number {
        return row.get::<_, Option<String>>(at).into();
    }
    let number = row
        .try_get::<_, Option<i64>>(at)
        .unwrap_or_else(|_| row.get::<_, Option<i32>>(at).map(i64::from));
    // Dollars as text: a float would not hold all digits.
    if column.is_some_and(|column| column.name().ends_with("_usd")) {
        return number.map(|number| Nanodollars(number).to_string()).into();
    }
    number.into()
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}
