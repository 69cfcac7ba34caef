//! The page of an order's run, made by the product.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::Context as _;
use code_commit_fleet_git::git;
use code_commit_fleet_store::OrderRow;
use serde::Deserialize;
use tempfile::TempDir;
use tokio::process::Command;

/// Makes pages of exported runs.
#[derive(Debug)]
pub struct Maker {
    program: PathBuf,
}

/// The part that matters of what `import` says.
#[derive(Debug, Deserialize)]
struct Imported {
    run: String,
}

/// The file of an order's page; `None` if its run was not kept. Another run of the order has another name, so a page that is there
/// need not be made again.
pub fn name(row: &OrderRow) -> Option<String> {
    let sha256 = row.bundle.as_deref()?;
    Some(format!("order-{}-{}.html", row.order.0, sha256.get(..12)?))
}

impl Maker {
    /// With the product's program.
    pub fn new(program: PathBuf) -> Self {
        Self { program }
    }

    /// The page of an exported run, at `file`: all of it or nothing.
    pub async fn make(&self, bundle: &[u8], file: &Path) -> anyhow::Result<()> {
        // Runs belong to a project; this one is empty, and the run brings all that its page shows.
        let scratch = tempfile::tempdir().context("there is no room for a scratch folder")?;
        let project = scratch.path().join("project");
        tokio::fs::create_dir(&project).await?;
        git(&project, &["init", "-q", "."]).await?;
        tokio::fs::write(project.join("run.bundle"), bundle).await?;
        let imported = self
            .run(&project, &["import", "run.bundle", "--json"])
            .await?;
        let Imported { run } =
            serde_json::from_slice(&imported).context("the import says no name")?;
        self.run(&project, &["page", "-o", "../page.html", "--", &run])
            .await?;
        place(&scratch, file).await
    }

    /// Runs the program; what it prints.
    async fn run(&self, project: &Path, args: &[&str]) -> anyhow::Result<Vec<u8>> {
        #[expect(clippy::disallowed_methods, reason = "this module starts the product")]
        let mut product = Command::new(&self.program);
        product
            .args(args)
            .current_dir(project)
            .stdin(Stdio::null())
            .kill_on_drop(true);
        let done = product.output().await;
        let done = done.with_context(|| format!("{} cannot be started", self.program.display()))?;
        let said = String::from_utf8_lossy(&done.stderr);
        anyhow::ensure!(
            done.status.success(),
            "{args:?}: {}",
            code_commit_page::plain(said.trim())
        );
        Ok(done.stdout)
    }
}

/// The scratch folder may be on another disk.
async fn place(scratch: &TempDir, file: &Path) -> anyhow::Result<()> {
    let html = tokio::fs::read(scratch.path().join("page.html")).await?;
    let unfinished = file.with_extension("unfinished");
    tokio::fs::write(&unfinished, html).await?;
    Ok(tokio::fs::rename(unfinished, file).await?)
}
