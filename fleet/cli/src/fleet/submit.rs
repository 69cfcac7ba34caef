//! `submit`.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use code_commit_fleet_git::{Branch, resolve};
use code_commit_fleet_store::{Nanodollars, NewOrder, OrderId, Request, Scope, Submitted};
use code_commit_llm::{Day, ModelId, Prices, Provider};
use code_commit_loop_order::WorkOrder;
use tracing::field::Empty;
use tracing::{Span, info_span};

use crate::fleet::Fleet;
use crate::{Exit, print};

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
    #[arg(long, value_name = "MODEL", default_value = "gemini-3.8-flash", value_parser = model)]
    model: ModelId,
    /// Whose they are; tenants take turns
    #[arg(long, value_name = "NAME", default_value = "default", value_parser = name)]
    tenant: String,
    /// Higher ones come first among a tenant's orders
    #[arg(
        long,
        value_name = "N",
        default_value_t = 0,
        allow_hyphen_values = true
    )]
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
    land: Option<Branch>,
}

impl Submit {
    pub(crate) async fn run(&self, fleet: &Fleet, out: print::Out) -> anyhow::Result<Exit> {
        let contents = self
            .files
            .iter()
            .map(|file| read(file))
            .collect::<anyhow::Result<Vec<_>>>()?;
        let base = resolve(&self.repo, &self.base).await?.to_string();
        if let Some(branch) = &self.land {
            let missing = || format!("--land {branch} needs a branch that the hub has");
            resolve(&self.repo, &branch.full())
                .await
                .with_context(missing)?;
        }
        self.check_price(fleet).await?;
        // Each order has a trace of its own, which begins here.
        let spans: Vec<Span> = contents
            .iter()
            .map(|_| info_span!("submit", tenant = self.tenant, order = Empty))
            .collect();
        let orders = contents
            .into_iter()
            .zip(&spans)
            .map(|(content, span)| self.order(content, &base, span));
        let max_cost_usd = self.max_cost.map(Nanodollars::as_usd);
        let submitted: Vec<Submitted> = fleet
            .ask(Request::Submit {
                orders: orders.collect(),
                max_cost_usd,
            })
            .await?;
        for ((submitted, file), span) in submitted.iter().zip(&self.files).zip(spans) {
            span.record("order", submitted.order.0);
            let word = if submitted.fresh {
                ""
            } else {
                " (was submitted before)"
            };
            out.line(submitted, || {
                format!("order {}: {}{word}", submitted.order.0, file.display())
            });
        }
        Ok(Exit::Done)
    }

    /// No cap can be kept with a model of which nobody knows what it costs, so the gateway makes no such call.
    async fn check_price(&self, fleet: &Fleet) -> anyhow::Result<()> {
        if has_price(&self.model)? {
            return Ok(());
        }
        let batch = self.batch.clone().map(|batch| Scope::Batch {
            tenant: self.tenant.clone(),
            batch,
        });
        let scopes = [
            Some(Scope::Fleet),
            Some(Scope::Tenant(self.tenant.clone())),
            batch.clone(),
        ];
        let scopes: Vec<String> = scopes.iter().flatten().map(Scope::to_string).collect();
        // A gateway does not tell everybody about caps; the order will say then that it is over budget.
        let budgets = match fleet {
            Fleet::Database(store) => store.budgets().await?,
            Fleet::Gateway(_) => Vec::new(),
        };
        let own = batch
            .filter(|_| self.max_cost.is_some())
            .map(|batch| batch.to_string());
        let capped = own.or_else(|| {
            budgets
                .into_iter()
                .map(|b| b.scope)
                .find(|scope| scopes.contains(scope))
        });
        let what = format!("the price of {} is not known", self.model);
        if let Some(scope) = capped {
            anyhow::bail!(
                "{what}, and {scope} has a cap, so these orders could never run; name another model, or submit without a cap"
            );
        }
        eprintln!("warning: {what}, so its calls are counted without their cost");
        Ok(())
    }

    fn order(&self, content: String, base: &str, span: &Span) -> NewOrder {
        NewOrder {
            tenant: self.tenant.clone(),
            batch: self.batch.clone(),
            repo: self.repo.clone(),
            base: base.to_owned(),
            content,
            model: self.model.to_string(),
            priority: self.priority,
            after: self.after.map(OrderId),
            land: self.land.as_ref().map(Branch::to_string),
            record: code_commit_fleet_wire::RECORD,
            traceparent: code_commit_fleet_traces::carry(span),
        }
    }
}

fn read(file: &Path) -> anyhow::Result<String> {
    let text = std::fs::read_to_string(file)
        .with_context(|| format!("{} cannot be read", file.display()))?;
    let problems = match WorkOrder::parse(text.as_bytes()) {
        Ok(order) if order.is_template() => {
            "intent: is that of the template; say what is wanted".to_owned()
        }
        Ok(_) => return Ok(text),
        Err(problems) => problems
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join("; "),
    };
    anyhow::bail!(
        "{} is not a work order: {problems}; fix it, then: code-commit order check {0}",
        file.display()
    )
}

/// Workers have no providers of their own and no files with answers: the gateway knows the built-in ones.
fn model(text: &str) -> Result<ModelId, String> {
    let model: ModelId = text.parse().map_err(|error| format!("{error}"))?;
    if Provider::built_in(model.provider()).is_some() {
        return Ok(model);
    }
    let known: Vec<&str> = Provider::all_built_in()
        .iter()
        .map(|provider| &*provider.name)
        .collect();
    Err(format!(
        "there is no provider `{}`; the fleet has {}",
        model.provider(),
        known.join(", ")
    ))
}

fn has_price(model: &ModelId) -> anyhow::Result<bool> {
    let today = jiff::Timestamp::now()
        .to_zoned(jiff::tz::TimeZone::UTC)
        .date()
        .to_string();
    let today = Day::try_from(today).context("the clock of this machine is wrong")?;
    Ok(Prices::built_in().of(model, None, &today).is_some())
}

/// They are parts of the names of scopes.
fn name(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if !text.is_empty() && text.chars().all(is_plain) {
        return Ok(text.to_owned());
    }
    Err("use letters, digits, dots, hyphens and underscores only".to_owned())
}
