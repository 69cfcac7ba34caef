//! Verifies a train: nothing is changed, and the commands of all its orders have to pass on its last commit.

use std::path::Path;

use anyhow::Context as _;
use code_commit_fleet_wire::{Member, Verdict, failing};

use crate::job::{DONE, FAILED, Job, last_words};
use crate::program::{Program, Start};

impl Job<'_> {
    /// Runs what each of them asks for, and names those whose commands fail.
    pub(crate) async fn verify_train(self, folder: &Path, repo: &Path) -> anyhow::Result<Verdict> {
        let members: Vec<Member> =
            serde_json::from_str(&self.lease.content).context("a train cannot be read")?;
        let mut failed = Vec::new();
        for Member { order, content } in members {
            let scratch = folder.join(format!("order-{order}"));
            tokio::fs::create_dir_all(&scratch).await?;
            let file = scratch.join("order.json");
            tokio::fs::write(&file, content)
                .await
                .context("an order cannot be written")?;
            let args: [&std::ffi::OsStr; 5] = [
                "check".as_ref(),
                "--order".as_ref(),
                file.as_ref(),
                "--sandbox".as_ref(),
                "auto".as_ref(),
            ];
            let program = Start {
                group: self.group()?,
                ..self.start(repo, &scratch)
            };
            let code = Program::start(program, args)?.wait().await?;
            match code {
                DONE => {}
                FAILED => failed.push(order),
                code => anyhow::bail!(
                    "order {order}: the program ended with {code}: {}",
                    last_words(&scratch).await
                ),
            }
        }
        if failed.is_empty() {
            return Ok(Verdict::Passed {
                commit: self.lease.base.clone(),
            });
        }
        Ok(Verdict::Failed {
            reason: failing(&failed),
        })
    }
}
