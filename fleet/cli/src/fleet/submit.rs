//! `submit`.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use code_commit_fleet_store::{Nanodollars, NewOrder, OrderId, Scope, Store};
use tracing::field::Empty;
use tracing::{Span, info_span};

use crate::{Exit, print};

/// The product reads no larger order.
const LARGEST: usize = 1 << 20;

/// Orders and what holds for all of them.
#[derive(Debug, Args)]
pub(crate) struct Submit {
    /// Work orders, as for `code-commit order run`
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The repository, as for `git clone`; workers push results to it
    #[arg(long, value_name = "URL")]
    repo: String,
    /// The commit that the orders change: a branch, a tag, or a commit in full
    #[arg(long, value_name = "REV")]
    base: String,
    /// The model, as for `code-commit order run --llm-model`
    #[arg(long, value_name = "MODEL", default_value = "gemini-3.8-flash")]
    model: String,
    /// Whose they are; tenants take turns
    #[arg(long, value_name = "NAME", default_value = "default", value_parser = name)]
    tenant: String,
    /// Higher ones come first among a tenant's orders
    #[arg(long, value_name = "N", default_value_t = 0, allow_hyphen_values = true)]
    priority: i32,
    /// Begin when this order has passed, or has landed if it is to land, on what it left
    #[arg(long, value_name = "ORDER")]
    after: Option<i64>,
    /// A name for these orders
    #[arg(long, value_name = "NAME", value_parser = name)]
    batch: Option<String>,
    /// The most that the batch may cost, in US dollars
    #[arg(long, value_name = "USD", requires = "batch", value_parser = crate::usd)]
    max_cost: Option<Nanodollars>,
    /// Move this branch to each result, one after the other
    #[arg(long, value_name = "BRANCH")]
    land: Option<String>,
}

impl Submit {
    pub(crate) async fn run(&self, store: &Store, out: print::Out) -> anyhow::Result<Exit> {
        let contents = self.files.iter().map(|file| read(file)).collect::<anyhow::Result<Vec<_>>>()?;
        let base = code_commit_fleet_git::resolve(&self.repo, &self.base).await?.to_string();
        // Before the orders, so that none of them can begin without it.
        if let (Some(batch), Some(cap)) = (&self.batch, self.max_cost) {
            store.cap(&Scope::Batch { tenant: self.tenant.clone(), batch: batch.clone() }, cap).await?;
        }
        // Each order has a trace of its own, which begins here.
        let spans: Vec<Span> =
            contents.iter().map(|_| info_span!("submit", tenant = self.tenant, order = Empty)).collect();
        let orders = contents.into_iter().zip(&spans).map(|(content, span)| self.order(content, &base, span));
        let submitted = store.submit(&orders.collect::<Vec<_>>()).await?;
        for ((submitted, file), span) in submitted.iter().zip(&self.files).zip(spans) {
            span.record("order", submitted.order.0);
            let word = if submitted.fresh { "" } else { " (was submitted before)" };
            out.line(submitted, || format!("order {}: {}{word}", submitted.order.0, file.display()));
        }
        Ok(Exit::Done)
    }

    fn order(&self, content: String, base: &str, span: &Span) -> NewOrder {
        NewOrder {
            tenant: self.tenant.clone(),
            batch: self.batch.clone(),
            repo: self.repo.clone(),
            base: base.to_owned(),
            content,
            model: self.model.clone(),
            priority: self.priority,
            after: self.after.map(OrderId),
            land: self.land.clone(),
            record: code_commit_fleet_wire::RECORD,
            traceparent: code_commit_fleet_traces::carry(span),
        }
    }
}

fn read(file: &Path) -> anyhow::Result<String> {
    let text = std::fs::read_to_string(file).with_context(|| format!("{} cannot be read", file.display()))?;
    anyhow::ensure!(text.len() <= LARGEST, "{} is larger than 1 MiB", file.display());
    // The fields are checked by `code-commit order check` and by the run itself.
    let _: serde_json::Value =
        serde_json::from_str(&text).with_context(|| format!("{} is not JSON", file.display()))?;
    Ok(text)
}

/// They are parts of the names of scopes.
fn name(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if !text.is_empty() && text.chars().all(is_plain) {
        return Ok(text.to_owned());
    }
    Err("use letters, digits, dots, hyphens and underscores only".to_owned())
}
