//! `gc`.

use std::path::PathBuf;

use clap::Args;
use code_commit_fleet_git::Mirrors;
use code_commit_fleet_store::Store;

use crate::{Exit, print};

/// How old is old enough.
#[derive(Debug, Args)]
pub(crate) struct Gc {
    /// How long ago the orders ended, in days
    #[arg(long, value_name = "DAYS", default_value_t = 30)]
    older_than: u16,
    /// Also remove from the hubs what has landed, and what lost leases have pushed
    #[arg(long)]
    refs: bool,
    /// A folder for mirrors, for --refs
    #[arg(long, value_name = "DIR", default_value = "/var/lib/code-commit-fleet")]
    folder: PathBuf,
}

impl Gc {
    pub(crate) async fn run(&self, store: &Store, out: print::Out) -> anyhow::Result<Exit> {
        let days = i32::from(self.older_than);
        // First the hubs: if one cannot be reached, nothing is forgotten.
        let refs = if self.refs {
            self.remove_refs(store, days).await?
        } else {
            0
        };
        let bytes = store.collect(days).await?;
        let fact = serde_json::json!({ "freed_bytes": bytes, "removed_refs": refs });
        out.line(&fact, || {
            format!("freed {bytes} bytes, removed {refs} refs")
        });
        Ok(Exit::Done)
    }

    async fn remove_refs(&self, store: &Store, days: i32) -> anyhow::Result<usize> {
        let mirrors = Mirrors::new(std::path::absolute(self.folder.join("mirrors"))?);
        let (fleet, mut removed) = (store.name_in_hubs().await?, 0);
        for (hub, orders) in store.ended(days).await? {
            let mirror = mirrors.of(&hub).await?;
            let mut names = mirror.results().await?;
            names.retain(|name| {
                let of = code_commit_fleet_wire::of_result_ref(&fleet, name);
                of.is_some_and(|(order, epoch)| {
                    orders.get(&order).is_some_and(|keep| *keep != Some(epoch))
                })
            });
            mirror.remove(&names).await?;
            removed += names.len();
        }
        Ok(removed)
    }
}
