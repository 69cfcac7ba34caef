//! `page`.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use code_commit_fleet_pages::{Fleet, Maker};
use code_commit_fleet_store::{OrderRow, Store};

use crate::{Exit, Which, print};

/// Where the page goes.
#[derive(Debug, Args)]
pub(crate) struct Page {
    /// A folder for `index.html` and the pages of orders; pages that it has already are kept
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// The program that makes pages of runs
    #[arg(long, value_name = "PATH", default_value = "code-commit")]
    program: PathBuf,
    #[command(flatten)]
    which: Which,
}

impl Page {
    pub(crate) async fn run(&self, store: &Store, out: print::Out) -> anyhow::Result<Exit> {
        let folder = &self.output;
        std::fs::create_dir_all(folder)
            .with_context(|| format!("{} cannot be made", folder.display()))?;
        let filter = self.which.filter();
        let (orders, costs) = (store.orders(&filter).await?, store.costs(&filter).await?);
        let made = self.make(store, &orders).await?;
        let files = std::fs::read_dir(folder)?.flatten();
        let files: BTreeSet<String> = files
            .filter_map(|file| file.file_name().into_string().ok())
            .collect();
        let budgets = store.budgets().await?;
        let html = code_commit_fleet_pages::html(&Fleet {
            orders: &orders,
            costs: &costs,
            budgets: &budgets,
            files: &files,
        });
        let index = folder.join("index.html");
        std::fs::write(&index, html)
            .with_context(|| format!("{} cannot be written", index.display()))?;
        let fact = serde_json::json!({ "file": index, "orders": orders.len(), "made": made });
        out.line(&fact, || {
            format!(
                "{}: {} orders, {made} new pages",
                index.display(),
                orders.len()
            )
        });
        Ok(Exit::Done)
    }

    /// Makes the pages that are missing; how many there were. A run without a page is only not linked.
    async fn make(&self, store: &Store, orders: &[OrderRow]) -> anyhow::Result<usize> {
        let maker = Maker::new(self.program.clone());
        let mut made = 0;
        for order in orders {
            let Some(file) =
                code_commit_fleet_pages::name(order).map(|name| self.output.join(name))
            else {
                continue;
            };
            if file.exists() {
                continue;
            }
            // It may have been collected meanwhile.
            let Some(bundle) = store.bundle(order.order).await? else {
                continue;
            };
            match maker.make(&bundle, &file).await {
                Ok(()) => made += 1,
                Err(error) => eprintln!("warning: order {} has no page: {error:#}", order.order.0),
            }
        }
        Ok(made)
    }
}
